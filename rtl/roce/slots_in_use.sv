// SPDX-License-Identifier: SHL-2.1
// Tracks the slots that are being read for transmission, at most N, finished in order.
// A slot may be acknowledged while its retransmission is still being read; it must not be filled
// again before that has ended, or a packet with a good ICRC would leave with wrong bytes. `oldest` is of the reads of
// one queue pair, whose packets before it have left.
module slots_in_use
  import penstock_pkg::*;
#(
  parameter int unsigned N = 4
) (
  input  logic clk,
  input  logic rst,
  input  logic begin_valid,
  input  qp_t  begin_qp,
  input  psn_t begin_psn,
  input  logic end_valid,
  input  qp_t  qp,      // whether this slot is in use
  input  psn_t psn,
  output logic in_use,
  input  qp_t  reader,  // whether packets of this queue pair are being read
  output logic reading,
  output psn_t oldest,
  output logic room     // for one more
);
  localparam int unsigned PtrW = $clog2(N);

  logic [N-1:0] valid_q;
  qp_t qp_q[N];
  psn_t psn_q[N];
  logic [PtrW-1:0] head_q, tail_q;

  assign room = !valid_q[head_q];

  always_comb begin
    in_use = 1'b0;
    for (int unsigned i = 0; i < N; i++) in_use |= valid_q[i] && qp_q[i] == qp && psn_q[i] == psn;
  end

  // In their order: from the youngest to the oldest.
  logic [PtrW-1:0] place, at;
  always_comb begin
    reading = 1'b0;
    place   = tail_q - 1'b1;
    at      = tail_q;
    for (int unsigned i = 0; i < N; i++) begin
      if (valid_q[place] && qp_q[place] == reader) {reading, at} = {1'b1, place};
      place = place - 1'b1;
    end
    oldest = psn_q[at];
  end

  always_ff @(posedge clk) begin
    if (begin_valid) begin
      valid_q[head_q] <= 1'b1;
      qp_q[head_q]    <= begin_qp;
      psn_q[head_q]   <= begin_psn;
      head_q          <= head_q + 1'b1;
    end
    if (end_valid) begin
      valid_q[tail_q] <= 1'b0;
      tail_q          <= tail_q + 1'b1;
    end
    if (rst) begin
      valid_q <= '0;
      head_q  <= '0;
      tail_q  <= '0;
    end
  end

`ifndef SYNTHESIS
  if (N != 2 ** PtrW) begin : gen_bad_n
    $fatal(1, "%m: N %0d is not a power of two", N);
  end
  a_room : assert property (@(posedge clk) disable iff (rst) begin_valid |-> room);
  a_in_use : assert property (@(posedge clk) disable iff (rst) end_valid |-> valid_q[tail_q]);
`endif
endmodule
