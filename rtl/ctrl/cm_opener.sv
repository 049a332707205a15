// SPDX-License-Identifier: SHL-2.1
// The rules of the opening side: the next step after a request of software, an answer, or a timeout.
// OPEN_QP gives the server all our parameters, and its ACK all those of the server: then both can send.
// Any failure closes our queue pair and keeps the first reason. Combinational; the FEROCE connection manager.
module cm_opener
  import cm_pkg::*;
(
  input  occasion_e   occasion,
  input  fields_t      answer,     // OnAnswer
  input  phase_e      phase,      // of our queue pair
  input  step_e       step,       // its state
  input  fail_e       fail,
  input  logic        waiting,
  output move_t       move
);

  function automatic move_t failed(input move_t m, input fail_e why);
    failed             = m;
    failed.fail        = m.step == StepShut && m.fail != FailNone ? m.fail : why;
    failed.waiting     = 1'b0;
    failed.send        = 1'b0;
    failed.phase       = PhClosed;
    failed.todo        = m.phase == PhClosed ? '0 : JustClose;
  endfunction

  function automatic move_t begun(input move_t m);
    begun         = m;
    begun.step    = StepOpen;
    begun.fail    = FailNone;
    begun.phase   = PhInit;
    begun.todo.forget = 1'b1;
    begun.todo.server = occasion == OnOpen;
    begun.todo.fresh  = 1'b1;
    begun.todo.open   = 1'b1;
    begun.waiting = 1'b1;
    begun.send    = 1'b1;
  endfunction

  // The server agreed to the step at hand.
  function automatic move_t agreed(input move_t m);
    agreed = m;
    agreed.waiting = 1'b0;
    if (m.step != StepOpen) agreed.step = StepNone;
    else if (!answer.info_valid) agreed = failed(m, FailServer);
    else begin
      agreed.step       = StepDone;
      agreed.phase      = PhRts;
      agreed.todo.claim = 1'b1;
      agreed.todo.info  = 1'b1;
      agreed.todo.rts   = 1'b1;
    end
  endfunction

  function automatic move_t moved();
    moved = '{step: step, fail: fail, waiting: waiting, send: 1'b0, phase: phase, todo: '{aim: 1'b1, default: 1'b0}};
    unique case (occasion)
      OnOpen, OnReopen: moved = begun(moved);
      OnClose:
        if (phase != PhClosed) begin
          moved.step       = StepShut;
          moved.fail       = FailNone;
          moved.phase      = PhClosed;
          moved.todo.close = 1'b1;
          moved.waiting    = 1'b1;
          moved.send       = 1'b1;
        end
      OnResend: moved.send = 1'b1;
      OnGiveUp: moved = failed(moved, FailSilent);
      default:  // OnAnswer
        unique case (answer.answer)
          AckAck:  moved = agreed(moved);
          AckNoQp: moved = failed(moved, FailNoQp);
          AckNak:  moved = failed(moved, FailNak);
          default: moved = failed(moved, FailServer);
        endcase
    endcase
  endfunction

  assign move = moved();

  wire unused = &{1'b0, answer};

endmodule
