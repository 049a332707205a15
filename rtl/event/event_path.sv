// SPDX-License-Identifier: SHL-2.1
// From a detector's streams to the user's ports of a front end: inputs with clocks of their own, slices and hook if the
// build has them, merger, builder, and the descriptor of each message. Connects its modules; adds the store that holds
// a message until its length is known.
// The first packet of an RDMA WRITE contains the length (IBTA 9.4.3), so a message leaves after its last beat has
// arrived: this costs one message time, and EVENT_BYTES of block RAM. Parts that would exceed EVENT_BYTES are cut.
module event_path
  import event_pkg::*;
#(
  parameter  int unsigned DATA_W      = 64,
  parameter  int unsigned N_IN        = 4,
  parameter  int unsigned EVENT_BYTES = 16384,  // payload of an event
  parameter  bit          TRIGGERED   = 1'b0,   // one event for each of s_axis_trigger (event_merger), but of slices
  parameter  int unsigned HOOK        = 0,      // event_stages
  parameter  int unsigned STREAMING   = 0,
  localparam int unsigned Bytes       = DATA_W / 8
) (
  input  logic                         clk,
  input  logic                         rst,
  input  event_cfg_t                   cfg,
  input  logic                         resync,  // pulse: event numbers may begin again
  input  stages_pkg::stages_cfg_t      stages,
  input  logic                         mark,    // with STREAMING
  input  logic [63:0]                  tai_ns,
  input  logic                         clear,   // of stage_counts

  // one stream an input, each with its clock
  input  logic [N_IN-1:0]              s_clk,
  input  logic [N_IN-1:0]              s_rst,
  input  logic [N_IN-1:0][DATA_W-1:0]  s_axis_tdata,
  input  logic [N_IN-1:0][Bytes-1:0]   s_axis_tkeep,
  input  fragment_t [N_IN-1:0]         s_axis_tuser,
  input  logic [N_IN-1:0]              s_axis_tvalid,
  output logic [N_IN-1:0]              s_axis_tready,
  input  logic [N_IN-1:0]              s_axis_tlast,

  // accepted triggers, if TRIGGERED
  input  fragment_t                    s_axis_trigger_tdata,
  input  logic                         s_axis_trigger_tvalid,
  output logic                         s_axis_trigger_tready,

  // the front end's user ports
  output logic [175:0]                 m_axis_desc_tdata,
  output logic                         m_axis_desc_tvalid,
  input  logic                         m_axis_desc_tready,
  output logic [DATA_W-1:0]            m_axis_data_tdata,
  output logic [Bytes-1:0]             m_axis_data_tkeep,
  output logic                         m_axis_data_tvalid,
  input  logic                         m_axis_data_tready,
  output logic                         m_axis_data_tlast,

  output logic                         stat_valid,  // as of event_merger
  output logic [3:0]                   stat_input,
  output merger_stat_t                 stat,
  output logic                         stat_message,

  // for busy (trigger_input): how full the store is, in beats, where a message that waits counts as a sixteenth of it
  // at least; and an event of which all beats are in it
  output logic [31:0]                  event_fill,
  output logic                         event_done,

  input  ctrl_pkg::reg_req_t           hooks_req,
  output ctrl_pkg::reg_rsp_t           hooks_rsp,
  input  ctrl_pkg::table_fill_t        hooks_fill,
  input  logic [DATA_W-1:0]            fill_data,
  output stages_pkg::stage_counts_t [N_IN-1:0] stage_counts
);
  localparam int unsigned Depth = event_store_beats(DATA_W, N_IN, EVENT_BYTES);

  // ---- inputs -------------------------------------------------------------------------------------------
  logic [N_IN-1:0][DATA_W-1:0] in_tdata;
  logic [N_IN-1:0][Bytes-1:0] in_tkeep;
  fragment_t [N_IN-1:0] in_tuser;
  logic [N_IN-1:0] in_tvalid, in_tready, in_tlast, in_tbroken, broken;

  for (genvar i = 0; i < int'(N_IN); i++) begin : gen_input
    event_input #(.DATA_W(DATA_W)) u_input (
      .s_clk        (s_clk[i]),
      .s_rst        (s_rst[i]),
      .s_axis_tdata (s_axis_tdata[i]),
      .s_axis_tkeep (s_axis_tkeep[i]),
      .s_axis_tuser (s_axis_tuser[i]),
      .s_axis_tvalid(s_axis_tvalid[i]),
      .s_axis_tready(s_axis_tready[i]),
      .s_axis_tlast (s_axis_tlast[i]),
      .m_clk        (clk),
      .m_rst        (rst),
      .streaming    (STREAMING == 1 && stages.streaming),
      .m_axis_tdata (in_tdata[i]),
      .m_axis_tkeep (in_tkeep[i]),
      .m_axis_tuser (in_tuser[i]),
      .m_axis_tvalid(in_tvalid[i]),
      .m_axis_tready(in_tready[i]),
      .m_axis_tlast (in_tlast[i]),
      .m_axis_tbroken(in_tbroken[i]),
      .stat_broken   (broken[i])
    );
  end

  // ---- slices and hook ----------------------------------------------------------------------------------
  logic [N_IN-1:0][DATA_W-1:0] stage_tdata;
  logic [N_IN-1:0][Bytes-1:0] stage_tkeep;
  fragment_t [N_IN-1:0] stage_tuser;
  logic [N_IN-1:0] stage_tvalid, stage_tready, stage_tlast, stage_tbroken;

  event_stages #(
    .DATA_W(DATA_W),
    .N_IN(N_IN),
    .EVENT_BYTES(EVENT_BYTES),
    .HOOK(HOOK),
    .STREAMING(STREAMING)
  ) u_stages (
    .clk,
    .rst,
    .cfg          (stages),
    .enable       (cfg.merger.enable[N_IN-1:0]),
    .mark,
    .tai_ns,
    .clear,
    .s_axis_tdata (in_tdata),
    .s_axis_tkeep (in_tkeep),
    .s_axis_tuser (in_tuser),
    .s_axis_tvalid(in_tvalid),
    .s_axis_tready(in_tready),
    .s_axis_tlast (in_tlast),
    .s_axis_tbroken(in_tbroken),
    .stat_broken   (broken),
    .m_axis_tdata (stage_tdata),
    .m_axis_tkeep (stage_tkeep),
    .m_axis_tuser (stage_tuser),
    .m_axis_tvalid(stage_tvalid),
    .m_axis_tready(stage_tready),
    .m_axis_tlast (stage_tlast),
    .m_axis_tbroken(stage_tbroken),
    .req          (hooks_req),
    .rsp          (hooks_rsp),
    .fill         (hooks_fill),
    .fill_data,
    .counts       (stage_counts)
  );

  // ---- one payload an event, one message a payload ------------------------------------------------------
  logic [DATA_W-1:0] payload_tdata, message_tdata;
  logic [Bytes-1:0] payload_tkeep, message_tkeep;
  fragment_t payload_tuser;
  logic payload_tvalid, payload_tready, payload_tlast;
  part_t part_tdata;
  logic part_tvalid, part_tready, part_tlast;
  logic message_tvalid, message_tready, message_tlast;
  logic [31:0] length;
  logic [63:0] event_number;
  logic unused_cut, unused_empty;  // the merger's limits are below the builder's

  event_merger #(
    .DATA_W(DATA_W),
    .N_IN(N_IN),
    .EVENT_BYTES(EVENT_BYTES),
    .TRIGGERED(TRIGGERED)
  ) u_merger (
    .clk,
    .rst,
    .cfg               (cfg.merger),
    .resync,
    .untriggered       (STREAMING == 1 && stages.streaming),
    .s_axis_tdata      (stage_tdata),
    .s_axis_tkeep      (stage_tkeep),
    .s_axis_tuser      (stage_tuser),
    .s_axis_tvalid     (stage_tvalid),
    .s_axis_tready     (stage_tready),
    .s_axis_tlast      (stage_tlast),
    .s_axis_tbroken    (stage_tbroken),
    .s_axis_trigger_tdata,
    .s_axis_trigger_tvalid,
    .s_axis_trigger_tready,
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
    .stat_valid,
    .stat_input,
    .stat
  );

  fragment_builder #(
    .DATA_W(DATA_W),
    .TABLE(1'b1)
  ) u_builder (
    .clk,
    .rst,
    .source_id         (cfg.source_id),
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
    .m_axis_tdata      (message_tdata),
    .m_axis_tkeep      (message_tkeep),
    .m_axis_tvalid     (message_tvalid),
    .m_axis_tready     (message_tready),
    .m_axis_tlast      (message_tlast),
    .length,
    .event_number,
    .stat_message,
    .stat_cut          (unused_cut),
    .stat_empty        (unused_empty)
  );

  // ---- the store, and a descriptor when a message is whole --------------------------------------------
  penstock_pkg::desc_t desc;
  logic beat_room, desc_room;
  logic [$clog2(Depth):0] beats;
  logic [4:0] descs;
  logic [31:0] by_descs;

  assign message_tready = beat_room && desc_room;
  assign by_descs       = 32'(descs) * 32'(Depth / 16);
  assign event_fill     = 32'(beats) > by_descs ? 32'(beats) : by_descs;
  assign event_done     = message_tvalid && message_tready && message_tlast;
  assign desc = '{
    tag:      {cfg.tag_prefix, event_number[23:0]},
    imm:      event_number[31:0],
    raddr:    event_number,  // for the destination table; a ring's address takes its place
    length:   length,
    reserved: '0,
    series:   1'b0,
    by_event: cfg.by_event,
    in_ring:  1'b1,
    with_imm: 1'b1,
    verb:     cfg.verb,
    qp:       cfg.qp
  };

  block_fifo #(.W(DATA_W + Bytes + 1), .DEPTH(Depth)) u_beats (
    .clk, .rst,
    .s_data ({message_tlast, message_tkeep, message_tdata}),
    .s_valid(message_tvalid && desc_room),
    .s_ready(beat_room),
    .m_data ({m_axis_data_tlast, m_axis_data_tkeep, m_axis_data_tdata}),
    .m_valid(m_axis_data_tvalid),
    .m_ready(m_axis_data_tready),
    .level  (beats)
  );

  sync_fifo #(.W(176), .DEPTH(16)) u_descs (
    .clk, .rst,
    .s_data (desc),
    .s_valid(message_tvalid && message_tlast && beat_room),
    .s_ready(desc_room),
    .m_data (m_axis_desc_tdata),
    .m_valid(m_axis_desc_tvalid),
    .m_ready(m_axis_desc_tready),
    .level  (descs)
  );
endmodule
