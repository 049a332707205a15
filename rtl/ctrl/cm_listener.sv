// SPDX-License-Identifier: SHL-2.1
// The rules of the listening side: a request and the entry it concerns in, the answer and the changes out.
// A repeated request gets the same answer and changes nothing; only the peer that opened a queue pair
// may do anything to it (its UDP source address is compared). Combinational; IBTA 10.3.1 for the states.
module cm_listener
  import cm_pkg::*;
(
  input  message_t    request,
  input  logic [31:0] from_ip,
  input  entry_t      entry,      // of the queue pair it names; for OPEN_QP the sender's, or a closed one
  input  logic        dead,       // that queue pair has failed since it was opened
  input  logic [23:0] fresh_psn,
  output decision_t   decision
);

  info_t claimed;  // the sender, with the address it really has
  always_comb begin
    claimed          = request.sender;
    claimed.reserved = '0;
    claimed.ip       = from_ip;
  end

  // OPEN_QP, with the entry of its sender or a closed one.
  function automatic decision_t opened(input entry_t e);
    opened        = '{answer: AckAck, todo: '0, entry: e};
    if (e.phase != PhClosed && !dead && e.peer == claimed) return opened;  // heard before
    opened.entry  = '{phase: request.info_valid ? PhRtr : PhInit, ours: 1'b0, peer: claimed, own_psn: fresh_psn};
    opened.todo.open = 1'b1;
    opened.todo.info = request.info_valid;
  endfunction

  function automatic decision_t decided(input entry_t e);
    logic owner;
    owner   = e.peer.ip == from_ip && e.phase != PhClosed;
    decided = '{answer: AckNak, todo: '0, entry: e};
    unique case (request.request)
      ReqNone: if (owner && request.transmit.valid) decided.answer = AckAck;
      ReqOpen: decided = opened(e);
      ReqInfo:
        if (owner && !dead && request.info_valid) begin
          if (e.phase != PhInit && e.peer == claimed) decided.answer = AckAck;
          else if (e.phase != PhRts) begin
            decided.answer      = AckAck;
            decided.todo.info   = 1'b1;
            decided.entry.peer  = claimed;
            decided.entry.phase = PhRtr;
          end
        end
      ReqRts:
        if (owner && !dead && e.phase != PhInit) begin
          decided.answer      = AckAck;
          decided.todo.rts    = e.phase == PhRtr;
          decided.entry.phase = PhRts;
        end
      ReqClose, ReqError:
        if (owner || (e.phase == PhClosed && e.peer.ip == from_ip && e.peer.qpn == request.sender.qpn)) begin
          decided.answer      = AckAck;
          decided.todo.close  = owner && request.request == ReqClose;
          decided.todo.error  = owner && request.request == ReqError;
          decided.entry.phase = PhClosed;
        end
      default: decided.answer = AckError;
    endcase
    if (decided.answer == AckNak && e.phase == PhClosed) decided.answer = AckNoQp;
    if (decided.answer == AckAck && request.transmit.valid) begin
      // Only an open queue pair can send; stopping is always right.
      if (!request.transmit.start) decided.todo.stop = 1'b1;
      else if (decided.entry.phase == PhRts) decided.todo.start = 1'b1;
      else decided = '{answer: AckNak, todo: '0, entry: e};
    end
  endfunction

  assign decision = decided(entry);

  // Reserved fields, and the other side's as the sender knows it.
  wire unused = &{1'b0, request};

endmodule
