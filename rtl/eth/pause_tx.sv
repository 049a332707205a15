// SPDX-License-Identifier: SHL-2.1
// Stops the peer while a receive buffer is full: sends a pause or PFC frame when its fill rises above
// XOFF, another when half of the requested quanta have passed, and one with 0 quanta below XON.
// Promise: while the fill stays above XON the peer's timer never expires, provided that a frame is
// sent within half of the quanta. Source: IEEE 802.3 annex 31B.3 and 31D, IEEE 802.1Q clause 36.
module pause_tx
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

  input  pause_tx_cfg_t     cfg,
  input  logic [47:0]       local_mac,
  input  logic [15:0]       level_bytes,  // fill of the receive buffer

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
  logic               enabled, full_q;
  logic               stopped_q;          // the state last reported to the peer
  logic [QuantaW-1:0] refresh_q;          // until it is notified again
  logic               busy_q, ask, sent;

  assign enabled = (cfg.pause_en || cfg.pfc_en) && cfg.quanta != '0;
  assign ask     = full_q ? !stopped_q || refresh_q == '0 : stopped_q;

  // The fields of the frame, registered at its start.
  logic        pfc_q;
  logic [15:0] quanta_q;
  logic [2:0]  index_q;

  assign sent = m_axis_tvalid && m_axis_tready && m_axis_tlast;

  always_ff @(posedge clk) begin
    if (level_bytes > cfg.xoff_bytes) full_q <= enabled;
    else if (level_bytes < cfg.xon_bytes || !enabled) full_q <= 1'b0;

    if (tick) refresh_q <= refresh_q > Step ? refresh_q - Step : '0;
    if (!busy_q) begin
      busy_q   <= ask && enabled;
      pfc_q    <= cfg.pfc_en;
      quanta_q <= full_q ? cfg.quanta : '0;
      if (!enabled) stopped_q <= 1'b0;
    end else if (sent) begin
      busy_q    <= 1'b0;
      stopped_q <= quanta_q != '0;
      refresh_q <= {1'b0, quanta_q, {FractionBits - 1{1'b0}}};
    end
    if (m_axis_tvalid && m_axis_tready) index_q <= m_axis_tlast ? '0 : index_q + 3'd1;
    stat_pause <= sent && !pfc_q;
    stat_pfc   <= sent && pfc_q;

    if (rst) begin
      full_q     <= 1'b0;
      busy_q     <= 1'b0;
      stopped_q  <= 1'b0;
      refresh_q  <= '0;
      index_q    <= '0;
      stat_pause <= 1'b0;
      stat_pfc   <= 1'b0;
    end
  end

  // ---- the frame -------------------------------------------------------------------------------
  logic [7:0][15:0]                  class_quanta;  // class 0 comes first on the wire
  logic [8*(MinFrameBytes-16)-1:0]   body;
  logic [8*MinFrameBytes-1:0]        frame, lanes;
  logic [8*Bytes*Beats-1:0]          beats;

  always_comb begin
    for (int i = 0; i < 8; i++) class_quanta[7-i] = cfg.classes[i] ? quanta_q : '0;
    body = {quanta_q, {8*(MinFrameBytes-18){1'b0}}};
    if (pfc_q) body = {8'h00, cfg.classes, class_quanta, {8*(MinFrameBytes-34){1'b0}}};
    frame = {ControlMac, local_mac, ControlEtherType, pfc_q ? OpcodePfc : OpcodePause, body};
    lanes = {<<8{frame}};
    beats = $bits(beats)'(lanes);
  end

  assign m_axis_tdata  = DATA_W'(beats >> (10'(index_q) * 10'(DATA_W)));
  assign m_axis_tvalid = busy_q;
  assign m_axis_tlast  = index_q == 3'(Beats - 1);
  assign m_axis_tkeep  = m_axis_tlast ? {Bytes{1'b1}} >> (Beats * Bytes - MinFrameBytes) : '1;

`ifndef SYNTHESIS
  a_thresholds : assert property (@(posedge clk) disable iff (rst)
    enabled |-> cfg.xon_bytes <= cfg.xoff_bytes)
    else $error("%m: xon_bytes = %0d is above xoff_bytes = %0d", cfg.xon_bytes, cfg.xoff_bytes);
`endif
endmodule
