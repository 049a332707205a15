// SPDX-License-Identifier: SHL-2.1
// Promises of the arbiter: it grants one of the present requests whenever there is one, and a persistent
// request waits for at most one round, that is for N - 1 grants to others.
// Argument: every grant to another requester brings the turn closer to the waiting one.
module arbiter_rr_props #(
  parameter int unsigned N = 4  // a power of two
) (
  input logic         clk,
  input logic         rst,
  input logic [N-1:0] req,
  input logic         take,
  input logic         valid,
  input logic [7:0]   index,
  input logic [N-1:0] above_q
);
  localparam int unsigned IdxW = $clog2(N);

  logic started_q = 1'b0;
  always_ff @(posedge clk) started_q <= 1'b1;
  always_comb if (!started_q) assume (rst);

  logic [IdxW-1:0] any, who_q;  // who waits: any requester, the same in all cycles
  anything #(.W(IdxW)) u_any (.value(any));
  logic [IdxW-1:0] turn, distance;
  logic [IdxW:0]   grants_q;  // grants to others since who_q began to wait

  // Whose turn is next: the number of requesters that are not above the last granted one.
  always_comb begin
    turn = '0;
    for (int unsigned i = 0; i < N; i++) turn += IdxW'(!above_q[i]);
    distance = who_q - turn;
  end

  always_ff @(posedge clk) begin
    if (!started_q) who_q <= any;
    if (!req[who_q] || (take && index[IdxW-1:0] == who_q)) grants_q <= '0;
    else if (take) grants_q <= grants_q + 1'b1;
    if (rst) grants_q <= '0;
  end

  always_comb if (started_q && !rst) begin
    a_valid : assert (valid == |req);
    if (valid) a_requested : assert (32'(index) < N && req[index[IdxW-1:0]]);
    a_round : assert (32'(grants_q) <= N - 1);
    a_nearer : assert (32'(distance) + 32'(grants_q) <= N - 1);
    a_mask : assert (((~above_q) & ((~above_q) + 1'b1)) == '0);  // ones, then zeros
    c_whole_round : cover (32'(grants_q) == N - 1 && valid && 32'(index) == 32'(who_q));
  end
endmodule

bind arbiter_rr arbiter_rr_props #(.N(N)) u_props (.*);
