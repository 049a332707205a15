// SPDX-License-Identifier: SHL-2.1
// Promises of the fill of the fullest ring: it is never less than the fill of any ring two cycles earlier, and it is
// zero again within four rounds after all rings are empty.
module ring_fill_props
  import penstock_pkg::*;
  import roce_tx_pkg::*;
#(
  parameter int unsigned N_QP = 2
) (
  input logic         clk,
  input logic         rst,
  input logic         stat_valid,
  input qp_t          stat_qp,
  input ring_status_t stat_status,
  input logic [31:0]  fill,
  input psn_t [N_QP-1:0] rows,
  input psn_t         now,
  input psn_t         now_q,
  input logic         valid_q,
  input psn_t         best_q,
  input psn_t         row,
  input logic         reads_q,
  input logic         ends_q,
  input logic         cleared_q,
  input logic [$clog2(N_QP)-1:0] at_q
);
  localparam int unsigned Quiet = 8;  // cycles

  logic started_q = 1'b0;
  always_ff @(posedge clk) started_q <= 1'b1;
  always_comb if (!started_q) assume (rst);

  // The fill of each ring, by its last operation; nothing is in a ring before the rows are cleared.
  psn_t [N_QP-1:0] fill_q, before_q;  // the latter a cycle later
  logic [3:0] quiet_q;
  wire in_use = stat_status.state == QpRts || stat_status.state == QpSqd;
  wire psn_t used = in_use ? stat_status.wr - stat_status.una : '0;
  always_comb begin
    if (stat_valid) assume (32'(stat_qp) < N_QP);
    if (stat_valid && !cleared_q) assume (used == '0);
  end
  always_ff @(posedge clk) begin
    before_q <= fill_q;
    if (stat_valid) fill_q[stat_qp[$clog2(N_QP)-1:0]] <= used;
    quiet_q <= (stat_valid && used != '0) || fill_q != '0 ? '0 : quiet_q + 4'(quiet_q != 4'(Quiet));
    if (rst) {fill_q, before_q, quiet_q} <= '0;
  end

  // The round: whose row is there, and which rows are in its greatest.
  logic [$clog2(N_QP)-1:0] read_q;
  logic [N_QP-1:0] covered_q;
  logic [$clog2(N_QP)-1:0] last_q;  // whose operation was the last
  always_ff @(posedge clk) begin
    read_q <= at_q;
    if (stat_valid) last_q <= stat_qp[$clog2(N_QP)-1:0];
    if (reads_q) covered_q[read_q] <= 1'b1;
    if (ends_q || rst) covered_q <= '0;
  end

  for (genvar k = 0; k < int'(N_QP); k++) begin : gen_ring
    always_comb if (started_q && !rst) begin
      if (cleared_q || 32'(at_q) > k) a_0_row : assert (rows[k] == fill_q[k]);
      else a_0_empty : assert (fill_q[k] == '0);
      if (covered_q[k]) a_0_covered : assert (best_q >= before_q[k]);
      a_0_order : assert (covered_q[k] == (reads_q && k < 32'(read_q)));
      if (!valid_q || last_q != $clog2(N_QP)'(k)) a_0_same : assert (fill_q[k] == before_q[k]);
    end
  end
  logic enough;
  always_comb begin
    enough = 1'b1;
    for (int k = 0; k < int'(N_QP); k++) enough &= fill >= 32'(before_q[k]);
  end
  always_comb if (started_q && !rst) begin
    a_fill : assert (enough);
    if (!cleared_q) a_0_none : assert (fill == '0 && best_q == '0);
    if (valid_q) a_0_now : assert (now_q == fill_q[last_q]);
    if (reads_q) a_0_read : assert (row == before_q[read_q]);
    a_0_ends : assert (ends_q == (reads_q && 32'(read_q) == N_QP - 1));
    a_0_reads : assert (!reads_q || cleared_q);
    if (quiet_q == 4'(Quiet)) a_falls : assert (fill == '0);
    c_two : cover (fill == 32'd9 && fill_q[0] == 24'd3 && before_q[0] == 24'd3);
    c_falls : cover (fill == '0 && quiet_q == 4'(Quiet) && covered_q != '0 && now == 24'd1);
  end

  wire unused = &{1'b0, stat_qp, stat_status};
endmodule

bind ring_fill ring_fill_props #(.N_QP(N_QP)) u_props (
  .rows({u_fills.mem[1], u_fills.mem[0]}),  // proved at N_QP 2
  .*
);
