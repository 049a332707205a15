// SPDX-License-Identifier: SHL-2.1
// One visit of a QCN reaction point: state word and what happened in, new state word out.
// Takes a visit every cycle and answers six cycles later; equal to qcn_step() of crates/cc to the bit.
// IEEE 802.1Qau; parameters, functions and the behaviour while paused as the QCN seed lists them.
//
//   1 count     byte counter and timer advance; which length is to be drawn
//   2 compare   counters meet their limits; stages, phase; factors of both products
//   3 multiply  R_C * G_d |F_b| or R_HAI * stages; length * jitter
//   4 target    R_T + increment; the drawn length
//   5 current   R_C - cut, or half way to R_T, in one adder
//   6 bound     both rates between R_min and the line; at the line the limiter is released
module qcn_step
  import penstock_pkg::*;
  import cc_pkg::*;
#(
    parameter int unsigned VisitCyclesLog2 = 4,  // a queue pair is visited every 2^n cycles
    parameter int unsigned N_GROUPS = CcGroups
) (
    input logic                       clk,
    input logic                       rst,
    input qcn_params_t [N_GROUPS-1:0] params,  // may change at any time; a visit in flight may see old and new ones

    input logic       in_valid,
    input happened_t  in_happened,
    input qcn_state_t in_state,

    output logic       out_valid,
    output qp_t        out_qp,
    output qcn_state_t out_state,
    output logic       out_unlimited,   // R_C is the line rate: nothing to pace
    output logic       out_cnp_ignored  // a notification that did not cut
);

  // Each function takes whole structs and looks at its part of them.
  // verilator lint_off UNUSEDSIGNAL

  localparam logic [31:0] VisitCycles = 32'd1 << VisitCyclesLog2;
  localparam int unsigned GroupW = $clog2(CcGroups);
  localparam int unsigned FactorW = 16;

  typedef struct packed {
    qp_t               qp;
    logic [GroupW-1:0] group;
    qcn_state_t        state;       // completed from stage to stage
    logic              idle;        // no limiter: no feedback yet, or a fresh start
    logic              cut;
    logic              increasing;  // a stage has ended since the last cut
    logic              stray;       // a CNP, or feedback that came with a fresh start
    logic              draw_timer;  // at most one of the two
    logic              draw_bytes;
  } visit_t;

  function automatic qcn_params_t of_group(input qcn_params_t [N_GROUPS-1:0] all, input logic [GroupW-1:0] group);
    return N_GROUPS == 1 ? all[0] : all[group];
  endfunction

  // ---- 1: count ---------------------------------------------------------------------------------
  function automatic visit_t counted(input qcn_state_t state, input happened_t happened, input qcn_params_t p);
    visit_t v;
    logic other, notified;
    other = happened.init || happened.law != LawQcn || !state.c.qcn;
    notified = happened.feedback != '0;
    v.qp = happened.qp;
    v.group = happened.group;
    v.state = state;
    v.idle = other || (!state.c.limited && !notified);
    v.cut = !other && notified;
    v.increasing = state.c.stage_timer != '0 || state.c.stage_bytes != '0;
    v.stray = happened.cnp || (other && notified);
    v.draw_timer = !v.idle && !v.cut && state.timer_limit == '0 && p.timer_period != '0;
    v.draw_bytes = !v.idle && !v.cut && !v.draw_timer && state.byte_limit == '0 && p.byte_limit != '0;
    v.state.c.timer_elapsed = saturating_add(state.c.timer_elapsed, happened.paused ? '0 : VisitCycles);
    v.state.c.bytes_sent = saturating_add(state.c.bytes_sent, 32'(happened.bytes));
    if (other) v.state.lfsr = lfsr_start(p.seed, happened.qp);
    if (happened.init) v.state.c.cnp_handled = '0;
    return v;
  endfunction

  // G_d |F_b| with 16 fractional bits, at most one half.
  function automatic logic [FactorW-1:0] decrease(input feedback_t feedback, input logic [3:0] gd_shift);
    logic [21:0] factor;
    factor = {feedback, 16'b0} >> gd_shift;
    return factor > 22'h8000 ? 16'h8000 : factor[15:0];
  endfunction

  logic               s1_valid_q;
  visit_t             s1_q;
  logic [FactorW-1:0] s1_decrease_q;
  qcn_params_t        s1_params;
  assign s1_params = of_group(params, in_happened.group);

  always_ff @(posedge clk) begin
    s1_valid_q <= in_valid && !rst;
    if (in_valid) begin
      s1_q <= counted(in_state, in_happened, s1_params);
      s1_decrease_q <= decrease(in_happened.feedback, s1_params.gd_shift);
    end
  end

  // ---- 2: compare -------------------------------------------------------------------------------
  qcn_params_t s2_params;
  qcn_state_t s2_state;
  logic s2_timer, s2_bytes, s2_live;
  logic [7:0] s2_less, s2_more;
  logic [31:0] s2_lfsr;
  logic [15:0] s2_spread;

  always_comb begin
    s2_params = of_group(params, s1_q.group);
    s2_state = s1_q.state;
    s2_live = !s1_q.idle && !s1_q.cut;
    s2_lfsr = lfsr_drawn(s1_q.state.lfsr);
    s2_spread = (16'(s2_lfsr[7:0]) * 16'({s2_params.jitter, 1'b1})) >> 8;
    if (s1_q.draw_timer || s1_q.draw_bytes) s2_state.lfsr = s2_lfsr;

    // The timer goes first; an end of the byte counter's stage then waits for the next visit.
    s2_timer = s2_live && s2_params.timer_period != '0 && s1_q.state.timer_limit != '0
        && s1_q.state.c.timer_elapsed >= s1_q.state.timer_limit;
    s2_bytes = s2_live && s2_params.byte_limit != '0 && s1_q.state.byte_limit != '0
        && s1_q.state.c.bytes_sent >= s1_q.state.byte_limit && !s2_timer;
    if (!s2_live || s2_timer || s2_params.timer_period == '0) begin
      s2_state.c.timer_elapsed = '0;
      s2_state.timer_limit = '0;
    end
    if (!s2_live || s2_bytes || s2_params.byte_limit == '0) begin
      s2_state.c.bytes_sent = '0;
      s2_state.byte_limit = '0;
    end
    s2_state.c.stage_timer = s2_live ? s1_q.state.c.stage_timer + 8'(s2_timer && s1_q.state.c.stage_timer != '1) : '0;
    s2_state.c.stage_bytes = s2_live ? s1_q.state.c.stage_bytes + 8'(s2_bytes && s1_q.state.c.stage_bytes != '1) : '0;
    s2_state.c.cnp_handled = s1_q.state.c.cnp_handled + 32'(s1_q.cut);
    {s2_less, s2_more} = s2_state.c.stage_timer < s2_state.c.stage_bytes
        ? {s2_state.c.stage_timer, s2_state.c.stage_bytes} : {s2_state.c.stage_bytes, s2_state.c.stage_timer};
  end

  typedef enum logic [1:0] {
    PhaseFast   = 2'd0,
    PhaseActive = 2'd1,
    PhaseHyper  = 2'd2
  } phase_e;

  logic               s2_valid_q;
  visit_t             s2_q;
  logic               s2_recover_q, s2_half_q;
  phase_e             s2_phase_q;
  logic [31:0]        s2_rate_q, s2_length_q;  // to be multiplied by
  logic [FactorW-1:0] s2_factor_q;
  logic [8:0]         s2_jitter_q;

  always_ff @(posedge clk) begin
    s2_valid_q <= s1_valid_q && !rst;
    if (s1_valid_q) begin
      s2_q <= s1_q;
      s2_q.state <= s2_state;
      s2_recover_q <= s2_timer || s2_bytes;
      if (s2_more <= 8'(s2_params.stage_threshold)) s2_phase_q <= PhaseFast;
      else s2_phase_q <= s2_less <= 8'(s2_params.stage_threshold) ? PhaseActive : PhaseHyper;
      s2_rate_q <= s1_q.cut ? s1_q.state.c.rate_current : s2_params.rate_hai;
      s2_factor_q <= s1_q.cut ? s1_decrease_q : FactorW'(s2_less - 8'(s2_params.stage_threshold));
      s2_length_q <= s1_q.draw_timer ? s2_params.timer_period : s2_params.byte_limit;
      s2_half_q <= (s1_q.draw_timer ? s1_q.state.c.stage_timer : s1_q.state.c.stage_bytes)
          >= 8'(s2_params.stage_threshold);
      s2_jitter_q <= 9'd256 - 9'(s2_params.jitter) + 9'(s2_spread);
    end
  end

  // ---- 3: multiply ------------------------------------------------------------------------------
  logic        s3_valid_q;
  visit_t      s3_q;
  logic        s3_recover_q, s3_half_q, s3_reduce_q;
  phase_e      s3_phase_q;
  logic [31:0] s3_rate_high_q, s3_rate_low_q;      // products by the halves of the 32-bit factor
  logic [24:0] s3_length_high_q, s3_length_low_q;

  always_ff @(posedge clk) begin
    s3_valid_q <= s2_valid_q && !rst;
    if (s2_valid_q) begin
      s3_q <= s2_q;
      s3_recover_q <= s2_recover_q;
      s3_phase_q <= s2_phase_q;
      s3_half_q <= s2_half_q;
      // target-rate reduction: R_T > 10 R_C at the end of the first stage
      s3_reduce_q <= !s2_q.increasing && 36'(s2_q.state.c.rate_target)
          > {1'b0, s2_q.state.c.rate_current, 3'b0} + {3'b0, s2_q.state.c.rate_current, 1'b0};
      s3_rate_high_q <= 32'(s2_rate_q[31:16]) * 32'(s2_factor_q);
      s3_rate_low_q <= 32'(s2_rate_q[15:0]) * 32'(s2_factor_q);
      s3_length_high_q <= 25'(s2_length_q[31:16]) * 25'(s2_jitter_q);
      s3_length_low_q <= 25'(s2_length_q[15:0]) * 25'(s2_jitter_q);
      if (s2_q.idle) begin
        s3_q.state.c.rate_current <= '1;  // which the bound turns into the line rate
        s3_q.state.c.rate_target <= '1;
      end
    end
  end

  // ---- 4: target --------------------------------------------------------------------------------
  // The drawn length, rounded up and held at the highest value.
  function automatic logic [31:0] length(input logic [24:0] high, input logic [24:0] low, input logic half);
    logic [41:0] sum;
    sum = {1'b0, high, 16'b0} + 42'(low) + (half ? 42'd511 : 42'd255);
    if (half) sum >>= 1;
    return sum[41:40] != '0 ? '1 : sum[39:8];
  endfunction

  qcn_params_t s4_params;
  logic [48:0] s4_product;
  logic [31:0] s4_hyper, s4_increment, s4_length;

  always_comb begin
    s4_params = of_group(params, s3_q.group);
    s4_product = {1'b0, s3_rate_high_q, 16'b0} + 49'(s3_rate_low_q);
    s4_hyper = s4_product[48:32] != '0 ? '1 : s4_product[31:0];
    unique case (s3_phase_q)
      PhaseFast:   s4_increment = '0;
      PhaseActive: s4_increment = s4_params.rate_ai;
      default:     s4_increment = s4_hyper;
    endcase
    s4_length = length(s3_length_high_q, s3_length_low_q, s3_half_q);
  end

  logic        s4_valid_q;
  visit_t      s4_q;
  logic        s4_recover_q, s4_reduce_q;
  logic [32:0] s4_raised_q;     // R_T + increment
  rate_t       s4_reduction_q;  // floor(R_C * G_d |F_b|)

  always_ff @(posedge clk) begin
    s4_valid_q <= s3_valid_q && !rst;
    if (s3_valid_q) begin
      s4_q <= s3_q;
      s4_recover_q <= s3_recover_q;
      s4_reduce_q <= s3_reduce_q;
      s4_raised_q <= {1'b0, s3_q.state.c.rate_target} + {1'b0, s4_increment};
      s4_reduction_q <= s4_product[47:16];
      if (s3_q.draw_timer) s4_q.state.timer_limit <= s4_length;
      if (s3_q.draw_bytes) s4_q.state.byte_limit <= s4_length;
    end
  end

  // ---- 5: current -------------------------------------------------------------------------------
  // One adder for both, as in dcqcn_step.
  qcn_params_t s5_params;
  rate_t s5_target;
  logic [32:0] s5_sum;

  always_comb begin
    s5_params = of_group(params, s4_q.group);
    s5_target = s4_raised_q > {1'b0, s5_params.rate_line} ? s5_params.rate_line : s4_raised_q[31:0];
    if (s4_reduce_q) s5_target = s4_q.state.c.rate_target >> 3;
    s5_sum = {1'b0, s4_q.state.c.rate_current} + {1'b0, s4_q.cut ? ~s4_reduction_q : s5_target} + 33'd1;
  end

  logic   s5_valid_q;
  visit_t s5_q;
  rate_t  s5_low_q;  // R_min, or the line where that is lower

  always_ff @(posedge clk) begin
    s5_valid_q <= s4_valid_q && !rst;
    if (s4_valid_q) begin
      s5_q <= s4_q;
      s5_low_q <= s5_params.rate_min > s5_params.rate_line ? s5_params.rate_line : s5_params.rate_min;
      if (s4_q.cut) begin
        if (s4_q.increasing) s5_q.state.c.rate_target <= s4_q.state.c.rate_current;
        s5_q.state.c.rate_current <= s5_sum[31:0];
      end else if (s4_recover_q) begin
        s5_q.state.c.rate_target <= s5_target;
        s5_q.state.c.rate_current <= s5_sum[32:1];
      end
    end
  end

  // ---- 6: bound ---------------------------------------------------------------------------------
  rate_t s6_line;
  logic s6_unlimited;
  assign s6_line = of_group(params, s5_q.group).rate_line;
  assign s6_unlimited = s5_q.state.c.rate_current >= s6_line || s5_low_q >= s6_line;

  always_ff @(posedge clk) begin
    out_valid <= s5_valid_q && !rst;
    if (s5_valid_q) begin
      out_qp <= s5_q.qp;
      out_state <= s5_q.state;
      out_state.c.qcn <= 1'b1;
      out_state.c.limited <= !s6_unlimited;
      out_state.c.rate_current <= bounded(s5_q.state.c.rate_current, s5_low_q, s6_line);
      out_state.c.rate_target <= bounded(s5_q.state.c.rate_target, s5_low_q, s6_line);
      out_unlimited <= s6_unlimited;
      out_cnp_ignored <= s5_q.stray;
    end
  end

endmodule
