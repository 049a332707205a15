// SPDX-License-Identifier: SHL-2.1
// Bench only: two ports of penstock_switch with each line by its own name.
module penstock_switch_lines
  import switch_pkg::*;
#(
  parameter bit MANAGEMENT = 1'b1
) (
  input  logic clk,
  input  logic rst,
  output logic [63:0] txd_0, txd_1,
  output logic [7:0]  txc_0, txc_1,
  input  logic [63:0] rxd_0, rxd_1,
  input  logic [7:0]  rxc_0, rxc_1,
  input  logic        mgmt_gmii_tx_clk,
  output logic [7:0]  mgmt_gmii_txd,
  output logic        mgmt_gmii_tx_en,
  output logic        mgmt_gmii_tx_er,
  input  logic        mgmt_gmii_rx_clk,
  input  logic [7:0]  mgmt_gmii_rxd,
  input  logic        mgmt_gmii_rx_dv,
  input  logic        mgmt_gmii_rx_er,
  input  logic        mgmt_link_up,
  input  logic [11:0] s_axil_awaddr,
  input  logic [2:0]  s_axil_awprot,
  input  logic        s_axil_awvalid,
  output logic        s_axil_awready,
  input  logic [31:0] s_axil_wdata,
  input  logic [3:0]  s_axil_wstrb,
  input  logic        s_axil_wvalid,
  output logic        s_axil_wready,
  output logic [1:0]  s_axil_bresp,
  output logic        s_axil_bvalid,
  input  logic        s_axil_bready,
  input  logic [11:0] s_axil_araddr,
  input  logic [2:0]  s_axil_arprot,
  input  logic        s_axil_arvalid,
  output logic        s_axil_arready,
  output logic [31:0] s_axil_rdata,
  output logic [1:0]  s_axil_rresp,
  output logic        s_axil_rvalid,
  input  logic        s_axil_rready,
  output switch_stat_t [1:0] stat
);
  eth_pkg::mac_status_t [1:0] unused_status;
  queue_bytes_t         [3:0] unused_level;

  penstock_switch #(.N_PORTS(2), .MANAGEMENT(MANAGEMENT)) u_top (
    .mgmt_gmii_tx_enable  (1'b1),
    .mgmt_link_full_duplex(1'b1),
    .mgmt_link_speed      (gmii_pkg::Speed1000),
    .xgmii_txd({txd_1, txd_0}),
    .xgmii_txc({txc_1, txc_0}),
    .xgmii_rxd({rxd_1, rxd_0}),
    .xgmii_rxc({rxc_1, rxc_0}),
    .status   (unused_status),
    .level    (unused_level),
    .*
  );
  wire unused = &{1'b0, unused_status, unused_level};
endmodule
