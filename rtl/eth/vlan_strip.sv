// SPDX-License-Identifier: SHL-2.1
// Removes the 802.1Q tag of received frames and drops the frames of other VLANs.
// VLAN enabled: our VID and the priority tag (VID 0) pass; else untagged frames and the priority tag.
// Promise: each dropped good frame gives one pulse; no backpressure; a beat leaves when the
// next one is known. Source: IEEE 802.1Q clause 9.6.
module vlan_strip
  import eth_pkg::*;
#(
  parameter int unsigned DATA_W = 64,
  localparam int unsigned Bytes = DATA_W / 8
) (
  input  logic              clk,
  input  logic              rst,

  input  logic              enable,
  input  logic [11:0]       vid,

  input  logic [DATA_W-1:0] s_axis_tdata,
  input  logic [Bytes-1:0]  s_axis_tkeep,
  input  logic              s_axis_tvalid,
  input  logic              s_axis_tlast,
  input  logic              s_axis_tuser,  // at tlast: bad frame

  output logic [DATA_W-1:0] m_axis_tdata,
  output logic [Bytes-1:0]  m_axis_tkeep,
  output logic              m_axis_tvalid,
  output logic              m_axis_tlast,
  output logic              m_axis_tuser,

  output logic              stat_drop
);
  if (DATA_W != 64 && DATA_W != 512) begin : gen_bad_width
    $fatal(1, "%m: DATA_W = %0d, must be 64 or 512", DATA_W);
  end

  localparam int unsigned TagByte = 12;
  localparam int unsigned TagBeat = TagByte / Bytes;
  localparam int unsigned TagBit  = 8 * (TagByte % Bytes);
  localparam logic [15:0] TypeLanes = {<<8{VlanEtherType}};

  // ---- the kind of the frame, known with the beat that holds the tag ---------------------------
  logic [1:0]  index_q;                // beat of the frame, holds after the tag's
  logic        at_tag, has_tag, ours;
  logic [11:0] tag_vid;
  logic        with_tag, with_tag_q;       // the present beat is in or after the tag
  logic        foreign, foreign_q;     // the present beat's frame is dropped

  assign at_tag  = index_q == 2'(TagBeat);
  assign has_tag = s_axis_tdata[TagBit+:16] == TypeLanes && s_axis_tkeep[TagBit/8+3];
  assign tag_vid = {s_axis_tdata[TagBit+16+:4], s_axis_tdata[TagBit+24+:8]};
  assign ours    = has_tag ? tag_vid == '0 || (enable && tag_vid == vid) : !enable;

  // A frame that ends before the tag's place is no good anyway and passes with its mark.
  assign with_tag = at_tag ? has_tag : with_tag_q && index_q > 2'(TagBeat);
  assign foreign  = at_tag ? !ours : foreign_q && index_q > 2'(TagBeat);

  // ---- the beat held until its successor is there; of a tagged frame four octets short ----------
  logic [DATA_W-1:0] held_q;
  logic [Bytes-1:0]  held_keep_q;
  logic              held_valid_q, held_last_q, held_user_q, held_short_q, held_drop_q;
  logic              merges;           // the present beat ends the frame within the held one
  logic [DATA_W-1:0] shortened;

  assign shortened = at_tag ? DATA_W'({DATA_W'(s_axis_tdata[DATA_W-1:TagBit]) >> 32, s_axis_tdata[TagBit-1:0]})
                            : DATA_W'(s_axis_tdata[DATA_W-1:32]);
  assign merges    = held_valid_q && held_short_q && !held_last_q && s_axis_tlast && !s_axis_tkeep[4];

  logic drop;
  assign drop = held_drop_q || (TagBeat != 0 && s_axis_tvalid && at_tag && !ours && !held_last_q);

  always_comb begin
    m_axis_tdata  = held_q;
    m_axis_tkeep  = held_keep_q;
    m_axis_tlast  = held_last_q;
    m_axis_tuser  = held_user_q;
    m_axis_tvalid = held_valid_q && (s_axis_tvalid || held_last_q) && !drop;
    if (held_short_q && !held_last_q) begin
      m_axis_tdata[DATA_W-1-:32] = s_axis_tdata[31:0];
      m_axis_tkeep               = {s_axis_tkeep[3:0], {Bytes-4{1'b1}}};
      m_axis_tlast               = merges;
      m_axis_tuser               = merges && s_axis_tuser;
    end
  end

  always_ff @(posedge clk) begin
    if (s_axis_tvalid) begin
      held_q       <= with_tag ? shortened : s_axis_tdata;
      held_keep_q  <= with_tag ? s_axis_tkeep >> 4 : s_axis_tkeep;
      held_last_q  <= s_axis_tlast;
      held_user_q  <= s_axis_tuser;
      held_short_q <= with_tag;
      held_drop_q  <= foreign;
      held_valid_q <= !merges;
      with_tag_q   <= with_tag;
      foreign_q    <= foreign;
      index_q     <= s_axis_tlast ? '0 : index_q + 2'(index_q != 2'(TagBeat + 1));
    end else if (held_last_q) begin
      held_valid_q <= 1'b0;
    end
    stat_drop <= s_axis_tvalid && s_axis_tlast && !s_axis_tuser && foreign && !rst;
    if (rst) begin
      held_valid_q <= 1'b0;
      held_last_q  <= 1'b0;
      index_q      <= '0;
    end
  end

`ifndef SYNTHESIS
  a_keep : assert property (@(posedge clk) disable iff (rst)
    m_axis_tvalid |-> m_axis_tkeep[0] && (m_axis_tlast || m_axis_tkeep == '1));
`endif
endmodule
