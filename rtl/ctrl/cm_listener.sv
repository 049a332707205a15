// SPDX-License-Identifier: SHL-2.1
// The rules of the listening side: a request and the entry it concerns in, the answer and the changes out.
// A repeated request gets the same answer and changes nothing. Only the peer that opened a queue pair
// can change it (its UDP source address is compared), and even that address cannot reopen it while it is live, because
// addresses can be forged. Combinational; FEROCE's connection manager for the requests, IBTA 10.3.1 for the states.
module cm_listener
  import cm_pkg::*;
(
  input  fields_t      request,
  input  logic        counts,     // it requests at least one message
  input  phase_e      phase,      // of the queue pair it names; for OPEN_QP the sender's, or a closed one
  input  match_t      match,      // its peer is the sender
  input  logic        dead,       // that queue pair has failed since it was opened
  input  logic        engaged,    // no queue pair is given for now
  output decision_t   decision
);
  logic owner, same;
  assign owner = match.ip && phase != PhClosed;
  assign same  = match.ip && match.qpn && match.rest;

  always_comb begin
    decision = '{answer: AckNak, phase: phase, probe: 1'b0, todo: '0};
    unique case (request.request)
      ReqNone: if (owner && request.transmit.valid) decision.answer = AckAck;
      ReqOpen: begin
        decision.answer = AckAck;
        if ((phase == PhClosed || dead || !same) && engaged) begin
          decision.answer = AckNoQp;
        end else if (phase == PhRts && !dead && !same) begin
          decision.probe = 1'b1;
        end else if (phase == PhClosed || dead || !same) begin  // a new request
          decision.phase      = request.info_valid ? PhRts : PhInit;
          decision.todo.claim = 1'b1;
          decision.todo.owner = 1'b1;
          decision.todo.fresh = 1'b1;
          decision.todo.open  = 1'b1;
          decision.todo.info  = request.info_valid;
          decision.todo.rts   = request.info_valid;
        end
      end
      ReqInfo:
        if (owner && !dead && request.info_valid) begin
          if (phase != PhInit && same) decision.answer = AckAck;
          else if (phase != PhRts) begin
            decision.answer     = AckAck;
            decision.phase      = PhRtr;
            decision.todo.claim = 1'b1;
            decision.todo.info  = 1'b1;
          end
        end
      ReqRts:
        if (owner && !dead && phase != PhInit) begin
          decision.answer   = AckAck;
          decision.phase    = PhRts;
          decision.todo.rts = phase == PhRtr;
        end
      ReqClose, ReqError:
        if (owner || (match.ip && match.qpn)) begin
          decision.answer     = AckAck;
          decision.phase      = PhClosed;
          decision.todo.close = owner && request.request == ReqClose;
          decision.todo.error = owner && request.request == ReqError;
        end
      default: decision.answer = AckError;
    endcase
    if (decision.answer == AckNak && phase == PhClosed) decision.answer = AckNoQp;
    if (decision.answer == AckAck && request.transmit.valid) begin
      // Only an open queue pair can send; stopping is always right.
      if (!request.transmit.start) decision.todo.stop = 1'b1;
      else if (decision.phase == PhRts) decision.todo.start = counts;
      else decision = '{answer: AckNak, phase: phase, probe: 1'b0, todo: '0};
    end
  end

  // Fields that other modules look at.
  wire unused = &{1'b0, request, match};

endmodule
