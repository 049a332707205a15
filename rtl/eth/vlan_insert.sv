// SPDX-License-Identifier: SHL-2.1
// Inserts an 802.1Q tag after the addresses of every frame except MAC control, if VLAN is enabled.
// Promise: a frame whose beats come without a gap leaves without one; if the tag makes a frame a beat
// longer, the next frame waits for that cycle. Latency: 1 cycle.
// Source: IEEE 802.1Q clause 9.6 (tag control information: PCP, DEI = 0, VID).
//
//   | destination, source: 12 octets | 81 00 | PCP, VID | type and the rest, 4 octets later |
module vlan_insert
  import eth_pkg::*;
#(
  parameter int unsigned DATA_W = 64,
  parameter logic [15:0] ETHERTYPE = VlanEtherType,  // another tag of this form: CN-TAG
  localparam int unsigned Bytes = DATA_W / 8
) (
  input  logic              clk,
  input  logic              rst,

  input  vlan_cfg_t         cfg,

  input  logic [DATA_W-1:0] s_axis_tdata,
  input  logic [Bytes-1:0]  s_axis_tkeep,
  input  logic              s_axis_tvalid,
  output logic              s_axis_tready,
  input  logic              s_axis_tlast,
  input  logic [1:0]        s_axis_tuser,  // frame_kind_e

  output logic [DATA_W-1:0] m_axis_tdata,
  output logic [Bytes-1:0]  m_axis_tkeep,
  output logic              m_axis_tvalid,
  input  logic              m_axis_tready,
  output logic              m_axis_tlast
);
  if (DATA_W != 64 && DATA_W != 512) begin : gen_bad_width
    $fatal(1, "%m: DATA_W = %0d, must be 64 or 512", DATA_W);
  end

  localparam int unsigned TagByte = 12;
  localparam int unsigned TagBeat = TagByte / Bytes;
  localparam int unsigned TagBit  = 8 * (TagByte % Bytes);
  localparam logic [15:0] TypeLanes = {<<8{ETHERTYPE}};

  logic [1:0]  index_q;      // beat of the frame, holds after the tag's
  logic        with_tag, with_tag_q, at_tag, behind_tag;
  logic        spill_q;      // the last four octets still have to leave
  logic [3:0]  spill_keep_q;
  logic [31:0] carry_q, tag;
  logic        free, take, overflow;
  logic [2:0]  pcp;

  // The inputs of the tag are constant from a frame's first beat on.
  assign with_tag   = index_q == '0 ? cfg.enable && s_axis_tuser != FrameControl : with_tag_q;
  assign pcp        = s_axis_tuser == FrameRoce ? cfg.pcp_data : cfg.pcp_services;
  assign tag        = {cfg.vid[7:0], pcp, 1'b0, cfg.vid[11:8], TypeLanes};
  assign at_tag     = with_tag && index_q == 2'(TagBeat);
  assign behind_tag = with_tag && index_q == 2'(TagBeat + 1);

  assign free          = m_axis_tready || !m_axis_tvalid;
  assign s_axis_tready = free && !spill_q;
  assign take          = s_axis_tvalid && s_axis_tready;
  assign overflow      = with_tag && s_axis_tlast && s_axis_tkeep[Bytes-4];

  logic [DATA_W-1:0] inserted;
  assign inserted = DATA_W'({s_axis_tdata[DATA_W-1:TagBit], tag, s_axis_tdata[TagBit-1:0]});

  always_ff @(posedge clk) begin
    if (free) begin
      m_axis_tvalid <= s_axis_tvalid || spill_q;
      if (spill_q) begin
        m_axis_tdata <= DATA_W'(carry_q);
        m_axis_tkeep <= Bytes'(spill_keep_q);
        m_axis_tlast <= 1'b1;
      end else if (s_axis_tvalid) begin
        m_axis_tdata <= at_tag ? inserted : behind_tag ? {s_axis_tdata[DATA_W-33:0], carry_q} : s_axis_tdata;
        m_axis_tkeep <= with_tag ? {s_axis_tkeep[Bytes-5:0], 4'hF} : s_axis_tkeep;
        m_axis_tlast <= s_axis_tlast && !overflow;
      end
      spill_q <= take && overflow;
    end
    if (take) begin
      carry_q      <= s_axis_tdata[DATA_W-1-:32];
      spill_keep_q <= s_axis_tkeep[Bytes-1-:4];
      with_tag_q     <= with_tag;
      index_q      <= s_axis_tlast ? '0 : index_q + 2'(index_q != 2'(TagBeat + 1));
    end
    if (rst) begin
      m_axis_tvalid <= 1'b0;
      spill_q       <= 1'b0;
      index_q       <= '0;
    end
  end

`ifndef SYNTHESIS
  // A valid beat waits unchanged until it is taken (AMBA AXI-Stream 2.2.1).
  a_hold : assert property (@(posedge clk) disable iff (rst)
    m_axis_tvalid && !m_axis_tready
    |=> m_axis_tvalid && $stable({m_axis_tdata, m_axis_tkeep, m_axis_tlast}));
  a_whole_addresses : assert property (@(posedge clk) disable iff (rst)
    s_axis_tvalid && s_axis_tlast |-> index_q > 2'(TagBeat) || (index_q == 2'(TagBeat) && s_axis_tkeep[TagBit/8]))
    else $error("%m: a frame that ends within its addresses");
`endif
endmodule
