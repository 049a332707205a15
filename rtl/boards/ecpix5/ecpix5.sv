// SPDX-License-Identifier: SHL-2.1
// Board top: LambdaConcept ECPIX-5 85F (LFE5UM5G-85F-8BG554I), 1000BASE-T over its KSZ9031 PHY, registers over the
// network. Messages come from the built-in source. Address 192.168.1.128; pins: ecpix5.lpf. Not tested on hardware.
// The PHY delays the data that it sends, and expects the clock that it receives to be delayed by 2 ns; the LiteX target
// of this board uses the same delays. The PHY reports the link's state in band.
module ecpix5 #(
  parameter int unsigned N_QP       = 1,
  parameter int unsigned RING_BYTES = 32768,
  parameter bit          ECHO       = 1'b0,  // no front end: frames are sent back
  parameter int unsigned SLOTS      = 32,
  parameter logic [47:0] MAC        = 48'h02_00_00_00_00_80,
  parameter logic [31:0] IP         = {8'd192, 8'd168, 8'd1, 8'd128}
) (
  input  logic       clk_100mhz,
  output logic [3:0] led_red_n,
  output logic [3:0] led_green_n,
  output logic [3:0] led_blue_n,
  output logic       phy_rst_n,
  output logic       rgmii_txc,
  output logic [3:0] rgmii_txd,
  output logic       rgmii_tx_ctl,
  input  logic       rgmii_rxc,
  input  logic [3:0] rgmii_rxd,
  input  logic       rgmii_rx_ctl
);
  logic clk, rst, clk_125mhz;
  logic [3:0] rgmii_txd_rise, rgmii_txd_fall, rgmii_rxd_rise, rgmii_rxd_fall;
  logic rgmii_tx_ctl_rise, rgmii_tx_ctl_fall, rgmii_txc_rise, rgmii_txc_fall, rgmii_rx_ctl_rise, rgmii_rx_ctl_fall;
  logic [7:0] lamps;

  ecp5_clocks u_clocks (
    .*
  );

  ecp5_rgmii #(
    .TX_DELAY_PS(2000),
    .RX_DELAY_PS(0)
  ) u_pins (
    .tx_clk(clk_125mhz),
    .rx_clk(rgmii_rxc),
    .*
  );

  board_1g #(
    .N_QP(N_QP),
    .RING_BYTES(RING_BYTES),
    .SLOTS(SLOTS),
    .ECHO(ECHO),
    .INBAND(1'b1)
  ) u_board (
    .tx_clk (clk_125mhz),
    .rx_clk (rgmii_rxc),
    .local_mac(MAC),
    .local_ip (IP),
    .led      (lamps),
    .*
  );

  // Four lamps of three colours, low when lit: green 0 to 3, red 4 to 7 of board_leds.
  assign led_green_n = ~lamps[3:0];
  assign led_red_n   = ~lamps[7:4];
  assign led_blue_n  = '1;
endmodule
