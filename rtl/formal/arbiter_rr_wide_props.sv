// SPDX-License-Identifier: SHL-2.1
// Promises of the wide arbiter: of the registered requests it chooses the one that arbiter_rr would choose, so the
// proof of arbiter_rr holds here too: a requester that is among all registered requests waits for at most one round.
// Assumed: no requests are registered while a choice is being made (tx_scheduler, requester).
module arbiter_rr_wide_props #(
  parameter int unsigned N = 32
) (
  input logic         clk,
  input logic         rst,
  input logic [N-1:0] req,
  input logic         start,
  input logic         started,
  input logic         valid,
  input logic [7:0]   index,
  input logic [3:0]   last_q,
  input logic [15:0]  above_q,
  input logic [15:0]  later_q
);
  logic started_q = 1'b0;
  always_ff @(posedge clk) started_q <= 1'b1;
  always_comb if (!started_q) assume (rst);
  always_comb assume (!(start && started));

  logic [N-1:0] req_q;
  always_ff @(posedge clk) req_q <= req;

  logic narrow_valid;
  logic [7:0] narrow_index;
  arbiter_rr #(.N(N)) narrow (
    .clk, .rst,
    .req  (req_q),
    .take (started),
    .valid(narrow_valid),
    .index(narrow_index)
  );

  // The turn, as both of them remember it. After reset it is with the lowest.
  logic anew_q;
  logic [N-1:0] above;
  always_ff @(posedge clk) anew_q <= rst || (anew_q && !valid);
  always_comb begin
    for (int unsigned i = 0; i < N; i++) above[i] = later_q[i/16] || (32'(last_q) == i / 16 && above_q[i%16]);
  end

  always_comb if (started_q && !rst) begin
    a_turn : assert (anew_q ? narrow.above_q == '0 && above == '1 : narrow.above_q == above);
    a_group : assert (later_q == 16'hfffe << last_q && 32'(last_q) < N / 16);
    if (started) a_valid : assert (valid == narrow_valid);
    else a_quiet : assert (!valid);
    if (valid) a_same : assert (index == narrow_index);
    c_wraps : cover (valid && index == '0 && last_q != '0);
    c_group : cover (valid && 32'(last_q) == N / 16 - 1 && index[7:4] == last_q && index[3:0] == 4'd15);
  end
endmodule

bind arbiter_rr_wide arbiter_rr_wide_props #(.N(N)) u_props (.*);
