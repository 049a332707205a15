// SPDX-License-Identifier: SHL-2.1
// The payloads of SENDs and WRITEs, from their frames to the memory and to the user's stream, as the responder places
// them; and which of them the memory has answered. Connects its modules, and counts WRITEs' packets.
// Promise: an acknowledgement leaves when the memory has answered all WRITEs that were accepted before it; the first
// packet of a queue pair that the memory has failed is named.
//
//   frames -> receive_store -> receive_mover -> receive_write --> m_axi
//                 placements ---^       +-----> receive_stream -> m_axis
module receive_path
  import penstock_pkg::*;
  import roce_read_pkg::*;
#(
  parameter int unsigned DATA_W = 64,
  parameter int unsigned N_QP   = 4
) (
  input  logic                 clk,
  input  logic                 rst,

  input  logic [DATA_W-1:0]    s_axis_tdata,
  input  logic                 s_axis_tvalid,
  input  logic                 s_axis_tlast,
  // 8 cycles after tlast: whether the payload of a request is here, and whether the request waits for its decision
  output logic                 kept,
  input  logic                 accepted,

  output logic                 room,         // for a packet to the stream
  input  placement_t           placement,    // but its fence
  input  logic                 placement_valid,
  input  logic                 opens,        // queue pair `opens_qp` begins anew
  input  qp_t                  opens_qp,
  output logic                 idle,         // all WRITEs have been answered
  input  logic                 closes,       // a queue pair is closed
  output logic                 drained,      // all before that have been answered, and have passed to the stream
  output logic [N_QP-1:0]      lost,         // the memory has failed a WRITE

  // packets to send: an acknowledgement leaves when all WRITEs before it have been answered
  input  logic                 reply_sent,
  input  logic                 reply_is_ack,
  input  logic                 reply_left,
  output logic                 reply_may_leave,  // the oldest
  input  qp_t                  reply_qp,         // its queue pair
  output logic                 reply_is_lost,
  output psn_t                 lost_psn,

  output logic [DATA_W-1:0]    m_axis_tdata,
  output logic [DATA_W/8-1:0]  m_axis_tkeep,
  output receive_user_t        m_axis_tuser,
  output logic                 m_axis_tvalid,
  input  logic                 m_axis_tready,
  output logic                 m_axis_tlast,

  output axi_pkg::axi_wr_req_t m_axi_req,
  output logic [DATA_W-1:0]    m_axi_wdata,
  input  axi_pkg::axi_wr_rsp_t m_axi_rsp
);
  localparam int unsigned QpW    = (N_QP == 1) ? 1 : $clog2(N_QP);
  localparam int unsigned Lanes  = DATA_W / 8;
  localparam int unsigned LaneW  = $clog2(Lanes);
  localparam int unsigned Bytes  = DATA_W == 64 ? 16384 : 32768;
  localparam int unsigned WordW  = $clog2(Bytes / Lanes);
  localparam int unsigned Frames = 16;
  localparam int unsigned Replies = 16;

  // ---- payloads, and their placements ----------------------------------------------------------------------
  logic frame_valid, frame_accepted, frame_taken, rd_en, placed_valid, placed_taken, placements_room;
  logic [WordW-1:0] rd_word;
  logic [DATA_W-1:0] rd_data;
  logic [$clog2(Frames):0] unused_level;
  placement_t fenced, placed, job;
  receive_store #(.DATA_W(DATA_W), .BYTES(Bytes), .FRAMES(Frames)) u_store (
    .clk, .rst, .s_axis_tdata, .s_axis_tvalid, .s_axis_tlast, .kept, .accepted,
    .m_valid(frame_valid), .m_accepted(frame_accepted), .m_taken(frame_taken), .rd_en, .rd_word, .rd_data
  );
  // There is one for each frame that was accepted, so there is room.
  sync_fifo #(.W($bits(placement_t)), .DEPTH(Frames)) u_placements (
    .clk, .rst,
    .s_data (fenced),
    .s_valid(placement_valid),
    .s_ready(placements_room),
    .m_data (placed),
    .m_valid(placed_valid),
    .m_ready(placed_taken),
    .level  (unused_level)
  );

  logic [LaneW-1:0] beat_first, beat_last;
  logic beat_empty, beat_ends, beat_streams, beat_notice, beat_valid, beat_ready, write_ready, job_valid;
  logic [12-LaneW:0] job_last;
  receive_mover #(.DATA_W(DATA_W), .WORD_W(WordW)) u_mover (
    .clk, .rst,
    .frame_valid, .frame_accepted, .frame_taken, .rd_en, .rd_word, .rd_data,
    .placement(placed), .placement_valid(placed_valid), .placement_taken(placed_taken),
    .job_valid, .job_last, .job,
    .m_data(m_axi_wdata), .m_first(beat_first), .m_last(beat_last), .m_empty(beat_empty), .m_ends(beat_ends),
    .m_streams(beat_streams), .m_notice(beat_notice), .m_valid(beat_valid), .m_ready(beat_ready)
  );
  assign beat_ready = beat_streams || write_ready;

  // ---- to the memory ---------------------------------------------------------------------------------------
  logic done, failed;
  qp_t  failed_qp;
  psn_t failed_psn;
  receive_write #(.DATA_W(DATA_W)) u_write (
    .clk, .rst,
    .job_valid, .job_word(placed.va[63:LaneW]), .job_last, .job_qp(placed.qp), .job_psn(placed.psn),
    .s_first(beat_first), .s_last(beat_last), .s_ends(beat_ends), .s_valid(beat_valid && !beat_streams),
    .s_ready(write_ready),
    .done, .failed, .failed_qp, .failed_psn, .m_axi_req, .m_axi_rsp
  );

  fence_t fence_q, written_q;  // WRITEs that were accepted, and that were answered
  assign idle = fence_q == written_q;
  always_comb begin
    fenced       = placement;
    fenced.fence = fence_q + fence_t'(placement.places);
  end
  always_ff @(posedge clk) begin
    fence_q   <= fence_q + fence_t'(placement_valid && placement.places);
    written_q <= written_q + fence_t'(done);
    if (rst) {fence_q, written_q} <= '0;
  end

  // WRITEs that were accepted before a queue pair was closed: those of other queue pairs after it are not waited for.
  logic   closing_q;
  fence_t closed_q, beyond;
  assign beyond = written_q - closed_q;
  always_ff @(posedge clk) begin
    if (closes) closed_q <= fenced.fence;
    closing_q <= (closes || (closing_q && beyond[$bits(fence_t)-1])) && !rst;
  end

  // ---- replies: counted as soon as they may leave, however long they then wait for the line -------------------
  logic   waiting_valid, waiting_is_ack, released, waiting_room;
  fence_t waiting_fence, behind;
  logic [$clog2(Replies):0] released_q, unused_replies;
  sync_fifo #(.W(1 + $bits(fence_t)), .DEPTH(Replies)) u_replies (
    .clk, .rst,
    .s_data ({reply_is_ack, fence_q}),
    .s_valid(reply_sent),
    .s_ready(waiting_room),
    .m_data ({waiting_is_ack, waiting_fence}),
    .m_valid(waiting_valid),
    .m_ready(released),
    .level  (unused_replies)
  );
  assign behind          = written_q - waiting_fence;
  assign released        = waiting_valid && (!waiting_is_ack || !behind[$bits(fence_t)-1]);
  assign reply_may_leave = released_q != '0;
  always_ff @(posedge clk) begin
    released_q <= released_q + ($clog2(Replies) + 1)'(released) - ($clog2(Replies) + 1)'(reply_left);
    if (rst) released_q <= '0;
  end

  // ---- packets that the memory has failed: the first of each queue pair ----------------------------------------
  psn_t lost_psns[1 << QpW];
  assign reply_is_lost = lost[reply_qp[QpW-1:0]];
  assign lost_psn      = lost_psns[reply_qp[QpW-1:0]];
  always_ff @(posedge clk) begin
    if (failed && !lost[failed_qp[QpW-1:0]]) lost_psns[failed_qp[QpW-1:0]] <= failed_psn;
    if (failed) lost[failed_qp[QpW-1:0]] <= 1'b1;
    if (opens) lost[opens_qp[QpW-1:0]] <= 1'b0;
    if (rst) lost <= '0;
  end

  // ---- to the user -------------------------------------------------------------------------------------------
  qp_t  lost_qp;
  logic waits;
  receive_stream #(.DATA_W(DATA_W), .BYTES(Bytes)) u_stream (
    .clk, .rst, .room,
    .reserve_valid(placement_valid && (placement.streams || placement.notifies)),
    .reserve_notice(placement.notifies), .reserve_len(placement.len),
    .s_valid(beat_valid && beat_streams), .s_data(m_axi_wdata), .s_last(beat_last), .s_empty(beat_empty),
    .s_ends(beat_ends), .s_notice(beat_notice), .s_job(job),
    .written(written_q), .lost_qp, .lost(lost[lost_qp[QpW-1:0]]), .closes, .waits,
    .m_axis_tdata, .m_axis_tkeep, .m_axis_tuser, .m_axis_tvalid, .m_axis_tready, .m_axis_tlast
  );
  assign drained = !closes && !closing_q && !waits;

  wire unused = &{1'b0, failed_qp, opens_qp, reply_qp, lost_qp, unused_level, unused_replies, behind, beyond};

`ifndef SYNTHESIS
  a_placements : assert property (@(posedge clk) disable iff (rst) placement_valid |-> placements_room);
  a_replies : assert property (@(posedge clk) disable iff (rst) reply_sent |-> waiting_room);
  a_fence : assert property (@(posedge clk) disable iff (rst) fence_q - written_q <= fence_t'(64));
`endif
endmodule
