// SPDX-License-Identifier: SHL-2.1
// Taps the received frames for the network services: ours or broadcast, ARP or IPv4 but RoCEv2.
// Promise: whole good frames leave at 64 bits in their order; what is not for the services never
// leaves, and a frame without room is dropped whole and counted. Never any backpressure to the MAC
// (RFC 894, RFC 826; RoCEv2 is UDP port 4791, IBTA annex A17).
module service_rx
  import services_pkg::*;
#(
  parameter  int unsigned DATA_W      = 64,
  parameter  int unsigned STORE_BYTES = 32768,  // at least two jumbo frames
  localparam int unsigned Bytes       = DATA_W / 8
) (
  input  logic clk,
  input  logic rst,

  input  logic [47:0] local_mac,

  input  logic [DATA_W-1:0] s_axis_tdata,
  input  logic [Bytes-1:0]  s_axis_tkeep,
  input  logic              s_axis_tvalid,
  input  logic              s_axis_tlast,
  input  logic              s_axis_tuser,  // at tlast: the MAC found the frame bad

  output logic [63:0] m_axis_tdata,
  output logic [7:0]  m_axis_tkeep,
  output logic        m_axis_tvalid,
  input  logic        m_axis_tready,
  output logic        m_axis_tlast,

  output logic [15:0] level_bytes,  // of whole frames that wait

  output service_rx_stat_t stat
);
  import ip_pkg::*;

  if (DATA_W != 64 && DATA_W != 512) begin : g_bad_width
    $fatal(1, "%m: DATA_W = %0d, must be 64 or 512", DATA_W);
  end
  if (STORE_BYTES < 2 * JumboBytes) begin : g_bad_store
    $fatal(1, "%m: STORE_BYTES = %0d, must hold two frames of %0d bytes", STORE_BYTES, JumboBytes);
  end

  localparam int unsigned HeadBits = DATA_W > 320 ? DATA_W : 320;  // up to the UDP ports: 38 bytes
  localparam int unsigned Beats    = HeadBits / DATA_W;
  localparam int unsigned CountW   = $clog2(Bytes);                // bytes of the last beat, 0 = all
  localparam int unsigned LengthW  = 14 - CountW;                  // beats of a frame
  localparam int unsigned BeatsMax = (JumboBytes + Bytes - 1) / Bytes;

  // ---- the frame's first bytes ------------------------------------------------------------------
  // verilator lint_off UNUSEDSIGNAL
  logic [HeadBits-1:0] head_q;
  ip_head_t head;
  // verilator lint_on UNUSEDSIGNAL
  logic [LengthW-1:0] beat_q;  // held at its maximum
  logic end_q, bad_q, long_q;

  // Byte by byte: a streaming operator of this width is simulated bit by bit, once for each field that is used.
  logic [8*HeadBytes-1:0] head_lanes, head_bytes;
  assign head_lanes = (8 * HeadBytes)'(head_q);
  for (genvar i = 0; i < HeadBytes; i++) begin : g_head
    assign head_bytes[8*(HeadBytes-1-i)+:8] = head_lanes[8*i+:8];
  end
  assign head = head_bytes;

  always_ff @(posedge clk) begin
    if (s_axis_tvalid) begin
      for (int i = 0; i < int'(Beats); i++)
        if (beat_q == LengthW'(i)) head_q[i*int'(DATA_W)+:DATA_W] <= s_axis_tdata;
      if (s_axis_tlast) beat_q <= '0;
      else if (beat_q != '1) beat_q <= beat_q + 1'b1;
      bad_q  <= s_axis_tuser || 32'(beat_q) + 32'd1 < Beats;
      long_q <= 32'(beat_q) >= BeatsMax;
    end
    end_q <= s_axis_tvalid && s_axis_tlast && !rst;
    if (rst) beat_q <= '0;
  end

  // ---- whether the services want it, a cycle behind its last beat ---------------------------------
  // The ports are where they are without IP options; RoCEv2 with options is malformed and refused later.
  // verilator lint_off UNUSEDSIGNAL
  udp_hdr_t udp;
  // verilator lint_on UNUSEDSIGNAL
  logic ours, roce, wanted, keep, lost;

  assign udp    = head.l4;
  assign ours   = head.eth.dst == local_mac || head.eth.dst == MacBroadcast;
  assign roce   = head.eth.ethertype == EtherTypeIpv4 && head.ip.protocol == ProtocolUdp && udp.dport == PortRoce;
  assign wanted = ours && !roce && (head.eth.ethertype == EtherTypeArp || head.eth.ethertype == EtherTypeIpv4);
  assign keep   = wanted && !bad_q && !long_q;

  always_ff @(posedge clk) begin
    stat.rx_frames   <= end_q && keep && !lost && !rst;
    stat.rx_overflow <= end_q && wanted && !bad_q && (lost || long_q) && !rst;
    stat.rx_foreign  <= end_q && !wanted && !bad_q && !(ours && roce) && !rst;
  end

  // ---- whole frames ---------------------------------------------------------------------------------
  typedef struct packed {
    logic              last;
    logic [CountW-1:0] bytes;
    logic [DATA_W-1:0] data;
  } word_t;

  logic [$clog2(STORE_BYTES / Bytes):0] level;
  assign level_bytes = 16'(level) << CountW;

  word_t wr_word, rd_word;
  logic  rd_valid, rd_ready;

  assign wr_word = '{last: s_axis_tlast, bytes: CountW'($countones(s_axis_tkeep)), data: s_axis_tdata};

  frame_store #(
    .W    ($bits(word_t)),
    .DEPTH(STORE_BYTES / Bytes)
  ) u_store (
    .clk, .rst,
    .wr_data (wr_word),
    .wr_valid(s_axis_tvalid),
    .commit  (end_q && keep),
    .drop    (end_q && !keep),
    .full    (),
    .lost    (lost),
    .level   (level),
    .rd_data (rd_word),
    .rd_valid(rd_valid),
    .rd_ready(rd_ready)
  );

  // ---- down to 64 bits ----------------------------------------------------------------------------
  if (DATA_W == 64) begin : g_same
    assign rd_ready      = m_axis_tready;
    assign m_axis_tvalid = rd_valid;
    assign m_axis_tdata  = rd_word.data;
    assign m_axis_tlast  = rd_word.last;
    assign m_axis_tkeep  = rd_word.last ? lanes(rd_word.bytes) : '1;
  end else begin : g_narrow
    logic [CountW-4:0] lane_q, lane_last;
    assign lane_last     = rd_word.last ? (CountW - 3)'((rd_word.bytes - 1'b1) >> 3) : '1;
    assign rd_ready      = m_axis_tready && lane_q == lane_last;
    assign m_axis_tvalid = rd_valid;
    assign m_axis_tdata  = rd_word.data[64*lane_q+:64];
    assign m_axis_tlast  = rd_word.last && lane_q == lane_last;
    assign m_axis_tkeep  = m_axis_tlast ? lanes(rd_word.bytes[2:0]) : '1;
    always_ff @(posedge clk) begin
      if (m_axis_tvalid && m_axis_tready) lane_q <= rd_ready ? '0 : lane_q + 1'b1;
      if (rst) lane_q <= '0;
    end
  end

`ifndef SYNTHESIS
  a_hold : assert property (@(posedge clk) disable iff (rst)
    m_axis_tvalid && !m_axis_tready
    |=> m_axis_tvalid && $stable({m_axis_tdata, m_axis_tkeep, m_axis_tlast}));
`endif
endmodule
