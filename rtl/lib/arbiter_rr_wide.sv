// SPDX-License-Identifier: SHL-2.1
// Round-robin choice among many requests in two cycles, in the order of arbiter_rr: the first one above the last
// granted, else the lowest. `start` registers the requests; the answer comes one cycle later and advances the turn.
// First cycle: the lowest of each group of 16, and the requests above the last granted in its group; then the group.
module arbiter_rr_wide #(
  parameter int unsigned N = 256
) (
  input  logic         clk,
  input  logic         rst,
  input  logic [N-1:0] req,
  input  logic         start,
  output logic         started,  // in the last cycle
  output logic         valid,    // one of the requests taken down then: `index`
  output logic [7:0]   index
);
  localparam int unsigned Groups = 16;

  if (N > 256) begin : gen_bad_n
    $fatal(1, "%m: N %0d is above 256", N);
  end

  typedef struct packed {
    logic       any;
    logic [3:0] lowest;
  } choice_t;

  // The lowest of 16.
  function automatic choice_t lowest(logic [15:0] requests);
    logic [3:0] some, low;  // in fours: any, and its lowest of four
    logic [3:0][1:0] of_four;
    for (int i = 0; i < 4; i++) begin
      some[i]    = |requests[4*i+:4];
      of_four[i] = requests[4*i] ? 2'd0 : requests[4*i+1] ? 2'd1 : requests[4*i+2] ? 2'd2 : 2'd3;
    end
    low = {some[0] ? 2'd0 : some[1] ? 2'd1 : some[2] ? 2'd2 : 2'd3, 2'd0};
    return '{any: |some, lowest: low | 4'(of_four[low[3:2]])};
  endfunction

  // ---- first cycle: the groups ---------------------------------------------------------------------
  logic [Groups-1:0][15:0] groups;
  choice_t [Groups-1:0] group_q;
  choice_t rest_q;             // above the last granted, in its group
  logic [15:0] above_q;        // of the numbers in a group, those above the last granted
  logic [Groups-1:0] later_q;  // of the groups, likewise
  logic [3:0] last_q;          // its group

  assign groups = 256'(req);

  always_ff @(posedge clk) begin
    for (int i = 0; i < int'(Groups); i++) group_q[i] <= lowest(groups[i]);
    rest_q    <= lowest(groups[last_q] & above_q);
    started   <= start && !rst;
  end

  // ---- second cycle: the choice --------------------------------------------------------------------
  logic [Groups-1:0] any, above;
  choice_t in_later, in_all;
  logic [3:0] group;

  for (genvar i = 0; i < int'(Groups); i++) begin : gen_any
    assign any[i] = group_q[i].any;
  end
  assign above    = any & later_q;
  assign in_later = lowest(above);
  assign in_all   = lowest(any);
  assign group    = rest_q.any ? last_q : in_later.any ? in_later.lowest : in_all.lowest;
  assign valid    = started && in_all.any;
  assign index    = {group, rest_q.any ? rest_q.lowest : group_q[group].lowest};

  always_ff @(posedge clk) begin
    if (valid) begin
      last_q  <= group;
      above_q <= 16'hfffe << index[3:0];
      later_q <= 16'hfffe << group;
    end
    if (rst) begin
      last_q  <= '0;
      above_q <= '1;
      later_q <= 16'hfffe;
    end
  end

`ifndef SYNTHESIS
  logic [N-1:0] req_q;
  always_ff @(posedge clk) req_q <= req;
  a_granted_requested : assert property (@(posedge clk) disable iff (rst) valid |-> 1'(req_q >> index));
  a_never_idle : assert property (@(posedge clk) disable iff (rst) started |-> valid == |req_q);
`endif
endmodule
