// SPDX-License-Identifier: SHL-2.1
// Bench only: the register block with the two blocks that answer their own addresses, as penstock_core joins them.
`include "axi_ports.svh"

module registers_harness
  import penstock_pkg::*;
  import ctrl_pkg::*;
  import penstock_regs_pkg::*;
#(
  parameter int unsigned N_QP = 4
) (
  input logic clk,
  input logic rst,

  `AXIL_SLAVE_PORTS(s_axil, 18),

  input  logic                 tx_paused,
  input  logic [CntNumber-1:0] pulse,
  output logic [47:0]          local_mac,
  output logic [31:0]          local_ip,
  output logic [23:0]          qpn_base,
  input  logic [$clog2(CcGroups)-1:0] cc_group,  // whose parameters are shown
  input  timing_pkg::timing_status_t timing_status,
  output timing_pkg::timing_cfg_t    timing,
  output cc_params_t           cc,
  output qcn_params_t          qcn,
  output logic                 cmd_valid,
  output qp_t                  cmd_qp,
  output qp_state_e            cmd_state,
  output logic      [N_QP-1:0] ready,
  output qp_t                  st_qp,
  output logic                 cc_choice_valid,
  output cc_choice_t           cc_choice,
  output qp_cfg_t              cfg,
  output logic [63:0]          replay_word,
  output logic                 replay_valid,
  output logic                 s_axis_desc_tready,
  output logic [175:0]         m_axis_desc_tdata,
  output logic                 m_axis_desc_tvalid,
  output logic                 stat_no_server,
  output logic                 stat_slot_too_small
);
  `AXIL_SLAVE(s_axil)

  reg_req_t counters_req, qp_req, rings_req, servers_req, replay_req, latency_req, meter_req;
  reg_req_t event_inputs_req, hooks_req, streams_req;
  reg_rsp_t counters_rsp, qp_rsp, rings_rsp, servers_rsp, replay_rsp, latency_rsp, meter_rsp;
  reg_rsp_t event_inputs_rsp, hooks_rsp, streams_rsp;
  destination_pkg::destination_status_t destination_status;
  settings_t settings;

  assign local_mac = settings.local_mac;
  assign local_ip  = settings.local_ip;
  assign qpn_base  = settings.qpn_base;

  law_e law;
  cc_params_t [cc_pkg::CcStages-1:0] params;
  qcn_params_t [cc_pkg::CcStages-1:0] qcn_params;
  cc_pkg::cc_select_t [cc_pkg::CcStages-1:0] select;
  for (genvar s = 0; s < int'(cc_pkg::CcStages); s++) begin : gen_select
    assign select[s] = '{qcn: s == 1, group: cc_group};
  end
  cc_parameters u_cc_parameters (
    .clk, .write(settings.cc_write), .law_group(cc_group), .law, .params, .qcn_params,
    .select
  );
  always_comb begin
    cc     = params[0];
    cc.law = law;
  end
  assign qcn = qcn_params[1];
  assign timing = settings.timing;

  absent_block u_streams (.clk, .rst, .req(streams_req), .rsp(streams_rsp));

  registers #(.N_QP(N_QP)) u_registers (.mac('0), .cm_status('0), .source_status('0), .*);

  latency_histogram #(.N_QP(N_QP)) u_latency (
    .clk, .rst, .clear(1'b0), .stat_valid(1'b0), .stat_init(1'b0), .stat_qp('0), .stat_psn('0), .stat('0),
    .stat_status('0), .req(latency_req), .rsp(latency_rsp)
  );

  stages_pkg::stage_counts_t [3:0] stage_counts;
  input_counters u_input_counters (
    .clk, .rst, .clear(1'b0), .stat_valid(1'b0), .stat_input('0), .stat('0), .stage_counts,
    .req(event_inputs_req), .rsp(event_inputs_rsp)
  );

  logic [3:0][63:0] unused_tdata;
  logic [3:0][7:0] unused_tkeep;
  event_pkg::fragment_t [3:0] unused_tuser;
  logic [3:0] unused_tready, unused_tvalid, unused_tlast, unused_tbroken;
  event_stages #(.HOOK(stages_pkg::HookSuppression)) u_stages (
    .clk, .rst, .cfg(settings.stages), .enable('0), .mark(1'b0), .tai_ns('0), .clear(1'b0),
    .s_axis_tdata('0), .s_axis_tkeep('0), .s_axis_tuser('0), .s_axis_tvalid('0), .s_axis_tready(unused_tready),
    .s_axis_tlast('0), .s_axis_tbroken('0), .stat_broken('0), .m_axis_tdata(unused_tdata), .m_axis_tkeep(unused_tkeep), .m_axis_tuser(unused_tuser),
    .m_axis_tvalid(unused_tvalid), .m_axis_tready('0), .m_axis_tlast(unused_tlast),
    .m_axis_tbroken(unused_tbroken),
    .req(hooks_req), .rsp(hooks_rsp), .fill('0), .fill_data('0), .counts(stage_counts)
  );

  transfer_meter #(.N_QP(N_QP)) u_meter (
    .clk, .rst, .clear(1'b0), .arm_valid(1'b0), .arm_qp('0), .stat_valid(1'b0), .stat_qp('0), .stat_psn('0),
    .stat_bytes('0), .stat('0), .stat_status('0), .req(meter_req), .rsp(meter_rsp)
  );

  replay_memory u_replay_memory (
    .clk, .rst, .blocks('0), .load(1'b0), .take(1'b0), .last(1'b0), .word(replay_word), .valid(replay_valid),
    .req(replay_req), .rsp(replay_rsp), .fill('0), .fill_data('0)
  );

  logic [63:0] m_event_number;
  destination #(.N_QP(N_QP)) u_destination (
    .clk, .rst,
    .s_axis_desc_tdata('0), .s_axis_desc_tvalid(1'b0), .s_axis_desc_tready,
    .m_axis_desc_tdata, .m_axis_desc_tvalid, .m_axis_desc_tready(1'b1),
    .stride('0), .m_event_number,
    .cfg(settings.destination), .status(destination_status), .ready('1),
    .rings_req, .rings_rsp, .servers_req, .servers_rsp,
    .stat_no_server, .stat_slot_too_small
  );

  counters u_counters (.clk, .rst, .clear(settings.clear), .pulse, .req(counters_req), .rsp(counters_rsp));

  roce_tx_pkg::qp_count_e st_count;
  roce_read_pkg::read_cfg_t window;
  qp_table #(
    .N_QP(N_QP),
    .N_PORTS(1),
    .WITH_READ(1'b1),
    .WITH_RECEIVE(1'b1)
  ) u_qp_table (
    .req         (qp_req),
    .rsp         (qp_rsp),
    .cfg_qp      ('0),
    .cfg_rd      (1'b1),
    .qp_err_valid(1'b0),
    .qp_err_qp   ('0),
    .st_state    (QpReset),
    .st_drained  (1'b0),
    .st_una      ('0),
    .st_nxt      ('0),
    .st_wr       ('0),
    .st_count,
    .st_value    ('0),
    .st_cc       ('0),
    .cc_choice_valid,
    .cc_choice,
    .*
  );

  wire unused = &{1'b0, settings, m_event_number, st_count, window, params, qcn_params};

endmodule
