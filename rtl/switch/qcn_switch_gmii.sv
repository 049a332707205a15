// SPDX-License-Identifier: SHL-2.1
// The QCN switch with its MACs: N_PORTS ports of 1 Gb/s on GMII, full duplex. Transmitters share a clock of 125 MHz,
// each receiver has that of its PHY. `clk` must carry more than 1 Gb/s at 64 bits: 19.5 MHz or more; CLK_KHZ is its
// frequency. A port whose link is not up drops what it is to send.
// Source: IEEE 802.3 clause 35. The rest is qcn_switch's.
module qcn_switch_gmii
  import switch_pkg::*;
#(
  parameter  int unsigned N_PORTS  = 4,
  parameter  int unsigned N_QUEUES = 2,
  parameter  int unsigned CELLS    = 4096,
  parameter  int unsigned ENTRIES  = 16,
  parameter  int unsigned CLK_KHZ  = 62500,
  localparam int unsigned Queues   = N_PORTS * N_QUEUES
) (
  input  logic clk,
  input  logic rst,

  input  switch_cfg_t                cfg,
  input  logic                       table_valid,
  input  logic [$clog2(ENTRIES)-1:0] table_index,
  input  mac_entry_t                 table_entry,

  input  logic                       gmii_tx_clk,
  output logic [N_PORTS-1:0][7:0]    gmii_txd,
  output logic [N_PORTS-1:0]         gmii_tx_en,
  output logic [N_PORTS-1:0]         gmii_tx_er,
  input  logic [N_PORTS-1:0]         gmii_rx_clk,
  input  logic [N_PORTS-1:0][7:0]    gmii_rxd,
  input  logic [N_PORTS-1:0]         gmii_rx_dv,
  input  logic [N_PORTS-1:0]         gmii_rx_er,
  input  logic [N_PORTS-1:0]         link_up,     // at 1 Gb/s, full duplex; of any clock

  output eth_pkg::mac_status_t [N_PORTS-1:0] status,
  output switch_stat_t         [N_PORTS-1:0] stat,
  output queue_bytes_t         [Queues-1:0]  level
);
  if (CLK_KHZ < 19500) begin : gen_bad_clock
    $fatal(1, "%m: CLK_KHZ = %0d, must be 19500 or more: 64 bits a cycle must carry more than 1 Gb/s", CLK_KHZ);
  end

  logic [N_PORTS-1:0][63:0] rx_tdata, tx_tdata;
  logic [N_PORTS-1:0][7:0]  rx_tkeep, tx_tkeep;
  logic [N_PORTS-1:0]       rx_tvalid, rx_tlast, rx_tuser, tx_tvalid, tx_tready, tx_tlast;

  for (genvar p = 0; p < int'(N_PORTS); p++) begin : gen_mac
    mac_gmii u_mac (
      .clk,
      .rst,
      .gmii_tx_clk,
      .gmii_tx_enable(1'b1),
      .gmii_txd      (gmii_txd[p]),
      .gmii_tx_en    (gmii_tx_en[p]),
      .gmii_tx_er    (gmii_tx_er[p]),
      .gmii_rx_clk   (gmii_rx_clk[p]),
      .gmii_rxd      (gmii_rxd[p]),
      .gmii_rx_dv    (gmii_rx_dv[p]),
      .gmii_rx_er    (gmii_rx_er[p]),
      .link          ('{up: link_up[p], full_duplex: 1'b1, speed: gmii_pkg::Speed1000}),
      .s_axis_tdata  (tx_tdata[p]),
      .s_axis_tkeep  (tx_tkeep[p]),
      .s_axis_tvalid (tx_tvalid[p]),
      .s_axis_tready (tx_tready[p]),
      .s_axis_tlast  (tx_tlast[p]),
      .m_axis_tdata  (rx_tdata[p]),
      .m_axis_tkeep  (rx_tkeep[p]),
      .m_axis_tvalid (rx_tvalid[p]),
      .m_axis_tlast  (rx_tlast[p]),
      .m_axis_tuser  (rx_tuser[p]),
      .status        (status[p])
    );
  end

  qcn_switch #(
    .N_PORTS  (N_PORTS),
    .N_QUEUES (N_QUEUES),
    .CELLS    (CELLS),
    .ENTRIES  (ENTRIES),
    .CLK_KHZ  (CLK_KHZ),
    .LINE_MBPS(1000)
  ) u_switch (
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
