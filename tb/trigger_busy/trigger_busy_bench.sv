// SPDX-License-Identifier: Apache-2.0
// Triggers, two digitisers that send a fragment of BEATS beats for each accepted one, and the way to the user ports.
module trigger_busy_bench
  import penstock_pkg::*;
  import event_pkg::*;
  import timing_pkg::*;
#(
  parameter int unsigned BEATS = 16
) (
  input  logic          clk,
  input  logic          rst,
  input  trigger_cfg_t  trigger_cfg,
  input  logic [63:0]   tai_ns,
  input  logic          trigger_valid,
  input  logic [63:0]   trigger_number,
  input  logic [31:0]   ring_fill,
  output logic          busy,
  output trigger_stat_t trigger_stat,
  output logic [31:0]   event_fill,
  output logic          held,           // the store has no room for what the builder has made
  output logic [175:0]  m_axis_desc_tdata,
  output logic          m_axis_desc_tvalid,
  input  logic          m_axis_desc_tready,
  output logic [63:0]   m_axis_data_tdata,
  output logic [7:0]    m_axis_data_tkeep,
  output logic          m_axis_data_tvalid,
  input  logic          m_axis_data_tready,
  output logic          m_axis_data_tlast,
  output logic          stat_valid,
  output logic [3:0]    stat_input,
  output merger_stat_t  stat
);
  localparam int unsigned N = 2;

  fragment_t accepted, about_q;
  logic accepted_valid, accepted_ready, event_done;
  logic unused_gate, unused_busy_cycle, unused_veto_cycle, unused_message, unused_trigger_ready;
  logic [15:0] unused_pending;

  trigger_input u_trigger (
    .clk, .rst,
    .cfg(trigger_cfg), .restart(1'b0), .tai_ns,
    .trigger_valid, .trigger_number, .trigger_type(16'd3), .veto(1'b0), .busy,
    .ring_fill, .event_fill, .event_done,
    .gate(unused_gate),
    .m_axis_tdata(accepted), .m_axis_tvalid(accepted_valid), .m_axis_tready(accepted_ready),
    .stat(trigger_stat),
    .stat_busy_cycle(unused_busy_cycle), .stat_veto_cycle(unused_veto_cycle), .pending(unused_pending)
  );

  // ---- digitisers: sample i of input n of event e is e, n, i --------------------------------------------
  logic [N-1:0][15:0] left_q;
  logic [N-1:0][63:0] tdata;
  logic [N-1:0][7:0] tkeep;
  fragment_t [N-1:0] tuser;
  logic [N-1:0] tvalid, tready, tlast;
  assign accepted_ready = left_q == '0;
  for (genvar i = 0; i < int'(N); i++) begin : gen_digitiser
    assign tdata[i]  = {about_q.event_number[31:0], 16'(i), left_q[i]};
    assign tkeep[i]  = '1;
    assign tuser[i]  = about_q;
    assign tvalid[i] = left_q[i] != '0;
    assign tlast[i]  = left_q[i] == 16'd1;
    always_ff @(posedge clk) begin
      if (tvalid[i] && tready[i]) left_q[i] <= left_q[i] - 16'd1;
      if (accepted_valid && accepted_ready) left_q[i] <= 16'(BEATS);
      if (rst) left_q[i] <= '0;
    end
  end
  always_ff @(posedge clk) if (accepted_valid && accepted_ready) about_q <= accepted;

  event_cfg_t cfg;
  always_comb begin
    cfg                = '0;
    cfg.merger.enable  = 16'h3;
    cfg.merger.timeout = 32'd100_000;
    cfg.merger.limit   = 32'd65536;
  end

  ctrl_pkg::reg_rsp_t unused_hooks;
  stages_pkg::stage_counts_t [N-1:0] unused_counts;
  event_path #(.DATA_W(64), .N_IN(N), .EVENT_BYTES(4096)) u_path (
    .clk, .rst, .cfg, .resync(1'b0),
    .s_clk({N{clk}}), .s_rst({N{rst}}),
    .s_axis_tdata(tdata), .s_axis_tkeep(tkeep), .s_axis_tuser(tuser), .s_axis_tvalid(tvalid), .s_axis_tready(tready),
    .s_axis_tlast(tlast),
    .stat_message(unused_message),
    .stages('0), .mark(1'b0), .tai_ns('0), .clear(1'b0), .hooks_req('0), .hooks_rsp(unused_hooks),
    .hooks_fill('0), .fill_data('0),
    .stage_counts(unused_counts),
    .s_axis_trigger_tdata('0), .s_axis_trigger_tvalid(1'b0), .s_axis_trigger_tready(unused_trigger_ready),
    .*
  );
  assign held = u_path.message_tvalid && !u_path.message_tready;
endmodule
