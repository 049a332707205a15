// SPDX-License-Identifier: SHL-2.1
// Collects all messages for the transport: those of the user, of the message source and of the detector's events, with
// their destinations.
// Connects its modules and contains no logic of its own; descriptors and payloads keep one order.
// A message may take its address from its queue pair's ring, and its queue pair from its event: event n goes to server
// n modulo the live servers.
module message_input
  import ctrl_pkg::*;
#(
  parameter int unsigned DATA_W = 64,
  parameter int unsigned N_QP   = 4,
  parameter bit          EVENTS = 1'b0,  // the build makes messages of events
  parameter bit          SOURCE = 1'b1,  // the build has the message source
  parameter bit          PEERS  = 1'b0,  // peers fill the source's replay memory
  parameter int unsigned RINGS  = N_QP,  // this number, from 0 on, have rings at their receivers
  parameter bit          PULL   = 1'b0   // messages of rings are those of fragment_keeper
) (
  input logic clk,
  input logic rst,

  input  settings_t                            settings,
  output source_pkg::source_status_t           source_status,
  output destination_pkg::destination_status_t destination_status,
  input  logic [N_QP-1:0]                      ready,  // queue pairs that take messages
  output logic                                 stat_no_server,
  output logic                                 stat_slot_too_small,

  // completions as they are taken: the end of a warm-up
  input  logic                                 cpl_valid,
  input  penstock_pkg::cpl_t                   cpl,

  // the user's
  input  logic [175:0]        s_axis_desc_tdata,
  input  logic                s_axis_desc_tvalid,
  output logic                s_axis_desc_tready,
  input  logic [DATA_W-1:0]   s_axis_data_tdata,
  input  logic [DATA_W/8-1:0] s_axis_data_tkeep,
  input  logic                s_axis_data_tvalid,
  output logic                s_axis_data_tready,
  input  logic                s_axis_data_tlast,

  // those of events; quiet without EVENTS
  input  logic [175:0]        s_axis_event_desc_tdata,
  input  logic                s_axis_event_desc_tvalid,
  output logic                s_axis_event_desc_tready,
  input  logic [DATA_W-1:0]   s_axis_event_data_tdata,
  input  logic [DATA_W/8-1:0] s_axis_event_data_tkeep,
  input  logic                s_axis_event_data_tvalid,
  output logic                s_axis_event_data_tready,
  input  logic                s_axis_event_data_tlast,

  // to the transport: every queue pair and address known
  output logic [175:0]        m_axis_desc_tdata,
  output logic [63:0]         m_event_number,  // as of destination
  output logic                m_axis_desc_tvalid,
  input  logic                m_axis_desc_tready,
  output logic [DATA_W-1:0]   m_axis_data_tdata,
  output logic [DATA_W/8-1:0] m_axis_data_tkeep,
  output logic                m_axis_data_tvalid,
  input  logic                m_axis_data_tready,
  output logic                m_axis_data_tlast,

  input  reg_req_t replay_req,
  output reg_rsp_t replay_rsp,
  input  table_fill_t       replay_fill,
  input  logic [DATA_W-1:0] fill_data,
  input  reg_req_t rings_req,
  output reg_rsp_t rings_rsp,
  input  reg_req_t servers_req,
  output reg_rsp_t servers_rsp
);

  localparam int unsigned Sides = EVENTS ? 3 : 2;

  // ---- the source -------------------------------------------------------------------------------------
  logic [175:0] source_desc_tdata, message_desc_tdata;
  logic source_desc_tvalid, source_desc_tready, message_desc_tvalid, message_desc_tready;
  logic [DATA_W-1:0] source_tdata;
  logic [DATA_W/8-1:0] source_tkeep;
  logic source_tvalid, source_tready, source_tlast;

  if (SOURCE) begin : gen_source
    message_source #(
      .DATA_W(DATA_W),
      .PEERS(PEERS)
    ) u_source (
      .clk,
      .rst,
      .cfg   (settings.source),
      .start (settings.source_start),
      .stop  (settings.source_stop),
      .clear (settings.clear),
      .status(source_status),
      .cpl_valid,
      .cpl,
      .replay_req,
      .replay_rsp,
      .replay_fill,
      .fill_data,
      .m_axis_desc_tdata (source_desc_tdata),
      .m_axis_desc_tvalid(source_desc_tvalid),
      .m_axis_desc_tready(source_desc_tready),
      .m_axis_data_tdata (source_tdata),
      .m_axis_data_tkeep (source_tkeep),
      .m_axis_data_tvalid(source_tvalid),
      .m_axis_data_tready(source_tready),
      .m_axis_data_tlast (source_tlast)
    );
  end else begin : gen_no_source
    absent_block u_replay (.clk, .rst, .req(replay_req), .rsp(replay_rsp));
    assign source_status = '0;
    assign {source_desc_tdata, source_desc_tvalid, source_tdata, source_tkeep, source_tvalid, source_tlast} = '0;
    wire unused_source = &{1'b0, cpl_valid, cpl, source_desc_tready, source_tready, replay_fill, fill_data};
  end

  // ---- in turn: the user's, the source's, those of events ----------------------------------------------
  logic [2:0] desc_tready, data_tready;
  assign {s_axis_event_desc_tready, source_desc_tready, s_axis_desc_tready} = desc_tready;
  assign {s_axis_event_data_tready, source_tready, s_axis_data_tready} = data_tready;

  message_mux #(
    .DATA_W(DATA_W),
    .N(Sides)
  ) u_message_mux (
    .clk,
    .rst,
    .s_axis_desc_tdata ((Sides * 176)'({s_axis_event_desc_tdata, source_desc_tdata, s_axis_desc_tdata})),
    .s_axis_desc_tvalid(Sides'({s_axis_event_desc_tvalid, source_desc_tvalid, s_axis_desc_tvalid})),
    .s_axis_desc_tready(desc_tready[Sides-1:0]),
    .s_axis_data_tdata ((Sides * DATA_W)'({s_axis_event_data_tdata, source_tdata, s_axis_data_tdata})),
    .s_axis_data_tkeep ((Sides * DATA_W / 8)'({s_axis_event_data_tkeep, source_tkeep, s_axis_data_tkeep})),
    .s_axis_data_tvalid(Sides'({s_axis_event_data_tvalid, source_tvalid, s_axis_data_tvalid})),
    .s_axis_data_tready(data_tready[Sides-1:0]),
    .s_axis_data_tlast (Sides'({s_axis_event_data_tlast, source_tlast, s_axis_data_tlast})),
    .m_axis_desc_tdata (message_desc_tdata),
    .m_axis_desc_tvalid(message_desc_tvalid),
    .m_axis_desc_tready(message_desc_tready),
    .m_axis_data_tdata,
    .m_axis_data_tkeep,
    .m_axis_data_tvalid,
    .m_axis_data_tready,
    .m_axis_data_tlast
  );
  if (!EVENTS) begin : gen_no_events
    assign desc_tready[2] = 1'b0;
    assign data_tready[2] = 1'b0;
    wire unused_events = &{
      1'b0, s_axis_event_desc_tdata, s_axis_event_desc_tvalid, s_axis_event_data_tdata, s_axis_event_data_tkeep,
      s_axis_event_data_tvalid, s_axis_event_data_tlast
    };
  end

  // ---- where they go ----------------------------------------------------------------------------------
  destination #(
    .N_QP (N_QP),
    .RINGS(RINGS),
    .PULL (PULL)
  ) u_destination (
    .clk,
    .rst,
    .s_axis_desc_tdata (message_desc_tdata),
    .s_axis_desc_tvalid(message_desc_tvalid),
    .s_axis_desc_tready(message_desc_tready),
    .m_axis_desc_tdata,
    .m_event_number,
    .m_axis_desc_tvalid,
    .m_axis_desc_tready,
    .stride(settings.pull_stride),
    .cfg   (settings.destination),
    .status(destination_status),
    .ready,
    .rings_req,
    .rings_rsp,
    .servers_req,
    .servers_rsp,
    .stat_no_server,
    .stat_slot_too_small
  );

  wire unused = &{1'b0, settings};

endmodule
