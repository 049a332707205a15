// SPDX-License-Identifier: SHL-2.1
// Queue between segmenter and requester for slots in a memory with latency: a commit waits here
// until its slot is `written`, and is marked bad if the write failed. Commits keep their order; a load of a queue pair
// waits for the commits of that queue pair, not for those of others.
module packet_store_commits
  import penstock_pkg::*;
#(
  parameter int unsigned N_QP  = 4,
  parameter int unsigned DEPTH = 32
) (
  input  logic clk,
  input  logic rst,
  // segmenter
  input  logic s_commit_valid,
  input  qp_t  s_commit_qp,
  input  logic s_commit_bad,
  output logic s_commit_ready,
  input  logic s_load_valid,
  input  qp_t  s_load_qp,       // requested a cycle ahead, as:
  input  qp_t  s_load_next_qp,  // that of the next cycle, if there is a load then
  output logic s_load_ready,
  // store: in the order of the commits
  input  logic written,
  input  logic written_bad,
  // requester
  output logic m_commit_valid,
  output qp_t  m_commit_qp,
  output logic m_commit_bad,
  input  logic m_commit_ready,
  output logic m_load_valid,
  input  logic m_load_ready,
  input  qp_t  op_qp,
  output logic op_waits         // a commit of op_qp may still be on its way
);
  localparam int unsigned QpW = N_QP > 1 ? $clog2(N_QP) : 1;
  localparam int unsigned NumberW = $clog2(DEPTH) + 1;

  // ---- commits, and the results of their slots ------------------------------------------------------
  logic waits, bad, answered, answer_bad, answer_room, take;
  logic [NumberW-1:0] unused_level;
  logic [NumberW:0] unused_answers;

  sync_fifo #(.W(9), .DEPTH(DEPTH)) u_commits (
    .clk, .rst,
    .s_data ({s_commit_qp, s_commit_bad}),
    .s_valid(s_commit_valid),
    .s_ready(s_commit_ready),
    .m_data ({m_commit_qp, bad}),
    .m_valid(waits),
    .m_ready(take),
    .level  (unused_level)
  );
  // The segmenter holds a few commits of its own, whose slots may be written already.
  sync_fifo #(.W(1), .DEPTH(2 * DEPTH)) u_answers (
    .clk, .rst,
    .s_data (written_bad),
    .s_valid(written),
    .s_ready(answer_room),
    .m_data (answer_bad),
    .m_valid(answered),
    .m_ready(take),
    .level  (unused_answers)
  );

  assign m_commit_valid = waits && answered;
  assign m_commit_bad   = bad || answer_bad;
  assign take           = m_commit_valid && m_commit_ready;

  // ---- the last commit of each queue pair, by number ------------------------------------------------
  // An old entry may be mistaken for a waiting one: the effect is only a short unnecessary wait.
  logic [NumberW-1:0] last[2**QpW];
  logic [NumberW-1:0] head_q, tail_q;  // the next to enter, the next to leave

  always_ff @(posedge clk) begin
    if (s_commit_valid && s_commit_ready) begin
      last[QpW'(s_commit_qp)] <= head_q;
      head_q                  <= head_q + 1'b1;
    end
    if (take) tail_q <= tail_q + 1'b1;
    if (rst) begin
      head_q <= '0;
      tail_q <= '0;
    end
  end

  // Whether a number is in tail_q .. head_q, where numbers start again after the highest. No sum before the comparison, and for a load
  // no memory either, as this is looked up in the cycle in which the requester chooses.
  function automatic logic among_waiting(logic [NumberW-1:0] number);
    return (number < head_q) ^ (number < tail_q) ^ (head_q < tail_q);
  endfunction

  logic [NumberW-1:0] load_last_q;
  logic load_after_q, load_waits;  // load_after_q: load_last_q does not include the newest commit yet
  always_ff @(posedge clk) begin
    load_last_q  <= last[QpW'(s_load_next_qp)];
    load_after_q <= s_commit_valid && s_commit_ready && s_commit_qp == s_load_next_qp && !rst;
  end
  assign load_waits   = s_commit_valid || load_after_q || among_waiting(load_last_q);
  assign m_load_valid = s_load_valid && !load_waits;
  assign s_load_ready = m_load_ready;
  assign op_waits     = (s_commit_valid && s_commit_qp == op_qp) || among_waiting(last[QpW'(op_qp)]);

  wire unused = &{1'b0, s_load_qp, s_load_next_qp, op_qp};

`ifndef SYNTHESIS
  a_answer_room : assert property (@(posedge clk) disable iff (rst) written |-> answer_room);
  a_load_announced : assert property (@(posedge clk) disable iff (rst)
    s_load_valid |-> s_load_qp == $past(s_load_next_qp));
  a_load : assert property (@(posedge clk) disable iff (rst) m_load_ready |-> m_load_valid);
`endif
endmodule
