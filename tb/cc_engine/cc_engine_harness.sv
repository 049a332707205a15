// SPDX-License-Identifier: SHL-2.1
// Bench only: the congestion-control engine together with the parameters of all groups.
module cc_engine_harness
  import penstock_pkg::*;
  import penstock_regs_pkg::*;
  import cc_pkg::*;
#(
  parameter int unsigned N_QP = 4
) (
  input logic clk,
  input logic rst,
  input cc_params_t  [CcGroups-1:0] params,
  input qcn_params_t [CcGroups-1:0] qcn_params,

  input  logic       choice_valid,
  input  qp_t        choice_qp,
  input  cc_choice_t choice,
  input  logic       init_valid,
  input  qp_t        init_qp,
  input  logic       cnp_valid,
  input  qp_t        cnp_qp,
  input  logic       cnm_valid,
  input  qp_t        cnm_qp,
  input  feedback_t  cnm_feedback,
  output logic       cnp_ignored,
  output logic       cnp_clamped,
  output logic       visit_valid,
  output qp_t        visit_qp,
  input  cnp_level_t floor,
  output logic       visited_valid,
  output qp_t        visited_qp,
  output logic       visited_low,

  input  logic            sent_valid,
  input  qp_t             sent_qp,
  input  logic [15:0]     sent_bytes,
  input  logic [N_QP-1:0] backlog,
  input  logic            paused,
  output logic [N_QP-1:0] eligible,

  input  qp_t          st_qp,
  output cc_status_t   st,
  input  cc_sampling_t sampling,
  output logic [127:0] m_axis_sample_tdata,
  output logic         m_axis_sample_tvalid,
  input  logic         m_axis_sample_tready,
  output logic         sample_dropped
);
  group_t law_group;
  cc_select_t [CcStages-1:0] select;
  cc_params_t [CcStages-1:0] found;
  qcn_params_t [CcStages-1:0] qcn_found;

  for (genvar s = 0; s < int'(CcStages); s++) begin : gen_stage
    assign found[s]     = params[select[s].group];
    assign qcn_found[s] = qcn_params[select[s].group];
  end

  cc_engine #(.N_QP(N_QP)) u_engine (
    .law(law_e'(params[law_group].law)), .params(found), .qcn_params(qcn_found), .*
  );
endmodule
