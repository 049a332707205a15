// SPDX-License-Identifier: SHL-2.1
// Promises of one visit of a reaction point, under either law, from any state of a queue pair,
// with any parameters that are constant during the visit (R_min' = min(R_min, line)),
// and of alpha <= 1 also while they change in every cycle:
//   R_min' <= R_C, R_T <= line; no limit exactly when R_C is the line rate; idle gives the start rate;
//   where R_C <= R_T and alpha <= 1 held before, they hold again; and the rules of cut and recovery.
// AdvCam section II, equations 1 to 4; Zhu et al., SIGCOMM 2015, figure 7; IEEE 802.1Qau.
//
// Only ports are observed, so the pipeline may have any length below Latest. The proof follows one visit, the one
// in the second cycle after reset; a visit before it and those after it are arbitrary, but of other queue
// pairs, and registers without reset start with any value. The step has no feedback, so a property of
// this visit holds for all. The multipliers are not abstracted; that a cut takes at most half is shown only for the
// build without QCN, in which one of the two factors is not shared.
module cc_step_props
  import penstock_pkg::*;
  import penstock_regs_pkg::*;
  import cc_pkg::*;
#(
  parameter int unsigned VisitCyclesLog2 = 4,
  parameter bit WITH_QCN = 1'b1,
  parameter int unsigned Latest = 9  // cycles from a visit to its answer, at most
) (
  input logic                       clk,
  input logic                       rst,
  input cc_params_t  [CcStages-1:0] params,
  input qcn_params_t [CcStages-1:0] qcn_params,
  input logic                       in_valid,
  input happened_t                  in_happened,
  input state_t                     in_state,
  input logic                       early_valid,
  input qp_t                        early_qp,
  input logic                       out_valid,
  input qp_t                        out_qp,
  input state_t                     out_state,
  input logic                       out_unlimited,
  input logic                       out_cnp_ignored,
  input logic                       out_clamped
);
  logic [3:0]  cycle_q = '0;
  cc_params_t  law, law_q;  // of group 0, the only one here (N_GROUPS = 1), for every stage
  qcn_params_t qcn_law, qcn_law_q;
  logic        early_q;
  qp_t         early_qp_q;
  logic        steady, steady_q;  // chosen once: no parameter changes

  anything u_steady (.value(steady));
  assign {law, qcn_law} = {params[0], qcn_params[0]};
  always_ff @(posedge clk) begin
    if (cycle_q != '1) cycle_q <= cycle_q + 1'b1;
    {law_q, qcn_law_q} <= {law, qcn_law};
    {early_q, early_qp_q} <= {early_valid, early_qp};
    steady_q <= steady;
  end
  always_comb assume (rst == (cycle_q == '0));
  always_comb if (cycle_q != '0) assume (steady == steady_q && (!steady || {law, qcn_law} == {law_q, qcn_law_q}));
  always_comb assume (params == {CcStages{law}} && qcn_params == {CcStages{qcn_law}});

  // ---- the watched visit -----------------------------------------------------------------------------
  logic enters, watching_q, done_q, done;
  happened_t what_q;
  state_t was_q;
  assign enters = cycle_q == 4'd2;
  always_comb if (enters) assume (in_valid);
  always_comb if (watching_q && in_valid) assume (in_happened.qp != what_q.qp);
  qp_t before_q;
  always_ff @(posedge clk) before_q <= in_happened.qp;
  always_comb if (enters) assume (in_happened.qp != before_q);

  always_ff @(posedge clk) begin
    if (enters) {watching_q, what_q, was_q} <= {1'b1, in_happened, in_state};
    if (done) done_q <= 1'b1;
    if (rst) {watching_q, done_q} <= '0;
  end
  assign done = !rst && watching_q && !done_q && out_valid && out_qp == what_q.qp;

  // ---- what it should do -------------------------------------------------------------------------------
  rate_t line, low, rate_min, ai, hai, start;
  logic qcn, notified, fresh, idle, cut, ordered, sane, fast;
  logic [3:0] threshold;
  assign qcn = WITH_QCN && what_q.law == LawQcn;
  assign {line, rate_min, ai, hai} = qcn ? {qcn_law.rate_line, qcn_law.rate_min, qcn_law.rate_ai, qcn_law.rate_hai}
                                         : {law.rate_line, law.rate_min, law.rate_ai, law.rate_hai};
  // Notifications do not hold it below a floor, either.
  rate_t least;
  assign least = qcn || idle || floor_of(line, what_q.floor) < rate_min ? rate_min : floor_of(line, what_q.floor);
  assign low = least < line ? least : line;
  assign start = qcn || what_q.law != LawDcqcn || law.rate_start > line ? line : law.rate_start < low ? low : law.rate_start;
  assign notified = qcn ? what_q.feedback != '0 : what_q.cnp;
  assign fresh = what_q.init || (!qcn && what_q.law != LawDcqcn) || was_q.c.qcn != qcn;
  assign idle = fresh || (!was_q.c.limited && !notified);
  // Where cuts wait for the end of a decrease interval, a CNP may have come before this visit.
  logic on_tick, cooled, alpha_over, rises;
  assign on_tick = !qcn && law.cut_on_tick;
  assign cooled = 33'(was_q.dcqcn.since_cut) + (33'd1 << VisitCyclesLog2) >= 33'(law.decrease_interval);
  assign cut = !idle && (on_tick ? (notified || was_q.c.cut_due) && cooled && was_q.c.limited
                                 : notified && (qcn || cooled));
  assign alpha_over = law.alpha_interval != '0
    && 33'(was_q.dcqcn.alpha_elapsed) + (33'd1 << VisitCyclesLog2) >= 33'(law.alpha_interval);
  always_comb begin
    if (law.alpha_rule == AlphaRuleInterval) rises = alpha_over && was_q.c.limited && (notified || was_q.c.rise_due);
    else rises = law.alpha_rule == AlphaRuleCnp ? notified : cut;
  end
  assign ordered = was_q.c.rate_current <= was_q.c.rate_target && (qcn || was_q.dcqcn.alpha <= AlphaOneFull);
  assign sane = ordered && low <= was_q.c.rate_current && was_q.c.rate_target <= line;
  assign threshold = qcn ? qcn_law.stage_threshold : law.stage_threshold;
  assign fast = was_q.c.stage_timer < 8'(threshold)
    && ((!qcn && law.stage_counting == StageCountingSingle) || was_q.c.stage_bytes < 8'(threshold));

  logic holds;
  assign holds = law.hold_timer && (what_q.paused || what_q.idle);
  logic was_increasing;
  assign was_increasing = was_q.c.stage_timer != '0 || was_q.c.stage_bytes != '0;
  logic [32:0] runs_on;  // the timer, which a cut need not restart
  assign runs_on = 33'(was_q.c.timer_elapsed) + (holds ? '0 : 33'd1 << VisitCyclesLog2);

  function automatic rate_t raised(input rate_t by);
    logic [32:0] sum;
    sum = {1'b0, was_q.c.rate_target} + {1'b0, by};
    return sum > {1'b0, line} ? line : sum[31:0];
  endfunction

  rate_t rate, target;  // as answered
  assign {rate, target} = {out_state.c.rate_current, out_state.c.rate_target};

  // A lemma for the solver, which cannot multiply: alpha <= 1 makes nothing larger.
  function automatic logic shrinks(input logic [15:0] half, input logic [16:0] factor);
    return 33'(half) * 33'(factor) <= {1'b0, half, 16'd0};
  endfunction
  logic [16:0] alpha;
  assign alpha = in_state.dcqcn.alpha[AlphaFullW-1:AlphaGuardBits];
  always_comb if (enters && in_state.dcqcn.alpha <= AlphaOneFull) begin
    a_0_high : assert (shrinks(in_state.c.rate_current[31:16], alpha));
    a_0_low : assert (shrinks(in_state.c.rate_current[15:0], alpha));
  end

  always_comb begin
    if (32'(cycle_q) == Latest + 2) a_answers : assert (done || done_q);
    if (out_valid && !rst && cycle_q > 4'd1) a_early : assert (early_q && early_qp_q == out_qp);
  end
  always_comb if (done && !qcn && (idle || ordered)) a_alpha : assert (out_state.dcqcn.alpha <= AlphaOneFull);
  always_comb if (done && steady) begin
    a_bounds : assert (low <= rate && rate <= line && low <= target && target <= line);
    a_unlimited : assert (out_unlimited == (rate == line));
    a_limited : assert (out_state.c.limited == (rate != line || (!qcn && !idle)));
    a_law : assert (out_state.c.qcn == qcn);
    a_ignored : assert (out_cnp_ignored == ((notified && (fresh || (on_tick ? was_q.c.cut_due : !cut)))
                                            || (qcn ? what_q.cnp : what_q.feedback != '0)));
    a_due : assert (out_state.c.cut_due == (on_tick && !idle && !cut && (notified || was_q.c.cut_due)));
    a_clamped : assert (out_clamped == (cut && rate_min > line));
    if (qcn) a_qcn_waits : assert (!out_state.c.cut_due && !out_state.c.rise_due);
    if (idle) a_idle : assert (rate == start && target == start
                               && out_state.c.stage_timer == '0 && out_state.c.stage_bytes == '0);
    if (idle && !qcn) a_idle_alpha : assert (out_state.dcqcn.alpha == AlphaOneFull && out_state.dcqcn.since_cut == '1);
    if (idle || ordered) a_order : assert (rate <= target);
    if (cut) begin
      a_restart : assert (out_state.c.stage_timer == '0 && out_state.c.stage_bytes == '0);
      if (!qcn) a_cooldown : assert (on_tick ? out_state.dcqcn.since_cut < (32'd1 << VisitCyclesLog2)
                                             : out_state.dcqcn.since_cut == '0);
      if (!qcn && law.restart_timer) a_timer : assert (out_state.c.timer_elapsed == '0);
      if (!qcn && !law.restart_timer && runs_on < 33'(law.increase_interval))
        a_runs_on : assert (33'(out_state.c.timer_elapsed) == runs_on);
      a_counted : assert (out_state.c.cnp_handled == (what_q.init ? 32'd0 : was_q.c.cnp_handled) + 32'd1);
    end
    if (cut && sane) begin
      a_falls : assert (rate <= was_q.c.rate_current);
      if (!WITH_QCN) a_half : assert (rate >= was_q.c.rate_current - (was_q.c.rate_current >> 1));
      if (!qcn) a_clamp : assert (target == (law.clamp_target || (law.clamp_increasing && was_increasing)
                                             ? was_q.c.rate_current : was_q.c.rate_target));
    end
    if (!cut && !idle && sane) begin
      a_up : assert (rate >= was_q.c.rate_current && (qcn || target >= was_q.c.rate_target));
      a_half_way : assert (rate == was_q.c.rate_current
                           || rate == rate_t'((33'(was_q.c.rate_current) + 33'(target) + 33'd1) >> 1));
      if (!qcn) a_increase : assert (target == was_q.c.rate_target
                                     || (!fast && (target == raised(ai) || target == raised(hai))));
    end
    if (!qcn && !idle && ordered) begin
      if (!rises) a_decays : assert (out_state.dcqcn.alpha <= was_q.dcqcn.alpha);
      a_coarse : assert ((out_state.dcqcn.alpha & below_resolution(law.alpha_bits)) == '0);
    end
    c_starts : cover (idle && !qcn && low < rate && rate < line);
    c_cut : cover (sane && cut && rate < was_q.c.rate_current && rate > low && !qcn && !law.clamp_target);
    c_holds : cover (sane && !idle && !cut && !qcn && holds && out_state.c.timer_elapsed != '0);
    c_runs_on : cover (cut && !qcn && !law.restart_timer && out_state.c.timer_elapsed != '0);
    c_recovers : cover (sane && !idle && !cut && !qcn && rate > was_q.c.rate_current && target > was_q.c.rate_target);
    c_qcn : cover (!WITH_QCN || (qcn && sane && cut && rate < was_q.c.rate_current && target < was_q.c.rate_target));
    c_cools : cover (sane && !idle && notified && !cut);
    c_tick : cover (sane && cut && !notified && rate < was_q.c.rate_current);
    c_coarse : cover (!qcn && !idle && ordered && law.alpha_bits == 4'd10 && rises && !cut);
  end
  always_comb c_changes : cover (done && !steady && !qcn && ordered && !idle && law.g_shift != law_q.g_shift);
endmodule

bind cc_step cc_step_props #(.VisitCyclesLog2(VisitCyclesLog2), .WITH_QCN(WITH_QCN)) u_props (.*);
