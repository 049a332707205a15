// SPDX-License-Identifier: SHL-2.1
// read_responder with its memory as flat ports, and its events for the model of the bench.
`include "axi_ports.svh"
module read_responder_bench
  import penstock_pkg::*;
  import roce_read_pkg::*;
#(
  parameter int unsigned DATA_W = 64,
  parameter int unsigned N_QP   = 4
) (
  input  logic                          clk,
  input  logic                          rst,
  input  logic [23:0]                   qpn_base,
  input  logic [$bits(read_request_t)-1:0] request,
  input  logic                          request_valid,
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
  output logic                          m_axis_soon,
  // a request was carried out, or had come for a queue pair that was closed meanwhile
  output logic                          executed,
  output logic                          ignored,
  output logic [$bits(read_request_t)-1:0] executed_request,
  output logic [$bits(read_stat_t)-1:0] stat_bits,
  `AXI_MASTER_PORTS(m_axi, 32, DATA_W)
);
  `AXI_MASTER(m_axi, 32)

  receive_user_t m_axis_receive_tuser;
  logic [DATA_W-1:0] m_axis_receive_tdata;
  logic [DATA_W/8-1:0] m_axis_receive_tkeep;
  logic m_axis_receive_tvalid, m_axis_receive_tlast;
  read_stat_t stat;
  assign stat_bits = stat;

  logic reading, taken_valid;
  pull_pkg::read_taken_t taken;
  read_responder #(.DATA_W(DATA_W), .N_QP(N_QP)) u_dut (
    .hold(1'b0),
    .s_axis_rx_tdata('0), .s_axis_rx_tvalid(1'b0), .s_axis_rx_tlast(1'b0), .m_axis_receive_tready(1'b1),
    .*
  );

  assign executed         = u_dut.request_taken;
  assign executed_request = u_dut.waiting;
  assign ignored          = u_dut.u_engine.closed;

  wire unused = &{
    1'b0, reading, taken_valid, taken, m_axis_receive_tdata, m_axis_receive_tkeep, m_axis_receive_tuser, m_axis_receive_tvalid, m_axis_receive_tlast
  };
endmodule
