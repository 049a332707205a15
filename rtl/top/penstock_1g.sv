// SPDX-License-Identifier: SHL-2.1
// The front end at 1 Gb/s: core and MAC on GMII, or on MII at 100 and 10 Mb/s. The core is 64 bits wide, as at 10 Gb/s,
// so that a slow clock suffices: any clock that carries more than the line rate, such as 62.5 MHz on slow devices.
// The line has two separate clocks. Everything a board needs is on flat AMBA ports; the board provides the PHY, its DDR
// registers (rgmii) and the data source.
`include "axi_ports.svh"

module penstock_1g #(
  localparam int unsigned DATA_W      = 64,
  parameter  int unsigned CLK_KHZ     = 62500,   // of clk; the line's clocks are 125 MHz, 25 or 2.5
  parameter  int unsigned LINE_MBPS   = 1000,
  `include "front_end_parameters.svh"
) (
  input logic clk,
  input logic rst,

  // GMII; MII has nibbles in [3:0]. The link may be of any clock; half duplex is no link.
  input  logic       gmii_tx_clk,
  input  logic       gmii_tx_enable,  // the line moves in this cycle: always 1 where gmii_tx_clk is the line's clock
  output logic [7:0] gmii_txd,
  output logic       gmii_tx_en,
  output logic       gmii_tx_er,
  input  logic       gmii_rx_clk,
  input  logic [7:0] gmii_rxd,
  input  logic       gmii_rx_dv,
  input  logic       gmii_rx_er,
  input  logic       link_up,
  input  logic       link_full_duplex,
  input  logic [1:0] link_speed,      // gmii_pkg::speed_e: 0 10 Mb/s, 1 100 Mb/s, 2 1 Gb/s

  `include "front_end_ports.svh"
);
  // A frame starts when its first word has crossed over, so the following words must come faster than they leave.
  if (64'(CLK_KHZ) * DATA_W < 64'(LINE_MBPS) * 1250) begin : gen_bad_clock
    $fatal(1, "%m: CLK_KHZ is %0d: %0d bits a cycle must be 1.25 times LINE_MBPS (%0d) or more, so %0d or more",
           CLK_KHZ, DATA_W, LINE_MBPS, (LINE_MBPS * 1250 + DATA_W - 1) / DATA_W);
  end

  `include "front_end_core.svh"

  gmii_pkg::link_t link;
  assign link = '{full_duplex: link_full_duplex, speed: gmii_pkg::speed_e'(link_speed), up: link_up};

  mac_gmii u_mac (
    .clk,
    .rst          (front_rst),
    .gmii_tx_clk,
    .gmii_tx_enable,
    .gmii_txd,
    .gmii_tx_en,
    .gmii_tx_er,
    .gmii_rx_clk,
    .gmii_rxd,
    .gmii_rx_dv,
    .gmii_rx_er,
    .link,
    .s_axis_tdata (tx_tdata),
    .s_axis_tkeep (tx_tkeep),
    .s_axis_tvalid(tx_tvalid),
    .s_axis_tready(tx_tready),
    .s_axis_tlast (tx_tlast),
    .m_axis_tdata (rx_tdata),
    .m_axis_tkeep (rx_tkeep),
    .m_axis_tvalid(rx_tvalid),
    .m_axis_tlast (rx_tlast),
    .m_axis_tuser (rx_tuser),
    .status       (mac)
  );
endmodule
