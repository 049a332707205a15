// SPDX-License-Identifier: SHL-2.1
// The sending half of an RC endpoint: messages in, packets out, completions back.
// Each message completes exactly once and in order per queue pair, for any behaviour of the network.
// IBTA volume 1, 9.7 (reliable service); the parts are described in ARCHITECTURE.md.
module roce_tx
  import penstock_pkg::*;
  import roce_tx_pkg::*;
#(
  parameter int unsigned DATA_W     = 64,
  parameter int unsigned N_QP       = 4,
  parameter int unsigned RING_BYTES = 262144,  // payload bytes per queue pair
  parameter int unsigned SLOTS      = 256,     // packets per queue pair at most
  parameter int unsigned CLK_KHZ    = 156250,
  parameter int unsigned STORE      = StoreOnChip,  // or StoreAxi: the rings are in the memory at m_axi
  parameter int unsigned AXI_ADDR_W = 64,
  parameter bit          RETRANSMIT = 1'b1,  // 0: a packet is kept until it has left; a loss ends its queue pair
  parameter bit          WITH_CN_TAG = 1'b0  // hdr_qp is requested
) (
  input  logic                clk,
  input  logic                rst,

  // settings
  input  logic [23:0]         qpn_base,          // number of queue pair 0
  input  logic                cut_through,       // a packet may leave before its last byte has come (on chip)
  input  logic [31:0]         keep_alive_ticks,  // of 1.024 us; 0: no keep-alive

  // messages: descriptors (desc_t), and their payloads in the same order
  input  logic [175:0]        s_axis_desc_tdata,
  input  logic                s_axis_desc_tvalid,
  output logic                s_axis_desc_tready,
  input  logic [DATA_W-1:0]   s_axis_data_tdata,
  input  logic [DATA_W/8-1:0] s_axis_data_tkeep,
  input  logic                s_axis_data_tvalid,
  output logic                s_axis_data_tready,
  input  logic                s_axis_data_tlast,
  // completions (cpl_t)
  output logic [63:0]         m_axis_cpl_tdata,
  output logic                m_axis_cpl_tvalid,
  input  logic                m_axis_cpl_tready,

  // packets to the framer
  output tx_hdr_t             hdr,
  output qp_t                 hdr_qp,   // its queue pair; 0 without WITH_CN_TAG
  output logic                hdr_valid,
  input  logic                hdr_ready,
  output logic [DATA_W-1:0]   m_axis_tdata,
  output logic [DATA_W/8-1:0] m_axis_tkeep,
  output logic                m_axis_tvalid,
  input  logic                m_axis_tready,
  output logic                m_axis_tlast,

  // acknowledgements, one each cycle that ack_valid is high
  input  ack_event_t          ack,
  input  logic                ack_valid,

  // queue-pair table (cfg answers cfg_rd one cycle later) and commands of software
  output logic                cfg_rd,
  output qp_t                 cfg_qp,
  input  qp_cfg_t             cfg,
  input  logic                cmd_valid,
  input  qp_t                 cmd_qp,
  input  qp_state_e           cmd_state,
  output logic                qp_err_valid,
  output qp_t                 qp_err_qp,
  input  logic [N_QP-1:0]     ready,    // queue pairs that are open, as commands and failures left them
  output logic                stale,    // a message outlived its connection: flushed

  // congestion control and pause
  input  logic [N_QP-1:0]     cc_eligible,
  output logic [N_QP-1:0]     backlog,  // has a packet that could start
  output logic                sent_valid,
  output qp_t                 sent_qp,
  output logic [15:0]         sent_bytes,  // on the wire: preamble to gap
  input  logic                tx_paused,

  // the rings' memory from store_base on, 4 KiB aligned (quiet when STORE is on chip)
  input  logic [AXI_ADDR_W-1:0] store_base,
  output logic                store_write_error,  // a slot was not written: its message fails (WcLocLenErr)
  output logic                store_read_error,   // a packet was not read: it is not sent, and counts as lost
  output axi_pkg::axi_req_t   m_axi_req,
  output logic [DATA_W-1:0]   m_axi_wdata,
  input  axi_pkg::axi_rsp_t   m_axi_rsp,
  input  logic [DATA_W-1:0]   m_axi_rdata,

  // status of queue pair st_qp and its count st_count, one cycle later
  input  qp_t                 st_qp,
  input  qp_count_e           st_count,
  output qp_state_e           st_state,
  output logic                st_drained,
  output psn_t                st_una,
  output psn_t                st_nxt,
  output psn_t                st_wr,
  output logic [31:0]         st_value,
  input  logic                clear_counters,

  // events of queue pair stat_qp, for global counters, the latency histogram and the meters
  output logic                stat_valid,   // an operation has been done; the first is stat_init
  output logic                stat_init,
  output qp_t                 stat_qp,
  output psn_t                stat_psn,     // of the packet that it sent or freed
  output logic [PayloadLenW-1:0] stat_bytes,  // payload of the packet that it sent, or of the acknowledged one that it freed
  output outcome_t            stat,
  output ring_status_t        stat_status   // after it
);

  localparam int unsigned BeatW = PayloadLenW - 1 - $clog2(DATA_W / 8);
  localparam int unsigned StoreSlotW = $clog2(RING_BYTES / 256);  // packets of the smallest MTU
  localparam int unsigned SlotW = $clog2(SLOTS > RING_BYTES / 256 ? SLOTS : RING_BYTES / 256);
  localparam int unsigned Stored = RETRANSMIT || SLOTS < RING_BYTES / 256 ? SLOTS : RING_BYTES / 256;

  // ---- inputs that come as pulses wait here ------------------------------------------------------
  typedef struct packed {
    qp_t       qp;
    qp_state_e state;
  } cmd_t;

  cmd_t cmd_in, cmd;
  ack_event_t ack_head;
  logic cmd_pending, cmd_ready, ack_pending, ack_ready, cmd_in_range, ack_in_range;
  logic cmd_in_ready, unused_ack_in_ready;  // a lost acknowledgement is repeated by the next one
  logic [3:0] unused_cmd_level;
  logic [5:0] unused_ack_level;

  assign cmd_in       = '{qp: cmd_qp, state: cmd_state};
  assign cmd_in_range = cmd_valid && 32'(cmd_qp) < N_QP;
  assign ack_in_range = ack_valid && 32'(ack.qp) < N_QP;

  sync_fifo #(.W($bits(cmd_t)), .DEPTH(8)) u_commands (
    .clk, .rst,
    .s_data (cmd_in),
    .s_valid(cmd_in_range),
    .s_ready(cmd_in_ready),
    .m_data (cmd),
    .m_valid(cmd_pending),
    .m_ready(cmd_ready),
    .level  (unused_cmd_level)
  );
  sync_fifo #(.W($bits(ack_event_t)), .DEPTH(32)) u_acks (
    .clk, .rst,
    .s_data (ack),
    .s_valid(ack_in_range),
    .s_ready(unused_ack_in_ready),
    .m_data (ack_head),
    .m_valid(ack_pending),
    .m_ready(ack_ready),
    .level  (unused_ack_level)
  );

  // A packet is chosen by what its row holds then. It may wait here for any time, and so leave after
  // the first acknowledgement that limits its peer's credits: whether credits were kept is counted from `sent_valid`.
  // On chip a frame may start with its header. Packets of a memory are fetched ahead, each with its header.
  localparam int unsigned Headers = STORE == StoreAxi ? 32 : 4;
  localparam int unsigned MaxReads = STORE == StoreAxi ? 16 : 4;

  // ---- messages to slots ---------------------------------------------------------------------------
  logic load_valid, load_ready, commit_valid, commit_bad, commit_ready, in_message;
  logic store_wr_en, store_wr_ready, meta_wr_en, refused_valid, refused_ready, fill_valid, keep_valid, keep_room;
  logic reading;
  psn_t oldest_read;
  logic [BeatW-1:0] store_wr_beat, fill_beat;
  logic [DATA_W-1:0] store_wr_data;
  qp_t commit_qp, seg_qp, seg_next_qp, op_qp;
  logic [SlotW-1:0] slot;
  mtu_e slot_mtu;
  tx_meta_t tx_meta;
  cpl_meta_t cpl_meta;
  cpl_t refused;
  ring_view_t view;

  // No message before the counters are zero.
  logic counting, takes_desc;
  assign s_axis_desc_tready = takes_desc && counting;

  segmenter #(
    .DATA_W(DATA_W), .N_QP(N_QP), .RING_BYTES(RING_BYTES), .SLOTS(SLOTS), .RETRANSMIT(RETRANSMIT)
  ) u_segmenter (
    .clk, .rst,
    .cut_through(cut_through && STORE == StoreOnChip),
    .ready,
    .keep_valid, .keep_qp(op_qp), .keep_room,
    .s_axis_desc_tdata,
    .s_axis_desc_tvalid(s_axis_desc_tvalid && counting),
    .s_axis_desc_tready(takes_desc),
    .s_axis_data_tdata, .s_axis_data_tkeep, .s_axis_data_tvalid, .s_axis_data_tready, .s_axis_data_tlast,
    .load_valid, .load_ready, .view,
    .commit_valid, .commit_qp, .commit_bad, .commit_ready,
    .in_message,
    .qp(seg_qp), .next_qp(seg_next_qp),
    .stat_valid, .stat_qp, .stat_status, .reading, .oldest_read,
    .slot, .slot_mtu,
    .store_wr_en, .store_wr_beat, .store_wr_data, .store_wr_ready,
    .fill_valid, .fill_beat,
    .meta_wr_en, .tx_meta, .cpl_meta,
    .refused_valid, .refused, .refused_ready, .stale
  );

  // ---- slots to packets ------------------------------------------------------------------------------
  logic send_valid, read_done, cpl_valid, cpl_room, op_valid, op_init;
  tx_hdr_t send_hdr;
  mtu_e send_mtu;
  logic [15:0] send_wire_bytes;
  cpl_t cpl;
  outcome_t op_outcome;
  ring_status_t op_status;
  logic [PayloadLenW-1:0] op_acked_bytes;
  psn_t op_tail;
  logic [$clog2(Headers):0] hdr_level;
  logic hdr_in_ready, hdr_waits, hdr_taken, hdr_empty, job_valid, hdr_room, job_room, packet_valid, packet_bad;
  logic slot_valid, slot_bad, slot_ready, view_valid, view_ready, op_waits;  // commits of written slots, and loads
  qp_t slot_qp;

  requester #(
    .N_QP(N_QP), .SLOTS(SLOTS), .CLK_KHZ(CLK_KHZ), .MAX_READS(MaxReads), .RETRANSMIT(RETRANSMIT), .STORED(Stored)
  ) u_requester (
    .clk, .rst,
    .cmd_valid(cmd_pending), .cmd_qp(cmd.qp), .cmd_state(cmd.state), .cmd_ready,
    .ack(ack_head), .ack_valid(ack_pending), .ack_ready,
    .commit_valid(slot_valid), .commit_qp(slot_qp), .commit_bad(slot_bad), .commit_ready(slot_ready),
    .load_valid(view_valid), .load_qp(seg_qp), .load_ready(view_ready), .in_message, .op_waits,
    .cc_eligible,
    .backlog,
    .send_room(hdr_room && job_room),
    .cpl_room,
    .tx_paused,
    .qpn_base, .keep_alive_ticks, .keep_room,
    .filling(fill_valid), .reading, .oldest_read,
    .meta_wr_en, .meta_wr_slot(slot[$clog2(SLOTS)-1:0]), .meta_wr_tx(tx_meta), .meta_wr_cpl(cpl_meta),
    .cfg_rd, .cfg_qp, .cfg,
    .send_valid, .send_hdr, .send_mtu, .send_wire_bytes, .read_done,
    .cpl_valid, .cpl,
    .op_qp, .op_valid, .op_init, .op_outcome, .op_tail, .op_acked_bytes, .op_status,
    .view
  );

  sync_fifo #(.W($bits(tx_hdr_t)), .DEPTH(Headers)) u_headers (
    .clk, .rst,
    .s_data (send_hdr),
    .s_valid(send_valid),
    .s_ready(hdr_in_ready),
    .m_data (hdr),
    .m_valid(hdr_waits),
    .m_ready(hdr_taken),
    .level  (hdr_level)
  );
  if (WITH_CN_TAG) begin : gen_hdr_qp
    logic unused_ready, unused_valid;
    logic [$clog2(Headers):0] unused_level;
    sync_fifo #(.W($bits(qp_t)), .DEPTH(Headers)) u_qps (
      .clk, .rst,
      .s_data (op_qp),
      .s_valid(send_valid),
      .s_ready(unused_ready),
      .m_data (hdr_qp),
      .m_valid(unused_valid),
      .m_ready(hdr_taken),
      .level  (unused_level)
    );
  end else begin : gen_no_hdr_qp
    assign hdr_qp = '0;
  end
  assign hdr_room  = hdr_level <= $bits(hdr_level)'(Headers - 2);
  // A keep-alive has no payload to wait for.
  assign hdr_empty = hdr.payload_len == '0;
  assign hdr_valid = hdr_waits && (hdr_empty || (packet_valid && !packet_bad));
  assign hdr_taken = hdr_waits && (hdr_empty ? hdr_ready : packet_valid && (packet_bad || hdr_ready));
  assign job_valid = send_valid && send_hdr.payload_len != '0;

  if (!RETRANSMIT && STORE == StoreAxi) begin : gen_bad_retransmit
    $fatal(1, "%m: RETRANSMIT is 0 and STORE 1: a ring of a few packets is on chip, STORE 0; or keep RETRANSMIT 1");
  end

  // ---- the rings -------------------------------------------------------------------------------------
  if (STORE == StoreOnChip) begin : gen_on_chip
    assign {slot_valid, slot_qp, slot_bad, commit_ready} = {commit_valid, commit_qp, commit_bad, slot_ready};
    assign {view_valid, load_ready} = {load_valid, view_ready};
    assign {op_waits, store_wr_ready, job_room, packet_valid, packet_bad} = 5'b01110;

    packet_store #(
      .DATA_W(DATA_W), .N_QP(N_QP), .RING_BYTES(RING_BYTES)
    ) u_store (
      .clk, .rst,
      .wr_en(store_wr_en), .wr_qp(seg_qp), .wr_slot(slot[StoreSlotW-1:0]), .wr_mtu(slot_mtu),
      .wr_beat(store_wr_beat), .wr_data(store_wr_data),
      .fill_valid, .fill_qp(seg_qp), .fill_slot(slot[StoreSlotW-1:0]), .fill_beat,
      .job_valid, .job_qp(op_qp), .job_slot(send_hdr.psn[StoreSlotW-1:0]), .job_mtu(send_mtu),
      .job_len(send_hdr.payload_len), .job_done(read_done),
      .m_axis_tdata, .m_axis_tkeep, .m_axis_tvalid, .m_axis_tready, .m_axis_tlast
    );

    assign {store_write_error, store_read_error} = '0;
    assign m_axi_req   = '0;
    assign m_axi_wdata = '0;
    wire unused = &{1'b0, store_base, m_axi_rsp, m_axi_rdata, seg_next_qp};
  end else if (STORE == StoreAxi) begin : gen_axi
    logic written, written_bad;

    packet_store_commits #(.N_QP(N_QP)) u_commits (
      .clk, .rst,
      .s_commit_valid(commit_valid), .s_commit_qp(commit_qp), .s_commit_bad(commit_bad), .s_commit_ready(commit_ready),
      .s_load_valid(load_valid), .s_load_qp(seg_qp), .s_load_next_qp(seg_next_qp), .s_load_ready(load_ready),
      .written, .written_bad,
      .m_commit_valid(slot_valid), .m_commit_qp(slot_qp), .m_commit_bad(slot_bad), .m_commit_ready(slot_ready),
      .m_load_valid(view_valid), .m_load_ready(view_ready),
      .op_qp, .op_waits
    );

    packet_store_axi #(
      .DATA_W(DATA_W), .N_QP(N_QP), .RING_BYTES(RING_BYTES), .ADDR_W(AXI_ADDR_W)
    ) u_store (
      .clk, .rst,
      .base_addr(store_base),
      .wr_en(store_wr_en), .wr_end(meta_wr_en), .wr_qp(seg_qp), .wr_slot(slot[StoreSlotW-1:0]), .wr_mtu(slot_mtu),
      .wr_data(store_wr_data), .wr_ready(store_wr_ready), .written, .written_bad,
      .job_room, .job_valid, .job_qp(op_qp), .job_slot(send_hdr.psn[StoreSlotW-1:0]), .job_mtu(send_mtu),
      .job_len(send_hdr.payload_len), .job_done(read_done),
      .packet_valid, .packet_bad, .packet_taken(hdr_taken && !hdr_empty),
      .stat_write_error(store_write_error), .stat_read_error(store_read_error),
      .*
    );
    wire unused = &{1'b0, store_wr_beat, fill_beat};
  end else begin : gen_bad_store
    $fatal(1, "%m: STORE is %0d; it must be 0 (on chip) or 1 (in AXI4 memory)", STORE);
  end

  // ---- results ---------------------------------------------------------------------------------------
  completions u_completions (
    .clk, .rst,
    .cpl_valid, .cpl, .cpl_room,
    .refused_valid, .refused, .refused_ready,
    .m_axis_cpl_tdata, .m_axis_cpl_tvalid, .m_axis_cpl_tready
  );

  qp_counters #(.N_QP(N_QP)) u_counters (
    .clk, .rst,
    .ready(counting),
    .clear(clear_counters),
    .op_valid, .op_qp, .op_outcome, .op_acked_bytes, .stat_valid, .stat_status,
    .st_qp, .st_count, .st_state, .st_drained, .st_una, .st_nxt, .st_wr, .st_value
  );

  assign stat_status  = op_status;
  assign keep_valid   = op_outcome.keep_alive;
  assign qp_err_valid = stat.failed;
  assign qp_err_qp    = stat_qp;
  assign sent_valid   = stat.send;
  assign sent_qp      = stat_qp;

  always_ff @(posedge clk) begin
    stat_valid  <= op_valid && !rst;
    stat_init   <= op_init;
    stat_qp     <= op_qp;
    stat_psn    <= op_outcome.freed ? op_tail : send_hdr.psn;
    stat_bytes  <= send_valid ? send_hdr.payload_len : op_acked_bytes;
    stat        <= op_outcome;
    sent_bytes <= send_wire_bytes;
    if (rst) stat <= '0;
  end

`ifndef SYNTHESIS
  a_command_taken : assert property (@(posedge clk) disable iff (rst) cmd_in_range |-> cmd_in_ready);
  a_header_taken : assert property (@(posedge clk) disable iff (rst) send_valid |-> hdr_in_ready);
`endif
endmodule
