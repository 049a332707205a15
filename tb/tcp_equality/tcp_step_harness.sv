// SPDX-License-Identifier: SHL-2.1
// tcp_engine with words as ports, driven by a C++ program (steps.cpp): an event every cycle; row and actions are held
// until the deadline is there. The words are those of the example `tcp_steps` of crates/transport.
module tcp_step_harness
  import tcp_pkg::*;
(
  input logic clk,
  input logic rst,

  input logic             params_valid,
  input logic [9:0][31:0] params_words,

  input logic              in_valid,
  input logic [6:0][31:0]  in_event,  // kind, now, seq, ack, flags and window, len and mss, scale
  input logic [17:0][31:0] in_row,

  output logic              out_valid,
  output logic [17:0][31:0] out_row,  // while the timer is off the deadline is undefined
  output logic [4:0][31:0]  out_actions
);
  // The words of a field are wider than the field.
  // verilator lint_off UNUSEDSIGNAL

  tcp_params_t params;
  always_ff @(posedge clk) begin
    if (params_valid)
      params <= '{
        mss: params_words[0][13:0], receive_window: params_words[1][15:0], nagle: params_words[2][0],
        back_off: params_words[3][0], adaptive: params_words[4][0], rto_initial: params_words[5][26:0],
        rto_min: params_words[6][26:0], rto_max: params_words[7][26:0], give_up: params_words[8][7:0],
        challenge_interval: params_words[9][26:0]
      };
  end

  tcp_event_t happened;
  assign happened = '{
    kind: tcp_event_e'(in_event[0][2:0]), seq: in_event[2], ack: in_event[3],
    flags: tcp_flags_t'(in_event[4][7:0]), window: in_event[4][31:16], len: in_event[5][15:0],
    options: '{
      has_mss: in_event[6][8], mss: in_event[5][31:16], has_scale: in_event[6][9], scale: in_event[6][7:0],
      malformed: in_event[6][10]
    }
  };

  tcp_row_t row, result, answer;
  assign row = '{
    una: in_row[0], nxt: in_row[1], max: in_row[2], written: in_row[3],
    window: in_row[4][29:0], state: tcp_state_e'(in_row[4][31:30]),
    max_window: in_row[5][29:0], duplicates: in_row[5][31:30],
    rcv_nxt: in_row[6], recover: in_row[7],
    timed_seq: in_row[9], timed_at: in_row[10], srtt: in_row[11][29:0], rttvar: in_row[12][28:0],
    reset_seq: in_row[13], challenge_at: in_row[14],
    mss: in_row[15][13:0], shift: in_row[15][17:14], tries: in_row[15][25:18], backoff: in_row[15][29:26],
    repairing: in_row[16][0], resend: in_row[16][1], probing: in_row[16][2], timer_on: in_row[16][3],
    timing: in_row[16][4], measured: in_row[16][5], syn_due: in_row[16][6], ack_due: in_row[16][7],
    reset_due: in_row[16][8], reset_acks: in_row[16][9], challenge_held: in_row[16][10],
    shortened: in_row[16][11], path_at: in_row[16][31:24],
    too_long: in_row[17][13:0], whole_mss: in_row[17][29:16]
  };
  logic starts;
  tcp_tick_t deadline;
  tcp_tick_t [3:1] deadline_q;  // of the events in flight, before them

  assign out_row[0]  = answer.una;
  assign out_row[1]  = answer.nxt;
  assign out_row[2]  = answer.max;
  assign out_row[3]  = answer.written;
  assign out_row[4]  = {answer.state, answer.window};
  assign out_row[5]  = {answer.duplicates, answer.max_window};
  assign out_row[6]  = answer.rcv_nxt;
  assign out_row[7]  = answer.recover;
  assign out_row[8]  = starts ? deadline : deadline_q[3];
  assign out_row[9]  = answer.timed_seq;
  assign out_row[10] = answer.timed_at;
  assign out_row[11] = 32'(answer.srtt);
  assign out_row[12] = 32'(answer.rttvar);
  assign out_row[13] = answer.reset_seq;
  assign out_row[14] = answer.challenge_at;
  assign out_row[15] = {2'b0, answer.backoff, answer.tries, answer.shift, answer.mss};
  assign out_row[16] = {
    answer.path_at, 12'b0, answer.shortened, answer.challenge_held, answer.reset_acks, answer.reset_due, answer.ack_due, answer.syn_due,
    answer.measured, answer.timing, answer.timer_on, answer.probing, answer.resend, answer.repairing
  };
  assign out_row[17] = {2'b0, answer.whole_mss, 2'b0, answer.too_long};

  tcp_room_t room;
  tcp_choice_t choice;
  tcp_room u_room (.row, .params, .room);
  tcp_pick u_pick (.room, .choice);

  tcp_event_t happened_q;
  tcp_row_t row_q;
  logic [31:0] now_q;
  always_ff @(posedge clk) {happened_q, row_q, now_q} <= {happened, row, in_event[1]};

  tcp_actions_t does, actions;
  logic more;
  assign out_actions[0] = {
    2'b0, actions.counts, 10'b0, more, actions.ended, actions.ended != TcpNotEnded, actions.opened
  };
  assign out_actions[1] = 32'(actions.acknowledged);
  assign out_actions[2] = actions.send.seq;
  assign out_actions[3] = actions.send.ack;
  assign out_actions[4] = {7'b0, actions.send.valid, 2'b0, actions.send.len, actions.send.flags};

  tcp_engine u_engine (
    .clk, .rst, .in_valid,
    .in_event   (happened),
    .in_row     (row),
    .in_choice  (choice),
    .in_deadline(in_row[8]),
    .in_params  (params),
    .in_now     (in_event[1]),
    .again_event(happened_q),
    .again_row  (row_q),
    .again_now  (now_q),
    .out_valid  (),
    .out_row    (result),
    .out_actions(does),
    .out_choice_valid(out_valid),
    .out_choice      (),
    .out_more       (more),
    .out_starts      (starts),
    .out_deadline    (deadline)
  );

  always_ff @(posedge clk) begin
    {answer, actions} <= {result, does};
    deadline_q        <= {deadline_q[2:1], in_row[8]};
  end
endmodule
