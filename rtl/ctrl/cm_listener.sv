// SPDX-License-Identifier: SHL-2.1
// The rules of the listening side: a request and the entry it concerns in, the answer and the changes out.
// A repeated request gets the same answer and changes nothing; only the peer that opened a queue pair
// may do anything to it (its UDP source address is compared). Combinational; IBTA 10.3.1 for the states.
module cm_listener
  import cm_pkg::*;
(
  input  message_t    request,
  input  logic [31:0] from_ip,
  input  phase_e      phase,      // of the queue pair it names; for OPEN_QP the sender's, or a closed one
  input  info_t       peer,
  input  logic        dead,       // that queue pair has failed since it was opened
  output decision_t   decision
);

  info_t claimed;  // the sender, with the address it really has
  always_comb begin
    claimed          = request.sender;
    claimed.reserved = '0;
    claimed.ip       = from_ip;
  end

  function automatic change_t kept(input phase_e from);
    return '{phase: from, default: 1'b0};
  endfunction

  // OPEN_QP, with the entry of its sender or a closed one.
  function automatic decision_t opened(input phase_e from, input info_t old);
    opened        = '{answer: AckAck, todo: '0, change: kept(from)};
    if (from != PhClosed && !dead && old == claimed) return opened;  // heard before
    opened.change = '{phase: request.info_valid ? PhRtr : PhInit, claim: 1'b1, open: 1'b0, fresh: 1'b1};
    opened.todo.open = 1'b1;
    opened.todo.info = request.info_valid;
  endfunction

  function automatic decision_t decided(input phase_e from, input info_t old);
    logic owner;
    owner   = old.ip == from_ip && from != PhClosed;
    decided = '{answer: AckNak, todo: '0, change: kept(from)};
    unique case (request.request)
      ReqNone: if (owner && request.transmit.valid) decided.answer = AckAck;
      ReqOpen: decided = opened(from, old);
      ReqInfo:
        if (owner && !dead && request.info_valid) begin
          if (from != PhInit && old == claimed) decided.answer = AckAck;
          else if (from != PhRts) begin
            decided.answer      = AckAck;
            decided.todo.info   = 1'b1;
            decided.change      = '{phase: PhRtr, claim: 1'b1, default: 1'b0};
          end
        end
      ReqRts:
        if (owner && !dead && from != PhInit) begin
          decided.answer      = AckAck;
          decided.todo.rts    = from == PhRtr;
          decided.change.phase = PhRts;
        end
      ReqClose, ReqError:
        if (owner || (from == PhClosed && old.ip == from_ip && old.qpn == request.sender.qpn)) begin
          decided.answer      = AckAck;
          decided.todo.close  = owner && request.request == ReqClose;
          decided.todo.error  = owner && request.request == ReqError;
          decided.change.phase = PhClosed;
        end
      default: decided.answer = AckError;
    endcase
    if (decided.answer == AckNak && from == PhClosed) decided.answer = AckNoQp;
    if (decided.answer == AckAck && request.transmit.valid) begin
      // Only an open queue pair can send; stopping is always right.
      if (!request.transmit.start) decided.todo.stop = 1'b1;
      else if (decided.change.phase == PhRts) decided.todo.start = 1'b1;
      else decided = '{answer: AckNak, todo: '0, change: kept(from)};
    end
  endfunction

  always_comb decision = decided(phase, peer);

  // Reserved fields, and the other side's as the sender knows it.
  wire unused = &{1'b0, request};

endmodule
