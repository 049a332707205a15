// SPDX-License-Identifier: SHL-2.1
// The 100G front end as a board uses it by itself: its own address, the built-in message source, lamps.
// Everything but the hard MAC; an experiment puts its own source in the place of the tied-off ports.
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
  input  logic [17:0] s_axil_awaddr,
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
  input  logic [17:0] s_axil_araddr,
  input  logic [2:0]  s_axil_arprot,
  input  logic        s_axil_arvalid,
  output logic        s_axil_arready,
  output logic [31:0] s_axil_rdata,
  output logic [1:0]  s_axil_rresp,
  output logic        s_axil_rvalid,
  input  logic        s_axil_rready
);
  logic [17:0] axil_awaddr, axil_araddr;
  logic [2:0] axil_awprot, axil_arprot;
  logic [31:0] axil_wdata, axil_rdata;
  logic [3:0] axil_wstrb;
  logic [1:0] axil_bresp, axil_rresp;
  logic axil_awvalid, axil_awready, axil_wvalid, axil_wready, axil_bvalid, axil_bready;
  logic axil_arvalid, axil_arready, axil_rvalid, axil_rready;
  logic address_set, tx_paused;
  logic [63:0] cpl_tdata;
  logic cpl_tvalid, cpl_tready;

  board_address u_address (
    .clk,
    .rst,
    .mac(own_mac),
    .ip(own_ip),
    .done(address_set),
    .m_axil_awaddr(axil_awaddr),
    .m_axil_awprot(axil_awprot),
    .m_axil_awvalid(axil_awvalid),
    .m_axil_awready(axil_awready),
    .m_axil_wdata(axil_wdata),
    .m_axil_wstrb(axil_wstrb),
    .m_axil_wvalid(axil_wvalid),
    .m_axil_wready(axil_wready),
    .m_axil_bresp(axil_bresp),
    .m_axil_bvalid(axil_bvalid),
    .m_axil_bready(axil_bready),
    .m_axil_araddr(axil_araddr),
    .m_axil_arprot(axil_arprot),
    .m_axil_arvalid(axil_arvalid),
    .m_axil_arready(axil_arready),
    .m_axil_rdata(axil_rdata),
    .m_axil_rresp(axil_rresp),
    .m_axil_rvalid(axil_rvalid),
    .m_axil_rready(axil_rready),
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
    .m_axis_sample_tdata(),
    .m_axis_sample_tvalid(),
    .m_axis_sample_tready(1'b1),
    // the packet store is on chip
    .m_axi_awid(), .m_axi_awaddr(), .m_axi_awlen(), .m_axi_awsize(), .m_axi_awburst(), .m_axi_awlock(),
    .m_axi_awcache(), .m_axi_awprot(), .m_axi_awvalid(), .m_axi_wdata(), .m_axi_wstrb(), .m_axi_wlast(),
    .m_axi_wvalid(), .m_axi_bready(), .m_axi_arid(), .m_axi_araddr(), .m_axi_arlen(), .m_axi_arsize(),
    .m_axi_arburst(), .m_axi_arlock(), .m_axi_arcache(), .m_axi_arprot(), .m_axi_arvalid(), .m_axi_rready(),
    .m_axi_awready('0), .m_axi_wready('0), .m_axi_bid('0), .m_axi_bresp('0), .m_axi_bvalid('0), .m_axi_arready('0),
    .m_axi_rid('0), .m_axi_rdata('0), .m_axi_rresp('0), .m_axi_rlast('0), .m_axi_rvalid('0),
    .s_axil_awaddr(axil_awaddr),
    .s_axil_awprot(axil_awprot),
    .s_axil_awvalid(axil_awvalid),
    .s_axil_awready(axil_awready),
    .s_axil_wdata(axil_wdata),
    .s_axil_wstrb(axil_wstrb),
    .s_axil_wvalid(axil_wvalid),
    .s_axil_wready(axil_wready),
    .s_axil_bresp(axil_bresp),
    .s_axil_bvalid(axil_bvalid),
    .s_axil_bready(axil_bready),
    .s_axil_araddr(axil_araddr),
    .s_axil_arprot(axil_arprot),
    .s_axil_arvalid(axil_arvalid),
    .s_axil_arready(axil_arready),
    .s_axil_rdata(axil_rdata),
    .s_axil_rresp(axil_rresp),
    .s_axil_rvalid(axil_rvalid),
    .s_axil_rready(axil_rready),
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
