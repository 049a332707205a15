// SPDX-License-Identifier: SHL-2.1
// Stops the peer while a receive buffer is full: from a fill above XOFF to one below XON.
// Source: IEEE 802.3 annex 31B.3 and 31D, IEEE 802.1Q clause 36.
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
  logic enabled, full_q;

  assign enabled = (cfg.pause_en || cfg.pfc_en) && cfg.quanta != '0;

  always_ff @(posedge clk) begin
    if (level_bytes > cfg.xoff_bytes) full_q <= enabled;
    else if (level_bytes < cfg.xon_bytes || !enabled) full_q <= 1'b0;
    if (rst) full_q <= 1'b0;
  end

  pause_frames #(
    .DATA_W   (DATA_W),
    .CLK_KHZ  (CLK_KHZ),
    .LINE_MBPS(LINE_MBPS)
  ) u_frames (
    .pfc   (cfg.pfc_en),
    .quanta(cfg.quanta),
    .stop  ({8{full_q}} & (cfg.pfc_en ? cfg.classes : 8'hFF)),
    .*
  );

`ifndef SYNTHESIS
  a_thresholds : assert property (@(posedge clk) disable iff (rst)
    enabled |-> cfg.xon_bytes <= cfg.xoff_bytes)
    else $error("%m: xon_bytes = %0d is above xoff_bytes = %0d", cfg.xon_bytes, cfg.xoff_bytes);
`endif
endmodule
