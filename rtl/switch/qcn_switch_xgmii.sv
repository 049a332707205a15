// SPDX-License-Identifier: SHL-2.1
// The QCN switch with its MACs: N_PORTS ports of 10 Gb/s on 64-bit XGMII at 156.25 MHz, all in one clock.
// Source: IEEE 802.3 clause 46. The rest is qcn_switch's.
module qcn_switch_xgmii
  import switch_pkg::*;
#(
  parameter  int unsigned N_PORTS  = 4,
  parameter  int unsigned N_QUEUES = 2,
  parameter  int unsigned CELLS    = 4096,
  parameter  int unsigned ENTRIES  = 16,
  localparam int unsigned Queues   = N_PORTS * N_QUEUES
) (
  input  logic clk,
  input  logic rst,

  input  switch_cfg_t                cfg,
  input  logic                       table_valid,
  input  logic [$clog2(ENTRIES)-1:0] table_index,
  input  mac_entry_t                 table_entry,

  output logic [N_PORTS-1:0][63:0]   xgmii_txd,
  output logic [N_PORTS-1:0][7:0]    xgmii_txc,
  input  logic [N_PORTS-1:0][63:0]   xgmii_rxd,
  input  logic [N_PORTS-1:0][7:0]    xgmii_rxc,

  output eth_pkg::mac_status_t [N_PORTS-1:0] status,
  output switch_stat_t         [N_PORTS-1:0] stat,
  output queue_bytes_t         [Queues-1:0]  level
);
  logic [N_PORTS-1:0][63:0] rx_tdata, tx_tdata;
  logic [N_PORTS-1:0][7:0]  rx_tkeep, tx_tkeep;
  logic [N_PORTS-1:0]       rx_tvalid, rx_tlast, rx_tuser, tx_tvalid, tx_tready, tx_tlast;

  for (genvar p = 0; p < int'(N_PORTS); p++) begin : gen_mac
    mac_xgmii u_mac (
      .clk,
      .rst,
      .xgmii_txd    (xgmii_txd[p]),
      .xgmii_txc    (xgmii_txc[p]),
      .xgmii_rxd    (xgmii_rxd[p]),
      .xgmii_rxc    (xgmii_rxc[p]),
      .s_axis_tdata (tx_tdata[p]),
      .s_axis_tkeep (tx_tkeep[p]),
      .s_axis_tvalid(tx_tvalid[p]),
      .s_axis_tready(tx_tready[p]),
      .s_axis_tlast (tx_tlast[p]),
      .m_axis_tdata (rx_tdata[p]),
      .m_axis_tkeep (rx_tkeep[p]),
      .m_axis_tvalid(rx_tvalid[p]),
      .m_axis_tlast (rx_tlast[p]),
      .m_axis_tuser (rx_tuser[p]),
      .status       (status[p])
    );
  end

  qcn_switch #(.N_PORTS(N_PORTS), .N_QUEUES(N_QUEUES), .CELLS(CELLS), .ENTRIES(ENTRIES)) u_switch (
    .clk,
    .rst,
    .cfg,
    .table_valid,
    .table_index,
    .table_entry,
    .s_axis_tdata (rx_tdata),
    .s_axis_tkeep (rx_tkeep),
    .s_axis_tvalid(rx_tvalid),
    .s_axis_tlast (rx_tlast),
    .s_axis_tuser (rx_tuser),
    .m_axis_tdata (tx_tdata),
    .m_axis_tkeep (tx_tkeep),
    .m_axis_tvalid(tx_tvalid),
    .m_axis_tready(tx_tready),
    .m_axis_tlast (tx_tlast),
    .stat,
    .level
  );
endmodule
