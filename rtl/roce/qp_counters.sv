// SPDX-License-Identifier: SHL-2.1
// Per-queue-pair counters and a copy of the ring's state, in RAM, for the registers to read.
// An operation counts at most one kind of event in addition to its bytes, so one adder serves all of them; its queue
// pair does not recur in the next cycle, so read, add and write need no forwarding. Reads answer one cycle
// after `st_qp` and `st_count`. `clear` acts at once: each word carries the number of the clear that it has
// seen, and reads as zero if that number is old; idle cycles update the words before numbers repeat.
module qp_counters
  import penstock_pkg::*;
  import roce_tx_pkg::*;
#(
  parameter int unsigned N_QP = 4
) (
  input  logic            clk,
  input  logic            rst,
  output logic            ready,           // all words are zero after reset: events may happen
  input  logic            clear,
  input  logic            op_valid,
  input  qp_t             op_qp,
  input  outcome_t        op_outcome,
  input  logic [PayloadLenW-1:0] op_acked_bytes,
  input  logic            stat_valid,      // an operation was done in the last cycle
  input  ring_status_t    stat_status,     // and left this
  input  qp_t             st_qp,
  input  qp_count_e       st_count,
  output qp_state_e       st_state,
  output logic            st_drained,
  output psn_t            st_una,
  output psn_t            st_nxt,
  output psn_t            st_wr,
  output logic [31:0]     st_value
);
  localparam int unsigned QpW = N_QP > 1 ? $clog2(N_QP) : 1;
  localparam int unsigned EventW = $clog2(8 * N_QP);

  typedef logic [7:0] epoch_t;  // number of a clear
  typedef logic [2:0] event_t;  // the low bits of a qp_count_e up to CountMessagesErr
  typedef struct packed {
    epoch_t      epoch;
    logic [31:0] count;
  } event_word_t;
  typedef struct packed {
    epoch_t      epoch;
    logic [31:0] retransmitted;
    logic [63:0] bytes_acked;
  } bytes_word_t;

  function automatic logic [EventW-1:0] event_address(qp_t qp, event_t kind);
    return EventW'({qp, kind});
  endfunction

  // ---- after reset all words become zero, after a clear they are brought up to date ------------------
  // Kind after kind, what a young queue pair counts first comes first.
  epoch_t epoch_q;
  logic [EventW:0] sweep_q;  // the highest bit: done
  logic resets_q;            // not a clear's
  logic sweep;
  event_t sweep_kind;
  qp_t sweep_qp;

  assign ready      = !resets_q;
  assign sweep_kind = -sweep_q[EventW-1-:3];
  assign sweep_qp   = qp_t'(sweep_q) & qp_t'(N_QP - 1);

  // ---- 1: an operation's event, or the sweep's next word ----------------------------------------------
  logic valid_q, valid2_q, counts;
  outcome_t outcome_q;
  qp_t qp_q, qp1;
  logic [PayloadLenW-1:0] acked_bytes_q;
  event_t kind, kind1;

  assign counts = outcome_q.send || outcome_q.packet_seq_err || outcome_q.rnr_nak || outcome_q.timeout
                  || outcome_q.stale_ack || outcome_q.complete;

  always_comb begin
    kind = event_t'(CountPacketsSent);
    if (outcome_q.packet_seq_err) kind = event_t'(CountPacketSeqErr);
    if (outcome_q.rnr_nak) kind = event_t'(CountRnrNak);
    if (outcome_q.timeout) kind = event_t'(CountLocalAckTimeoutErr);
    if (outcome_q.stale_ack) kind = event_t'(CountStaleAcks);
    if (outcome_q.complete) kind = outcome_q.status == WcSuccess ? event_t'(CountMessagesOk) : event_t'(CountMessagesErr);
  end

  // Not directly after an operation, because its word may be in flight.
  assign sweep = !valid_q && !valid2_q && !sweep_q[EventW];
  assign kind1 = valid_q ? kind : sweep_kind;
  assign qp1   = valid_q ? qp_q : sweep_qp;

  always_ff @(posedge clk) begin
    outcome_q     <= op_outcome;
    acked_bytes_q <= op_acked_bytes;
    qp_q          <= op_qp;
    valid_q       <= op_valid && |op_outcome;
    if (sweep) sweep_q <= sweep_q + 1'b1;
    if (sweep_q[EventW]) resets_q <= 1'b0;
    if (clear) begin
      epoch_q <= epoch_q + 1'b1;
      if (!resets_q) sweep_q <= '0;
    end
    if (rst) begin
      valid_q  <= 1'b0;
      epoch_q  <= '0;
      sweep_q  <= '0;
      resets_q <= 1'b1;
    end
  end

  // ---- 2: count ------------------------------------------------------------------------------------------
  logic write_q, zero_q, first_q, counts_q, retransmit_q;
  qp_t qp2_q;
  event_t kind2_q;
  logic [PayloadLenW-1:0] bytes2_q;
  event_word_t event_old, event_new, event_look;
  bytes_word_t bytes_old, bytes_new, bytes_look;

  always_ff @(posedge clk) begin
    write_q      <= (valid_q || sweep) && !rst;
    valid2_q     <= valid_q && !rst;
    zero_q       <= !valid_q && resets_q;
    first_q      <= sweep_kind == '0;
    counts_q     <= valid_q && counts;
    retransmit_q <= valid_q && outcome_q.retransmit;
    bytes2_q     <= valid_q ? acked_bytes_q : '0;
    qp2_q        <= qp1;
    kind2_q      <= kind1;
  end

  always_comb begin
    event_new = '{epoch: epoch_q, count: 32'(counts_q)};
    if (event_old.epoch == epoch_q && !zero_q) event_new.count = event_old.count + 32'(counts_q);
    bytes_new = '{epoch: epoch_q, retransmitted: 32'(retransmit_q), bytes_acked: 64'(bytes2_q)};
    if (bytes_old.epoch == epoch_q && !zero_q) begin
      bytes_new.retransmitted = bytes_old.retransmitted + 32'(retransmit_q);
      bytes_new.bytes_acked   = bytes_old.bytes_acked + 64'(bytes2_q);
    end
  end

  // Two copies of each: one to count in, one to look at.
  ram_sdp #(.W($bits(event_word_t)), .DEPTH(8 * N_QP), .BLOCK(1'b1)) u_events (
    .clk,
    .wr_en  (write_q),
    .wr_addr(event_address(qp2_q, kind2_q)),
    .wr_data(event_new),
    .rd_en  (1'b1),
    .rd_addr(event_address(qp1, kind1)),
    .rd_data(event_old)
  );
  ram_sdp #(.W($bits(event_word_t)), .DEPTH(8 * N_QP), .BLOCK(1'b1)) u_events_look (
    .clk,
    .wr_en  (write_q),
    .wr_addr(event_address(qp2_q, kind2_q)),
    .wr_data(event_new),
    .rd_en  (1'b1),
    .rd_addr(event_address(st_qp, event_t'(st_count))),
    .rd_data(event_look)
  );
  ram_sdp #(.W($bits(bytes_word_t)), .DEPTH(N_QP), .BLOCK(1'b1)) u_bytes (
    .clk,
    .wr_en  (write_q && (valid2_q || first_q)),
    .wr_addr(QpW'(qp2_q)),
    .wr_data(bytes_new),
    .rd_en  (1'b1),
    .rd_addr(QpW'(qp1)),
    .rd_data(bytes_old)
  );
  ram_sdp #(.W($bits(bytes_word_t)), .DEPTH(N_QP), .BLOCK(1'b1)) u_bytes_look (
    .clk,
    .wr_en  (write_q && (valid2_q || first_q)),
    .wr_addr(QpW'(qp2_q)),
    .wr_data(bytes_new),
    .rd_en  (1'b1),
    .rd_addr(QpW'(st_qp)),
    .rd_data(bytes_look)
  );

  // ---- the values for registers -----------------------------------------------------------------------------
  qp_count_e st_count_q;
  logic of_bytes;
  always_ff @(posedge clk) st_count_q <= st_count;
  assign of_bytes = st_count_q inside {CountPacketsRetransmitted, CountBytesAckedLo, CountBytesAckedHi};

  always_comb begin
    unique case (st_count_q)
      CountPacketsRetransmitted: st_value = bytes_look.retransmitted;
      CountBytesAckedLo:         st_value = bytes_look.bytes_acked[31:0];
      CountBytesAckedHi:         st_value = bytes_look.bytes_acked[63:32];
      default:                   st_value = event_look.count;
    endcase
    if (resets_q || (of_bytes ? bytes_look.epoch : event_look.epoch) != epoch_q) st_value = '0;
  end

  ram_sdp #(.W($bits(ring_status_t)), .DEPTH(N_QP), .BLOCK(1'b1)) u_ring (
    .clk,
    .wr_en  (stat_valid),
    .wr_addr(QpW'(qp_q)),
    .wr_data(stat_status),
    .rd_en  (1'b1),
    .rd_addr(QpW'(st_qp)),
    .rd_data({st_state, st_drained, st_una, st_nxt, st_wr})
  );

  // Queue-pair indices are as wide as the largest build; not every outcome has a counter.
  wire unused = &{1'b0, qp2_q, st_qp, outcome_q};

`ifndef SYNTHESIS
  a_one_kind : assert property (@(posedge clk) disable iff (rst)
    valid_q |-> $onehot0({outcome_q.send, outcome_q.packet_seq_err, outcome_q.rnr_nak, outcome_q.timeout,
                          outcome_q.stale_ack, outcome_q.complete}));
  a_swept : assert property (@(posedge clk) disable iff (rst) resets_q |-> !(valid_q && counts))
    else $error("%m: queue pair %0d counts before its words are zero", qp_q);
  a_apart : assert property (@(posedge clk) disable iff (rst) valid_q && valid2_q |-> qp_q != qp2_q);
`endif
endmodule
