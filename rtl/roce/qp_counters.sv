// SPDX-License-Identifier: SHL-2.1
// Per-queue-pair counters and a copy of the ring's state, in RAM, for the registers to read.
// Follows the requester's pipeline: an operation's queue pair does not come back the next cycle,
// so read, add and write need no forwarding. Reads answer one cycle after `st_qp`.
module qp_counters
  import penstock_pkg::*;
  import roce_tx_pkg::*;
#(
  parameter int unsigned N_QP = 4
) (
  input  logic            clk,
  input  logic            rst,
  input  logic            op_valid,
  input  logic            op_init,
  input  qp_t             op_qp,
  input  outcome_t        op_outcome,
  input  ring_status_t    op_status,
  input  qp_t             st_qp,
  output qp_state_e       st_state,
  output psn_t            st_una,
  output psn_t            st_nxt,
  output psn_t            st_wr,
  output qp_tx_counters_t st_counters
);
  localparam int unsigned QpW = N_QP > 1 ? $clog2(N_QP) : 1;

  qp_tx_counters_t old, updated;
  outcome_t outcome_q;
  qp_t qp_q;
  logic valid_q, init_q;
  // Queue-pair indices are as wide as the largest build; not every outcome has a counter.
  logic unused;
  assign unused = &{1'b0, qp_q, st_qp, outcome_q};

  always_ff @(posedge clk) begin
    outcome_q <= op_outcome;
    qp_q      <= op_qp;
    init_q    <= op_init;
    valid_q   <= op_valid && (op_init || |op_outcome);
    if (rst) valid_q <= 1'b0;
  end

  function automatic logic [31:0] plus(logic [31:0] count, logic event_seen);
    return count + 32'(event_seen);
  endfunction

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
  ram_sdp #(.W($bits(qp_tx_counters_t)), .DEPTH(N_QP)) u_count (
    .clk,
    .wr_en  (valid_q),
    .wr_addr(QpW'(qp_q)),
    .wr_data(updated),
    .rd_en  (op_valid),
    .rd_addr(QpW'(op_qp)),
    .rd_data(old)
  );
  ram_sdp #(.W($bits(qp_tx_counters_t)), .DEPTH(N_QP)) u_look (
    .clk,
    .wr_en  (valid_q),
    .wr_addr(QpW'(qp_q)),
    .wr_data(updated),
    .rd_en  (1'b1),
    .rd_addr(QpW'(st_qp)),
    .rd_data(st_counters)
  );
  ram_sdp #(.W($bits(ring_status_t)), .DEPTH(N_QP)) u_ring (
    .clk,
    .wr_en  (op_valid),
    .wr_addr(QpW'(op_qp)),
    .wr_data(op_status),
    .rd_en  (1'b1),
    .rd_addr(QpW'(st_qp)),
    .rd_data({st_state, st_una, st_nxt, st_wr})
  );
endmodule
