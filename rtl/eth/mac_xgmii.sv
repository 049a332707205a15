// SPDX-License-Identifier: SHL-2.1
// Ethernet MAC on a 64-bit XGMII: 10 Gb/s at 156.25 MHz, 25 Gb/s (25GMII) at 390.625 MHz, 2.5 at 39.0625 (pcs_basex).
// Streams carry frames from destination MAC to the last octet before the FCS; receive has no tready.
// Source: IEEE 802.3 clauses 3, 46 (10 Gb/s) and 106 (25 Gb/s). Flow control is eth_port's.
module mac_xgmii
  import eth_pkg::mac_status_t;
#(
  parameter int unsigned MAX_BYTES  = 9022,  // longest good frame received: 9000, headers, VLAN tag and FCS
  parameter bit          CRC_TABLES = 1'b1   // 0: the FCS takes no block RAM, and a slower clock (linear_tables)
) (
  input  logic        clk,
  input  logic        rst,

  output logic [63:0] xgmii_txd,
  output logic [7:0]  xgmii_txc,
  input  logic [63:0] xgmii_rxd,
  input  logic [7:0]  xgmii_rxc,

  input  logic [63:0] s_axis_tdata,
  input  logic [7:0]  s_axis_tkeep,
  input  logic        s_axis_tvalid,
  output logic        s_axis_tready,
  input  logic        s_axis_tlast,

  output logic [63:0] m_axis_tdata,
  output logic [7:0]  m_axis_tkeep,
  output logic        m_axis_tvalid,
  output logic        m_axis_tlast,
  output logic        m_axis_tuser,      // at tlast: bad frame

  output mac_status_t status
);
  assign status.line_share = eth_pkg::LineFull;

  link_fault u_link_fault (
    .clk,
    .rst,
    .xgmii_rxd,
    .xgmii_rxc,
    .local_fault (status.local_fault),
    .remote_fault(status.remote_fault),
    .stat_fault  (status.link_fault)
  );

  mac_tx_xgmii #(.CRC_TABLES(CRC_TABLES)) u_tx (
    .clk,
    .rst,
    .s_axis_tdata,
    .s_axis_tkeep,
    .s_axis_tvalid,
    .s_axis_tready,
    .s_axis_tlast,
    .xgmii_txd,
    .xgmii_txc,
    .local_fault   (status.local_fault),
    .remote_fault  (status.remote_fault),
    .stat_frame    (status.tx_frame),
    .stat_bytes    (),  // octets are counted where queue pairs are known
    .stat_underrun (status.tx_underrun),
    .stat_dropped  (status.tx_dropped)
  );

  mac_rx_xgmii #(.MAX_BYTES(MAX_BYTES), .CRC_TABLES(CRC_TABLES)) u_rx (
    .clk,
    .rst,
    .xgmii_rxd,
    .xgmii_rxc,
    .m_axis_tdata,
    .m_axis_tkeep,
    .m_axis_tvalid,
    .m_axis_tlast,
    .m_axis_tuser,
    .stat_good      (status.rx_frame),
    .stat_bad_fcs   (status.rx_bad_fcs),
    .stat_bad_frame (status.rx_bad_frame),
    .stat_undersize (status.rx_undersize),
    .stat_oversize  (status.rx_oversize)
  );
endmodule
