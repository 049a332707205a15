// SPDX-License-Identifier: SHL-2.1
// The sending half of an RC endpoint: messages in, packets out, completions back.
// Each message completes exactly once and in order per queue pair, whatever the network does.
// IBTA volume 1, 9.7 (reliable service); the parts are described in ARCHITECTURE.md.
module roce_tx
  import penstock_pkg::*;
  import roce_tx_pkg::*;
#(
  parameter int unsigned DATA_W     = 64,
  parameter int unsigned N_QP       = 4,
  parameter int unsigned RING_BYTES = 262144,  // payload bytes per queue pair
  parameter int unsigned SLOTS      = 256,     // packets per queue pair at most
  parameter int unsigned CLK_KHZ    = 156250
) (
  input  logic                clk,
  input  logic                rst,

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

  // congestion control and pause
  input  logic [N_QP-1:0]     cc_eligible,
  output logic [N_QP-1:0]     backlog,  // has a packet that could start
  output logic                sent_valid,
  output qp_t                 sent_qp,
  output logic [15:0]         sent_bytes,  // on the wire: preamble to gap
  input  logic                tx_paused,

  // status of queue pair st_qp, one cycle later
  input  qp_t                 st_qp,
  output qp_state_e           st_state,
  output psn_t                st_una,
  output psn_t                st_nxt,
  output psn_t                st_wr,
  output qp_tx_counters_t     st_counters,

  // events of queue pair stat_qp, for global counters
  output qp_t                 stat_qp,
  output outcome_t            stat
);

  localparam int unsigned BeatW = PayloadLenW - 1 - $clog2(DATA_W / 8);
  localparam int unsigned StoreSlotW = $clog2(RING_BYTES / 256);  // packets of the smallest MTU
  localparam int unsigned SlotW = $clog2(SLOTS > RING_BYTES / 256 ? SLOTS : RING_BYTES / 256);

  // ---- inputs that come as pulses wait here ------------------------------------------------------
  typedef struct packed {
    qp_t       qp;
    qp_state_e state;
  } cmd_t;

  cmd_t cmd_in, cmd;
  ack_event_t ack_head;
  logic cmd_pending, cmd_ready, ack_pending, ack_ready, cmd_known, ack_known;
  logic cmd_in_ready, unused_ack_in_ready;  // a lost acknowledgement is repeated by the next one
  logic [3:0] unused_cmd_level;
  logic [5:0] unused_ack_level;

  assign cmd_in    = '{qp: cmd_qp, state: cmd_state};
  assign cmd_known = cmd_valid && 32'(cmd_qp) < N_QP;
  assign ack_known = ack_valid && 32'(ack.qp) < N_QP;

  sync_fifo #(.W($bits(cmd_t)), .DEPTH(8)) u_commands (
    .clk, .rst,
    .s_data (cmd_in),
    .s_valid(cmd_known),
    .s_ready(cmd_in_ready),
    .m_data (cmd),
    .m_valid(cmd_pending),
    .m_ready(cmd_ready),
    .level  (unused_cmd_level)
  );
  sync_fifo #(.W($bits(ack_event_t)), .DEPTH(32)) u_acks (
    .clk, .rst,
    .s_data (ack),
    .s_valid(ack_known),
    .s_ready(unused_ack_in_ready),
    .m_data (ack_head),
    .m_valid(ack_pending),
    .m_ready(ack_ready),
    .level  (unused_ack_level)
  );

  // ---- messages to slots ---------------------------------------------------------------------------
  logic load_valid, load_ready, commit_valid, commit_bad, commit_ready, in_message;
  logic store_wr_en, meta_wr_en, refused_valid, refused_ready;
  logic [BeatW-1:0] store_wr_beat;
  logic [DATA_W-1:0] store_wr_data;
  qp_t commit_qp, seg_qp;
  logic [SlotW-1:0] slot;
  mtu_e slot_mtu;
  tx_meta_t tx_meta;
  cpl_meta_t cpl_meta;
  cpl_t refused;
  ring_view_t view;

  segmenter #(
    .DATA_W(DATA_W), .N_QP(N_QP), .RING_BYTES(RING_BYTES), .SLOTS(SLOTS)
  ) u_segmenter (
    .clk, .rst,
    .s_axis_desc_tdata, .s_axis_desc_tvalid, .s_axis_desc_tready,
    .s_axis_data_tdata, .s_axis_data_tkeep, .s_axis_data_tvalid, .s_axis_data_tready, .s_axis_data_tlast,
    .load_valid, .load_ready, .view,
    .commit_valid, .commit_qp, .commit_bad, .commit_ready,
    .in_message,
    .qp(seg_qp),
    .slot, .slot_mtu,
    .store_wr_en, .store_wr_beat, .store_wr_data,
    .meta_wr_en, .tx_meta, .cpl_meta,
    .refused_valid, .refused, .refused_ready
  );

  // ---- slots to packets ------------------------------------------------------------------------------
  logic send_valid, read_done, cpl_valid, cpl_room, op_valid, op_init;
  tx_hdr_t send_hdr;
  mtu_e send_mtu;
  logic [15:0] send_wire_bytes;
  cpl_t cpl;
  qp_t op_qp;
  outcome_t op_outcome;
  ring_status_t op_status;
  logic [2:0] hdr_level;
  logic hdr_in_ready;

  requester #(
    .N_QP(N_QP), .SLOTS(SLOTS), .CLK_KHZ(CLK_KHZ)
  ) u_requester (
    .clk, .rst,
    .cmd_valid(cmd_pending), .cmd_qp(cmd.qp), .cmd_state(cmd.state), .cmd_ready,
    .ack(ack_head), .ack_valid(ack_pending), .ack_ready,
    .commit_valid, .commit_qp, .commit_bad, .commit_ready,
    .load_valid, .load_qp(seg_qp), .load_ready, .in_message,
    .cc_eligible,
    .backlog,
    .send_room(hdr_level <= 3'd2),
    .cpl_room,
    .tx_paused,
    .meta_wr_en, .meta_wr_slot(slot[$clog2(SLOTS)-1:0]), .meta_wr_tx(tx_meta), .meta_wr_cpl(cpl_meta),
    .cfg_rd, .cfg_qp, .cfg,
    .send_valid, .send_hdr, .send_mtu, .send_wire_bytes, .read_done,
    .cpl_valid, .cpl,
    .op_qp, .op_valid, .op_init, .op_outcome, .op_status,
    .view
  );

  sync_fifo #(.W($bits(tx_hdr_t)), .DEPTH(4)) u_headers (
    .clk, .rst,
    .s_data (send_hdr),
    .s_valid(send_valid),
    .s_ready(hdr_in_ready),
    .m_data (hdr),
    .m_valid(hdr_valid),
    .m_ready(hdr_ready),
    .level  (hdr_level)
  );

  packet_store #(
    .DATA_W(DATA_W), .N_QP(N_QP), .RING_BYTES(RING_BYTES)
  ) u_store (
    .clk, .rst,
    .wr_en(store_wr_en), .wr_qp(seg_qp), .wr_slot(slot[StoreSlotW-1:0]), .wr_mtu(slot_mtu),
    .wr_beat(store_wr_beat), .wr_data(store_wr_data),
    .job_valid(send_valid), .job_qp(op_qp), .job_slot(send_hdr.psn[StoreSlotW-1:0]), .job_mtu(send_mtu),
    .job_len(send_hdr.payload_len), .job_done(read_done),
    .m_axis_tdata, .m_axis_tkeep, .m_axis_tvalid, .m_axis_tready, .m_axis_tlast
  );

  // ---- results ---------------------------------------------------------------------------------------
  completions u_completions (
    .clk, .rst,
    .cpl_valid, .cpl, .cpl_room,
    .refused_valid, .refused, .refused_ready,
    .m_axis_cpl_tdata, .m_axis_cpl_tvalid, .m_axis_cpl_tready
  );

  qp_counters #(.N_QP(N_QP)) u_counters (
    .clk, .rst,
    .op_valid, .op_init, .op_qp, .op_outcome, .op_status,
    .st_qp, .st_state, .st_una, .st_nxt, .st_wr, .st_counters
  );

  assign qp_err_valid = stat.failed;
  assign qp_err_qp    = stat_qp;
  assign sent_valid   = stat.send;
  assign sent_qp      = stat_qp;

  always_ff @(posedge clk) begin
    stat_qp    <= op_qp;
    stat       <= op_outcome;
    sent_bytes <= send_wire_bytes;
    if (rst) stat <= '0;
  end

`ifndef SYNTHESIS
  a_command_taken : assert property (@(posedge clk) disable iff (rst) cmd_known |-> cmd_in_ready);
  a_header_taken : assert property (@(posedge clk) disable iff (rst) send_valid |-> hdr_in_ready);
`endif
endmodule
