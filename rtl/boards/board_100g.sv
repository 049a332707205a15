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

  input  logic [47:0] local_mac,  // stable from the end of reset on
  input  logic [31:0] local_ip,
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
    .mac(local_mac),
    .ip(local_ip),
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
    `include "front_end_unused.svh"
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
