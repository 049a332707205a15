// SPDX-License-Identifier: SHL-2.1
// What the clock promises: time never runs backwards but where it is set, and its rate stays within the bound; each pulse
// is good or extra and is counted as that; an extra one begins no measurement; one pulse in a second is good or missing.
module tai_clock_props
  import timing_pkg::*;
#(
  parameter int unsigned SECOND_NS = 1_000_000_000,
  parameter logic [55:0] Nominal = '0,
  parameter logic [55:0] Bound = '0
) (
  input logic        clk,
  input logic        rst,
  input tai_cfg_t    cfg,
  input logic        set,
  input logic [63:0] set_ns,
  input logic [63:0] tai_ns,
  input tai_stat_t   stat,
  input logic [55:0] step_q,
  input logic [8:0]  whole_q,
  input logic        pps_edge,
  input logic        good,
  input logic        extra,
  input logic        missing,
  input logic        known_q,
  input logic [31:0] since_q,
  input logic [6:0]  left_q,
  input logic        stands_in
);
  logic started_q = 1'b0;
  always_ff @(posedge clk) started_q <= 1'b1;
  always_comb if (!started_q) assume (rst);
  always_comb assume (cfg.window_ns < SECOND_NS / 4);

  logic past_q, set_q, edge_q, good_q, missing_q, taken_q, known1_q;
  logic [63:0] tai_q, set_ns_q;
  logic [31:0] since1_q, early_q;
  logic [6:0] left1_q;
  always_ff @(posedge clk) begin
    past_q    <= !rst;
    set_q     <= set;
    set_ns_q  <= set_ns;
    tai_q     <= tai_ns;
    edge_q    <= pps_edge;
    good_q    <= good;
    missing_q <= missing;
    taken_q   <= good || stands_in;
    known1_q  <= known_q;
    since1_q  <= since_q;
    early_q   <= 32'(SECOND_NS) - cfg.window_ns;
    left1_q   <= left_q;
  end

  // Whole nanoseconds of a cycle at the slowest and the fastest rate.
  localparam logic [8:0] Least = 9'((Nominal - Bound) >> 48);
  localparam logic [8:0] Most  = 9'(((Nominal + Bound) >> 48) + 1);

  always_comb if (started_q && !rst) begin
    a_rate : assert (step_q >= Nominal - Bound && step_q <= Nominal + Bound);
    a_whole : assert (whole_q <= Most);
  end
  always_comb if (started_q && !rst && past_q) begin
    if (!set_q) a_forward : assert (tai_ns - tai_q <= 64'(Most));
    if (set_q) a_set : assert (tai_ns == set_ns_q);
    a_counted : assert (edge_q == (stat.good ^ stat.extra) && !(stat.good && stat.extra));
    a_missing : assert (stat.missing == missing_q);
    a_one : assert (!(stat.good && stat.missing));
    if (stat.good && known1_q) a_window : assert (since1_q >= early_q);
    if (stat.extra && !taken_q) a_no_effect : assert (left_q == '0 || left_q + 7'd1 == left1_q);
    c_extra : cover (stat.extra);
    c_slow : cover (whole_q == Least);
  end

  // A second of millions of cycles is too deep for covers.
  if (SECOND_NS <= 10_000) begin : gen_short
    always_comb if (started_q && !rst) begin
      c_good : cover (stat.good && known1_q);
      c_missing : cover (stat.missing);
    end
  end
endmodule

bind tai_clock tai_clock_props #(.SECOND_NS(SECOND_NS), .Nominal(Nominal), .Bound(Bound)) u_props (.*);
