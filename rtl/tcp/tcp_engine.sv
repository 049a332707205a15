// SPDX-License-Identifier: SHL-2.1
// The rules as a pipeline, one event per cycle: compare (tcp_facts); decide (tcp_step); then in two cycles choose the
// data that the row may send next (tcp_room, tcp_pick), and set the timer (tcp_timer). Choice and deadline are kept with
// the row and come back with it. The row comes two cycles after the event, choice and deadline three; a row must not be
// given again before all have been stored. An event, its row and its time are needed for two cycles: they come again a
// cycle later (`again_*`), so that tcp_sender, which keeps them that long, needs no second copy.
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
  output tcp_actions_t out_actions,
  output logic         out_choice_valid,  // the cycle after `out_valid`
  output tcp_choice_t  out_choice,
  output logic         out_more,         // another TcpTransmit would send a segment
  output logic         out_starts,        // the timer: its deadline is another one
  output tcp_tick_t    out_deadline
);
  logic valid1_q, valid2_q, valid3_q, starts1, starts2_q;
  tcp_row_t next1, next2_q;
  tcp_facts_t facts0, facts1_q;
  tcp_tick_t now2_q;
  tcp_actions_t actions1, actions2_q;
  tcp_room_t room2, room3_q;
  tcp_segment_t without_data;
  logic up3_q, other3_q;  // it may send data; a segment without goes anyway

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
    .starts  (valid2_q && starts2_q),
    .row     (next2_q),
    .params  (in_params),
    .now     (now2_q),
    .started (out_starts),
    .deadline(out_deadline)
  );

  tcp_room u_room (
    .row   (next2_q),
    .params(in_params),
    .room  (room2)
  );

  tcp_pick u_pick (
    .room  (room3_q),
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
    valid3_q   <= valid2_q && !rst;
    room3_q    <= room2;
    up3_q      <= next2_q.state == TcpEstablished;
    other3_q   <= without_data.valid;
  end

  assign without_data = tcp_next_segment(next2_q, '0);
  logic unused;  // whether there is a segment is all that counts here
  assign unused = &{1'b0, without_data};

  assign out_valid        = valid2_q;
  assign out_row          = next2_q;
  assign out_actions      = actions2_q;
  assign out_choice_valid = valid3_q;
  assign out_more        = other3_q || (up3_q && out_choice.valid);
endmodule
