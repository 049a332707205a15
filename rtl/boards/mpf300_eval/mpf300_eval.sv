// SPDX-License-Identifier: SHL-2.1
// Board top: Microchip PolarFire Evaluation Kit (MPF300TS-1FCG1152), 10GBASE-R on SFP+, registers over the network.
// Messages come from the built-in source. Address 192.168.1.160; pins: mpf300_eval.pdc.
module mpf300_eval #(
  parameter int unsigned N_QP       = 4,
  parameter int unsigned RING_BYTES = 65536,
  parameter int unsigned SLOTS      = 64,
  parameter logic [47:0] MAC        = 48'h02_00_00_00_00_a0,
  parameter logic [31:0] IP         = {8'd192, 8'd168, 8'd1, 8'd160}
) (
  input  logic       reset_n,        // push button
  output logic [3:0] led,

  input  logic       sfp_refclk_p,   // 156.25 MHz
  input  logic       sfp_refclk_n,
  input  logic       sfp_rx_p,
  input  logic       sfp_rx_n,
  output logic       sfp_tx_p,
  output logic       sfp_tx_n
);
  logic clk, rst, phy_not_ready, block_lock, link_up;
  logic [63:0] xgmii_txd, xgmii_rxd;
  logic [7:0] xgmii_txc, xgmii_rxc;
  logic [7:0] lamps;

  pf_10gbaser u_phy (
    .ref_clk_p(sfp_refclk_p),
    .ref_clk_n(sfp_refclk_n),
    .rx_p     (sfp_rx_p),
    .rx_n     (sfp_rx_n),
    .tx_p     (sfp_tx_p),
    .tx_n     (sfp_tx_n),
    .reset    (!reset_n),
    .clk,
    .clk_reset(phy_not_ready),
    .xgmii_txd,
    .xgmii_txc,
    .xgmii_rxd,
    .xgmii_rxc,
    .block_lock
  );

  logic rst_request, phy_waits;
  reset_sync u_rst_request (
    .clk,
    .d(!reset_n),
    .q(rst_request)
  );
  reset_sync u_phy_waits (
    .clk,
    .d(phy_not_ready),
    .q(phy_waits)
  );
  assign rst = rst_request || phy_waits;

  reset_sync u_link (
    .clk,
    .d(block_lock),
    .q(link_up)
  );

  board_xgmii #(
    .N_QP(N_QP),
    .RING_BYTES(RING_BYTES),
    .SLOTS(SLOTS)
  ) u_board (
    .local_mac(MAC),
    .local_ip (IP),
    .led(lamps),
    .s_axil_req('0),  // no second master: the registers are reached over IPbus
    .s_axil_rsp(),
    .*
  );

  assign led = lamps[3:0];

  wire unused = &{1'b0, lamps};
endmodule
