// SPDX-License-Identifier: SHL-2.1
// One visit of a reaction point under either law (DCQCN or QCN): state word and events in, new state word out.
// Accepts a visit every cycle, with a latency of six cycles; equal to Flow::visit of crates/cc to the bit.
// AdvCam section II, equations 1 to 4; Zhu et al., SIGCOMM 2015, figure 7; IEEE 802.1Qau.
//
// The laws differ in when they cut and in how R_T grows; counters, stages, products and rates are shared:
//
//   1 count     every counter advances; stages are compared with the threshold; alpha is shifted
//   2 compare   counters are compared with their limits: a cut, or a recovery event and its phase; alpha g
//   3 multiply  R_C * alpha, R_C * G_d |F_b|, or R_HAI * stages, in two halves; R_T before its increment; alpha falls
//   4 target    R_T + increment; the halves are added; alpha rises
//   5 current   R_C - cut, or half way to R_T, in one adder
//   6 bound     both rates between R_min and the line
//
// The part specific to QCN, the lengths of its stages and their jitter, is in qcn_lengths.
module cc_step
  import penstock_pkg::*;
  import penstock_regs_pkg::*;
  import cc_pkg::*;
#(
  parameter int unsigned VisitCyclesLog2 = 4,  // a queue pair is visited every 2^n cycles
  parameter int unsigned N_GROUPS = CcGroups,  // a power of two; the low bits of a group count
  parameter bit WITH_QCN = 1'b1  // without it, a queue pair that chooses QCN is not limited
) (
  input logic                       clk,
  input logic                       rst,

  // The parameters that each stage reads, in the same cycle: those of the other law may be anything. They may
  // change at any time; a visit in flight may see old and new ones, but alpha never passes 1.
  output cc_select_t  [CcStages-1:0] select,
  input  cc_params_t  [CcStages-1:0] params,
  input  qcn_params_t [CcStages-1:0] qcn_params,

  input logic      in_valid,
  input happened_t in_happened,
  input state_t    in_state,

  output logic early_valid,  // a cycle ahead of the answer
  output qp_t  early_qp,

  output logic   out_valid,
  output qp_t    out_qp,
  output state_t out_state,
  output logic   out_unlimited,   // R_C is the line rate: nothing to pace
  output logic   out_low,         // DCQCN holds it at a quarter of the line or below
  output logic   out_cnp_ignored, // a notification that did not cut
  output logic   out_clamped      // one that cut nothing: R_min lies above the line, and counts as the line
);

  localparam logic [31:0] VisitCycles = 32'd1 << VisitCyclesLog2;
  // Bytes left over from a recovery event count for the next one if they are fewer than 2^16.
  localparam int unsigned ByteSlackLog2 = 16;

  // A build uses the low bits of a group's index.
  // verilator lint_off UNUSEDSIGNAL
  function automatic group_t group_in_build(input group_t group);
    return group & group_t'(N_GROUPS - 1);
  endfunction
  // verilator lint_on UNUSEDSIGNAL

  function automatic logic [7:0] one_more(input logic [7:0] stage);
    return stage + 8'(stage != '1);
  endfunction

  // ---- a visit, as it goes through the stages ----------------------------------------------------
  typedef enum logic [1:0] {
    IncreaseNone,    // no event, or fast recovery
    IncreaseActive,  // by R_AI
    IncreaseHyper    // by R_HAI, under QCN times the stages after the threshold
  } increase_e;

  typedef struct packed {
    qp_t          qp;
    group_t       group;
    logic         qcn;       // its law
    logic         off;       // no law: at the line rate
    logic         idle;      // not limited: law off, no notification yet, or a fresh start
    logic         stray;     // a notification that does not cut
    logic         cut;
    logic         clamped;
    logic         recover;
    logic         reduce;    // target-rate reduction
    increase_e    increase;
    cnp_level_t   floor;
    common_t      c;         // the new state word, more of it with each stage
    dcqcn_state_t dcqcn;
  } visit_t;

  // ---- 1: count ---------------------------------------------------------------------------------
  logic        s1_valid_q;
  logic        s1_fresh_q;     // the count of cuts restarts
  logic        s1_notified_q;  // and this law uses it
  visit_t      s1_q;           // the state as it was
  logic [32:0] s1_timer_q, s1_bytes_q, s1_since_cut_q, s1_alpha_elapsed_q;
  logic [31:0] s1_timer_period_q, s1_byte_period_q;  // parameters
  logic        s1_timer_off_q, s1_bytes_off_q;       // they are zero
  alpha_full_t s1_shifted_q;   // alpha by g_shift
  logic        s1_lost_q;      // bits were shifted out
  // These go with the visit: alpha that fell by one g and rose by another could pass 1.
  logic [3:0]  s1_g_shift_q, s1_alpha_bits_q;
  g_factor_e   s1_g_factor_q;
  feedback_t   s1_feedback_q;
  logic [3:0]  s1_gd_shift_q;
  // stages against the threshold, and against each other
  logic        s1_timer_below_q, s1_timer_at_q, s1_bytes_below_q, s1_bytes_at_q;
  logic        s1_timer_hyper_q, s1_timer_less_q, s1_bytes_less_q;
  logic [7:0]  s1_timer_beyond_q, s1_bytes_beyond_q;  // stages after the threshold
  logic [7:0]  s1_timer_more_q, s1_bytes_more_q;      // one stage more

  logic   in_qcn, in_fresh_law;
  group_t in_group;
  assign in_qcn = WITH_QCN && in_happened.law == LawQcn;
  assign in_fresh_law = in_happened.init || (!in_qcn && in_happened.law != LawDcqcn) || in_state.c.qcn != in_qcn;
  assign in_group = group_in_build(in_happened.group);

  always_ff @(posedge clk) begin
    s1_valid_q <= in_valid && !rst;
    if (in_valid) begin
      automatic logic notified = in_qcn ? in_happened.feedback != '0 : in_happened.cnp;
      automatic logic holds = in_qcn ? in_happened.paused
                                      : params[0].hold_timer && (in_happened.paused || in_happened.idle);
      automatic logic [31:0] timer_period = in_qcn ? qcn_params[0].timer_period : params[0].increase_interval;
      automatic logic [31:0] byte_period = in_qcn ? qcn_params[0].byte_limit : params[0].byte_threshold;
      automatic logic [3:0] g_shift = params[0].g_shift;
      automatic logic [7:0] threshold = 8'(in_qcn ? qcn_params[0].stage_threshold
                                                  : params[0].stage_threshold);
      automatic logic [7:0] stage_timer = in_state.c.stage_timer;
      automatic logic [7:0] stage_bytes = in_state.c.stage_bytes;

      s1_q <= '{
        qp: in_happened.qp, group: in_group, qcn: in_qcn,
        off: !in_qcn && in_happened.law != LawDcqcn,
        idle: in_fresh_law || (!in_state.c.limited && !notified),
        stray: (notified && in_fresh_law) || (in_qcn ? in_happened.cnp : in_happened.feedback != '0),
        cut: 1'b0, clamped: 1'b0, recover: 1'b0, reduce: 1'b0, increase: IncreaseNone,
        floor: in_qcn || in_fresh_law || (!in_state.c.limited && !notified) ? '0 : in_happened.floor,
        c: in_state.c, dcqcn: in_state.dcqcn
      };
      s1_fresh_q <= in_happened.init;
      s1_notified_q <= notified && !in_fresh_law;

      s1_timer_q <= {1'b0, in_state.c.timer_elapsed} + (holds ? '0 : 33'(VisitCycles));
      s1_bytes_q <= {1'b0, in_state.c.bytes_sent} + 33'(in_happened.bytes);
      s1_since_cut_q <= {1'b0, in_state.dcqcn.since_cut} + 33'(VisitCycles);
      s1_alpha_elapsed_q <= {1'b0, in_state.dcqcn.alpha_elapsed} + 33'(VisitCycles);
      s1_timer_period_q <= timer_period;
      s1_byte_period_q <= byte_period;
      s1_timer_off_q <= timer_period == '0;
      s1_bytes_off_q <= byte_period == '0;

      s1_shifted_q <= in_state.dcqcn.alpha >> g_shift;
      s1_lost_q <= (in_state.dcqcn.alpha & ~(alpha_full_t'('1) << g_shift)) != '0;
      s1_g_shift_q <= g_shift;
      s1_g_factor_q <= g_shift == '0 ? GFactorOne : params[0].g_factor;
      s1_alpha_bits_q <= params[0].alpha_bits;
      s1_feedback_q <= in_happened.feedback;
      s1_gd_shift_q <= qcn_params[0].gd_shift;

      s1_timer_below_q <= stage_timer < threshold;
      s1_timer_at_q <= stage_timer == threshold;
      s1_bytes_below_q <= stage_bytes < threshold;
      s1_bytes_at_q <= stage_bytes == threshold;
      s1_timer_hyper_q <= stage_timer >= params[0].hyper_threshold;
      s1_timer_less_q <= stage_timer < stage_bytes;
      s1_bytes_less_q <= stage_bytes < stage_timer;
      s1_timer_beyond_q <= stage_timer - threshold;
      s1_bytes_beyond_q <= stage_bytes - threshold;
      s1_timer_more_q <= one_more(stage_timer);
      s1_bytes_more_q <= one_more(stage_bytes);
    end
  end

  // ---- 2: compare -------------------------------------------------------------------------------
  // What a counter counts on from when it has met its limit: the rest, so that the mean interval is
  // exact; none under QCN, nor if it is 2^slack_log2 or more (software has just lowered the limit).
  typedef struct packed {
    logic        clear;  // it is stopped, or restarts at zero
    logic        met;
    logic        keep;   // the rest
    logic [15:0] rest;
  } tally_t;

  function automatic tally_t tally_of(input logic [31:0] short_by, input logic clear, input logic met,
                                    input int unsigned slack_log2);
    return '{
      clear: clear, met: met, keep: ~short_by >> slack_log2 == '0,
      rest: ~short_by[15:0] & ~(16'('1) << slack_log2)
    };
  endfunction

  function automatic logic [31:0] counted_on(input tally_t tally, input logic [31:0] count);
    if (tally.clear) return '0;
    if (tally.met) return tally.keep ? 32'(tally.rest) : '0;
    return count;
  endfunction

  // G_d |F_b|, 2^17 = 1, at most one half.
  function automatic logic [16:0] decrease(input feedback_t feedback, input logic [3:0] gd_shift);
    logic [22:0] factor;
    factor = {feedback, 17'b0} >> gd_shift;
    return factor[22:16] != '0 ? 17'h10000 : {1'b0, factor[15:0]};
  endfunction

  logic        s2_valid_q;
  logic        s2_follow_q;  // R_T follows R_C down
  visit_t      s2_q;         // counters as counted
  logic        s2_fall_q;    // alpha by alpha g
  logic        s2_rise_q;    // alpha by g
  alpha_full_t s2_taken_q;   // alpha g
  logic        s2_half_q, s2_rest_q;  // and one more if both are set
  tally_t      s2_timer_q, s2_bytes_q, s2_alpha_q, s2_cut_q;
  rate_t       s2_rate_q;    // to be multiplied by
  logic [16:0] s2_factor_q;
  logic [3:0]  s2_g_shift_q, s2_alpha_bits_q;
  g_factor_e   s2_g_factor_q;
  logic [31:0] s1_timer_limit, s1_byte_limit;
  logic        s1_timer_undrawn, s1_byte_undrawn;

  always_ff @(posedge clk) begin
    s2_valid_q <= s1_valid_q && !rst;
    if (s1_valid_q) begin
      automatic logic two_counters = s1_q.qcn || params[1].stage_counting == StageCountingPerTrigger;
      automatic logic [32:0] cut_short = short_of(s1_since_cut_q, params[1].decrease_interval);
      automatic logic cooled = !cut_short[32];
      // Where cuts wait for the end of an interval, the first notification only lets the intervals begin.
      automatic logic on_tick = params[1].cut_on_tick && !s1_q.qcn;
      automatic logic first = !s1_q.c.limited;
      automatic logic due = s1_notified_q || (s1_q.c.cut_due && !s1_q.idle);
      automatic logic cut = on_tick ? due && cooled && !first : s1_notified_q && (s1_q.qcn || cooled);
      automatic logic afresh = s1_q.idle || cut;
      automatic logic timer_afresh = s1_q.idle || (cut && (s1_q.qcn || params[1].restart_timer));
      automatic logic [32:0] timer_short = short_of(s1_timer_q, s1_timer_limit);
      automatic logic [32:0] bytes_short = short_of(s1_bytes_q, s1_byte_limit);
      automatic logic timer = !timer_short[32] && !s1_timer_off_q && !s1_timer_undrawn;
      automatic logic bytes = !bytes_short[32] && !s1_bytes_off_q && !s1_byte_undrawn;
      automatic logic recover = !afresh && (timer || bytes);
      automatic logic at_interval = params[1].alpha_rule == AlphaRuleInterval && !s1_q.qcn;
      automatic logic fast, active, rise, alpha_clear, alpha_met;
      automatic logic [31:0] alpha_interval = params[1].alpha_interval;
      automatic logic [32:0] alpha_short = short_of(s1_alpha_elapsed_q, alpha_interval);
      automatic logic [7:0] beyond;
      automatic alpha_full_t below = below_resolution(s1_alpha_bits_q);
      automatic alpha_full_t taken =
          s1_shifted_q + besides(s1_shifted_q, s1_g_factor_q) + alpha_full_t'(s1_g_factor_q == GFactorSevenEighths);

      s2_q <= s1_q;
      s2_q.stray <= s1_q.stray || (s1_notified_q && (on_tick ? s1_q.c.cut_due : !cut));
      s2_q.c.cut_due <= on_tick && due && !cut;
      s2_q.cut <= cut;
      s2_q.recover <= recover;
      if (s1_fresh_q) s2_q.c.cnp_handled <= '0;

      // The timer goes first; an event of the byte counter then waits for the next visit. Under QCN
      // a counter starts again at zero.
      s2_q.c.timer_elapsed <= held(s1_timer_q);
      s2_q.c.bytes_sent <= held(s1_bytes_q);
      s2_timer_q <= tally_of(timer_short[31:0], timer_afresh || s1_timer_off_q || (timer && s1_q.qcn), timer,
                          VisitCyclesLog2);
      s2_bytes_q <= tally_of(bytes_short[31:0], afresh || s1_bytes_off_q || (bytes && !timer && s1_q.qcn),
                          bytes && !timer, ByteSlackLog2);

      if (afresh) begin
        s2_q.c.stage_timer <= '0;
        s2_q.c.stage_bytes <= '0;
      end else if (timer || (bytes && !two_counters)) s2_q.c.stage_timer <= s1_timer_more_q;
      else if (bytes) s2_q.c.stage_bytes <= s1_bytes_more_q;

      // DCQCN takes the phase from the stages before this event, QCN from those after it.
      if (s1_q.qcn) begin
        fast = timer ? s1_timer_below_q && (s1_bytes_below_q || s1_bytes_at_q)
                     : s1_bytes_below_q && (s1_timer_below_q || s1_timer_at_q);
        active = timer ? s1_timer_below_q || s1_bytes_below_q || s1_bytes_at_q
                       : s1_bytes_below_q || s1_timer_below_q || s1_timer_at_q;
      end else if (two_counters) begin
        fast = s1_timer_below_q && s1_bytes_below_q;
        active = s1_timer_below_q || s1_timer_at_q || s1_bytes_below_q || s1_bytes_at_q;
      end else begin
        fast = s1_timer_below_q;
        active = !s1_timer_hyper_q;
      end
      s2_q.reduce <= s1_q.qcn && recover && {s1_q.c.stage_timer, s1_q.c.stage_bytes} == '0
          && 36'(s1_q.c.rate_target) > {1'b0, s1_q.c.rate_current, 3'b0} + {3'b0, s1_q.c.rate_current, 1'b0};
      s2_follow_q <= cut && ((params[1].clamp_target && !s1_q.qcn)
          || ((s1_q.qcn || params[1].clamp_increasing) && {s1_q.c.stage_timer, s1_q.c.stage_bytes} != '0));
      if (!recover || fast) s2_q.increase <= IncreaseNone;
      else s2_q.increase <= active ? IncreaseActive : IncreaseHyper;

      // At full resolution all that is lost counts as one more; else more than half of the last bit does.
      s2_taken_q <= taken & ~below;
      s2_half_q <= below == '0 || (taken & (below ^ below >> 1)) != '0;
      s2_rest_q <= s1_lost_q || (taken & below >> 1) != '0;

      // alpha falls before it rises, too
      alpha_clear = s1_q.idle || alpha_interval == '0 || (at_interval ? first : s1_notified_q || cut);
      alpha_met = !alpha_short[32] && !alpha_clear;
      if (at_interval) rise = alpha_met && (s1_q.c.rise_due || s1_notified_q);
      else rise = params[1].alpha_rule == AlphaRuleCnp ? s1_notified_q : cut;
      s2_fall_q <= (rise || alpha_met) && !s1_q.idle;
      s2_rise_q <= rise;
      s2_q.c.rise_due <= at_interval && !alpha_clear && !alpha_met && (s1_q.c.rise_due || s1_notified_q);
      if (s1_q.idle) s2_q.dcqcn.alpha <= AlphaOneFull;
      s2_g_shift_q <= s1_g_shift_q;
      s2_g_factor_q <= s1_g_factor_q;
      s2_alpha_bits_q <= s1_alpha_bits_q;
      s2_q.dcqcn.since_cut <= s1_q.idle ? '1 : saturated(s1_since_cut_q);
      s2_cut_q <= tally_of(cut_short[31:0], on_tick ? first && !s1_q.idle : cut, on_tick && cooled && !s1_q.idle,
                        VisitCyclesLog2);
      s2_q.dcqcn.alpha_elapsed <= held(s1_alpha_elapsed_q);
      s2_alpha_q <= tally_of(alpha_short[31:0], alpha_clear, !alpha_short[32], VisitCyclesLog2);

      if (timer) beyond = s1_timer_less_q ? s1_timer_beyond_q + 8'd1 : s1_bytes_beyond_q;
      else beyond = s1_bytes_less_q ? s1_bytes_beyond_q + 8'd1 : s1_timer_beyond_q;
      s2_rate_q <= s1_q.c.rate_current;
      if (WITH_QCN && !cut)
        s2_rate_q <= s1_q.qcn ? qcn_params[1].rate_hai : params[1].rate_hai;
      if (s1_q.qcn) s2_factor_q <= cut ? decrease(s1_feedback_q, s1_gd_shift_q) : 17'(beyond);
      else s2_factor_q <= cut || !WITH_QCN ? s1_q.dcqcn.alpha[AlphaFullW-1:AlphaGuardBits] : 17'd1;
    end
  end

  // ---- 3: multiply ------------------------------------------------------------------------------
  logic        s3_valid_q;
  visit_t      s3_q;
  logic [32:0] s3_product_high_q, s3_product_low_q;  // by the halves of the rate
  logic        s3_rise_q;
  logic [3:0]  s3_g_shift_q, s3_alpha_bits_q;
  g_factor_e   s3_g_factor_q;

  always_ff @(posedge clk) begin
    s3_valid_q <= s2_valid_q && !rst;
    if (s2_valid_q) begin
      // The bound turns all ones into the line rate.
      automatic rate_t start = s2_q.qcn || s2_q.off ? '1 : params[2].rate_start;
      s3_q <= s2_q;
      if (s2_q.reduce) s3_q.increase <= IncreaseNone;
      s3_q.c.timer_elapsed <= counted_on(s2_timer_q, s2_q.c.timer_elapsed);
      s3_q.c.bytes_sent <= counted_on(s2_bytes_q, s2_q.c.bytes_sent);
      s3_q.c.cnp_handled <= s2_q.c.cnp_handled + 32'(s2_q.cut);
      if (s2_q.idle) s3_q.c.rate_current <= start;
      if (s2_q.idle) s3_q.c.rate_target <= start;
      else if (s2_follow_q) s3_q.c.rate_target <= s2_q.c.rate_current;
      else if (s2_q.reduce) s3_q.c.rate_target <= s2_q.c.rate_target >> 3;
      // one adder with floor(alpha * (1 - g)) in it
      s3_q.dcqcn.alpha <= s2_q.dcqcn.alpha + (s2_fall_q ? ~s2_taken_q : '0)
                        + alpha_full_t'(s2_fall_q && !(s2_half_q && s2_rest_q));
      s3_rise_q <= s2_rise_q;
      s3_g_shift_q <= s2_g_shift_q;
      s3_g_factor_q <= s2_g_factor_q;
      s3_alpha_bits_q <= s2_alpha_bits_q;
      s3_q.dcqcn.since_cut <= counted_on(s2_cut_q, s2_q.dcqcn.since_cut);
      s3_q.dcqcn.alpha_elapsed <= counted_on(s2_alpha_q, s2_q.dcqcn.alpha_elapsed);
      s3_product_high_q <= 33'(s2_rate_q[31:16]) * 33'(s2_factor_q);
      s3_product_low_q <= 33'(s2_rate_q[15:0]) * 33'(s2_factor_q);
    end
  end

  // ---- 4: target --------------------------------------------------------------------------------
  logic        s4_valid_q;
  visit_t      s4_q;
  logic [32:0] s4_raised_q;     // R_T + increment
  rate_t       s4_reduction_q;  // floor(R_C * alpha / 2), floor(R_C * G_d |F_b|)
  rate_t       s4_line_q, s4_floor_q;

  always_ff @(posedge clk) begin
    s4_valid_q <= s3_valid_q && !rst;
    if (s3_valid_q) begin
      automatic logic [49:0] product = {1'b0, s3_product_high_q, 16'b0} + 50'(s3_product_low_q);
      automatic rate_t increment;
      if (s3_q.increase == IncreaseActive) increment = s3_q.qcn ? qcn_params[3].rate_ai : params[3].rate_ai;
      else if (s3_q.increase == IncreaseNone) increment = '0;
      else if (WITH_QCN) increment = product[49:32] != '0 ? '1 : product[31:0];
      else increment = params[3].rate_hai;

      s4_q <= s3_q;
      s4_q.dcqcn.alpha <= (s3_q.dcqcn.alpha & ~below_resolution(s3_alpha_bits_q))
          + (s3_rise_q ? gain(s3_g_shift_q, s3_g_factor_q) & ~below_resolution(s3_alpha_bits_q) : '0);
      s4_raised_q <= {1'b0, s3_q.c.rate_target} + {1'b0, increment};
      s4_reduction_q <= product[48:17];
      s4_line_q <= s3_q.qcn ? qcn_params[3].rate_line : params[3].rate_line;
      s4_floor_q <= floor_of(params[3].rate_line, s3_q.floor);
    end
  end

  // ---- 5: current -------------------------------------------------------------------------------
  // One adder for both: R_C - reduction = R_C + ~reduction + 1, and ceil((R_C + R_T) / 2) =
  // (R_C + R_T + 1) / 2.
  logic   s5_valid_q;
  visit_t s5_q;
  rate_t  s5_line_q, s5_min_q;
  logic   s5_fixed_q;  // R_min is not below the line
  logic   s5_above_q;  // it is above

  always_ff @(posedge clk) begin
    s5_valid_q <= s4_valid_q && !rst;
    if (s4_valid_q) begin
      automatic rate_t rate_min = s4_q.qcn ? qcn_params[4].rate_min : params[4].rate_min;
      automatic logic above = s4_raised_q > {1'b0, s4_line_q};
      automatic rate_t towards, target;
      // verilator lint_off UNUSEDSIGNAL
      automatic logic [33:0] sum;  // its last bit carries a one in
      // verilator lint_on UNUSEDSIGNAL
      target = above ? s4_line_q : s4_raised_q[31:0];
      towards = s4_q.cut ? ~s4_reduction_q : above && !s4_q.reduce ? s4_line_q : s4_raised_q[31:0];
      sum = {1'b0, s4_q.c.rate_current, 1'b1} + {1'b0, towards, 1'b1};

      s5_q <= s4_q;
      s5_q.c.rate_target <= target;
      if (s4_q.cut) s5_q.c.rate_current <= sum[32:1];
      else if (s4_q.recover) s5_q.c.rate_current <= sum[33:2];
      s5_line_q <= s4_line_q;
      s5_min_q <= s4_floor_q > rate_min ? s4_floor_q : rate_min;
      s5_fixed_q <= rate_min >= s4_line_q;
      s5_above_q <= rate_min > s4_line_q;
    end
  end

  // ---- 6: bound ---------------------------------------------------------------------------------
  assign early_valid = s5_valid_q;
  assign early_qp = s5_q.qp;

  visit_t     s6_q;
  rate_t      s6_line_q;
  qcn_state_t qcn_state;

  always_ff @(posedge clk) begin
    out_valid <= s5_valid_q && !rst;
    if (s5_valid_q) begin
      automatic logic line = s5_fixed_q || s5_q.c.rate_current >= s5_line_q;
      s6_q <= s5_q;
      s6_q.clamped <= s5_q.cut && s5_above_q;
      s6_line_q <= s5_line_q;
      s6_q.c.qcn <= s5_q.qcn;
      s6_q.c.limited <= !line || (!s5_q.qcn && !s5_q.idle);
      s6_q.c.rate_current <= line ? s5_line_q : s5_q.c.rate_current < s5_min_q ? s5_min_q : s5_q.c.rate_current;
      s6_q.c.rate_target <= s5_fixed_q ? s5_line_q : s5_q.c.rate_target < s5_min_q ? s5_min_q : s5_q.c.rate_target;
      out_unlimited <= line;
    end
  end

  // ---- QCN's own --------------------------------------------------------------------------------
  if (WITH_QCN) begin : gen_qcn
    qcn_state_t s1_state;
    logic timer_undrawn, byte_undrawn;
    qcn_lengths u_lengths (
      .clk,
      .in_valid, .in_qp(in_happened.qp), .in_fresh(in_fresh_law), .in_state(in_state.dcqcn),
      .s1_valid(s1_valid_q), .s1_seed(qcn_params[1].seed), .s1_jitter(qcn_params[1].jitter),
      .s1_live        (!s1_q.idle && !s1_notified_q),
      .s1_timer_period(s1_timer_period_q),
      .s1_byte_period (s1_byte_period_q),
      .s1_timer_half  (!s1_timer_below_q),
      .s1_byte_half   (!s1_bytes_below_q),
      .s1_state,
      .s1_timer_undrawn(timer_undrawn),
      .s1_byte_undrawn (byte_undrawn),
      .s2_valid(s2_valid_q),
      .s2_timer_over(s2_timer_q.clear || s2_timer_q.met),
      .s2_bytes_over(s2_bytes_q.clear || s2_bytes_q.met),
      .s3_valid(s3_valid_q), .s4_valid(s4_valid_q), .s5_valid(s5_valid_q),
      .out_state (qcn_state)
    );
    assign s1_timer_limit = s1_q.qcn ? s1_state.timer_limit : s1_timer_period_q;
    assign s1_byte_limit = s1_q.qcn ? s1_state.byte_limit : s1_byte_period_q;
    assign s1_timer_undrawn = s1_q.qcn && timer_undrawn;
    assign s1_byte_undrawn = s1_q.qcn && byte_undrawn;
    wire unused = &{1'b0, s1_state};
  end else begin : gen_no_qcn
    assign qcn_state = '0;
    assign s1_timer_limit = s1_timer_period_q;
    assign s1_byte_limit = s1_byte_period_q;
    assign {s1_timer_undrawn, s1_byte_undrawn} = '0;
  end
  assign out_qp = s6_q.qp;
  assign out_state = {s6_q.c, s6_q.c.qcn ? qcn_state : s6_q.dcqcn};
  assign out_low = !s6_q.qcn && s6_q.c.rate_current <= s6_line_q >> 2;
  assign out_cnp_ignored = s6_q.stray;
  assign out_clamped = s6_q.clamped;

  wire unused_visits = &{1'b0, s1_q, s2_q, s3_q, s4_q, s5_q, s6_q};  // a stage needs a few fields

  // ---- the requests of the stages --------------------------------------------------------------
  assign select[0] = '{qcn: in_qcn, group: in_group};
  assign select[1] = '{qcn: s1_q.qcn, group: s1_q.group};
  assign select[2] = '{qcn: s2_q.qcn, group: s2_q.group};
  assign select[3] = '{qcn: s3_q.qcn, group: s3_q.group};
  assign select[4] = '{qcn: s4_q.qcn, group: s4_q.group};
  wire unused_params = &{1'b0, params, qcn_params};  // a stage needs a few of them

endmodule
