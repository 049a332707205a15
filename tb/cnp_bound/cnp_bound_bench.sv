// SPDX-License-Identifier: SHL-2.1
// Bench only: the congestion-control engine and the bound on notifications, with one set of parameters.
module cnp_bound_bench
  import penstock_pkg::*;
  import penstock_regs_pkg::*;
  import cc_pkg::*;
#(
  parameter int unsigned N_QP        = 4,
  parameter int unsigned CLK_KHZ     = 10_000,
  parameter int unsigned LOOK_CYCLES = 64
) (
  input logic clk,
  input logic rst,
  input cc_params_t params,

  input  logic            init_valid,
  input  qp_t             init_qp,
  input  logic            cnp_valid,
  input  qp_t             cnp_qp,
  input  logic [N_QP-1:0] backlog,
  input  logic            paused,

  input  logic                  stat_valid,
  input  qp_t                   stat_qp,
  input  psn_t                  stat_psn,
  input  roce_tx_pkg::outcome_t stat,

  input  qp_t        st_qp,
  output cc_status_t st,
  output logic       overruled
);
  // What the engine shows besides is unused.
  // verilator lint_off PINCONNECTEMPTY
  logic visit_valid, visited_valid, visited_low;
  qp_t visit_qp, visited_qp;
  cnp_level_t floor;

  cnp_bound #(.N_QP(N_QP), .CLK_KHZ(CLK_KHZ), .LOOK_CYCLES(LOOK_CYCLES)) u_bound (.*);

  cc_engine #(.N_QP(N_QP)) u_engine (
    .law_group(), .law(law_e'(params.law)), .select(), .params({CcStages{params}}), .qcn_params('0),
    .choice_valid(1'b0), .choice_qp('0), .choice('0),
    .cnm_valid(1'b0), .cnm_qp('0), .cnm_feedback('0), .cnp_ignored(), .cnp_clamped(),
    .sent_valid(1'b0), .sent_qp('0), .sent_bytes('0), .eligible(),
    .sampling('0), .m_axis_sample_tdata(), .m_axis_sample_tvalid(), .m_axis_sample_tready(1'b0), .sample_dropped(),
    .*
  );
endmodule
