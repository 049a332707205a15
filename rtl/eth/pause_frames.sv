// SPDX-License-Identifier: SHL-2.1
// Sends the peer the classes that it must stop, in pause or PFC frames: one when the set changes, and one when half of the
// requested quanta have passed. 802.3x pause stops the peer while any class is to be stopped.
// Promise: while a class is to be stopped the peer's timer never expires, provided that a frame is sent within half of
// the quanta. Source: IEEE 802.3 annex 31B.3 and 31D, IEEE 802.1Q clause 36.
module pause_frames
  import eth_pkg::*;
#(
  parameter int unsigned DATA_W    = 64,
  parameter int unsigned CLK_KHZ   = 156250,
  parameter int unsigned LINE_MBPS = 10000,
  localparam int unsigned Bytes    = DATA_W / 8
) (
  input  logic              clk,
  input  logic              rst,
  input  logic              tick,         // of eth_port: always, or less often on a slower line

  input  logic              enabled,
  input  logic              pfc,          // PFC, else pause
  input  logic [15:0]       quanta,
  input  logic [7:0]        stop,         // classes
  input  logic [47:0]       local_mac,

  output logic [DATA_W-1:0] m_axis_tdata,
  output logic [Bytes-1:0]  m_axis_tkeep,
  output logic              m_axis_tvalid,
  input  logic              m_axis_tready,
  output logic              m_axis_tlast,

  output logic              stat_pause,   // pulse: such a frame sent, XON too
  output logic              stat_pfc
);
  if (DATA_W != 64 && DATA_W != 512) begin : gen_bad_width
    $fatal(1, "%m: DATA_W = %0d, must be 64 or 512", DATA_W);
  end

  localparam int unsigned Beats = (MinFrameBytes + Bytes - 1) / Bytes;
  localparam logic [QuantaW-1:0] Step = quanta_per_cycle(LINE_MBPS, CLK_KHZ);

  // ---- when ------------------------------------------------------------------------------------
  logic [7:0]         reported_q;             // the classes last reported to the peer as stopped
  logic [QuantaW-1:0] refresh_q;          // until it is notified again
  logic               busy_q, due, sent;

  assign due = stop != reported_q || (stop != '0 && refresh_q == '0);

  // The fields of the frame, registered at its start.
  logic        pfc_q;
  logic [7:0]  stop_q, named_q;           // named: in the class-enable vector
  logic [15:0] quanta_q;
  logic [2:0]  index_q;

  assign sent = m_axis_tvalid && m_axis_tready && m_axis_tlast;

  always_ff @(posedge clk) begin
    if (tick) refresh_q <= refresh_q > Step ? refresh_q - Step : '0;
    if (!busy_q) begin
      busy_q   <= due && enabled;
      pfc_q    <= pfc;
      stop_q   <= stop;
      named_q  <= stop | reported_q;
      quanta_q <= stop != '0 ? quanta : '0;
      if (!enabled) reported_q <= '0;
    end else if (sent) begin
      busy_q    <= 1'b0;
      reported_q    <= stop_q;
      refresh_q <= {1'b0, quanta_q, {FractionBits - 1{1'b0}}};
    end
    if (m_axis_tvalid && m_axis_tready) index_q <= m_axis_tlast ? '0 : index_q + 3'd1;
    stat_pause <= sent && !pfc_q;
    stat_pfc   <= sent && pfc_q;

    if (rst) begin
      busy_q     <= 1'b0;
      reported_q     <= '0;
      refresh_q  <= '0;
      index_q    <= '0;
      stat_pause <= 1'b0;
      stat_pfc   <= 1'b0;
    end
  end

  // ---- the frame -------------------------------------------------------------------------------
  logic [7:0][15:0]                  class_quanta;  // class 0 comes first on the wire
  logic [8*(MinFrameBytes-16)-1:0]   body;
  logic [8*Bytes*Beats-1:0]          frame;
  logic [DATA_W-1:0]                 beat;  // its first octet is the most significant one

  always_comb begin
    for (int i = 0; i < 8; i++) class_quanta[7-i] = stop_q[i] ? quanta_q : '0;
    body = {quanta_q, {8*(MinFrameBytes-18){1'b0}}};
    if (pfc_q) body = {8'h00, named_q, class_quanta, {8*(MinFrameBytes-34){1'b0}}};
    frame = '0;
    frame[$bits(frame)-1-:8*MinFrameBytes] =
      {ControlMac, local_mac, ControlEtherType, pfc_q ? OpcodePfc : OpcodePause, body};
    beat = DATA_W'(frame >> (10'(Beats - 1 - 32'(index_q)) * 10'(DATA_W)));
    for (int i = 0; i < int'(Bytes); i++) m_axis_tdata[8*i+:8] = beat[8*(int'(Bytes)-1-i)+:8];
  end

  assign m_axis_tvalid = busy_q;
  assign m_axis_tlast  = index_q == 3'(Beats - 1);
  assign m_axis_tkeep  = m_axis_tlast ? {Bytes{1'b1}} >> (Beats * Bytes - MinFrameBytes) : '1;
endmodule
