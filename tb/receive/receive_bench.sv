// SPDX-License-Identifier: SHL-2.1
// The responder with the receive side in front of it: frames in, with its memory as flat ports, and its events for the
// model of the bench.
`include "axi_ports.svh"
module receive_bench
  import penstock_pkg::*;
  import roce_read_pkg::*;
#(
  parameter int unsigned DATA_W = 64,
  parameter int unsigned N_QP   = 4
) (
  input  logic                          clk,
  input  logic                          rst,
  input  logic [23:0]                   qpn_base,
  input  logic [47:0]                   local_mac,
  input  logic [31:0]                   local_ip,
  input  logic [31:0]                   peer_ip,
  input  logic [DATA_W-1:0]             s_axis_tdata,
  input  logic [DATA_W/8-1:0]           s_axis_tkeep,
  input  logic                          s_axis_tvalid,
  input  logic                          s_axis_tlast,
  output logic                          cfg_rd,
  output qp_t                           cfg_qp,
  input  logic [$bits(qp_cfg_t)-1:0]    cfg,
  input  logic [$bits(read_cfg_t)-1:0]  window,
  input  logic [N_QP-1:0]               ready,
  output logic                          fault_valid,
  output qp_t                           fault_qp,
  input  logic [N_QP-1:0]               eligible,
  output logic [N_QP-1:0]               backlog,
  output logic                          sent_valid,
  output qp_t                           sent_qp,
  output logic [15:0]                   sent_bytes,
  input  logic                          sent_ready,
  input  logic                          tx_paused,
  output logic [$bits(tx_hdr_t)-1:0]    hdr,
  output logic                          hdr_valid,
  input  logic                          hdr_ready,
  output logic [DATA_W-1:0]             m_axis_tdata,
  output logic [DATA_W/8-1:0]           m_axis_tkeep,
  output logic                          m_axis_tvalid,
  input  logic                          m_axis_tready,
  output logic                          m_axis_tlast,
  output logic [DATA_W-1:0]             m_axis_receive_tdata,
  output logic [DATA_W/8-1:0]           m_axis_receive_tkeep,
  output logic [$bits(receive_user_t)-1:0] m_axis_receive_tuser,
  output logic                          m_axis_receive_tvalid,
  input  logic                          m_axis_receive_tready,
  output logic                          m_axis_receive_tlast,
  // a request was carried out, or had come for a queue pair that was closed meanwhile
  output logic                          executed,
  output logic                          ignored,
  output logic                          had_room,  // in the stream, when it was decided
  output logic [$bits(read_request_t)-1:0] executed_request,
  output logic                          unserved,
  output logic [$bits(read_stat_t)-1:0] stat_bits,
  `AXI_MASTER_PORTS(m_axi, 32, DATA_W)
);
  `AXI_MASTER(m_axi, 32)

  rx_roce_t rx;
  logic rx_valid, request_valid, m_axis_soon;
  request_hdr_t request_hdr;
  read_request_t request;
  ack_event_t unused_ack;
  qp_t unused_cfg_qp, unused_cnp_qp;
  logic unused_cfg_rd, unused_ack_valid, unused_cnp_valid;
  logic unused_stat_rx_roce, unused_stat_icrc_error, unused_stat_bad_pkey, unused_stat_not_for_us;
  logic unused_stat_malformed, unused_stat_other;
  logic unused_stat_unknown_qp, unused_stat_wrong_peer, unused_stat_not_ready;
  qp_cfg_t peer_cfg;
  always_comb begin
    peer_cfg        = '0;
    peer_cfg.dst_ip = peer_ip;
  end

  roce_rx #(.DATA_W(DATA_W)) u_rx (
    .clk, .rst, .local_mac, .local_ip,
    .s_axis_tdata, .s_axis_tkeep, .s_axis_tvalid, .s_axis_tlast, .s_axis_tuser(1'b0), .rx, .rx_valid,
    .stat_rx_roce(unused_stat_rx_roce), .stat_icrc_error(unused_stat_icrc_error), .stat_bad_pkey(unused_stat_bad_pkey), .stat_not_for_us(unused_stat_not_for_us), .stat_malformed(unused_stat_malformed), .stat_other(unused_stat_other)
  );
  request_parser #(.DATA_W(DATA_W), .RECEIVE(1'b1)) u_parser (
    .clk, .rst, .s_axis_tdata, .s_axis_tvalid, .s_axis_tlast, .hdr(request_hdr)
  );
  ack_receiver #(.N_QP(N_QP), .WITH_READ(1'b1), .WITH_RECEIVE(1'b1)) u_ack_receiver (
    .clk, .rst, .qpn_base, .rx, .rx_valid, .request_hdr, .cfg_rd(unused_cfg_rd), .cfg_qp(unused_cfg_qp), .cfg(peer_cfg), .ready,
    .ack(unused_ack), .ack_valid(unused_ack_valid), .cnp_valid(unused_cnp_valid), .cnp_qp(unused_cnp_qp), .request, .request_valid,
    .stat_unknown_qp(unused_stat_unknown_qp), .stat_wrong_peer(unused_stat_wrong_peer), .stat_not_ready(unused_stat_not_ready), .stat_unserved(unserved)
  );

  read_stat_t stat;
  assign stat_bits = stat;
  logic reading, taken_valid;
  pull_pkg::read_taken_t taken;
  read_responder #(.DATA_W(DATA_W), .N_QP(N_QP), .WITH_RECEIVE(1'b1)) u_dut (
    .hold(1'b0),
    .s_axis_rx_tdata(s_axis_tdata), .s_axis_rx_tvalid(s_axis_tvalid), .s_axis_rx_tlast(s_axis_tlast),
    .*
  );

  assign executed         = u_dut.request_taken;
  assign executed_request = u_dut.waiting;
  assign ignored          = u_dut.u_engine.closed;
  always_ff @(posedge clk) had_room <= u_dut.room;

  wire unused = &{
    1'b0, m_axis_soon, reading, taken_valid, taken,
    unused_stat_rx_roce, unused_stat_icrc_error, unused_stat_bad_pkey, unused_stat_not_for_us,
    unused_stat_malformed, unused_stat_other, unused_cfg_rd, unused_cfg_qp, unused_ack, unused_ack_valid,
    unused_cnp_valid, unused_cnp_qp, unused_stat_unknown_qp, unused_stat_wrong_peer, unused_stat_not_ready
  };
endmodule
