// SPDX-License-Identifier: SHL-2.1
// Round-robin choice among N requests: the first one above the last granted, else the lowest.
// Combinational choice; `take` confirms its use and advances the turn. Up to 8 requesters look at those before them;
// more of them use word-wide arithmetic, so that 256 cost a carry chain and few simulation steps.
module arbiter_rr #(
  parameter int unsigned N = 4
) (
  input  logic         clk,
  input  logic         rst,
  input  logic [N-1:0] req,
  input  logic         take,
  output logic         valid,
  output logic [7:0]   index
);
  if (N > 256) begin : gen_bad_n
    $fatal(1, "%m: N %0d is above 256", N);
  end

  logic [N-1:0] above_q, above, pool, chosen, later;

  assign above  = req & above_q;
  assign pool   = |above ? above : req;
  assign valid  = |req;

  // The lowest of the pool; and those after it, who are next.
  if (N <= 8) begin : gen_few
    for (genvar i = 0; i < N; i++) begin : gen_request
      localparam logic [N-1:0] Below = N'((1 << i) - 1);
      assign chosen[i] = pool[i] && (pool & Below) == '0;
      assign later[i]  = (pool & Below) != '0;
    end
  end else begin : gen_many
    assign chosen = pool & (~pool + 1'b1);
    assign later  = ~(chosen | (chosen - 1'b1));
  end

  // bit b of the index: is the chosen bit among those whose number has bit b set?
  function automatic logic [N-1:0] members(int unsigned b);
    for (int unsigned i = 0; i < N; i++) members[i] = 1'((i >> b) & 1);
  endfunction
  for (genvar b = 0; b < 8; b++) begin : gen_index
    localparam logic [N-1:0] Members = members(b);
    assign index[b] = |(chosen & Members);
  end

  always_ff @(posedge clk) begin
    if (take && valid) above_q <= later;
    if (rst) above_q <= '0;
  end

`ifndef SYNTHESIS
  a_granted_requested : assert property (@(posedge clk) disable iff (rst) valid |-> |(chosen & req));
  a_one : assert property (@(posedge clk) disable iff (rst) $onehot0(chosen));
`endif
endmodule
