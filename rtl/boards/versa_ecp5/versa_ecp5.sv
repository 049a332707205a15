// SPDX-License-Identifier: SHL-2.1
// Board top: Lattice ECP5-5G Versa (LFE5UM5G-45F-8BG381), 1000BASE-T over its first 88E1512 PHY, registers over the
// network. Messages come from the built-in source. Address 192.168.1.128; pins: versa_ecp5.lpf. Not tested on hardware.
// The PHY delays both ways, as in that board's LiteX target. Whether it reports the link's state in band depends on its
// configuration: the link is assumed to be up at 1 Gb/s.
module versa_ecp5 #(
  parameter int unsigned N_QP       = 1,
  parameter int unsigned RING_BYTES = 16384,
  parameter bit          ECHO       = 1'b0,  // no front end: frames are sent back
  parameter int unsigned SLOTS      = 16,
  parameter logic [47:0] MAC        = 48'h02_00_00_00_00_80,
  parameter logic [31:0] IP         = {8'd192, 8'd168, 8'd1, 8'd128}
) (
  input  logic       clk_100mhz,
  output logic [7:0] led,
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
    .TX_DELAY_PS(0),
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
    .INBAND(1'b0)
  ) u_board (
    .tx_clk (clk_125mhz),
    .rx_clk (rgmii_rxc),
    .local_mac(MAC),
    .local_ip (IP),
    .led      (lamps),
    .*
  );

  assign led = lamps;
endmodule
