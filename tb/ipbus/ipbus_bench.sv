// SPDX-License-Identifier: SHL-2.1
// Bench only: IPbus from the frames of a MAC to the pins of an AXI4-Lite slave.
`include "axi_ports.svh"

module ipbus_bench
  import services_pkg::*;
  import ipbus_pkg::*;
(
  input logic clk,
  input logic rst,

  input logic [47:0]   local_mac,
  input logic [31:0]   local_ip,
  input logic [7:0]    ttl,
  input services_cfg_t cfg,
  input logic          link_up,

  input  logic [63:0] s_axis_rx_tdata,
  input  logic [7:0]  s_axis_rx_tkeep,
  input  logic        s_axis_rx_tvalid,
  input  logic        s_axis_rx_tlast,
  input  logic        s_axis_rx_tuser,
  output logic [63:0] m_axis_tx_tdata,
  output logic [7:0]  m_axis_tx_tkeep,
  output logic        m_axis_tx_tvalid,
  input  logic        m_axis_tx_tready,
  output logic        m_axis_tx_tlast,

  `AXIL_MASTER_PORTS(m_axil),

  output service_rx_stat_t stat_rx,
  output services_stat_t   stat,
  output ipbus_stat_t      stat_ipbus
);
  `AXIL_MASTER(m_axil)

  logic [15:0] request_tdata, reply_tdata;
  logic [1:0] request_tkeep, reply_tkeep;
  logic request_tvalid, request_tready, request_tlast, reply_tvalid, reply_tready, reply_tlast;
  udp_peer_t request_tuser, reply_tuser;

  services_bench #(.DATA_W(64)) u_services (
    .m_axis_ipbus_tdata (request_tdata),
    .m_axis_ipbus_tkeep (request_tkeep),
    .m_axis_ipbus_tvalid(request_tvalid),
    .m_axis_ipbus_tready(request_tready),
    .m_axis_ipbus_tlast (request_tlast),
    .m_axis_ipbus_tuser (request_tuser),
    .s_axis_ipbus_tdata (reply_tdata),
    .s_axis_ipbus_tkeep (reply_tkeep),
    .s_axis_ipbus_tvalid(reply_tvalid),
    .s_axis_ipbus_tready(reply_tready),
    .s_axis_ipbus_tlast (reply_tlast),
    .s_axis_ipbus_tuser (reply_tuser),
    // verilator lint_off PINCONNECTEMPTY
    .level_bytes(),
    .m_axis_cm_tdata(), .m_axis_cm_tvalid(), .m_axis_cm_tready(1'b0), .m_axis_cm_tlast(),
    .cm_rx_ip(), .cm_rx_sport(), .cm_rx_dport(),
    .m_axis_mad_tdata(), .m_axis_mad_tvalid(), .m_axis_mad_tlast(), .mad_rx_ip(),
    .s_axis_cm_tdata('0), .s_axis_cm_tvalid(1'b0), .s_axis_cm_tready(), .s_axis_cm_tlast(1'b0),
    .cm_tx_ip('0), .cm_tx_dport('0), .cm_tx_sport('0),
    .lookup_valid(1'b0), .lookup_ready(), .lookup_ip('0), .lookup_fresh(1'b0), .found_valid(), .found(), .found_mac(),
    // verilator lint_on PINCONNECTEMPTY
    .*
  );

  ipbus_target u_ipbus_target (
    .s_axis_tdata (request_tdata),
    .s_axis_tkeep (request_tkeep),
    .s_axis_tvalid(request_tvalid),
    .s_axis_tready(request_tready),
    .s_axis_tlast (request_tlast),
    .s_axis_tuser (request_tuser),
    .m_axis_tdata (reply_tdata),
    .m_axis_tkeep (reply_tkeep),
    .m_axis_tvalid(reply_tvalid),
    .m_axis_tready(reply_tready),
    .m_axis_tlast (reply_tlast),
    .m_axis_tuser (reply_tuser),
    .stat         (stat_ipbus),
    .*
  );
endmodule
