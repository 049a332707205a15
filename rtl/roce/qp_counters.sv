// SPDX-License-Identifier: SHL-2.1
// Per-queue-pair counters and a copy of the ring's state, in RAM, for the registers to read.
// Follows the requester's pipeline: an operation's queue pair does not come back the next cycle,
// so read, add and write need no forwarding. Reads answer one cycle after `st_qp`.
// `clear` acts at once: it marks all rows, and what is in RAM counts no more until the row is written.
module qp_counters
  import penstock_pkg::*;
  import roce_tx_pkg::*;
#(
  parameter int unsigned N_QP = 4
) (
  input  logic            clk,
  input  logic            rst,
  input  logic            clear,
  input  logic            op_valid,
  input  logic            op_init,
  input  qp_t             op_qp,
  input  outcome_t        op_outcome,
  input  logic [PayloadLenW-1:0] op_acked_bytes,
  input  ring_status_t    op_status,
  input  qp_t             st_qp,
  output qp_state_e       st_state,
  output logic            st_drained,
  output psn_t            st_una,
  output psn_t            st_nxt,
  output psn_t            st_wr,
  output qp_tx_counters_t st_counters,
  output logic [63:0]     st_bytes_acked  // payload that was acknowledged
);
  localparam int unsigned QpW = N_QP > 1 ? $clog2(N_QP) : 1;

  typedef struct packed {
    logic [63:0]     bytes_acked;
    qp_tx_counters_t events;
  } counts_t;

  counts_t stored, look;
  qp_tx_counters_t old, updated;
  logic [63:0] updated_bytes;
  logic [PayloadLenW-1:0] acked_bytes_q;
  logic [N_QP-1:0] cleared_q;
  logic look_cleared_q;
  outcome_t outcome_q;
  qp_t qp_q;
  logic valid_q, init_q;
  // Queue-pair indices are as wide as the largest build; not every outcome has a counter.
  logic unused;
  assign unused = &{1'b0, qp_q, st_qp, outcome_q};

  always_ff @(posedge clk) begin
    outcome_q <= op_outcome;
    acked_bytes_q <= op_acked_bytes;
    look_cleared_q <= cleared_q[QpW'(st_qp)];
    qp_q      <= op_qp;
    init_q    <= op_init;
    valid_q   <= op_valid && (op_init || |op_outcome);
    if (valid_q) cleared_q[QpW'(qp_q)] <= 1'b0;
    if (clear || rst) cleared_q <= '1;
    if (rst) valid_q <= 1'b0;
  end

  function automatic logic [31:0] plus(logic [31:0] count, logic event_seen);
    return count + 32'(event_seen);
  endfunction

  assign old = cleared_q[QpW'(qp_q)] ? '0 : stored.events;
  assign updated_bytes =
      init_q ? '0 : (cleared_q[QpW'(qp_q)] ? '0 : stored.bytes_acked) + 64'(acked_bytes_q);
  assign {st_bytes_acked, st_counters} = look_cleared_q ? '0 : look;

  always_comb begin
    updated = '0;
    if (!init_q) begin
      updated.packets_sent          = plus(old.packets_sent, outcome_q.send);
      updated.packets_retransmitted = plus(old.packets_retransmitted, outcome_q.retransmit);
      updated.packet_seq_err        = plus(old.packet_seq_err, outcome_q.packet_seq_err);
      updated.rnr_nak               = plus(old.rnr_nak, outcome_q.rnr_nak);
      updated.local_ack_timeout_err = plus(old.local_ack_timeout_err, outcome_q.timeout);
      updated.stale_acks            = plus(old.stale_acks, outcome_q.stale_ack);
      updated.messages_ok  = plus(old.messages_ok, outcome_q.complete && outcome_q.status == WcSuccess);
      updated.messages_err = plus(old.messages_err, outcome_q.complete && outcome_q.status != WcSuccess);
    end
  end

  // Two copies: one to count in, one to look at.
  ram_sdp #(.W($bits(counts_t)), .DEPTH(N_QP)) u_count (
    .clk,
    .wr_en  (valid_q),
    .wr_addr(QpW'(qp_q)),
    .wr_data({updated_bytes, updated}),
    .rd_en  (op_valid),
    .rd_addr(QpW'(op_qp)),
    .rd_data(stored)
  );
  ram_sdp #(.W($bits(counts_t)), .DEPTH(N_QP)) u_look (
    .clk,
    .wr_en  (valid_q),
    .wr_addr(QpW'(qp_q)),
    .wr_data({updated_bytes, updated}),
    .rd_en  (1'b1),
    .rd_addr(QpW'(st_qp)),
    .rd_data(look)
  );
  ram_sdp #(.W($bits(ring_status_t)), .DEPTH(N_QP)) u_ring (
    .clk,
    .wr_en  (op_valid),
    .wr_addr(QpW'(op_qp)),
    .wr_data(op_status),
    .rd_en  (1'b1),
    .rd_addr(QpW'(st_qp)),
    .rd_data({st_state, st_drained, st_una, st_nxt, st_wr})
  );
endmodule
