// SPDX-License-Identifier: SHL-2.1
// The front end at 1 to 25 Gb/s: core and MAC on a 64-bit XGMII. The line rate follows from the clock, 64 bits a cycle:
// 156.25 MHz for 10 Gb/s (IEEE 802.3 clause 46), 390.625 for 25 (25GMII, clause 106); 39.0625 for 2.5 and 15.625 for 1
// (pcs_basex). Everything a board needs is on flat AMBA ports; the board provides the PCS/PMA and the data source.
`include "axi_ports.svh"

module penstock_xgmii #(
  localparam int unsigned DATA_W      = 64,
  parameter  int unsigned CLK_KHZ     = 156250,  // 390625 for 25 Gb/s, 39062 for 2.5
  `include "front_end_parameters.svh"
) (
  input logic clk,
  input logic rst,

  output logic [63:0] xgmii_txd,
  output logic [7:0]  xgmii_txc,
  input  logic [63:0] xgmii_rxd,
  input  logic [7:0]  xgmii_rxc,

  `include "front_end_ports.svh"
);
  localparam int unsigned LINE_MBPS = (CLK_KHZ * DATA_W + 500) / 1000;

  `include "front_end_core.svh"

  mac_xgmii #(.CRC_TABLES(CLK_KHZ > penstock_pkg::LutCrcKhz)) u_mac (
    .clk,
    .rst          (front_rst),
    .xgmii_txd,
    .xgmii_txc,
    .xgmii_rxd,
    .xgmii_rxc,
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
