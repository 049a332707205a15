// SPDX-License-Identifier: SHL-2.1
// The responder: requests of peers in; answers to READs, with the bytes of the memory at m_axi, and acknowledgements out,
// for the framer that the requester's packets pass, too. Its own scheduler grants packets to queue pairs by the same
// pacer. Payloads of SENDs and WRITEs pass receive_path.
// Promise: see read_engine, read_fetch and receive_path, which it joins. Requests beyond those that wait here are lost as
// on a wire; memory that fails ends the queue pair with a NAK (remote operational error). A READ waits for WRITEs before
// it, and so reads what they wrote.
//
//   requests -> queue -> read_engine -> queue -----------> headers
//                grants ---^  | +----> read_fetch -> m_axi, payloads
//   frames -----------------> receive_path -> m_axi, m_axis_receive
module read_responder
  import penstock_pkg::*;
  import roce_read_pkg::*;
#(
  parameter int unsigned DATA_W = 64,
  parameter int unsigned N_QP   = 4,
  parameter bit WITH_READ    = 1'b1,
  parameter bit WITH_RECEIVE = 1'b0  // SENDs and WRITEs
) (
  input  logic                 clk,
  input  logic                 rst,
  input  logic [23:0]          qpn_base,

  input  read_request_t        request,
  input  logic                 request_valid,
  input  logic [DATA_W-1:0]    s_axis_rx_tdata,  // frames, whose requests come 8 cycles after their tlast
  input  logic                 s_axis_rx_tvalid,
  input  logic                 s_axis_rx_tlast,

  output logic                 cfg_rd,
  output qp_t                  cfg_qp,
  input  qp_cfg_t              cfg,
  input  read_cfg_t            window,
  input  logic [N_QP-1:0]      ready,
  input  logic                 hold,         // no READ is taken
  output logic                 reading,      // as of read_engine
  output logic                 taken_valid,
  output pull_pkg::read_taken_t taken,
  output logic                 fault_valid,  // a NAK has left that ends the queue pair
  output qp_t                  fault_qp,

  // congestion control and pause; a packet is charged when it is chosen, in a cycle with sent_ready
  input  logic [N_QP-1:0]      eligible,
  output logic [N_QP-1:0]      backlog,
  output logic                 sent_valid,
  output qp_t                  sent_qp,
  output logic [15:0]          sent_bytes,
  input  logic                 sent_ready,
  input  logic                 tx_paused,

  output tx_hdr_t              hdr,
  output logic                 hdr_valid,
  input  logic                 hdr_ready,
  output logic [DATA_W-1:0]    m_axis_tdata,
  output logic [DATA_W/8-1:0]  m_axis_tkeep,
  output logic                 m_axis_tvalid,
  input  logic                 m_axis_tready,
  output logic                 m_axis_tlast,
  output logic                 m_axis_soon,  // see read_fetch

  output logic [DATA_W-1:0]    m_axis_receive_tdata,
  output logic [DATA_W/8-1:0]  m_axis_receive_tkeep,
  output receive_user_t        m_axis_receive_tuser,
  output logic                 m_axis_receive_tvalid,
  input  logic                 m_axis_receive_tready,
  output logic                 m_axis_receive_tlast,

  output axi_pkg::axi_req_t    m_axi_req,
  output logic [DATA_W-1:0]    m_axi_wdata,
  input  axi_pkg::axi_rsp_t    m_axi_rsp,
  input  logic [DATA_W-1:0]    m_axi_rdata,

  output read_stat_t           stat
);
  localparam int unsigned QpW = (N_QP == 1) ? 1 : $clog2(N_QP);
  localparam int unsigned Requests = N_QP * Entries;  // all that peers may have outstanding
  localparam int unsigned Replies = 16;
  localparam int unsigned SettleCycles = 3;  // from a charge to what the pacer makes of it

  // ---- requests -----------------------------------------------------------------------------------
  localparam int unsigned RequestW = $bits(read_request_t) - (WITH_RECEIVE ? 0 : $bits(receive_t));
  read_request_t waiting;
  qp_t arriving_qp;
  logic arriving, arriving_is_read, waits, request_taken, requests_room, comes, kept, writes_idle, may_read, overflow_q;
  read_stat_t engine_stat;
  logic [$clog2(Requests):0] unused_level;
  logic [RequestW-1:0] waiting_bits;
  assign comes   = request_valid && requests_room && (!request.receive.valid || kept);
  assign waiting = $bits(read_request_t)'(waiting_bits);
  if (Requests <= 64) begin : gen_few
    sync_fifo #(.W(RequestW), .DEPTH(Requests)) u_requests (
      .clk, .rst,
      .s_data (request[RequestW-1:0]),
      .s_valid(comes),
      .s_ready(requests_room),
      .m_data (waiting_bits),
      .m_valid(waits),
      .m_ready(request_taken),
      .level  (unused_level)
    );
    assign {arriving, arriving_qp, arriving_is_read} = {comes, request.qp, request.is_read};
  end else begin : gen_many
    block_fifo #(.W(RequestW), .DEPTH(Requests)) u_requests (
      .clk, .rst,
      .s_data (request[RequestW-1:0]),
      .s_valid(comes),
      .s_ready(requests_room),
      .m_data (waiting_bits),
      .m_valid(waits),
      .m_ready(request_taken),
      .level  (unused_level)
    );
    always_ff @(posedge clk) begin
      arriving                        <= comes && !rst;
      {arriving_qp, arriving_is_read} <= {request.qp, request.is_read};
    end
  end
  always_ff @(posedge clk) overflow_q <= request_valid && !comes && !rst;

  // ---- turns ----------------------------------------------------------------------------------------
  logic grant_valid, grant_ready, may_send, sending, job_room, reply_valid, reply_sent, replies_room;
  logic [$clog2(SettleCycles+1)-1:0] settle_q;
  logic [$clog2(Replies):0] replies_level;
  qp_t grant_qp;
  assign may_send = job_room && replies_level < ($clog2(Replies) + 1)'(Replies) && !tx_paused && settle_q == '0;
  tx_scheduler #(.N_QP(N_QP), .GapCycles(1)) u_scheduler (
    .clk, .rst,
    .ready(backlog), .eligible,
    .room (may_send && !sending),
    .grant_valid, .grant_qp, .grant_ready
  );

  // ---- operations -------------------------------------------------------------------------------------
  read_reply_t reply, leaving;
  logic [63:0] reply_addr;
  logic leaves, reply_waits, drained, room, placement_valid, opens, path_drained, may_leave, is_lost, is_ack;
  logic [N_QP-1:0] lost;
  placement_t placement;
  qp_t opens_qp;
  psn_t lost_psn;
  // Without a request that waits, one that comes is taken at once; READs wait for WRITEs.
  assign may_read = writes_idle && !hold;
  read_engine #(.N_QP(N_QP), .WITH_READ(WITH_READ), .WITH_RECEIVE(WITH_RECEIVE)) u_engine (
    .clk, .rst, .qpn_base,
    .arriving(arriving && !waits && (!arriving_is_read || may_read)), .arriving_qp,
    .request(waiting), .request_valid(waits && (!waiting.is_read || may_read)), .request_taken,
    .grant_qp, .grant_valid, .grant_ready, .work(backlog), .sending, .eligible, .may_send,
    .cfg_rd, .cfg_qp, .cfg, .window, .ready,
    .drained(drained && path_drained),
    .reply, .reply_addr, .reply_wire_bytes(sent_bytes), .reply_valid, .reply_ready(sent_ready),
    .room, .lost, .placement, .placement_valid, .opens, .opens_qp,
    .reading, .taken_valid, .taken,
    .stat(engine_stat)
  );
  assign reply_sent = reply_valid && sent_ready;
  assign sent_valid = reply_sent;
  assign sent_qp    = reply.qp;
  always_ff @(posedge clk) begin
    if (reply_sent) settle_q <= $bits(settle_q)'(SettleCycles);
    else if (settle_q != '0) settle_q <= settle_q - 1'b1;
    if (rst) settle_q <= '0;
  end

  // Packets that were chosen before a queue pair was closed: none of them is of its next connection.
  logic [N_QP-1:0] ready_q;
  logic closes;
  logic [$clog2(Replies):0] earlier_q;
  assign closes  = |(ready_q & ~ready);
  assign drained = !closes && earlier_q == '0;
  always_ff @(posedge clk) begin
    ready_q <= ready;
    if (closes) earlier_q <= replies_level + $bits(earlier_q)'(reply_sent) - $bits(earlier_q)'(leaves);
    else if (leaves && earlier_q != '0) earlier_q <= earlier_q - 1'b1;
    if (rst) begin
      ready_q   <= '0;
      earlier_q <= '0;
    end
  end

  // ---- packets: headers wait for their payload -----------------------------------------------------------
  logic has_payload, packet_valid, packet_bad, unreadable, unwritten, discards;
  sync_fifo #(.W($bits(read_reply_t)), .DEPTH(Replies)) u_replies (
    .clk, .rst,
    .s_data (reply),
    .s_valid(reply_sent),
    .s_ready(replies_room),
    .m_data (leaving),
    .m_valid(reply_waits),
    .m_ready(leaves),
    .level  (replies_level)
  );
  read_fetch #(.DATA_W(DATA_W), .PACKETS(Replies)) u_fetch (
    .clk, .rst,
    .job_room,
    .job_valid(reply_sent && reply.len != '0), .job_addr(reply_addr), .job_len(reply.len),
    .packet_valid, .packet_bad, .packet_taken(leaves && has_payload),
    .m_axis_tdata, .m_axis_tkeep, .m_axis_tvalid, .m_axis_tready, .m_axis_tlast, .m_axis_soon,
    .m_axi_req(m_axi_req.rd), .m_axi_rsp(m_axi_rsp.rd), .m_axi_rdata
  );

  // One NAK names memory that fails; what fails after it is not answered.
  logic here, fails, is_named, is_ready;
  psn_t lost_distance;
  assign is_ready      = ready[leaving.qp[QpW-1:0]];
  assign has_payload   = leaving.len != '0;
  assign unreadable    = has_payload && packet_bad;
  assign is_ack        = leaving.opcode == OpcodeAck;
  assign lost_distance = leaving.psn - lost_psn;
  assign unwritten     = is_ack && is_lost && !lost_distance[$bits(psn_t)-1];
  assign fails         = unreadable || unwritten;
  assign discards      = (fails && !is_ready) || (unwritten && is_named);
  assign here          = reply_waits && may_leave && (!has_payload || packet_valid);
  assign hdr_valid     = here && !discards;
  assign leaves        = here && (hdr_ready || discards);
  assign fault_valid   = hdr_valid && hdr_ready && (leaving.is_fatal || fails);
  assign fault_qp      = leaving.qp;

  always_comb begin
    stat                 = engine_stat;
    stat.dropped         = engine_stat.dropped || overflow_q;
    stat.nak_operational = fails && hdr_valid && hdr_ready;
  end

  always_comb begin
    hdr             = '0;
    hdr.dst_mac     = leaving.dst_mac;
    hdr.dst_ip      = leaving.dst_ip;
    hdr.udp_sport   = leaving.udp_sport;
    hdr.tos         = leaving.tos;
    hdr.dest_qpn    = leaving.dest_qpn;
    hdr.psn         = unwritten ? lost_psn : leaving.psn;
    hdr.opcode      = unreadable ? OpcodeAck : leaving.opcode;
    hdr.has_imm     = leaving.has_aeth || unreadable;  // the AETH is in its place
    hdr.imm         = {fails ? SyndromeNakOperational : leaving.syndrome, leaving.msn};
    hdr.payload_len = unreadable ? '0 : leaving.len;
  end

  // ---- payloads of SENDs and WRITEs ------------------------------------------------------------------------
  if (WITH_RECEIVE) begin : gen_receive
    logic [N_QP-1:0] named_q;  // the NAK of a lost WRITE has left
    assign is_named = named_q[leaving.qp[QpW-1:0]];
    always_ff @(posedge clk) begin
      if (unwritten && hdr_valid && hdr_ready) named_q[leaving.qp[QpW-1:0]] <= 1'b1;
      if (opens) named_q[opens_qp[QpW-1:0]] <= 1'b0;
      if (rst) named_q <= '0;
    end
    receive_path #(.DATA_W(DATA_W), .N_QP(N_QP)) u_path (
      .clk, .rst,
      .s_axis_tdata(s_axis_rx_tdata), .s_axis_tvalid(s_axis_rx_tvalid), .s_axis_tlast(s_axis_rx_tlast),
      .kept, .accepted(comes && request.receive.valid),
      .room, .placement, .placement_valid, .opens, .opens_qp, .idle(writes_idle), .closes, .drained(path_drained),
      .lost,
      .reply_sent, .reply_is_ack(reply.opcode == OpcodeAck), .reply_left(leaves),
      .reply_may_leave(may_leave), .reply_qp(leaving.qp), .reply_is_lost(is_lost), .lost_psn,
      .m_axis_tdata(m_axis_receive_tdata), .m_axis_tkeep(m_axis_receive_tkeep), .m_axis_tuser(m_axis_receive_tuser),
      .m_axis_tvalid(m_axis_receive_tvalid), .m_axis_tready(m_axis_receive_tready), .m_axis_tlast(m_axis_receive_tlast),
      .m_axi_req(m_axi_req.wr), .m_axi_wdata, .m_axi_rsp(m_axi_rsp.wr)
    );
  end else begin : gen_no_receive
    assign {kept, room, lost, is_lost, lost_psn, is_named} = '0;
    assign {writes_idle, path_drained, may_leave} = '1;
    assign {m_axis_receive_tdata, m_axis_receive_tkeep, m_axis_receive_tuser, m_axis_receive_tvalid} = '0;
    assign {m_axis_receive_tlast, m_axi_wdata} = '0;
    assign m_axi_req.wr = '0;
    wire unused_receive = &{
      1'b0, s_axis_rx_tdata, s_axis_rx_tvalid, s_axis_rx_tlast, m_axis_receive_tready, m_axi_rsp.wr, placement,
      placement_valid, opens, opens_qp
    };
  end

  wire unused = &{1'b0, lost_distance};

`ifndef SYNTHESIS
  a_reply_taken : assert property (@(posedge clk) disable iff (rst) reply_sent |-> replies_room);
`endif
endmodule
