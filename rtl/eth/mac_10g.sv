// SPDX-License-Identifier: SHL-2.1
// 10 Gb/s Ethernet MAC (64-bit XGMII at 156.25 MHz) that obeys pause and priority flow control.
// Streams carry frames from destination MAC to the last octet before the FCS; receive has no tready.
// While the peer pauses us, globally or in our class, a frame in progress ends and none starts.
// Source: IEEE 802.3 clauses 3, 31 and 46, IEEE 802.1Q clause 36.
module mac_10g #(
  parameter int unsigned MAX_BYTES = 9022  // longest good frame received, FCS counted
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

  input  logic        cfg_pause_en,      // obey 802.3x pause
  input  logic        cfg_pfc_en,        // obey PFC of class cfg_class
  input  logic [2:0]  cfg_class,
  output logic        tx_paused,

  output logic        stat_tx_frame,
  output logic        stat_tx_underrun,
  output logic        stat_rx_frame,     // good frames, MAC control counted
  output logic        stat_rx_bad_fcs,
  output logic        stat_rx_bad_frame,
  output logic        stat_rx_pause,
  output logic        stat_rx_pfc
);
  logic [63:0] rx_tdata;
  logic [7:0]  rx_tkeep;
  logic        rx_tvalid, rx_tlast, rx_tuser;
  logic        paused_global;
  logic [7:0]  paused_class;

  assign tx_paused = (cfg_pause_en && paused_global) || (cfg_pfc_en && paused_class[cfg_class]);

  mac_tx_xgmii u_tx (
    .clk,
    .rst,
    .s_axis_tdata,
    .s_axis_tkeep,
    .s_axis_tvalid,
    .s_axis_tready,
    .s_axis_tlast,
    .xgmii_txd,
    .xgmii_txc,
    .pause         (tx_paused),
    .stat_frame    (stat_tx_frame),
    // verilator lint_off PINCONNECTEMPTY
    .stat_bytes    (),  // octets are counted where queue pairs are known
    // verilator lint_on PINCONNECTEMPTY
    .stat_underrun (stat_tx_underrun)
  );

  mac_rx_xgmii #(.MAX_BYTES(MAX_BYTES)) u_rx (
    .clk,
    .rst,
    .xgmii_rxd,
    .xgmii_rxc,
    .m_axis_tdata   (rx_tdata),
    .m_axis_tkeep   (rx_tkeep),
    .m_axis_tvalid  (rx_tvalid),
    .m_axis_tlast   (rx_tlast),
    .m_axis_tuser   (rx_tuser),
    .stat_good      (stat_rx_frame),
    .stat_bad_fcs   (stat_rx_bad_fcs),
    .stat_bad_frame (stat_rx_bad_frame)
  );

  mac_ctrl_rx u_ctrl (
    .clk,
    .rst,
    .s_axis_tdata  (rx_tdata),
    .s_axis_tkeep  (rx_tkeep),
    .s_axis_tvalid (rx_tvalid),
    .s_axis_tlast  (rx_tlast),
    .s_axis_tuser  (rx_tuser),
    .m_axis_tdata,
    .m_axis_tkeep,
    .m_axis_tvalid,
    .m_axis_tlast,
    .m_axis_tuser,
    .paused_global,
    .paused_class,
    .stat_pause    (stat_rx_pause),
    .stat_pfc      (stat_rx_pfc)
  );
endmodule
