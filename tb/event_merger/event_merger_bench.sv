// SPDX-License-Identifier: SHL-2.1
// Merger and builder, with the settings and the first two inputs' neighbours on plain ports: messages come out.
module event_merger_bench
  import event_pkg::*;
#(
  parameter  int unsigned DATA_W = 64,
  parameter  int unsigned N_IN   = 4,
  localparam int unsigned Bytes  = DATA_W / 8
) (
  input  logic                          clk,
  input  logic                          rst,
  input  logic [15:0]                   source_id,
  input  merger_cfg_t                   cfg,
  input  logic                          resync,
  input  logic [N_IN*DATA_W-1:0]        s_axis_tdata,
  input  logic [N_IN*Bytes-1:0]         s_axis_tkeep,
  input  logic [N_IN*$bits(fragment_t)-1:0] s_axis_tuser,
  input  logic [N_IN-1:0]               s_axis_tvalid,
  output logic [N_IN-1:0]               s_axis_tready,
  input  logic [N_IN-1:0]               s_axis_tlast,
  input  logic [N_IN-1:0]               s_axis_tbroken,
  output logic [DATA_W-1:0]             m_axis_tdata,
  output logic [Bytes-1:0]              m_axis_tkeep,
  output logic                          m_axis_tvalid,
  input  logic                          m_axis_tready,
  output logic                          m_axis_tlast,
  output logic                          stat_valid,
  output logic [3:0]                    stat_input,
  output merger_stat_t                  stat
);
  logic [DATA_W-1:0] payload_tdata;
  logic [Bytes-1:0] payload_tkeep;
  fragment_t payload_tuser;
  logic payload_tvalid, payload_tready, payload_tlast;
  part_t part_tdata;
  logic part_tvalid, part_tready, part_tlast;
  logic [31:0] unused_length;
  logic [63:0] unused_event_number;
  logic unused_message, unused_cut, unused_empty, unused_trigger_ready;

  event_merger #(.DATA_W(DATA_W), .N_IN(N_IN)) u_merger (
    .untriggered          (1'b0),
    .s_axis_trigger_tdata ('0),
    .s_axis_trigger_tvalid(1'b0),
    .s_axis_trigger_tready(unused_trigger_ready),
    .m_axis_tdata      (payload_tdata),
    .m_axis_tkeep      (payload_tkeep),
    .m_axis_tuser      (payload_tuser),
    .m_axis_tvalid     (payload_tvalid),
    .m_axis_tready     (payload_tready),
    .m_axis_tlast      (payload_tlast),
    .m_axis_part_tdata (part_tdata),
    .m_axis_part_tvalid(part_tvalid),
    .m_axis_part_tready(part_tready),
    .m_axis_part_tlast (part_tlast),
    .*
  );

  fragment_builder #(.DATA_W(DATA_W), .TABLE(1'b1)) u_builder (
    .limit             (32'h8000_0000),
    .s_axis_tdata      (payload_tdata),
    .s_axis_tkeep      (payload_tkeep),
    .s_axis_tuser      (payload_tuser),
    .s_axis_tvalid     (payload_tvalid),
    .s_axis_tready     (payload_tready),
    .s_axis_tlast      (payload_tlast),
    .s_axis_part_tdata (part_tdata),
    .s_axis_part_tvalid(part_tvalid),
    .s_axis_part_tready(part_tready),
    .s_axis_part_tlast (part_tlast),
    .length            (unused_length),
    .event_number      (unused_event_number),
    .stat_message      (unused_message),
    .stat_cut          (unused_cut),
    .stat_empty        (unused_empty),
    .*
  );
endmodule
