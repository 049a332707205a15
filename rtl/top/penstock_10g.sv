// SPDX-License-Identifier: SHL-2.1
// The 10G front end: penstock_core and its MAC on XGMII (64 bits at 156.25 MHz, IEEE 802.3 clause 46).
// Everything a board needs is on flat AMBA ports; the PCS/PMA and the data source are the board's.
module penstock_10g #(
  parameter int unsigned N_QP       = 4,
  parameter int unsigned RING_BYTES = 262144,  // payload bytes kept per queue pair until acknowledged
  parameter int unsigned SLOTS      = 256,     // packets kept per queue pair
  parameter int unsigned CLK_KHZ    = 156250
) (
  input logic clk,
  input logic rst,

  output logic [63:0] xgmii_txd,
  output logic [7:0]  xgmii_txc,
  input  logic [63:0] xgmii_rxd,
  input  logic [7:0]  xgmii_rxc,

  // Work requests (penstock_pkg::desc_t), their payloads in the same order, completions (cpl_t).
  input  logic [175:0] s_axis_desc_tdata,
  input  logic         s_axis_desc_tvalid,
  output logic         s_axis_desc_tready,
  input  logic [63:0]  s_axis_data_tdata,
  input  logic [7:0]   s_axis_data_tkeep,
  input  logic         s_axis_data_tvalid,
  output logic         s_axis_data_tready,
  input  logic         s_axis_data_tlast,
  output logic [63:0]  m_axis_cpl_tdata,
  output logic         m_axis_cpl_tvalid,
  input  logic         m_axis_cpl_tready,

  // Rates of the queue pairs over time (penstock_pkg::cc_sample_t); dropped and counted while not taken.
  output logic [127:0] m_axis_sample_tdata,
  output logic         m_axis_sample_tvalid,
  input  logic         m_axis_sample_tready,

  // Registers (regs/penstock.rdl).
  input  logic [16:0] s_axil_awaddr,
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
  input  logic [16:0] s_axil_araddr,
  input  logic [2:0]  s_axil_arprot,
  input  logic        s_axil_arvalid,
  output logic        s_axil_arready,
  output logic [31:0] s_axil_rdata,
  output logic [1:0]  s_axil_rresp,
  output logic        s_axil_rvalid,
  input  logic        s_axil_rready,

  output logic tx_paused  // pause or PFC holds our data now
);
  localparam int unsigned DATA_W = 64;

  logic [63:0] tx_tdata, rx_tdata;
  logic [7:0] tx_tkeep, rx_tkeep;
  logic tx_tvalid, tx_tready, tx_tlast;
  logic rx_tvalid, rx_tlast, rx_tuser;

  logic mac_pause_en, mac_pfc_en;
  logic [2:0] mac_traffic_class;
  logic mac_tx_frame, mac_tx_underrun;
  logic mac_rx_frame, mac_rx_bad_fcs, mac_rx_bad_frame, mac_rx_pause, mac_rx_pfc;

  penstock_core #(
    .DATA_W(DATA_W),
    .N_QP(N_QP),
    .RING_BYTES(RING_BYTES),
    .SLOTS(SLOTS),
    .CLK_KHZ(CLK_KHZ)
  ) u_core (
    .m_axis_tx_tdata (tx_tdata),
    .m_axis_tx_tkeep (tx_tkeep),
    .m_axis_tx_tvalid(tx_tvalid),
    .m_axis_tx_tready(tx_tready),
    .m_axis_tx_tlast (tx_tlast),
    .s_axis_rx_tdata (rx_tdata),
    .s_axis_rx_tkeep (rx_tkeep),
    .s_axis_rx_tvalid(rx_tvalid),
    .s_axis_rx_tlast (rx_tlast),
    .s_axis_rx_tuser (rx_tuser),
    .*
  );

  mac_10g u_mac (
    .clk,
    .rst,
    .xgmii_txd,
    .xgmii_txc,
    .xgmii_rxd,
    .xgmii_rxc,
    .s_axis_tdata     (tx_tdata),
    .s_axis_tkeep     (tx_tkeep),
    .s_axis_tvalid    (tx_tvalid),
    .s_axis_tready    (tx_tready),
    .s_axis_tlast     (tx_tlast),
    .m_axis_tdata     (rx_tdata),
    .m_axis_tkeep     (rx_tkeep),
    .m_axis_tvalid    (rx_tvalid),
    .m_axis_tlast     (rx_tlast),
    .m_axis_tuser     (rx_tuser),
    .cfg_pause_en     (mac_pause_en),
    .cfg_pfc_en       (mac_pfc_en),
    .cfg_class        (mac_traffic_class),
    .tx_paused,
    .stat_tx_frame    (mac_tx_frame),
    .stat_tx_underrun (mac_tx_underrun),
    .stat_rx_frame    (mac_rx_frame),
    .stat_rx_bad_fcs  (mac_rx_bad_fcs),
    .stat_rx_bad_frame(mac_rx_bad_frame),
    .stat_rx_pause    (mac_rx_pause),
    .stat_rx_pfc      (mac_rx_pfc)
  );

endmodule
