// SPDX-License-Identifier: SHL-2.1
// The rules as a pipeline, one event per cycle: compare (tcp_facts); decide (tcp_step); choose the data that the row
// may send next, and set the timer (tcp_pick, tcp_timer). The choice is kept with the row and comes back with it. The
// result comes two cycles after the event, and the deadline of a timer that has started one cycle later. A row must not
// be given again before its result has been stored; TcpTick, which alone asks for the deadline, not before that is too.
// An event, its row and its time are needed for two cycles: they come again a cycle later (`again_*`), so that
// tcp_sender, which keeps them that long, needs no second copy.
module tcp_engine
  import tcp_pkg::*;
(
  input  logic         clk,
  input  logic         rst,
  input  logic         in_valid,
  input  tcp_event_t   in_event,
  input  tcp_row_t     in_row,
  input  tcp_choice_t  in_choice,    // of that row: `out_choice` as it came with it
  input  tcp_tick_t    in_deadline,  // and its last `out_deadline`
  input  tcp_params_t  in_params,    // constant while an event is in flight
  input  tcp_tick_t    in_now,
  input  tcp_event_t   again_event,
  input  tcp_row_t     again_row,
  input  tcp_tick_t    again_now,
  output logic         out_valid,
  output tcp_row_t     out_row,
  output tcp_choice_t  out_choice,
  output tcp_actions_t out_actions,
  output logic         out_wants,           // another TcpTransmit would send a segment
  output logic         out_deadline_valid,  // the cycle after `out_valid`
  output tcp_tick_t    out_deadline
);
  logic valid1_q, valid2_q, starts1, starts2_q;
  tcp_row_t next1, next2_q;
  tcp_facts_t facts0, facts1_q;
  tcp_tick_t now2_q;
  tcp_actions_t actions1, actions2_q;
  tcp_segment_t next_segment;

  tcp_facts u_facts (
    .event_in(in_event),
    .row     (in_row),
    .choice  (in_choice),
    .deadline(in_deadline),
    .params  (in_params),
    .now     (in_now),
    .facts   (facts0)
  );

  tcp_step u_step (
    .event_in(again_event),
    .row     (again_row),
    .facts   (facts1_q),
    .params  (in_params),
    .now     (again_now),
    .next    (next1),
    .starts  (starts1),
    .actions (actions1)
  );

  tcp_timer u_timer (
    .clk, .rst,
    .starts        (valid2_q && starts2_q),
    .row           (next2_q),
    .params        (in_params),
    .now           (now2_q),
    .deadline_valid(out_deadline_valid),
    .deadline      (out_deadline)
  );

  tcp_pick u_pick (
    .row   (next2_q),
    .params(in_params),
    .choice(out_choice)
  );

  always_ff @(posedge clk) begin
    facts1_q   <= facts0;
    next2_q    <= next1;
    starts2_q  <= starts1;
    actions2_q <= actions1;
    now2_q     <= again_now;
    valid1_q   <= in_valid && !rst;
    valid2_q   <= valid1_q && !rst;
  end

  assign next_segment = tcp_next_segment(next2_q, out_choice);
  logic unused;  // whether there is a segment is all that counts here
  assign unused = &{1'b0, next_segment};

  assign out_valid   = valid2_q;
  assign out_row     = next2_q;
  assign out_actions = actions2_q;
  assign out_wants   = next_segment.valid;
endmodule
