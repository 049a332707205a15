// SPDX-License-Identifier: SHL-2.1
// Bench only: three ports of qcn_switch_gmii with each line by its own name.
module qcn_switch_gmii_lines
  import switch_pkg::*;
(
  input  logic clk,
  input  logic rst,
  input  switch_cfg_t cfg,
  input  logic        table_valid,
  input  logic [3:0]  table_index,
  input  mac_entry_t  table_entry,
  input  logic        gmii_tx_clk,
  output logic [7:0]  txd_0, txd_1, txd_2,
  output logic        tx_en_0, tx_en_1, tx_en_2,
  output logic        tx_er_0, tx_er_1, tx_er_2,
  input  logic        rx_clk_0, rx_clk_1, rx_clk_2,
  input  logic [7:0]  rxd_0, rxd_1, rxd_2,
  input  logic        rx_dv_0, rx_dv_1, rx_dv_2,
  input  logic        rx_er_0, rx_er_1, rx_er_2,
  input  logic [2:0]  link_up,
  output eth_pkg::mac_status_t [2:0] status,
  output switch_stat_t         [2:0] stat
);
  queue_bytes_t [5:0] unused_level;

  qcn_switch_gmii #(.N_PORTS(3)) u_switch (
    .clk,
    .rst,
    .cfg,
    .table_valid,
    .table_index,
    .table_entry,
    .gmii_tx_clk,
    .gmii_txd   ({txd_2, txd_1, txd_0}),
    .gmii_tx_en ({tx_en_2, tx_en_1, tx_en_0}),
    .gmii_tx_er ({tx_er_2, tx_er_1, tx_er_0}),
    .gmii_rx_clk({rx_clk_2, rx_clk_1, rx_clk_0}),
    .gmii_rxd   ({rxd_2, rxd_1, rxd_0}),
    .gmii_rx_dv ({rx_dv_2, rx_dv_1, rx_dv_0}),
    .gmii_rx_er ({rx_er_2, rx_er_1, rx_er_0}),
    .link_up,
    .status,
    .stat,
    .level      (unused_level)
  );
  wire unused = &{1'b0, unused_level};
endmodule
