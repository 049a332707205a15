// SPDX-License-Identifier: SHL-2.1
// Promises of the list of slots under transmission: a slot is in use from the cycle after the start of its read
// until the cycle of its end, independent of other reads; the read marks no other slot as in use; there is room while
// fewer than N are in use; and `oldest` is the first read of its queue pair. With this, and because a release waits
// while `tail_in_use` (requester_step_props, a_in_use_stays), no slot is filled again under its reader.
module slots_in_use_props
  import penstock_pkg::*;
#(
  parameter int unsigned N = 4
) (
  input logic clk,
  input logic rst,
  input logic begin_valid,
  input qp_t  begin_qp,
  input psn_t begin_psn,
  input logic end_valid,
  input qp_t  qp,
  input psn_t psn,
  input logic in_use,
  input qp_t  reader,
  input logic reading,
  input psn_t oldest,
  input logic room,
  input logic [N-1:0] valid_q,
  input logic [$clog2(N)-1:0] head_q,
  input logic [$clog2(N)-1:0] tail_q,
  input logic [N-1:0][$bits(qp_t)+$bits(psn_t)-1:0] held
);
  localparam int unsigned PtrW = $clog2(N);
  logic started_q = 1'b0;
  always_ff @(posedge clk) started_q <= 1'b1;
  always_comb if (!started_q) assume (rst);

  logic choose;  // any read is watched
  anything u_choose (.value(choose));

  logic            watching_q;
  qp_t             qp_q;
  psn_t            psn_q;
  logic [PtrW:0]   ahead_q, count_q;  // reads before the watched one that have not ended; all that have not
  logic [PtrW-1:0] place;
  assign place = tail_q + PtrW'(ahead_q);

  // The requester begins a read only while there is room, and the store ends only what has begun.
  always_comb begin
    if (begin_valid) assume (room);
    if (end_valid) assume (count_q != '0);
  end

  always_ff @(posedge clk) begin
    count_q <= count_q + (PtrW + 1)'(begin_valid) - (PtrW + 1)'(end_valid);
    if (watching_q) begin
      ahead_q <= ahead_q - (PtrW + 1)'(end_valid);
      if (end_valid && ahead_q == '0) watching_q <= 1'b0;
    end else if (begin_valid && choose) begin
      {watching_q, qp_q, psn_q} <= {1'b1, begin_qp, begin_psn};
      ahead_q <= count_q - (PtrW + 1)'(end_valid);
    end
    if (rst) {watching_q, count_q} <= '0;
  end

  // Places in use: count_q of them, from the tail on.
  logic [N-1:0] taken, same, of_reader, first, wrong;
  logic any_of_reader;
  assign any_of_reader = |of_reader;
  for (genvar i = 0; i < int'(N); i++) begin : gen_taken
    logic [PtrW-1:0] behind;  // the tail
    assign behind   = PtrW'(i) - tail_q;
    assign taken[i] = {1'b0, behind} < count_q;
    assign same[i]  = taken[i] && held[i] == {qp, psn};
    assign of_reader[i] = taken[i] && held[i][$bits(psn_t)+:$bits(qp_t)] == reader;
    logic [N-1:0] earlier;
    for (genvar j = 0; j < int'(N); j++) begin : gen_earlier
      assign earlier[j] = of_reader[j] && PtrW'(PtrW'(j) - tail_q) < behind;
    end
    assign first[i] = of_reader[i] && earlier == '0;
    assign wrong[i] = first[i] && oldest != held[i][$bits(psn_t)-1:0];
  end

  always_comb if (started_q && !rst) begin
    a_count : assert (32'(count_q) <= N && head_q == tail_q + PtrW'(count_q) && valid_q == taken);
    a_room : assert (room == (32'(count_q) < N));
    if (watching_q) begin
      a_place : assert (ahead_q < count_q && held[place] == {qp_q, psn_q});
      if (qp == qp_q && psn == psn_q) a_in_use : assert (in_use);
    end
    a_no_other : assert (in_use == |same);
    a_reading : assert (reading == any_of_reader && any_of_reader == (first != '0));
    a_oldest : assert (wrong == '0);
    c_full_and_moving : cover (!room && end_valid && watching_q && ahead_q == '0);
  end
endmodule

bind slots_in_use slots_in_use_props #(.N(N)) u_props (
  .held({{qp_q[3], psn_q[3]}, {qp_q[2], psn_q[2]}, {qp_q[1], psn_q[1]}, {qp_q[0], psn_q[0]}}),  // proved at N 4
  .*
);
