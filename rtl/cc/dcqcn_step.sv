// SPDX-License-Identifier: SHL-2.1
// One visit of a DCQCN reaction point: state word and what happened in, new state word out.
// Takes a visit every cycle and answers four cycles later; equal to step() of crates/cc to the bit.
// AdvCam section II, equations 1 to 4 and the recovery phases; Zhu et al., SIGCOMM 2015, figure 7.
//
//   1 count     counters advance; does the CNP cut? alpha moves; R_C * alpha in two halves
//   2 target    phase of recovery, R_T + increment; the halves of the product come together
//   3 current   R_C - cut, or half way to R_T, in one adder
//   4 bound     both rates between R_min and the line
module dcqcn_step
  import penstock_pkg::*;
  import cc_pkg::*;
#(
    parameter int unsigned VisitCyclesLog2 = 4  // a queue pair is visited every 2^n cycles
) (
    input logic       clk,
    input logic       rst,
    input cc_params_t params,  // may change at any time; a visit in flight may see old and new ones

    input logic         in_valid,
    input qp_t          in_qp,
    input dcqcn_state_t in_state,
    input logic         in_init,   // start afresh, whatever the state was
    input logic         in_cnp,
    input byte_count_t  in_bytes,  // sent since the last visit

    output logic         out_valid,
    output qp_t          out_qp,
    output dcqcn_state_t out_state,
    output logic         out_unlimited,   // R_C is the line rate: nothing to pace
    output logic         out_cnp_ignored  // a CNP came inside the cooldown, or the law is off
);

  // Each function takes whole structs and looks at its part of them.
  // verilator lint_off UNUSEDSIGNAL

  localparam logic [31:0] VisitCycles = 32'd1 << VisitCyclesLog2;
  // Bytes left over from a recovery event count for the next one if they are fewer than 2^16.
  localparam int unsigned ByteSlackLog2 = 16;

  typedef struct packed {
    qp_t          qp;
    dcqcn_state_t state;        // completed from stage to stage
    logic         idle;         // not limited: law off, no CNP yet, or a fresh start
    logic         cut;
    logic         cnp_ignored;
    logic         recover;      // a recovery event takes place
    logic         by_timer;     // it is the timer's
  } visit_t;

  // ---- 1: count ---------------------------------------------------------------------------------
  // What becomes of the counters and of alpha; the rates are not touched yet.
  function automatic visit_t counted(input visit_t start, input logic init, input logic cnp,
                                     input byte_count_t bytes, input cc_params_t p);
    visit_t v;
    tally_t of_alpha, of_timer, of_bytes;
    alpha_full_t lower;

    v = start;
    v.idle = init || p.law == LawOff || (!start.state.limited && !cnp);
    v.state.since_cut = saturating_add(start.state.since_cut, VisitCycles);
    v.cut = !v.idle && cnp && v.state.since_cut >= p.decrease_interval;
    v.cnp_ignored = cnp && !v.cut;
    v.state.limited = !v.idle;

    // The timer goes first; an event of the byte counter then waits for the next visit.
    of_timer = advance(start.state.increase_elapsed, VisitCycles, p.increase_interval, VisitCyclesLog2);
    of_bytes = advance(start.state.bytes_sent, 32'(bytes), p.byte_threshold, ByteSlackLog2);
    v.state.increase_elapsed = of_timer.next;
    v.state.bytes_sent = of_timer.fired && of_bytes.fired ? of_bytes.sum : of_bytes.next;
    v.recover = !v.idle && !v.cut && (of_timer.fired || of_bytes.fired);
    v.by_timer = of_timer.fired;

    of_alpha = advance(start.state.alpha_elapsed, VisitCycles, p.alpha_interval, VisitCyclesLog2);
    v.state.alpha_elapsed = cnp ? '0 : of_alpha.next;
    lower = decayed(start.state.alpha, p.g_shift);
    if (v.cut) v.state.alpha = lower + (AlphaOneFull >> p.g_shift);
    else if (of_alpha.fired && !cnp) v.state.alpha = lower;

    if (v.cut) begin
      v.state.since_cut = '0;
      v.state.cnp_handled = start.state.cnp_handled + 1'b1;
    end
    if (v.idle) begin
      v.state.since_cut = '1;
      v.state.alpha = AlphaOneFull;
      v.state.alpha_elapsed = '0;
    end
    if (v.idle || v.cut) begin
      v.state.increase_elapsed = '0;
      v.state.bytes_sent = '0;
    end
    if (init) v.state.cnp_handled = '0;
    return v;
  endfunction

  logic        s1_valid_q;
  visit_t      s1_q;
  logic [32:0] s1_product_high_q, s1_product_low_q;  // R_C * alpha, by the halves of R_C

  function automatic logic [32:0] product(input logic [15:0] half, input alpha_full_t alpha);
    return 33'(half) * 33'(alpha[AlphaFullW-1:AlphaGuardBits]);
  endfunction

  always_ff @(posedge clk) begin
    s1_valid_q <= in_valid && !rst;
    if (in_valid) begin
      s1_q <= counted('{qp: in_qp, state: in_state, default: '0}, in_init, in_cnp, in_bytes, params);
      s1_product_high_q <= product(in_state.rate_current[31:16], in_state.alpha);
      s1_product_low_q <= product(in_state.rate_current[15:0], in_state.alpha);
    end
  end

  // ---- 2: target --------------------------------------------------------------------------------
  // The phase is judged by the stages before this event: F = 5 gives five steps of fast recovery.
  function automatic rate_t increment(input dcqcn_state_t state, input cc_params_t p);
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

  function automatic dcqcn_state_t staged(input visit_t visit, input logic two_counters);
    dcqcn_state_t state;
    state = visit.state;
    if (visit.idle || visit.cut) begin
      state.stage_timer = '0;
      state.stage_bytes = '0;
    end else if (visit.recover) begin
      if (!two_counters || visit.by_timer) state.stage_timer += 8'(state.stage_timer != '1);
      else state.stage_bytes += 8'(state.stage_bytes != '1);
    end
    return state;
  endfunction

  logic        s2_valid_q;
  visit_t      s2_q;
  logic [32:0] s2_raised_q;     // R_T + increment
  rate_t       s2_reduction_q;  // floor(R_C * alpha / 2)

  always_ff @(posedge clk) begin
    s2_valid_q <= s1_valid_q && !rst;
    if (s1_valid_q) begin
      s2_q <= s1_q;
      s2_q.state <= staged(s1_q, params.two_counters);
      s2_raised_q <= {1'b0, s1_q.state.rate_target} + {1'b0, increment(s1_q.state, params)};
      s2_reduction_q <= rate_t'((34'(s1_product_high_q) + 34'(s1_product_low_q[32:16])) >> 1);
    end
  end

  // ---- 3: current -------------------------------------------------------------------------------
  // One adder for both: R_C - reduction = R_C + ~reduction + 1, and ceil((R_C + R_T) / 2) =
  // (R_C + R_T + 1) / 2.
  function automatic dcqcn_state_t moved(input visit_t visit, input logic [32:0] raised,
                                         input rate_t reduction, input cc_params_t p);
    dcqcn_state_t state;
    rate_t target;
    logic [32:0] sum;
    state = visit.state;
    target = raised > {1'b0, p.rate_line} ? p.rate_line : raised[31:0];
    sum = {1'b0, state.rate_current} + {1'b0, visit.cut ? ~reduction : target} + 33'd1;
    if (visit.idle) begin
      state.rate_current = '1;  // which the bound turns into the line rate
      state.rate_target = '1;
    end else if (visit.cut) begin
      if (p.clamp_target) state.rate_target = visit.state.rate_current;
      state.rate_current = sum[31:0];
    end else if (visit.recover) begin
      state.rate_target = target;
      state.rate_current = sum[32:1];
    end
    return state;
  endfunction

  logic   s3_valid_q;
  visit_t s3_q;

  always_ff @(posedge clk) begin
    s3_valid_q <= s2_valid_q && !rst;
    if (s2_valid_q) begin
      s3_q <= s2_q;
      s3_q.state <= moved(s2_q, s2_raised_q, s2_reduction_q, params);
    end
  end

  // ---- 4: bound ---------------------------------------------------------------------------------
  always_ff @(posedge clk) begin
    out_valid <= s3_valid_q && !rst;
    if (s3_valid_q) begin
      out_qp <= s3_q.qp;
      out_state <= s3_q.state;
      out_state.rate_current <= bounded(s3_q.state.rate_current, params.rate_min, params.rate_line);
      out_state.rate_target <= bounded(s3_q.state.rate_target, params.rate_min, params.rate_line);
      out_unlimited <= s3_q.state.rate_current >= params.rate_line || params.rate_min >= params.rate_line;
      out_cnp_ignored <= s3_q.cnp_ignored;
    end
  end

endmodule
