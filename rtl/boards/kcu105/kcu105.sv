// SPDX-License-Identifier: SHL-2.1
// Board top: AMD KCU105 (XCKU040-2FFVA1156E), 10GBASE-R on SFP0, registers over the network and JTAG.
// Messages come from the built-in source. Address 192.168.1.(128 + switches); pins: kcu105.xdc.
module kcu105 #(
  parameter int unsigned N_QP       = 4,
  parameter int unsigned RING_BYTES = 262144,
  parameter int unsigned SLOTS      = 256,
  parameter logic [47:0] MAC        = 48'h02_00_00_00_00_80,
  parameter logic [31:0] IP         = {8'd192, 8'd168, 8'd1, 8'd128}
) (
  input  logic       clk_125mhz_p,
  input  logic       clk_125mhz_n,
  input  logic       reset,            // push button
  input  logic [3:0] sw,
  output logic [7:0] led,

  input  logic       sfp_refclk_p,     // Si570, 156.25 MHz
  input  logic       sfp_refclk_n,
  input  logic       sfp_rx_p,
  input  logic       sfp_rx_n,
  output logic       sfp_tx_p,
  output logic       sfp_tx_n,
  output logic       sfp_tx_disable_b
);
  logic clk_125mhz_in, clk_125mhz;
  logic clk, rst, tx_not_ready, rx_not_ready, block_lock, link_up;
  logic [3:0] switches;
  logic [63:0] xgmii_txd, xgmii_rxd;
  logic [7:0] xgmii_txc, xgmii_rxc;

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

  // The receive side is clocked by the transmit clock: the core's elastic buffer crosses over.
  xxv_ethernet_0 u_phy (
    .sys_reset        (reset),
    .dclk             (clk_125mhz),
    .gt_refclk_p      (sfp_refclk_p),
    .gt_refclk_n      (sfp_refclk_n),
    .gt_refclk_out    (),
    .gtpowergood_out_0(),
    .gt_rxp_in_0      (sfp_rx_p),
    .gt_rxn_in_0      (sfp_rx_n),
    .gt_txp_out_0     (sfp_tx_p),
    .gt_txn_out_0     (sfp_tx_n),
    .gt_loopback_in_0 ('0),
    .txoutclksel_in_0 (3'b101),
    .rxoutclksel_in_0 (3'b101),
    .gtwiz_reset_tx_datapath_0(1'b0),
    .gtwiz_reset_rx_datapath_0(1'b0),
    .qpllreset_in_0   (1'b0),
    .rxrecclkout_0    (),
    .tx_mii_clk_0     (clk),
    .tx_reset_0       (1'b0),
    .user_tx_reset_0  (tx_not_ready),
    .tx_mii_d_0       (xgmii_txd),
    .tx_mii_c_0       (xgmii_txc),
    .stat_tx_local_fault_0(),
    .ctl_tx_test_pattern_0(1'b0),
    .ctl_tx_test_pattern_enable_0(1'b0),
    .ctl_tx_test_pattern_select_0(1'b0),
    .ctl_tx_data_pattern_select_0(1'b0),
    .ctl_tx_test_pattern_seed_a_0('0),
    .ctl_tx_test_pattern_seed_b_0('0),
    .ctl_tx_prbs31_test_pattern_enable_0(1'b0),
    .rx_clk_out_0     (),
    .rx_core_clk_0    (clk),
    .rx_reset_0       (1'b0),
    .user_rx_reset_0  (rx_not_ready),
    .rx_mii_d_0       (xgmii_rxd),
    .rx_mii_c_0       (xgmii_rxc),
    .ctl_rx_test_pattern_0(1'b0),
    .ctl_rx_data_pattern_select_0(1'b0),
    .ctl_rx_test_pattern_enable_0(1'b0),
    .ctl_rx_prbs31_test_pattern_enable_0(1'b0),
    .stat_rx_block_lock_0(block_lock),
    .stat_rx_status_0 ()
  );

  // The receiver may come up long after the transmitter, and again whenever the fibre is moved: it resets nothing,
  // for the PCS sends local fault as long as it is not locked.
  logic rst_request, tx_waits, rx_waits, rx_locked;
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
  reset_sync u_rx_locked (
    .clk,
    .d(block_lock),
    .q(rx_locked)
  );
  assign rst     = rst_request || tx_waits;
  assign link_up = rx_locked && !rx_waits;

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

  board_xgmii #(
    .N_QP(N_QP),
    .RING_BYTES(RING_BYTES),
    .SLOTS(SLOTS)
  ) u_board (
    .local_mac(MAC | 48'(switches)),
    .local_ip (IP | 32'(switches)),
    .*
  );

  assign sfp_tx_disable_b = 1'b1;  // the board's transistor inverts it: the laser is on
endmodule
