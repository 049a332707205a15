// SPDX-License-Identifier: SHL-2.1
// The 1G front end as a stand-alone board design: RGMII without its pins, the PHY's reset, its own address, the
// built-in message source, LEDs. The board top adds pins, DDR registers and clocks (rgmii defines `rise` and `fall`).
// With ECHO there is no front end: each good frame is sent back (line_echo), to test a board's pins, PHY and cable.
module board_1g #(
  parameter int unsigned N_QP       = 1,
  parameter int unsigned RING_BYTES = 32768,
  parameter int unsigned SLOTS      = 32,
  parameter int unsigned CLK_KHZ    = 62500,
  parameter bit          INBAND     = 1'b1,  // the PHY reports the link's state in band
  parameter bit          ECHO       = 1'b0
) (
  input  logic clk,     // of the core, CLK_KHZ
  input  logic rst,
  input  logic tx_clk,  // 125 MHz
  input  logic rx_clk,  // of the PHY

  output logic [3:0] rgmii_txd_rise,
  output logic [3:0] rgmii_txd_fall,
  output logic       rgmii_tx_ctl_rise,
  output logic       rgmii_tx_ctl_fall,
  output logic       rgmii_txc_rise,
  output logic       rgmii_txc_fall,
  input  logic [3:0] rgmii_rxd_rise,
  input  logic [3:0] rgmii_rxd_fall,
  input  logic       rgmii_rx_ctl_rise,
  input  logic       rgmii_rx_ctl_fall,
  output logic       phy_rst_n,

  input  logic [47:0] own_mac,  // stable from the end of reset on
  input  logic [31:0] own_ip,
  output logic [7:0]  led
);
  // A PHY wants to be held for 10 ms after its supplies are there; here 2^PhyHoldLog2 cycles, 16.8 ms at 62.5 MHz.
  localparam int unsigned PhyHoldLog2 = 20;
  logic [PhyHoldLog2:0] held_q;

  assign phy_rst_n = held_q[PhyHoldLog2];
  always_ff @(posedge clk) begin
    if (!phy_rst_n) held_q <= held_q + 1'b1;
    if (rst) held_q <= '0;
  end

  // ---- the line ---------------------------------------------------------------------------------------
  logic tx_rst, rx_rst, gmii_tx_enable, gmii_tx_en, gmii_tx_er, gmii_rx_dv, gmii_rx_er;
  logic [7:0] gmii_txd, gmii_rxd;
  gmii_pkg::link_t link;

  reset_sync u_tx_rst (
    .clk(tx_clk),
    .d  (rst),
    .q  (tx_rst)
  );
  logic rx_holds_q;  // until the PHY runs
  always_ff @(posedge clk) rx_holds_q <= rst || !phy_rst_n;

  reset_sync u_rx_rst (
    .clk(rx_clk),
    .d  (rx_holds_q),
    .q  (rx_rst)
  );

  rgmii #(
    .INBAND(INBAND)
  ) u_rgmii (
    .*
  );

  // ---- the front end, or the echo -----------------------------------------------------------------------
  logic address_set, tx_paused, link_up;
  logic [63:0] cpl_tdata;
  logic cpl_tvalid, cpl_tready;

  gmii_pkg::link_t here;
  link_sync u_link (
    .clk,
    .link,
    .here
  );
  assign link_up = here.up && here.full_duplex;
  wire unused_speed = &{1'b0, here.speed};

  if (ECHO) begin : gen_echo
    logic [63:0] rx_tdata, tx_tdata;
    logic [7:0] rx_tkeep, tx_tkeep;
    logic rx_tvalid, rx_tlast, rx_tuser, tx_tvalid, tx_tready, tx_tlast;
    eth_pkg::mac_status_t status;

    mac_gmii u_mac (
      .gmii_tx_clk  (tx_clk),
      .gmii_rx_clk  (rx_clk),
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
      .*
    );

    line_echo u_echo (
      .clk,
      .rst,
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
      .damaged      (status.rx_bad_fcs || status.rx_bad_frame),
      .m_axis_cpl_tdata (cpl_tdata),
      .m_axis_cpl_tvalid(cpl_tvalid)
    );

    assign address_set = 1'b0;
    assign tx_paused   = 1'b0;

    wire unused = &{1'b0, status, own_mac, own_ip, cpl_tready};
  end else begin : gen_front_end
    axi_pkg::axil_req_t axil_req;
    axi_pkg::axil_rsp_t axil_rsp, unused_rsp;

    board_address u_address (
      .clk,
      .rst,
      .mac(own_mac),
      .ip (own_ip),
      .done(address_set),
      .s_axil_req('0),
      .s_axil_rsp(unused_rsp),
      .m_axil_req(axil_req),
      .m_axil_rsp(axil_rsp)
    );

    penstock_1g #(
      .N_QP(N_QP),
      .RING_BYTES(RING_BYTES),
      .SLOTS(SLOTS),
      .CLK_KHZ(CLK_KHZ)
    ) u_penstock (
      .clk,
      .rst,
      .gmii_tx_clk(tx_clk),
      .gmii_tx_enable,
      .gmii_txd,
      .gmii_tx_en,
      .gmii_tx_er,
      .gmii_rx_clk(rx_clk),
      .gmii_rxd,
      .gmii_rx_dv,
      .gmii_rx_er,
      .link_up         (link.up),
      .link_full_duplex(link.full_duplex),
      .link_speed      (link.speed),
      .s_axis_desc_tdata  ('0),  // the message source is inside
      .s_axis_desc_tvalid (1'b0),
      .s_axis_desc_tready (),
      .s_axis_data_tdata  ('0),
      .s_axis_data_tkeep  ('0),
      .s_axis_data_tvalid (1'b0),
      .s_axis_data_tready (),
      .s_axis_data_tlast  (1'b0),
      .m_axis_cpl_tdata   (cpl_tdata),
      .m_axis_cpl_tvalid  (cpl_tvalid),
      .m_axis_cpl_tready  (cpl_tready),
      .s_event_clk        ('0),  // no detector
      .s_event_rst        ('0),
      .s_axis_event_tdata ('0),
      .s_axis_event_tkeep ('0),
      .s_axis_event_tuser ('0),
      .s_axis_event_tvalid('0),
      .s_axis_event_tready(),
      .s_axis_event_tlast ('0),
      .trigger_valid      (1'b0),
      .trigger_number     ('0),
      .trigger_type       ('0),
      .trigger_veto       (1'b0),
      .trigger_busy       (),
      .trigger_gate       (),
      .m_axis_trigger_tdata(),
      .m_axis_trigger_tvalid(),
      .m_axis_trigger_tready(1'b1),
      .pps                (1'b0),
      .clk_10mhz          (1'b0),
      .tai_ns             (),
      .m_axis_sample_tdata(),
      .m_axis_sample_tvalid(),
      .m_axis_sample_tready(1'b1),
      // the packet store is on chip
      .m_axi_rst          (1'b0),  // the rings are on chip
      .m_axi_awid(), .m_axi_awaddr(), .m_axi_awlen(), .m_axi_awsize(), .m_axi_awburst(), .m_axi_awlock(),
      .m_axi_awcache(), .m_axi_awprot(), .m_axi_awvalid(), .m_axi_wdata(), .m_axi_wstrb(), .m_axi_wlast(),
      .m_axi_wvalid(), .m_axi_bready(), .m_axi_arid(), .m_axi_araddr(), .m_axi_arlen(), .m_axi_arsize(),
      .m_axi_arburst(), .m_axi_arlock(), .m_axi_arcache(), .m_axi_arprot(), .m_axi_arvalid(), .m_axi_rready(),
      .m_axi_awready('0), .m_axi_wready('0), .m_axi_bid('0), .m_axi_bresp('0), .m_axi_bvalid('0), .m_axi_arready('0),
      .m_axi_rid('0), .m_axi_rdata('0), .m_axi_rresp('0), .m_axi_rlast('0), .m_axi_rvalid('0),
      .s_axil_awaddr(axil_req.awaddr),
      .s_axil_awprot(axil_req.awprot),
      .s_axil_awvalid(axil_req.awvalid),
      .s_axil_awready(axil_rsp.awready),
      .s_axil_wdata(axil_req.wdata),
      .s_axil_wstrb(axil_req.wstrb),
      .s_axil_wvalid(axil_req.wvalid),
      .s_axil_wready(axil_rsp.wready),
      .s_axil_bresp(axil_rsp.bresp),
      .s_axil_bvalid(axil_rsp.bvalid),
      .s_axil_bready(axil_req.bready),
      .s_axil_araddr(axil_req.araddr),
      .s_axil_arprot(axil_req.arprot),
      .s_axil_arvalid(axil_req.arvalid),
      .s_axil_arready(axil_rsp.arready),
      .s_axil_rdata(axil_rsp.rdata),
      .s_axil_rresp(axil_rsp.rresp),
      .s_axil_rvalid(axil_rsp.rvalid),
      .s_axil_rready(axil_req.rready),
      .tx_paused
    );

    wire unused = &{1'b0, unused_rsp};
  end

  board_leds #(
    .BlinkLog2(23)
  ) u_leds (
    .clk,
    .rst,
    .link_up,
    .address_set,
    .tx_paused,
    .s_axis_cpl_tdata (cpl_tdata),
    .s_axis_cpl_tvalid(cpl_tvalid),
    .s_axis_cpl_tready(cpl_tready),
    .led
  );
endmodule
