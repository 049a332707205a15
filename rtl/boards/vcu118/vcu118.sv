// SPDX-License-Identifier: SHL-2.1
// Board top: AMD VCU118 (XCVU9P-2LFLGA2104E), 100GBASE-R with RS-FEC on QSFP28 cage 1 by the hard CMAC.
// Messages come from the built-in source. Address 192.168.1.(144 + switches); pins: vcu118.xdc.
module vcu118 #(
  parameter int unsigned N_QP       = 4,
  parameter int unsigned RING_BYTES = 262144,
  parameter int unsigned SLOTS      = 256,
  parameter logic [47:0] MAC        = 48'h02_00_00_00_00_90,
  parameter logic [31:0] IP         = {8'd192, 8'd168, 8'd1, 8'd144},
  parameter logic        RS_FEC     = 1'b1  // off for 100GBASE-LR4
) (
  input  logic       clk_125mhz_p,
  input  logic       clk_125mhz_n,
  input  logic       reset,            // push button
  input  logic [3:0] sw,
  output logic [7:0] led,

  input  logic       qsfp1_refclk_p,   // 156.25 MHz
  input  logic       qsfp1_refclk_n,
  input  logic [3:0] qsfp1_rx_p,
  input  logic [3:0] qsfp1_rx_n,
  output logic [3:0] qsfp1_tx_p,
  output logic [3:0] qsfp1_tx_n,
  output logic       qsfp1_modsell,
  output logic       qsfp1_resetl,
  output logic       qsfp1_lpmode
);
  logic clk_125mhz_in, clk_125mhz;
  logic clk, rst, tx_not_ready, rx_not_ready, aligned, link_up, rx_local_fault, rx_remote_fault;
  logic [3:0] switches;
  logic [511:0] tx_tdata, rx_tdata;
  logic [63:0] tx_tkeep, rx_tkeep;
  logic tx_tvalid, tx_tready, tx_tlast, tx_tuser, rx_tvalid, rx_tlast, rx_tuser, mac_tready;
  logic carry, carry_q, in_frame_q;

  logic [31:0] jtag_awaddr, jtag_araddr;
  axi_pkg::axil_req_t s_axil_req;
  axi_pkg::axil_rsp_t s_axil_rsp;

  IBUFDS u_clk_125mhz_in (
    .I (clk_125mhz_p),
    .IB(clk_125mhz_n),
    .O (clk_125mhz_in)
  );

  BUFG u_clk_125mhz (
    .I(clk_125mhz_in),
    .O(clk_125mhz)
  );

  cmac_usplus_0 u_cmac (
    .sys_reset      (reset),
    .init_clk       (clk_125mhz),
    .gt_ref_clk_p   (qsfp1_refclk_p),
    .gt_ref_clk_n   (qsfp1_refclk_n),
    .gt_rxp_in      (qsfp1_rx_p),
    .gt_rxn_in      (qsfp1_rx_n),
    .gt_txp_out     (qsfp1_tx_p),
    .gt_txn_out     (qsfp1_tx_n),
    .gt_loopback_in ('0),
    .gtwiz_reset_tx_datapath(1'b0),
    .gtwiz_reset_rx_datapath(1'b0),
    .gt_txusrclk2   (clk),
    .core_tx_reset  (1'b0),
    .usr_tx_reset   (tx_not_ready),
    .tx_axis_tdata  (tx_tdata),
    .tx_axis_tkeep  (tx_tkeep),
    .tx_axis_tvalid (tx_tvalid && carry),
    .tx_axis_tready (mac_tready),
    .tx_axis_tlast  (tx_tlast),
    .tx_axis_tuser  (tx_tuser),
    .tx_ovfout      (),
    .tx_unfout      (),
    .tx_preamblein  ('0),
    .ctl_tx_enable  (link_up),
    .ctl_tx_test_pattern(1'b0),
    .ctl_tx_send_idle(1'b0),
    .ctl_tx_send_rfi(!link_up),  // PG203: remote fault until the receiver is aligned
    .ctl_tx_send_lfi(1'b0),
    .ctl_tx_rsfec_enable(RS_FEC),
    .rx_clk         (clk),
    .core_rx_reset  (1'b0),
    .usr_rx_reset   (rx_not_ready),
    .rx_axis_tdata  (rx_tdata),
    .rx_axis_tkeep  (rx_tkeep),
    .rx_axis_tvalid (rx_tvalid),
    .rx_axis_tlast  (rx_tlast),
    .rx_axis_tuser  (rx_tuser),
    .ctl_rx_enable  (1'b1),
    .ctl_rx_force_resync(1'b0),
    .ctl_rx_test_pattern(1'b0),
    .ctl_rx_rsfec_enable(RS_FEC),
    .ctl_rx_rsfec_enable_correction(RS_FEC),
    .ctl_rx_rsfec_enable_indication(RS_FEC),
    .ctl_rsfec_ieee_error_indication_mode(1'b0),
    .stat_rx_aligned(aligned),
    .stat_rx_local_fault(rx_local_fault),
    .stat_rx_remote_fault(rx_remote_fault),
    .core_drp_reset (1'b0),
    .drp_clk        (clk_125mhz),
    .drp_addr       ('0),
    .drp_di         ('0),
    .drp_en         (1'b0),
    .drp_do         (),
    .drp_rdy        (),
    .drp_we         (1'b0)
  );

  // Without a link, whole frames are accepted and dropped, as on a wire: preceding stages must not stall for ever.
  assign carry     = in_frame_q ? carry_q : link_up;
  assign tx_tready = mac_tready || !carry;

  always_ff @(posedge clk) begin
    carry_q <= carry;
    if (tx_tvalid && tx_tready) in_frame_q <= !tx_tlast;
    if (rst) in_frame_q <= 1'b0;
  end

  logic rst_request, tx_waits, rx_waits, rx_aligned;
  reset_sync u_rst_request (
    .clk,
    .d(reset),
    .q(rst_request)
  );
  reset_sync u_tx_waits (
    .clk,
    .d(tx_not_ready),
    .q(tx_waits)
  );
  reset_sync u_rx_waits (
    .clk,
    .d(rx_not_ready),
    .q(rx_waits)
  );
  reset_sync u_aligned (
    .clk,
    .d(aligned),
    .q(rx_aligned)
  );
  assign rst     = rst_request || tx_waits;
  assign link_up = rx_aligned && !rx_waits;

  for (genvar i = 0; i < 4; i++) begin : gen_switch
    reset_sync u_switch (
      .clk,
      .d(sw[i]),
      .q(switches[i])
    );
  end

  jtag_axi_0 u_jtag (
    .aclk   (clk),
    .aresetn(!rst),
    .m_axi_awaddr(jtag_awaddr),
    .m_axi_awprot(s_axil_req.awprot),
    .m_axi_awvalid(s_axil_req.awvalid),
    .m_axi_awready(s_axil_rsp.awready),
    .m_axi_wdata(s_axil_req.wdata),
    .m_axi_wstrb(s_axil_req.wstrb),
    .m_axi_wvalid(s_axil_req.wvalid),
    .m_axi_wready(s_axil_rsp.wready),
    .m_axi_bresp(s_axil_rsp.bresp),
    .m_axi_bvalid(s_axil_rsp.bvalid),
    .m_axi_bready(s_axil_req.bready),
    .m_axi_araddr(jtag_araddr),
    .m_axi_arprot(s_axil_req.arprot),
    .m_axi_arvalid(s_axil_req.arvalid),
    .m_axi_arready(s_axil_rsp.arready),
    .m_axi_rdata(s_axil_rsp.rdata),
    .m_axi_rresp(s_axil_rsp.rresp),
    .m_axi_rvalid(s_axil_rsp.rvalid),
    .m_axi_rready(s_axil_req.rready)
  );

  assign s_axil_req.awaddr = jtag_awaddr[17:0];
  assign s_axil_req.araddr = jtag_araddr[17:0];

  wire unused = &{1'b0, jtag_awaddr, jtag_araddr};

  board_100g #(
    .N_QP(N_QP),
    .RING_BYTES(RING_BYTES),
    .SLOTS(SLOTS)
  ) u_board (
    .local_mac(MAC | 48'(switches)),
    .local_ip (IP | 32'(switches)),
    .m_axis_tx_tdata (tx_tdata),
    .m_axis_tx_tkeep (tx_tkeep),
    .m_axis_tx_tvalid(tx_tvalid),
    .m_axis_tx_tready(tx_tready),
    .m_axis_tx_tlast (tx_tlast),
    .m_axis_tx_tuser (tx_tuser),
    .s_axis_rx_tdata (rx_tdata),
    .s_axis_rx_tkeep (rx_tkeep),
    .s_axis_rx_tvalid(rx_tvalid),
    .s_axis_rx_tlast (rx_tlast),
    .s_axis_rx_tuser (rx_tuser),
    .*
  );

  assign qsfp1_modsell = 1'b1;  // its management bus is not used
  assign qsfp1_resetl  = 1'b1;
  assign qsfp1_lpmode  = 1'b0;
endmodule
