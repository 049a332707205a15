// SPDX-License-Identifier: SHL-2.1
// The 100G front end as a stand-alone board design: its own address, the built-in message source, LEDs.
// Contains everything except the hard MAC; an experiment connects its own source to the tied-off ports.
module board_100g #(
  parameter int unsigned N_QP       = 4,
  parameter int unsigned RING_BYTES = 262144,
  parameter int unsigned SLOTS      = 256
) (
  input logic clk,  // 322.266 MHz
  input logic rst,

  output logic [511:0] m_axis_tx_tdata,
  output logic [63:0]  m_axis_tx_tkeep,
  output logic         m_axis_tx_tvalid,
  input  logic         m_axis_tx_tready,
  output logic         m_axis_tx_tlast,
  output logic         m_axis_tx_tuser,
  input  logic [511:0] s_axis_rx_tdata,
  input  logic [63:0]  s_axis_rx_tkeep,
  input  logic         s_axis_rx_tvalid,
  input  logic         s_axis_rx_tlast,
  input  logic         s_axis_rx_tuser,
  input  logic         rx_local_fault,
  input  logic         rx_remote_fault,

  input  logic [47:0] own_mac,  // stable from the end of reset on
  input  logic [31:0] own_ip,
  input  logic        link_up,
  output logic [7:0]  led,

  // A second master of the registers (JTAG); served once the address is set.
  input  axi_pkg::axil_req_t s_axil_req,
  output axi_pkg::axil_rsp_t s_axil_rsp
);
  axi_pkg::axil_req_t axil_req;
  axi_pkg::axil_rsp_t axil_rsp;
  logic address_set, tx_paused;
  logic [63:0] cpl_tdata;
  logic cpl_tvalid, cpl_tready;

  board_address u_address (
    .clk,
    .rst,
    .mac(own_mac),
    .ip(own_ip),
    .done(address_set),
    .m_axil_req(axil_req),
    .m_axil_rsp(axil_rsp),
    .*
  );

  penstock_100g #(
    .N_QP(N_QP),
    .RING_BYTES(RING_BYTES),
    .SLOTS(SLOTS)
  ) u_penstock (
    .clk,
    .rst,
    .m_axis_tx_tdata,
    .m_axis_tx_tkeep,
    .m_axis_tx_tvalid,
    .m_axis_tx_tready,
    .m_axis_tx_tlast,
    .m_axis_tx_tuser,
    .s_axis_rx_tdata,
    .s_axis_rx_tkeep,
    .s_axis_rx_tvalid,
    .s_axis_rx_tlast,
    .s_axis_rx_tuser,
    .rx_local_fault,
    .rx_remote_fault,
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

  board_leds u_leds (
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
