// SPDX-License-Identifier: SHL-2.1
// The QCN switch at 1 Gb/s as a top: N_PORTS ports on GMII, its registers on AXI4-Lite and by IPbus at a management port.
// Clocks as for qcn_switch_gmii: `clk` of CLK_KHZ for the switch, 125 MHz for all its transmitters, one of each receiver.
// The register map is regs/qcn_switch.rdl. The rest is qcn_switch_gmii's and switch_control's.
`include "axi_ports.svh"

module penstock_switch_1g
  import switch_pkg::*;
#(
  parameter  int unsigned N_PORTS    = 4,
  parameter  int unsigned N_QUEUES   = 2,
  parameter  int unsigned CELLS      = 4096,
  parameter  int unsigned ENTRIES    = 16,
  parameter  bit          MANAGEMENT = 1'b1,
  parameter  int unsigned CLK_KHZ    = 62500,
  localparam int unsigned Queues     = N_PORTS * N_QUEUES
) (
  input  logic clk,
  input  logic rst,

  input  logic                     gmii_tx_clk,
  output logic [N_PORTS-1:0][7:0] gmii_txd,
  output logic [N_PORTS-1:0]      gmii_tx_en,
  output logic [N_PORTS-1:0]      gmii_tx_er,
  input  logic [N_PORTS-1:0]      gmii_rx_clk,
  input  logic [N_PORTS-1:0][7:0] gmii_rxd,
  input  logic [N_PORTS-1:0]      gmii_rx_dv,
  input  logic [N_PORTS-1:0]      gmii_rx_er,
  input  logic [N_PORTS-1:0]      link_up,     // at 1 Gb/s, full duplex; of any clock

  // The management port on GMII, with MANAGEMENT: ARP, ping and IPbus; quiet otherwise. MII has nibbles in [3:0]. The link
  // may be of any clock; half duplex is no link.
  input  logic       mgmt_gmii_tx_clk,
  input  logic       mgmt_gmii_tx_enable,  // the line moves in this cycle: always 1 where it has a clock of its own
  output logic [7:0] mgmt_gmii_txd,
  output logic       mgmt_gmii_tx_en,
  output logic       mgmt_gmii_tx_er,
  input  logic       mgmt_gmii_rx_clk,
  input  logic [7:0] mgmt_gmii_rxd,
  input  logic       mgmt_gmii_rx_dv,
  input  logic       mgmt_gmii_rx_er,
  input  logic       mgmt_link_up,
  input  logic       mgmt_link_full_duplex,
  input  logic [1:0] mgmt_link_speed,      // gmii_pkg::speed_e: 0 10 Mb/s, 1 100 Mb/s, 2 1 Gb/s

  `AXIL_SLAVE_PORTS(s_axil, 12),

  // for lamps and benches; the registers have them, too
  output eth_pkg::mac_status_t [N_PORTS-1:0] status,
  output switch_stat_t         [N_PORTS-1:0] stat,
  output queue_bytes_t         [Queues-1:0]  level
);
  gmii_pkg::link_t    mgmt_link;
  switch_cfg_t cfg;
  mac_entry_t  table_entry;
  logic        table_valid;
  logic [$clog2(ENTRIES)-1:0] table_index;

  assign mgmt_link = '{
    up: mgmt_link_up, full_duplex: mgmt_link_full_duplex, speed: gmii_pkg::speed_e'(mgmt_link_speed)
  };
  `AXIL_SLAVE(s_axil)

  switch_control #(
    .N_PORTS   (N_PORTS),
    .N_QUEUES  (N_QUEUES),
    .ENTRIES   (ENTRIES),
    .MANAGEMENT(MANAGEMENT),
    .CLK_KHZ   (CLK_KHZ)
  ) u_control (
    .gmii_tx_clk   (mgmt_gmii_tx_clk),
    .gmii_tx_enable(mgmt_gmii_tx_enable),
    .gmii_txd      (mgmt_gmii_txd),
    .gmii_tx_en    (mgmt_gmii_tx_en),
    .gmii_tx_er    (mgmt_gmii_tx_er),
    .gmii_rx_clk   (mgmt_gmii_rx_clk),
    .gmii_rxd      (mgmt_gmii_rxd),
    .gmii_rx_dv    (mgmt_gmii_rx_dv),
    .gmii_rx_er    (mgmt_gmii_rx_er),
    .link          (mgmt_link),
    .*
  );

  qcn_switch_gmii #(
    .N_PORTS (N_PORTS),
    .N_QUEUES(N_QUEUES),
    .CELLS   (CELLS),
    .ENTRIES (ENTRIES),
    .CLK_KHZ (CLK_KHZ)
  ) u_switch (
    .*
  );
endmodule
