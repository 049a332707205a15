// SPDX-License-Identifier: SHL-2.1
// One visit of a DCQCN reaction point: state word and what happened in, new state word out.
// Takes a visit every cycle and answers five cycles later; equal to step() of crates/cc to the bit.
// AdvCam section II, equations 1 to 4 and the recovery phases; Zhu et al., SIGCOMM 2015, figure 7.
//
//   1 count     every counter advances; alpha is shifted
//   2 compare   counters meet their limits; does the CNP cut? R_C * alpha in two halves
//   3 target    alpha moves; phase of recovery, R_T + increment; the halves come together
//   4 current   R_C - cut, or half way to R_T, in one adder
//   5 bound     both rates between R_min and the line
module dcqcn_step
  import penstock_pkg::*;
  import cc_pkg::*;
#(
    parameter int unsigned VisitCyclesLog2 = 4,  // a queue pair is visited every 2^n cycles
    parameter int unsigned N_GROUPS = CcGroups
) (
    input logic                      clk,
    input logic                      rst,
    input cc_params_t [N_GROUPS-1:0] params,  // may change at any time; a visit in flight may see old and new ones

    input logic         in_valid,
    input happened_t    in_happened,
    input dcqcn_state_t in_state,

    output logic         out_valid,
    output qp_t          out_qp,
    output dcqcn_state_t out_state,
    output logic         out_unlimited,   // R_C is the line rate: nothing to pace
    output logic         out_cnp_ignored  // a notification that did not cut
);

  // Each function takes whole structs and looks at its part of them.
  // verilator lint_off UNUSEDSIGNAL

  localparam logic [31:0] VisitCycles = 32'd1 << VisitCyclesLog2;
  // Bytes left over from a recovery event count for the next one if they are fewer than 2^16.
  localparam int unsigned ByteSlackLog2 = 16;
  localparam int unsigned GroupW = $clog2(CcGroups);

  typedef struct packed {
    qp_t               qp;
    logic [GroupW-1:0] group;
    dcqcn_state_t      state;     // completed from stage to stage
    logic              idle;      // not limited: law off, no CNP yet, or a fresh start
    logic              fresh;     // the count of cuts begins anew
    logic              cnp;
    logic              stray;     // feedback of the other law, or a CNP that came with a fresh start
  } visit_t;

  function automatic cc_params_t of_group(input cc_params_t [N_GROUPS-1:0] all, input logic [GroupW-1:0] group);
    return N_GROUPS == 1 ? all[0] : all[group];
  endfunction

  // ---- 1: count ---------------------------------------------------------------------------------
  function automatic visit_t counted(input dcqcn_state_t state, input happened_t happened);
    visit_t v;
    logic other;
    other = happened.init || happened.law != LawDcqcn || state.c.qcn;
    v.qp = happened.qp;
    v.group = happened.group;
    v.state = state;
    v.idle = other || (!state.c.limited && !happened.cnp);
    v.fresh = happened.init;
    v.cnp = happened.cnp && !other;
    v.stray = happened.feedback != '0 || (happened.cnp && other);
    v.state.since_cut = saturating_add(state.since_cut, VisitCycles);
    v.state.alpha_elapsed = saturating_add(state.alpha_elapsed, VisitCycles);
    v.state.c.timer_elapsed = saturating_add(state.c.timer_elapsed, VisitCycles);
    v.state.c.bytes_sent = saturating_add(state.c.bytes_sent, 32'(happened.bytes));
    return v;
  endfunction

  function automatic alpha_full_t low_bits(input alpha_full_t alpha, input logic [3:0] shift);
    return alpha & ~(alpha_full_t'('1) << shift);
  endfunction

  logic        s1_valid_q;
  visit_t      s1_q;
  alpha_full_t s1_shifted_q;
  logic        s1_inexact_q;  // ones were shifted out
  cc_params_t  s1_params;
  assign s1_params = of_group(params, in_happened.group);

  always_ff @(posedge clk) begin
    s1_valid_q <= in_valid && !rst;
    if (in_valid) begin
      s1_q <= counted(in_state, in_happened);
      s1_shifted_q <= in_state.alpha >> s1_params.g_shift;
      s1_inexact_q <= low_bits(in_state.alpha, s1_params.g_shift) != '0;
    end
  end

  // ---- 2: compare -------------------------------------------------------------------------------
  function automatic logic [32:0] product(input logic [15:0] half, input alpha_full_t alpha);
    return 33'(half) * 33'(alpha[AlphaFullW-1:AlphaGuardBits]);
  endfunction

  cc_params_t s2_params;
  tally_t s2_alpha, s2_timer, s2_bytes;
  logic s2_cut;

  always_comb begin
    s2_params = of_group(params, s1_q.group);
    s2_cut = s1_q.cnp && !s1_q.idle && s1_q.state.since_cut >= s2_params.decrease_interval;
    s2_alpha = judge(s1_q.state.alpha_elapsed, s2_params.alpha_interval, VisitCyclesLog2);
    s2_timer = judge(s1_q.state.c.timer_elapsed, s2_params.increase_interval, VisitCyclesLog2);
    s2_bytes = judge(s1_q.state.c.bytes_sent, s2_params.byte_threshold, ByteSlackLog2);
  end

  logic        s2_valid_q;
  visit_t      s2_q;
  logic        s2_cut_q, s2_recover_q, s2_by_timer_q, s2_decay_q;
  alpha_full_t s2_lower_q;                           // floor(alpha * (1 - g))
  logic [32:0] s2_product_high_q, s2_product_low_q;  // R_C * alpha, by the halves of R_C

  always_ff @(posedge clk) begin
    s2_valid_q <= s1_valid_q && !rst;
    if (s1_valid_q) begin
      s2_q <= s1_q;
      s2_cut_q <= s2_cut;
      s2_decay_q <= s2_alpha.fired && !s1_q.cnp;
      s2_recover_q <= !s1_q.idle && !s2_cut && (s2_timer.fired || s2_bytes.fired);
      s2_by_timer_q <= s2_timer.fired;
      s2_lower_q <= s1_q.state.alpha + ~s1_shifted_q + alpha_full_t'(!s1_inexact_q);
      s2_product_high_q <= product(s1_q.state.c.rate_current[31:16], s1_q.state.alpha);
      s2_product_low_q <= product(s1_q.state.c.rate_current[15:0], s1_q.state.alpha);

      s2_q.state.alpha_elapsed <= s1_q.cnp || s1_q.idle ? '0 : s2_alpha.next;
      if (s1_q.idle) s2_q.state.since_cut <= '1;
      else if (s2_cut) s2_q.state.since_cut <= '0;
      // The timer goes first; an event of the byte counter then waits for the next visit.
      s2_q.state.c.timer_elapsed <= s1_q.idle || s2_cut ? '0 : s2_timer.next;
      if (s1_q.idle || s2_cut) s2_q.state.c.bytes_sent <= '0;
      else if (!(s2_timer.fired && s2_bytes.fired)) s2_q.state.c.bytes_sent <= s2_bytes.next;
    end
  end

  // ---- 3: target --------------------------------------------------------------------------------
  // The phase is judged by the stages before this event: F = 5 gives five steps of fast recovery.
  function automatic rate_t increment(input common_t state, input cc_params_t p);
    logic fast, hyper;
    if (p.two_counters) begin
      fast = state.stage_timer < 8'(p.stage_threshold) && state.stage_bytes < 8'(p.stage_threshold);
      hyper = state.stage_timer > 8'(p.stage_threshold) && state.stage_bytes > 8'(p.stage_threshold);
    end else begin
      fast = state.stage_timer < 8'(p.stage_threshold);
      hyper = state.stage_timer >= p.hyper_threshold;
    end
    if (fast) return '0;
    return hyper ? p.rate_hai : p.rate_ai;
  endfunction

  cc_params_t s3_params;
  common_t s3_common;
  alpha_full_t s3_alpha;

  always_comb begin
    s3_params = of_group(params, s2_q.group);
    s3_common = s2_q.state.c;
    s3_common.limited = !s2_q.idle;
    s3_common.qcn = 1'b0;
    if (s2_q.fresh) s3_common.cnp_handled = '0;
    else s3_common.cnp_handled = s2_q.state.c.cnp_handled + 32'(s2_cut_q);
    if (s2_q.idle || s2_cut_q) begin
      s3_common.stage_timer = '0;
      s3_common.stage_bytes = '0;
    end else if (s2_recover_q) begin
      if (!s3_params.two_counters || s2_by_timer_q) s3_common.stage_timer += 8'(s3_common.stage_timer != '1);
      else s3_common.stage_bytes += 8'(s3_common.stage_bytes != '1);
    end
    s3_alpha = (s2_cut_q || s2_decay_q ? s2_lower_q : s2_q.state.alpha)
        + (s2_cut_q ? AlphaOneFull >> s3_params.g_shift : '0);
  end

  logic        s3_valid_q;
  visit_t      s3_q;
  logic        s3_cut_q, s3_recover_q;
  logic [32:0] s3_raised_q;     // R_T + increment
  rate_t       s3_reduction_q;  // floor(R_C * alpha / 2)

  always_ff @(posedge clk) begin
    s3_valid_q <= s2_valid_q && !rst;
    if (s2_valid_q) begin
      s3_q <= s2_q;
      s3_q.state.c <= s3_common;
      s3_q.state.alpha <= s2_q.idle ? AlphaOneFull : s3_alpha;
      s3_q.stray <= s2_q.stray || (s2_q.cnp && !s2_cut_q);
      s3_cut_q <= s2_cut_q;
      s3_recover_q <= s2_recover_q;
      s3_raised_q <= {1'b0, s2_q.state.c.rate_target} + {1'b0, increment(s2_q.state.c, s3_params)};
      s3_reduction_q <= rate_t'((34'(s2_product_high_q) + 34'(s2_product_low_q[32:16])) >> 1);
    end
  end

  // ---- 4: current -------------------------------------------------------------------------------
  // One adder for both: R_C - reduction = R_C + ~reduction + 1, and ceil((R_C + R_T) / 2) =
  // (R_C + R_T + 1) / 2.
  cc_params_t s4_params;
  rate_t s4_target;
  logic [32:0] s4_sum;

  always_comb begin
    s4_params = of_group(params, s3_q.group);
    s4_target = s3_raised_q > {1'b0, s4_params.rate_line} ? s4_params.rate_line : s3_raised_q[31:0];
    s4_sum = {1'b0, s3_q.state.c.rate_current} + {1'b0, s3_cut_q ? ~s3_reduction_q : s4_target} + 33'd1;
  end

  logic   s4_valid_q;
  visit_t s4_q;
  rate_t  s4_low_q;  // R_min, or the line where that is lower

  always_ff @(posedge clk) begin
    s4_valid_q <= s3_valid_q && !rst;
    if (s3_valid_q) begin
      s4_q <= s3_q;
      s4_low_q <= s4_params.rate_min > s4_params.rate_line ? s4_params.rate_line : s4_params.rate_min;
      if (s3_q.idle) begin
        s4_q.state.c.rate_current <= '1;  // which the bound turns into the line rate
        s4_q.state.c.rate_target <= '1;
      end else if (s3_cut_q) begin
        if (s4_params.clamp_target) s4_q.state.c.rate_target <= s3_q.state.c.rate_current;
        s4_q.state.c.rate_current <= s4_sum[31:0];
      end else if (s3_recover_q) begin
        s4_q.state.c.rate_target <= s4_target;
        s4_q.state.c.rate_current <= s4_sum[32:1];
      end
    end
  end

  // ---- 5: bound ---------------------------------------------------------------------------------
  rate_t s5_line;
  assign s5_line = of_group(params, s4_q.group).rate_line;

  always_ff @(posedge clk) begin
    out_valid <= s4_valid_q && !rst;
    if (s4_valid_q) begin
      out_qp <= s4_q.qp;
      out_state <= s4_q.state;
      out_state.c.rate_current <= bounded(s4_q.state.c.rate_current, s4_low_q, s5_line);
      out_state.c.rate_target <= bounded(s4_q.state.c.rate_target, s4_low_q, s5_line);
      out_unlimited <= s4_q.state.c.rate_current >= s5_line || s4_low_q >= s5_line;
      out_cnp_ignored <= s4_q.stray;
    end
  end

endmodule
