// SPDX-License-Identifier: SHL-2.1
// Bench only: three ports of qcn_switch_xgmii with each line by its own name.
module qcn_switch_lines
  import switch_pkg::*;
(
  input  logic clk,
  input  logic rst,
  input  switch_cfg_t cfg,
  input  logic        table_valid,
  input  logic [3:0]  table_index,
  input  mac_entry_t  table_entry,
  output logic [63:0] txd_0, txd_1, txd_2,
  output logic [7:0]  txc_0, txc_1, txc_2,
  input  logic [63:0] rxd_0, rxd_1, rxd_2,
  input  logic [7:0]  rxc_0, rxc_1, rxc_2,
  output eth_pkg::mac_status_t [2:0] status,
  output switch_stat_t         [2:0] stat
);
  queue_bytes_t [5:0] unused_level;

  qcn_switch_xgmii #(.N_PORTS(3)) u_switch (
    .clk,
    .rst,
    .cfg,
    .table_valid,
    .table_index,
    .table_entry,
    .xgmii_txd({txd_2, txd_1, txd_0}),
    .xgmii_txc({txc_2, txc_1, txc_0}),
    .xgmii_rxd({rxd_2, rxd_1, rxd_0}),
    .xgmii_rxc({rxc_2, rxc_1, rxc_0}),
    .status,
    .stat,
    .level    (unused_level)
  );
  wire unused = &{1'b0, unused_level};
endmodule
