// SPDX-License-Identifier: SHL-2.1
// Bench only: MAC and port as they stand in penstock_xgmii, so that flow control is seen on the wire.
module mac_port
  import eth_pkg::*;
(
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
  output logic        m_axis_tuser,
  input  logic        cfg_pause_en,
  input  logic        cfg_pfc_en,
  input  logic [2:0]  cfg_class,
  input  logic        cfg_stop_peer,   // with 802.3x pause
  input  logic [15:0] cfg_quanta,
  input  logic [15:0] level_bytes,     // XOFF above 1000, XON below 500
  output logic        tx_paused,
  output mac_status_t status,
  output port_stat_t  stat
);
  port_cfg_t   cfg;
  logic [63:0] tx_tdata, rx_tdata;
  logic [7:0]  tx_tkeep, rx_tkeep;
  logic        tx_tvalid, tx_tready, tx_tlast, rx_tvalid, rx_tlast, rx_tuser;

  always_comb begin
    cfg = '0;
    cfg.flow_control = '{pause_en: cfg_pause_en, pfc_en: cfg_pfc_en, traffic_class: cfg_class};
    cfg.pause_tx = '{
      pause_en: cfg_stop_peer, pfc_en: 1'b0, classes: '0, quanta: cfg_quanta, xoff_bytes: 16'd1000, xon_bytes: 16'd500
    };
  end

  eth_port u_port (
    .clk,
    .rst,
    .cfg,
    .line_share           (LineFull),
    .local_mac            (48'h02_50_53_54_4B_01),
    .level_bytes,
    .tx_paused,
    .stat,
    .s_axis_roce_tdata    (s_axis_tdata),
    .s_axis_roce_tkeep    (s_axis_tkeep),
    .s_axis_roce_tvalid   (s_axis_tvalid),
    .s_axis_roce_tready   (s_axis_tready),
    .s_axis_roce_tlast    (s_axis_tlast),
    .s_axis_service_tdata ('0),
    .s_axis_service_tkeep ('0),
    .s_axis_service_tvalid(1'b0),
    // verilator lint_off PINCONNECTEMPTY
    .s_axis_service_tready(),  // unconnected
    // verilator lint_on PINCONNECTEMPTY
    .s_axis_service_tlast (1'b0),
    .m_axis_mac_tdata     (tx_tdata),
    .m_axis_mac_tkeep     (tx_tkeep),
    .m_axis_mac_tvalid    (tx_tvalid),
    .m_axis_mac_tready    (tx_tready),
    .m_axis_mac_tlast     (tx_tlast),
    .s_axis_mac_tdata     (rx_tdata),
    .s_axis_mac_tkeep     (rx_tkeep),
    .s_axis_mac_tvalid    (rx_tvalid),
    .s_axis_mac_tlast     (rx_tlast),
    .s_axis_mac_tuser     (rx_tuser),
    .m_axis_rx_tdata      (m_axis_tdata),
    .m_axis_rx_tkeep      (m_axis_tkeep),
    .m_axis_rx_tvalid     (m_axis_tvalid),
    .m_axis_rx_tlast      (m_axis_tlast),
    .m_axis_rx_tuser      (m_axis_tuser)
  );

  mac_xgmii u_mac (
    .clk,
    .rst,
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
    .status
  );
endmodule
