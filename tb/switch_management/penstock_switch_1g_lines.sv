// SPDX-License-Identifier: SHL-2.1
// Bench only: two ports of penstock_switch_1g with each line by its own name.
module penstock_switch_1g_lines
  import switch_pkg::*;
(
  input  logic clk,
  input  logic rst,
  input  logic        gmii_tx_clk,
  output logic [7:0]  txd_0, txd_1,
  output logic        tx_en_0, tx_en_1,
  output logic        tx_er_0, tx_er_1,
  input  logic        rx_clk_0, rx_clk_1,
  input  logic [7:0]  rxd_0, rxd_1,
  input  logic        rx_dv_0, rx_dv_1,
  input  logic        rx_er_0, rx_er_1,
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

  penstock_switch_1g #(.N_PORTS(2)) u_top (
    .mgmt_gmii_tx_enable  (1'b1),
    .mgmt_link_full_duplex(1'b1),
    .mgmt_link_speed      (gmii_pkg::Speed1000),
    .gmii_txd   ({txd_1, txd_0}),
    .gmii_tx_en ({tx_en_1, tx_en_0}),
    .gmii_tx_er ({tx_er_1, tx_er_0}),
    .gmii_rx_clk({rx_clk_1, rx_clk_0}),
    .gmii_rxd   ({rxd_1, rxd_0}),
    .gmii_rx_dv ({rx_dv_1, rx_dv_0}),
    .gmii_rx_er ({rx_er_1, rx_er_0}),
    .link_up    (2'b11),
    .status     (unused_status),
    .level      (unused_level),
    .*
  );
  wire unused = &{1'b0, unused_status, unused_level};
endmodule
