// SPDX-License-Identifier: SHL-2.1
// cc_step with words as ports, driven by a C++ program (steps.cpp): a visit every cycle.
// The words are those of Flow::words and of the example `steps` of crates/cc.
module cc_step_harness
  import penstock_pkg::*;
  import penstock_regs_pkg::*;
  import cc_pkg::*;
(
  input logic clk,
  input logic rst,

  input logic              params_valid,
  input logic [1:0]        params_group,
  input cc_words_t         params_words,
  input qcn_words_t        params_qcn_words,

  input logic             in_valid,
  input logic [31:0]      in_what,
  input logic [31:0]      in_bytes,
  input logic [8:0][31:0] in_state,

  output logic             out_valid,
  output logic [7:0]       out_qp,
  output logic [8:0][31:0] out_state,
  output logic [3:0]       out_flags
);
  // The words of a parameter are wider than the parameter.
  // verilator lint_off UNUSEDSIGNAL
  // verilator lint_off WIDTHTRUNC

  cc_params_t [CcGroups-1:0] params;
  qcn_params_t [CcGroups-1:0] qcn_params;

  always_ff @(posedge clk) begin
    if (params_valid) begin
      params[params_group] <= cc_params_of(params_words);
      qcn_params[params_group] <= qcn_params_of(params_qcn_words);
    end
  end

  // The parameters that each stage selects.
  cc_select_t [CcStages-1:0] select;
  cc_params_t [CcStages-1:0] found;
  qcn_params_t [CcStages-1:0] qcn_found;
  for (genvar s = 0; s < int'(CcStages); s++) begin : gen_stage
    assign found[s] = params[select[s].group];
    assign qcn_found[s] = qcn_params[select[s].group];
  end

  happened_t happened;
  state_t state, answer;
  logic unlimited, low, ignored, clamped, early_valid;
  qp_t early_qp;

  assign happened = '{
    qp: in_what[7:0], group: in_what[9:8], law: law_e'(in_what[11:10]), init: in_what[12], cnp: in_what[13],
    feedback: in_what[19:14], bytes: in_bytes[ByteCountW-1:0], paused: in_what[20], idle: in_what[21],
    floor: in_what[25:22]
  };
  assign state = '{
    c: '{
      rate_current: in_state[0], rate_target: in_state[1], timer_elapsed: in_state[2], bytes_sent: in_state[3],
      stage_timer: in_state[4][7:0], stage_bytes: in_state[4][15:8], limited: in_state[4][16],
      qcn: in_state[4][17], cut_due: in_state[4][18], rise_due: in_state[4][19], cnp_handled: in_state[5]
    },
    dcqcn: '{alpha: in_state[6], since_cut: in_state[7], alpha_elapsed: in_state[8]}
  };
  assign out_state[0] = answer.c.rate_current;
  assign out_state[1] = answer.c.rate_target;
  assign out_state[2] = answer.c.timer_elapsed;
  assign out_state[3] = answer.c.bytes_sent;
  assign out_state[4] = {
    12'b0, answer.c.rise_due, answer.c.cut_due, answer.c.qcn, answer.c.limited, answer.c.stage_bytes, answer.c.stage_timer
  };
  assign out_state[5] = answer.c.cnp_handled;
  assign out_state[6] = answer.dcqcn.alpha;
  assign out_state[7] = answer.dcqcn.since_cut;
  assign out_state[8] = answer.dcqcn.alpha_elapsed;
  assign out_flags = {low, clamped, ignored, unlimited};

  cc_step u_step (
    .clk, .rst, .select, .params(found), .qcn_params(qcn_found), .in_valid,
    .in_happened    (happened),
    .in_state       (state),
    .early_valid,
    .early_qp,
    .out_valid,
    .out_qp,
    .out_state      (answer),
    .out_unlimited  (unlimited),
    .out_low        (low),
    .out_cnp_ignored(ignored),
    .out_clamped    (clamped)
  );

endmodule
