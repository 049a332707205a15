// SPDX-License-Identifier: SHL-2.1
// Promises of the queue of commits: they leave in order, each after the memory has answered for its slot and not
// earlier, marked bad if either the commit or the answer is; while a commit of a queue pair waits, no load of it passes
// and `op_waits` reports this; a load does not wait once no commit waits. Assumed: answers come for slots in the order
// of their commits, at most DEPTH before their commits (the segmenter holds four).
module packet_store_commits_props
  import penstock_pkg::*;
#(
  parameter int unsigned N_QP  = 2,
  parameter int unsigned DEPTH = 4,
  localparam int unsigned PtrW = $clog2(DEPTH),
  localparam int unsigned QpW  = N_QP > 1 ? $clog2(N_QP) : 1
) (
  input logic clk,
  input logic rst,
  input logic s_commit_valid,
  input qp_t  s_commit_qp,
  input logic s_commit_bad,
  input logic s_commit_ready,
  input logic s_load_valid,
  input qp_t  s_load_qp,
  input qp_t  s_load_next_qp,
  input logic written,
  input logic written_bad,
  input logic m_commit_valid,
  input qp_t  m_commit_qp,
  input logic m_commit_bad,
  input logic m_commit_ready,
  input logic m_load_valid,
  input qp_t  op_qp,
  input logic op_waits,
  // inside
  input logic [PtrW:0]   waiting, head_q, tail_q, tail, head,   // of the commits
  input logic [PtrW+1:0] answers, answers_tail, answers_head,
  input logic [DEPTH-1:0][8:0] commits,
  input logic [2*DEPTH-1:0] answered_bad,
  input logic [2**QpW-1:0][PtrW:0] last,
  input logic [PtrW:0]   load_last_q,
  input logic            load_after_q
);
  logic started_q = 1'b0;
  always_ff @(posedge clk) started_q <= 1'b1;

  qp_t announced_q;
  always_ff @(posedge clk) announced_q <= s_load_next_qp;

  logic choose, enters, leaves;
  anything u_choose (.value(choose));
  assign enters = s_commit_valid && s_commit_ready;
  assign leaves = m_commit_valid && m_commit_ready;

  // Answers less commits, since reset; what is left of DEPTH on either side.
  logic signed [PtrW+2:0] lead_q;
  // The commit that is followed: how many are before it, what it was, the memory's answer for its slot.
  logic          watching_q, bad_q, answered_q, answered_bad_q;
  qp_t           qp_q;
  logic [PtrW:0] before_q, number_q;

  always_comb begin
    assume (rst == !started_q);
    assume (32'(s_commit_qp) < N_QP && 32'(s_load_next_qp) < N_QP && 32'(op_qp) < N_QP);
    if (s_load_valid) assume (s_load_qp == announced_q);
    assume (!written || lead_q < $signed((PtrW + 3)'(DEPTH)));
  end

  // The answer that the commit which enters now will have, if it is there already.
  logic here, here_bad;
  logic [PtrW+1:0] place;
  assign place    = answers_tail + (PtrW + 2)'(waiting);
  assign here     = answers > (PtrW + 2)'(waiting);
  assign here_bad = answered_bad[place[PtrW:0]];

  always_ff @(posedge clk) begin
    lead_q <= lead_q + $signed((PtrW + 3)'(written)) - $signed((PtrW + 3)'(enters));
    if (watching_q) begin
      before_q <= before_q - (PtrW + 1)'(leaves);
      if (leaves && before_q == '0) watching_q <= 1'b0;
      if (!answered_q && written && answers == (PtrW + 2)'(before_q)) {answered_q, answered_bad_q} <= {1'b1, written_bad};
    end else if (enters && choose) begin
      {watching_q, qp_q, bad_q} <= {1'b1, s_commit_qp, s_commit_bad};
      number_q <= head_q;
      before_q <= waiting - (PtrW + 1)'(leaves);
      answered_q     <= here || (written && answers == (PtrW + 2)'(waiting));
      answered_bad_q <= here ? here_bad : written_bad;
    end
    if (rst) {watching_q, lead_q} <= '0;
  end

  logic [PtrW:0]   at;
  logic [PtrW+1:0] answer_at;
  assign at        = tail + before_q;
  assign answer_at = answers_tail + (PtrW + 2)'(before_q);

  always_comb if (started_q) begin
    a_levels : assert (32'(waiting) <= DEPTH && 32'(answers) <= 2 * DEPTH && waiting == head - tail
                       && answers == answers_head - answers_tail && head == head_q && tail == tail_q);
    a_lead : assert ($signed({1'b0, answers}) == $signed((PtrW + 3)'(waiting)) + lead_q
                     && lead_q <= $signed((PtrW + 3)'(DEPTH)));
    if (written) a_room : assert (32'(answers) < 2 * DEPTH);
    if (watching_q) begin
      a_place : assert (before_q < waiting && commits[at[PtrW-1:0]] == {qp_q, bad_q} && number_q == tail + before_q);
      a_answered : assert (answered_q == (answers > (PtrW + 2)'(before_q))
                       && (!answered_q || answered_bad_q == answered_bad[answer_at[PtrW:0]]));
      a_last : assert (last[qp_q[QpW-1:0]] - number_q < head_q - number_q && 32'(qp_q) < N_QP);
      if (announced_q == qp_q)
        a_load_last : assert (load_after_q || load_last_q - number_q < head_q - number_q);
      if (before_q == '0 && m_commit_valid)
        a_commit : assert (answered_q && m_commit_qp == qp_q && m_commit_bad == (bad_q || answered_bad_q));
      if (s_load_qp == qp_q) a_load_waits : assert (!m_load_valid);
      if (op_qp == qp_q) a_op_waits : assert (op_waits);
      if (before_q == '0 && answered_q) a_not_kept : assert (m_commit_valid);
    end
    if (load_after_q) a_entered : assert (waiting != '0);
    if (s_commit_valid && s_commit_qp == s_load_qp) a_load_after : assert (!m_load_valid);
    if (waiting == '0 && !s_commit_valid) a_load_goes : assert (m_load_valid == s_load_valid && !op_waits);
    c_full : cover (watching_q && 32'(waiting) == DEPTH && before_q == (PtrW + 1)'(DEPTH - 1) && answered_q && answered_bad_q);
    c_early : cover (enters && here && waiting == '0);
    c_other_passes : cover (m_load_valid && watching_q && waiting > 1);
  end
endmodule

bind packet_store_commits packet_store_commits_props #(.N_QP(N_QP), .DEPTH(DEPTH)) u_props (
  .waiting(u_commits.level), .head(u_commits.head_q), .tail(u_commits.tail_q),
  .answers(u_answers.level), .answers_head(u_answers.head_q), .answers_tail(u_answers.tail_q),
  .commits({u_commits.mem[3], u_commits.mem[2], u_commits.mem[1], u_commits.mem[0]}),  // proved at DEPTH 4, N_QP 2
  .answered_bad({u_answers.mem[7], u_answers.mem[6], u_answers.mem[5], u_answers.mem[4],
                 u_answers.mem[3], u_answers.mem[2], u_answers.mem[1], u_answers.mem[0]}),
  .last({last[1], last[0]}),
  .*
);
