// SPDX-License-Identifier: SHL-2.1
// The rules of the standard connection manager's passive side: a message and the connection that it names in, what to
// do out. Combinational; equal to RdmaCm of crates/transport (IBTA volume 1, 12.9.7 and 12.9.8, 12.6.7.2 for reasons).
// A repeated message gets the same answer and changes nothing; only the peer with both identifiers changes a connection.
module rdma_cm_rules
  import rdma_cm_pkg::*;
(
  input  message_t   message,
  input  logic       named,        // the connection is there, with this head
  input  head_t      head,
  input  logic       same_ends,    // REQ: of the same queue pair and PSN
  input  logic       is_our_qpn,   // DREQ: the connection's
  input  logic       stale,        // REQ: a connection holds the peer's queue pair, and it is not the REQ's
  input  logic [2:0] mtu,          // the largest path MTU
  output action_t    action,
  output logic       unknown,
  output logic       ignored,
  output logic       repeated,
  output logic       established,
  output logic       disconnected
);
  logic is_live;
  reason_e why;
  assign is_live = head.state inside {LinkRepSent, LinkOpen, LinkDreqSent};

  // Why a REQ is not agreed to, of what it contains.
  always_comb begin
    why = RejNone;
    if (message.mtu == '0 || message.mtu > 4'd5 || message.mtu > {1'b0, mtu}) why = RejInvalidMtu;
    if (message.qpn[23:1] == '0 || message.local_id == '0 || !message.is_partition) why = RejUnsupported;
    if (!message.has_our_addresses) why = RejInvalidGid;
    if (!message.has_addresses) why = RejUnsupported;
    if (!message.is_rc) why = RejInvalidTransport;
    if (!message.is_service) why = RejInvalidServiceId;
  end

  // The end of the connection, which answers repeated DREQs for a while.
  function automatic action_t ended(action_t so_far);
    ended       = so_far;
    ended.mark  = 1'b1;
    ended.head  = '{ticks: TimeWait, state: LinkTimeWait, default: '0};
    ended.close = 1'b1;
  endfunction

  always_comb begin
    action = Nothing;
    {unknown, ignored, repeated, established, disconnected} = '0;
    unique case (message.kind)
      KindReq:
        if (named) begin
          if (!same_ends) action.reject = RejDuplicateCommId;
          else if (head.state == LinkRepSent) begin
            repeated     = 1'b1;
            action.store = StoreTransaction;
            action.send  = 1'b1;
            action.answer.what = SendRep;
          end else if (head.state == LinkTimeWait) action.reject = RejStaleConn;
          else ignored = 1'b1;
        end else if (stale) begin
          action.store  = StoreFresh;
          action.mark   = 1'b1;
          action.head   = DreqHead;
          action.send   = 1'b1;
          action.answer.what = SendDreq;
          action.reject = RejStaleConn;
        end else if (why != RejNone) action.reject = why;
        else begin
          action.pick  = 1'b1;
          action.store = StoreLink;
          action.mark  = 1'b1;
          action.head  = '{
            ticks: ticks_of(message.local_timeout, LongestWait), unused: '0, wait_code: message.local_timeout,
            left: message.cm_retries, state: LinkRepSent
          };
          action.open  = 1'b1;
          action.send  = 1'b1;
          action.answer.what = SendRep;
        end
      KindMra:
        if (named && head.state == LinkRepSent && message.answered == 2'd1) begin
          // Each time counts as a repetition, so that the wait stays bounded.
          action.mark = head.left != '0;
          action.head = head;
          action.head.left = head.left - 1'b1;
          action.head.ticks = ticks_of(message.service_timeout, 16'hFFFF);
          if (action.head.ticks < ticks_of(head.wait_code, LongestWait))
            action.head.ticks = ticks_of(head.wait_code, LongestWait);
        end else ignored = 1'b1;
      KindRej:
        if (!named) unknown = 1'b1;
        else if (head.state == LinkRepSent) begin
          action.mark  = 1'b1;  // free
          action.close = 1'b1;
        end else if (is_live) begin
          disconnected = 1'b1;
          action       = ended(action);
        end else ignored = 1'b1;
      KindRep: begin  // we have requested nothing
        unknown       = 1'b1;
        action.reject = RejInvalidCommId;
      end
      KindRtu:
        if (!named) unknown = 1'b1;
        else if (head.state == LinkRepSent) begin
          established = 1'b1;
          action.mark = 1'b1;
          action.head = '{state: LinkOpen, default: '0};
        end else ignored = 1'b1;
      KindDreq: begin
        action.answer.what = SendDrep;
        if (!named) begin  // its peer waits for an answer, whatever has become of the connection
          unknown      = 1'b1;
          action.store = StoreStranger;
          action.send  = 1'b1;
        end else if (!is_our_qpn) ignored = 1'b1;
        else begin
          action.store = StoreTransaction;
          action.send  = 1'b1;
          repeated     = !is_live;
          if (is_live) begin
            disconnected = 1'b1;
            action       = ended(action);
          end
        end
      end
      KindDrep:
        if (!named) unknown = 1'b1;
        else if (head.state == LinkDreqSent) begin
          disconnected = 1'b1;
          action       = ended(action);
        end else ignored = 1'b1;
      default: ;
    endcase
  end

  wire unused = &{1'b0, message, head};
endmodule
