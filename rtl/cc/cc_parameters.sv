// SPDX-License-Identifier: SHL-2.1
// The parameters of all groups, in LUT RAM: written word by word, looked up by each stage of a visit.
// Promise: a stage gets the words of the group and the law that it selects; parameters that both
// laws have share one RAM, so the words of the other law are invalid (cc_step; regs/penstock.rdl).
module cc_parameters
  import penstock_pkg::*;
  import cc_pkg::*;
  import penstock_regs_pkg::*;
(
  input logic clk,

  input cc_write_t write,

  input  group_t law_group,
  output law_e   law,

  input  cc_ask_t     [CcStages-1:0] ask,
  output cc_params_t  [CcStages-1:0] params,
  output qcn_params_t [CcStages-1:0] qcn_params
);
  cc_control_t  control;
  qcn_control_t qcn_control;
  assign control     = write.word;
  assign qcn_control = write.word;

  logic to_control, to_qcn_control;
  assign to_control     = write.valid && !write.qcn && write.addr == 6'(CcControl);
  assign to_qcn_control = write.valid && write.qcn && write.addr == 6'(QcnControl);

  // ---- parameters of both laws --------------------------------------------------------------------------
  localparam int unsigned Both = 6;
  typedef logic [5:0] addr_t;
  localparam addr_t [Both-1:0] CcAt = {
    addr_t'(CcRateAi), addr_t'(CcRateHai), addr_t'(CcRateMin), addr_t'(CcRateLine), addr_t'(CcIncreaseInterval),
    addr_t'(CcByteThreshold)
  };
  localparam addr_t [Both-1:0] QcnAt = {
    addr_t'(QcnRateAi), addr_t'(QcnRateHai), addr_t'(QcnRateMin), addr_t'(QcnRateLine), addr_t'(QcnTimerPeriod),
    addr_t'(QcnByteLimit)
  };

  logic [CcStages-1:0][Both-1:0][31:0] word;
  logic [CcStages-1:0][3:0] threshold;

  for (genvar i = 0; i < int'(Both); i++) begin : gen_both
    (* ram_style = "distributed" *) logic [31:0] mem[2*CcGroups];
    always_ff @(posedge clk)
      if (write.valid && write.addr == (write.qcn ? QcnAt[i] : CcAt[i])) mem[{write.qcn, write.group}] <= write.word;
    for (genvar s = 0; s < int'(CcStages); s++) begin : gen_stage
      assign word[s][i] = mem[ask[s]];
    end
  end

(* ram_style = "distributed" *) logic [3:0] thresholds[2*CcGroups];
  always_ff @(posedge clk)
    if (to_control || to_qcn_control)
      thresholds[{write.qcn, write.group}] <= write.qcn ? qcn_control.stage_threshold : control.stage_threshold;

  // ---- what one of them has -------------------------------------------------------------------------------
  logic [1:0]  laws[CcGroups];
(* ram_style = "distributed" *) logic [25:0] rules[CcGroups];
(* ram_style = "distributed" *) logic [31:0] starts[CcGroups];
(* ram_style = "distributed" *) logic [31:0] cooldowns[CcGroups];
(* ram_style = "distributed" *) logic [31:0] alpha_intervals[CcGroups];
(* ram_style = "distributed" *) logic [10:0] qcn_rules[CcGroups];
(* ram_style = "distributed" *) logic [31:0] seeds[CcGroups];

  always_ff @(posedge clk) begin
    if (to_control) begin
      laws[write.group] <= control.law;
      rules[write.group] <= {
        control.g_factor, control.cut_on_tick, control.clamp_increasing, control.alpha_rule, control.alpha_bits,
        control.clamp_target, control.restart_timer, control.hold_timer, control.two_counters, control.g_shift,
        control.hyper_threshold
      };
    end
    if (to_qcn_control) qcn_rules[write.group] <= {qcn_control.gd_shift, qcn_control.jitter};
    if (write.valid && !write.qcn && write.addr == addr_t'(CcRateStart)) starts[write.group] <= write.word;
    if (write.valid && !write.qcn && write.addr == addr_t'(CcDecreaseInterval)) cooldowns[write.group] <= write.word;
    if (write.valid && !write.qcn && write.addr == addr_t'(CcAlphaInterval)) alpha_intervals[write.group] <= write.word;
    if (write.valid && write.qcn && write.addr == addr_t'(QcnSeed)) seeds[write.group] <= write.word;
  end

  assign law = law_e'(laws[law_group]);

  for (genvar s = 0; s < int'(CcStages); s++) begin : gen_answer
    logic clamp_target, restart_timer, hold_timer, two_counters, cut_on_tick, clamp_increasing;
    logic [1:0] alpha_rule, g_factor;
    logic [3:0] g_shift, gd_shift, alpha_bits;
    logic [7:0] hyper_threshold;
    logic [6:0] jitter;
    assign threshold[s] = thresholds[ask[s]];
    assign {
      g_factor, cut_on_tick, clamp_increasing, alpha_rule, alpha_bits,
      clamp_target, restart_timer, hold_timer, two_counters, g_shift, hyper_threshold
    } = rules[ask[s].group];
    assign {gd_shift, jitter} = qcn_rules[ask[s].group];

    assign params[s] = '{
      law: LawOff,  // asked for by itself
      clamp_target: clamp_target, restart_timer: restart_timer, hold_timer: hold_timer,
      two_counters: two_counters, cut_on_tick: cut_on_tick, clamp_increasing: clamp_increasing,
      alpha_rule: alpha_rule_e'(alpha_rule), alpha_bits: alpha_bits, g_shift: g_shift,
      g_factor: g_factor_e'(g_factor),
      stage_threshold: threshold[s], hyper_threshold: hyper_threshold,
      rate_ai: word[s][5], rate_hai: word[s][4], rate_min: word[s][3], rate_line: word[s][2],
      rate_start: starts[ask[s].group],
      decrease_interval: cooldowns[ask[s].group], alpha_interval: alpha_intervals[ask[s].group],
      increase_interval: word[s][1], byte_threshold: word[s][0]
    };
    assign qcn_params[s] = '{
      gd_shift: gd_shift, stage_threshold: threshold[s], jitter: jitter,
      rate_ai: word[s][5], rate_hai: word[s][4], rate_min: word[s][3], rate_line: word[s][2],
      timer_period: word[s][1], byte_limit: word[s][0], seed: seeds[ask[s].group]
    };
  end

  // Unassigned bits.
  wire unused = &{1'b0, control, qcn_control};
endmodule
