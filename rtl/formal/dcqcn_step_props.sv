// SPDX-License-Identifier: SHL-2.1
// What one visit of the DCQCN reaction point promises, whatever happened and whatever the parameters:
//   R_min <= R_C, R_T <= line from any state at all; and from any state with R_C <= R_T and
//   alpha <= 1, again R_C <= R_T and alpha <= 1, and the rules of cut and recovery.
// AdvCam section II, equations 1 to 4; Zhu et al., SIGCOMM 2015, figure 7.
//
// One visit is watched from its entry to its answer. The step has no feedback, and an answer depends
// only on what its own visit brought, so all runs a little longer than the latency are all there are.
module dcqcn_step_props
  import penstock_pkg::*;
  import cc_pkg::*;
#(
  parameter int unsigned VisitCyclesLog2 = 4
) (
  input logic        clk,
  input logic        rst,
  input cc_params_t  params,
  input logic        in_valid,
  input qp_t         in_qp,
  input logic        in_off,      // a fresh start, or another law
  input logic        in_cnp,
  input logic        in_limited,
  input rate_t       in_current,
  input rate_t       in_target,
  input alpha_full_t in_alpha,
  input logic [31:0] in_since_cut,
  input logic [7:0]  in_stage_timer,
  input logic [7:0]  in_stage_bytes,
  input logic        out_valid,
  input qp_t         out_qp,
  input logic        out_unlimited,
  input logic        out_cnp_ignored,
  input logic        out_limited,
  input rate_t       out_current,
  input rate_t       out_target,
  input alpha_full_t out_alpha,
  input logic [31:0] out_since_cut,
  input logic [7:0]  out_stage_timer,
  input logic [7:0]  out_stage_bytes
);
  logic started_q = 1'b0;
  cc_params_t params_q;
  always_ff @(posedge clk) begin
    started_q <= 1'b1;
    params_q  <= params;
  end
  always_comb assume (rst == !started_q);
  always_comb if (started_q) assume (params == params_q);  // changes are bounded by the next visit

  // ---- the watched visit -----------------------------------------------------------------------------
  logic choose, enters, watching_q;
  anything u_choose (.value(choose));
  assign enters = in_valid && choose && !watching_q && !rst;

  qp_t qp_q;
  logic off_q, cnp_q, limited_q;
  rate_t current_q, target_q;
  alpha_full_t alpha_q;
  logic [31:0] since_cut_q;
  logic [7:0] stage_timer_q, stage_bytes_q;

  // A queue pair is visited once a round, which is longer than the pipeline.
  always_comb if (watching_q && in_valid) assume (in_qp != qp_q);
  logic [7:0] before_q;  // how many visits of the same queue pair went before: none, as above
  always_ff @(posedge clk) begin
    before_q <= rst ? '0 : before_q + 8'(in_valid);
    if (enters) begin
      watching_q <= 1'b1;
      qp_q <= in_qp;
      {off_q, cnp_q, limited_q} <= {in_off, in_cnp, in_limited};
      {current_q, target_q, alpha_q, since_cut_q} <= {in_current, in_target, in_alpha, in_since_cut};
      {stage_timer_q, stage_bytes_q} <= {in_stage_timer, in_stage_bytes};
    end
    if (rst) watching_q <= 1'b0;
  end

  // The first visit of all is watched, or one behind another that is of a different queue pair.
  qp_t other_q;
  always_ff @(posedge clk) if (in_valid && !enters) other_q <= in_qp;
  always_comb if (enters && before_q != '0) assume (in_qp != other_q && before_q == 8'd1);

  // ---- the promises ----------------------------------------------------------------------------------
  logic done, sane, idle, cut;
  rate_t low;
  assign done = watching_q && out_valid && out_qp == qp_q;
  assign low  = params.rate_min < params.rate_line ? params.rate_min : params.rate_line;
  assign sane = low <= current_q && current_q <= target_q && target_q <= params.rate_line && alpha_q <= AlphaOneFull;
  assign idle = off_q || (!limited_q && !cnp_q);
  assign cut  = !idle && cnp_q && 33'(since_cut_q) + (33'd1 << VisitCyclesLog2) >= 33'(params.decrease_interval);

  logic fast;
  assign fast = stage_timer_q < 8'(params.stage_threshold)
    && (!params.two_counters || stage_bytes_q < 8'(params.stage_threshold));

  // A lemma for the solver, which knows nothing of multiplication: alpha <= 1 makes nothing larger.
  function automatic logic shrinks(input logic [15:0] half, input alpha_full_t alpha);
    return 33'(half) * 33'(alpha[AlphaFullW-1:AlphaGuardBits]) <= {1'b0, half, 16'd0};
  endfunction
  always_comb if (in_alpha <= AlphaOneFull) begin
    a_0_high : assert (shrinks(in_current[31:16], in_alpha));
    a_0_low : assert (shrinks(in_current[15:0], in_alpha));
  end

  always_comb if (started_q && done) begin
    a_bounds : assert (low <= out_current && out_current <= params.rate_line
                       && low <= out_target && out_target <= params.rate_line);
    a_limited : assert (out_limited == !idle);
    a_unlimited : assert (out_unlimited == (out_current == params.rate_line));
    a_ignored : assert (out_cnp_ignored == (cnp_q && !cut));
    if (idle) a_idle : assert (out_current == params.rate_line && out_target == params.rate_line && out_alpha == AlphaOneFull);
    if (sane) begin
      a_order : assert (out_current <= out_target);
      a_alpha : assert (out_alpha <= AlphaOneFull);
      if (cut) begin
        a_falls : assert (out_current <= current_q);
        a_half : assert (out_current >= current_q - (current_q >> 1));
        a_clamp : assert (out_target == (params.clamp_target ? current_q : target_q));
        a_restart : assert (out_stage_timer == '0 && out_stage_bytes == '0 && out_since_cut == '0);
      end else if (!idle) begin
        a_up : assert (out_current >= current_q && out_target >= target_q);
        a_half_way : assert (out_current == current_q || out_current == rate_t'((33'(current_q) + 33'(out_target) + 33'd1) >> 1));
        if (fast) a_fast : assert (out_target == target_q);
        a_decays : assert (out_alpha <= alpha_q);
      end
    end
    c_cut : cover (sane && cut && out_current < current_q && out_current > low && !params.clamp_target);
    c_recovers : cover (sane && !idle && !cut && out_current > current_q && out_target > target_q);
    c_cooldown : cover (sane && !idle && cnp_q && !cut);
  end
endmodule

bind dcqcn_step dcqcn_step_props #(.VisitCyclesLog2(VisitCyclesLog2)) u_props (
  .in_off         (in_init || params.law == LawOff),
  .in_limited     (in_state.limited),
  .in_current     (in_state.rate_current),
  .in_target      (in_state.rate_target),
  .in_alpha       (in_state.alpha),
  .in_since_cut   (in_state.since_cut),
  .in_stage_timer (in_state.stage_timer),
  .in_stage_bytes (in_state.stage_bytes),
  .out_limited    (out_state.limited),
  .out_current    (out_state.rate_current),
  .out_target     (out_state.rate_target),
  .out_alpha      (out_state.alpha),
  .out_since_cut  (out_state.since_cut),
  .out_stage_timer(out_state.stage_timer),
  .out_stage_bytes(out_state.stage_bytes),
  .*
);
