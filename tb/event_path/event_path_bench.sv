// SPDX-License-Identifier: SHL-2.1
// The path from the inputs to the front end with flat ports: even inputs have one detector clock, odd ones another.
module event_path_bench
  import event_pkg::*;
#(
  parameter  int unsigned DATA_W = 64,
  parameter  int unsigned N_IN   = 4,
  parameter  int unsigned EVENT_BYTES = 2048,
  localparam int unsigned Bytes  = DATA_W / 8
) (
  input  logic                              clk,
  input  logic                              rst,
  input  logic                              even_clk,
  input  logic                              odd_clk,
  input  logic                              in_rst,
  input  event_cfg_t                        cfg,
  input  logic [N_IN*DATA_W-1:0]            s_axis_tdata,
  input  logic [N_IN*Bytes-1:0]             s_axis_tkeep,
  input  logic [N_IN*$bits(fragment_t)-1:0] s_axis_tuser,
  input  logic [N_IN-1:0]                   s_axis_tvalid,
  output logic [N_IN-1:0]                   s_axis_tready,
  input  logic [N_IN-1:0]                   s_axis_tlast,
  output logic [175:0]                      m_axis_desc_tdata,
  output logic                              m_axis_desc_tvalid,
  input  logic                              m_axis_desc_tready,
  output logic [DATA_W-1:0]                 m_axis_data_tdata,
  output logic [Bytes-1:0]                  m_axis_data_tkeep,
  output logic                              m_axis_data_tvalid,
  input  logic                              m_axis_data_tready,
  output logic                              m_axis_data_tlast,
  output logic                              stat_valid,
  output logic [3:0]                        stat_input,
  output merger_stat_t                      stat,
  output logic                              stat_message
);
  logic [N_IN-1:0] s_clk;
  for (genvar i = 0; i < int'(N_IN); i++) begin : gen_clock
    assign s_clk[i] = i % 2 == 0 ? even_clk : odd_clk;
  end

  logic [31:0] unused_fill;
  logic unused_done, unused_trigger_ready;
  ctrl_pkg::reg_rsp_t unused_hooks;
  stages_pkg::stage_counts_t [N_IN-1:0] unused_counts;
  event_path #(.DATA_W(DATA_W), .N_IN(N_IN), .EVENT_BYTES(EVENT_BYTES)) u_path (
    .stages('0),
    .mark(1'b0),
    .tai_ns('0),
    .clear(1'b0),
    .hooks_req('0),
    .hooks_rsp(unused_hooks),
    .hooks_fill('0),
    .fill_data('0),
    .stage_counts(unused_counts),
    .resync(1'b0),
    .s_rst ({N_IN{in_rst}}),
    .event_fill(unused_fill),
    .event_done(unused_done),
    .s_axis_trigger_tdata('0),
    .s_axis_trigger_tvalid(1'b0),
    .s_axis_trigger_tready(unused_trigger_ready),
    .*
  );
endmodule
