// SPDX-License-Identifier: SHL-2.1
// Replaces tcp_engine in proofs about the events in flight: any row and any actions, two cycles later, any choice and
// deadline after them.
module tcp_engine
  import tcp_pkg::*;
(
  input  logic         clk,
  input  logic         rst,
  input  logic         in_valid,
  input  tcp_event_t   in_event,
  input  tcp_row_t     in_row,
  input  tcp_choice_t  in_choice,
  input  tcp_tick_t    in_deadline,
  input  tcp_params_t  in_params,
  input  tcp_tick_t    in_now,
  input  tcp_event_t   again_event,
  input  tcp_row_t     again_row,
  input  tcp_tick_t    again_now,
  output logic         out_valid,
  output tcp_row_t     out_row,
  output tcp_actions_t out_actions,
  output logic         out_choice_valid,
  output tcp_choice_t  out_choice,
  output logic         out_more,
  output logic         out_starts,
  output tcp_tick_t    out_deadline
);
  logic valid1_q, valid2_q, valid3_q, starts;
  anything #(.W($bits(tcp_row_t))) u_row (.value(out_row));
  anything #(.W($bits(tcp_choice_t))) u_choice (.value(out_choice));
  anything #(.W($bits(tcp_actions_t))) u_actions (.value(out_actions));
  anything u_more (.value(out_more));
  anything u_starts (.value(starts));
  anything #(.W($bits(tcp_tick_t))) u_deadline (.value(out_deadline));
  always_ff @(posedge clk) begin
    valid1_q <= in_valid && !rst;
    valid2_q <= valid1_q && !rst;
    valid3_q <= valid2_q && !rst;
  end
  assign out_valid        = valid2_q;
  assign out_choice_valid = valid3_q;
  assign out_starts       = valid3_q && starts;
endmodule
