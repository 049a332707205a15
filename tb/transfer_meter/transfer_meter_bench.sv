// SPDX-License-Identifier: Apache-2.0
// transfer_meter with its structs taken apart, so that the bench needs no bit positions.
module transfer_meter_bench
  import penstock_pkg::*;
#(
  parameter int unsigned N_QP = 4
) (
  input  logic        clk,
  input  logic        rst,
  input  logic        clear,
  input  logic        arm_valid,
  input  qp_t         arm_qp,
  input  logic        stat_valid,
  input  qp_t         stat_qp,
  input  psn_t        stat_psn,
  input  logic [PayloadLenW-1:0] stat_bytes,
  input  logic        send,
  input  logic        retransmit,
  input  logic        freed,
  input  qp_state_e   state,
  input  psn_t        una,
  input  psn_t        nxt,
  input  logic        req_valid,
  input  logic        req_is_wr,
  input  logic [15:0] req_addr,
  output logic        rd_ack,
  output logic        wr_ack,
  output logic [31:0] rd_data
);
  roce_tx_pkg::outcome_t stat;
  roce_tx_pkg::ring_status_t stat_status;
  ctrl_pkg::reg_req_t req;
  ctrl_pkg::reg_rsp_t rsp;

  always_comb begin
    stat            = '0;
    stat.send       = send;
    stat.retransmit = retransmit;
    stat.freed      = freed;
    stat_status     = '{state: state, drained: 1'b0, una: una, nxt: nxt, wr: nxt};
    req             = '{valid: req_valid, is_wr: req_is_wr, addr: req_addr, wr_data: '0, wr_biten: '1};
  end
  assign {rd_ack, wr_ack, rd_data} = {rsp.rd_ack, rsp.wr_ack, rsp.rd_data};

  transfer_meter #(.N_QP(N_QP)) u_dut (.*);
endmodule
