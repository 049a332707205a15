// SPDX-License-Identifier: SHL-2.1
// RoCEv2 between messages and frames, with all parts specific to it: the queue-pair table, the transmit and receive
// halves, congestion control, the fragments that servers READ, the latency histogram, the meters and the fill of the rings.
// Connects its modules and contains no logic of its own except a register.
//
//   messages -> roce_tx -> roce_framer -> icrc_append (-> cn_tag_insert) -> frames
//   completions <-- ^ ^ <- congestion_control <- CNP, CNM
//                   +---- ack_receiver <- roce_rx <----- frames
module roce_transport
  import penstock_pkg::*;
  import ctrl_pkg::*;
#(
  parameter int unsigned DATA_W     = 64,
  parameter int unsigned N_QP       = 4,
  parameter int unsigned RING_BYTES = 262144,  // payload bytes kept per queue pair
  parameter int unsigned SLOTS      = 256,     // packets kept per queue pair
  parameter int unsigned CLK_KHZ    = 156250,
  parameter int unsigned STORE      = 0,       // packet store: 0 on chip, 1 in AXI4 memory (m_axi)
  parameter int unsigned AXI_ADDR_W = 64,
  parameter bit          RETRANSMIT = 1'b1,    // 0: packets are kept until they have left
  parameter bit          RING_FILL  = 1'b0,    // ring_fill is requested
  parameter bit          WITH_QCN   = 1'b1,
  parameter bit          WITH_CN_TAG = 1'b0,   // frames of queue pairs under QCN carry a CN-TAG
  parameter bit          WITH_REQUESTER = 1'b1,  // 0: no message is taken; peers are answered alone
  parameter bit          WITH_READ  = 1'b0,    // peers may READ the memory at m_axi
  parameter bit          WITH_RECEIVE = 1'b0,  // and WRITE there, and SEND to m_axis_receive
  parameter bit          TABLES     = 1'b0,    // addresses from 2^63 on are those of tables (peer_tables)
  parameter int unsigned PULL_SLOTS = 0        // fragments that queue pairs keep for their servers (fragment_keeper)
) (
  input  logic                clk,
  input  logic                rst,

  input  settings_t           settings,
  input  logic                probe,            // whether a peer is still alive: it is probed at once

  // messages: descriptors (desc_t), and their payloads in the same order; completions (cpl_t); none without a requester
  input  logic [175:0]        s_axis_desc_tdata,
  input  logic [63:0]         s_event_number,   // as of fragment_keeper
  input  logic                s_axis_desc_tvalid,
  output logic                s_axis_desc_tready,
  input  logic [DATA_W-1:0]   s_axis_data_tdata,
  input  logic [DATA_W/8-1:0] s_axis_data_tkeep,
  input  logic                s_axis_data_tvalid,
  output logic                s_axis_data_tready,
  input  logic                s_axis_data_tlast,
  output logic [63:0]         m_axis_cpl_tdata,
  output logic                m_axis_cpl_tvalid,
  input  logic                m_axis_cpl_tready,

  // frames to and from the port; the receive side cannot be stalled
  output logic [DATA_W-1:0]   m_axis_tx_tdata,
  output logic [DATA_W/8-1:0] m_axis_tx_tkeep,
  output logic                m_axis_tx_tvalid,
  input  logic                m_axis_tx_tready,
  output logic                m_axis_tx_tlast,
  input  logic [DATA_W-1:0]   s_axis_rx_tdata,
  input  logic [DATA_W/8-1:0] s_axis_rx_tkeep,
  input  logic                s_axis_rx_tvalid,
  input  logic                s_axis_rx_tlast,
  input  logic                s_axis_rx_tuser,
  input  logic                tx_paused,

  // queue pairs that take messages; failures, and those that software stops
  output logic [N_QP-1:0]     ready,
  output logic                qp_err_valid,
  output qp_t                 qp_err_qp,
  output logic                qp_stop_valid,
  output qp_t                 qp_stop_qp,

  output logic [31:0]         ring_fill,        // packets in the fullest ring; 0 without RING_FILL

  // rates of the queue pairs over time (cc_sample_t)
  output logic [127:0]        m_axis_sample_tdata,
  output logic                m_axis_sample_tvalid,
  input  logic                m_axis_sample_tready,

  // SENDs of peers, and notices of WRITEs with immediate; quiet without WITH_RECEIVE
  output logic [DATA_W-1:0]   m_axis_receive_tdata,
  output logic [DATA_W/8-1:0] m_axis_receive_tkeep,
  output roce_read_pkg::receive_user_t m_axis_receive_tuser,
  output logic                m_axis_receive_tvalid,
  input  logic                m_axis_receive_tready,
  output logic                m_axis_receive_tlast,

  // the memory of the packet store and of windows; quiet when the store is on chip and there are none
  output axi_pkg::axi_req_t   m_axi_req,
  output logic [DATA_W-1:0]   m_axi_wdata,
  input  axi_pkg::axi_rsp_t   m_axi_rsp,
  input  logic [DATA_W-1:0]   m_axi_rdata,

  // tables, with TABLES
  output axi_pkg::axi_req_t   tables_req,
  output logic [DATA_W-1:0]   tables_wdata,
  input  axi_pkg::axi_rsp_t   tables_rsp,
  input  logic [DATA_W-1:0]   tables_rdata,

  // registers of the blocks inside; counters
  input  reg_req_t            qp_req,
  output reg_rsp_t            qp_rsp,
  input  reg_req_t            latency_req,
  output reg_rsp_t            latency_rsp,
  input  reg_req_t            meter_req,
  output reg_rsp_t            meter_rsp,
  output transport_stat_t     transport_stat,
  output receive_stat_t       receive_stat
);
  import roce_tx_pkg::qp_count_e, roce_tx_pkg::outcome_t, roce_tx_pkg::ring_status_t;

  // ---- queue-pair table ----------------------------------------------------------------------------------
  localparam bit Responds = WITH_READ || WITH_RECEIVE;
  localparam bit Pulls = PULL_SLOTS != 0;
  // readers of rows: transport, acknowledgements, responder, fragments that are kept
  localparam int unsigned NCfg = 2 + 32'(Responds) + 32'(Pulls);

  qp_t       [NCfg-1:0] cfg_qp;
  logic      [NCfg-1:0] cfg_rd;
  qp_cfg_t   [NCfg-1:0] cfg;
  logic                 cmd_valid;
  qp_t                  cmd_qp, st_qp;
  qp_state_e            cmd_state, st_state;
  roce_read_pkg::read_cfg_t [Pulls:0] window;
  logic                 st_drained;
  psn_t                 st_una, st_nxt, st_wr;
  qp_count_e            st_count;
  logic          [31:0] st_value;
  cc_status_t           st_cc;
  logic                 cc_choice_valid;
  cc_choice_t           cc_choice;

  qp_table #(
    .N_QP(N_QP),
    .N_PORTS(NCfg),
    .RETRANSMIT(RETRANSMIT),
    .WITH_READ(WITH_READ),
    .WINDOWS(1 + 32'(Pulls)),
    .WITH_RECEIVE(WITH_RECEIVE)
  ) u_qp_table (
    .clk,
    .rst,
    .req(qp_req),
    .rsp(qp_rsp),
    .cfg_qp,
    .cfg_rd,
    .cfg,
    .window,
    .cmd_valid,
    .cmd_qp,
    .cmd_state,
    .qp_err_valid,
    .qp_err_qp,
    .ready,
    .st_qp,
    .st_count,
    .st_state,
    .st_drained,
    .st_una,
    .st_nxt,
    .st_wr,
    .st_value,
    .st_cc,
    .cc_choice_valid,
    .cc_choice
  );

  assign qp_stop_valid = cmd_valid && cmd_state == QpErr;
  assign qp_stop_qp    = cmd_qp;

  // ---- transmit: framer, ICRC --------------------------------------------------------------------------
  logic [31:0] keep_alive_ticks_q;  // a doubtful peer is probed at once
  always_ff @(posedge clk) keep_alive_ticks_q <= probe ? 32'd1 : settings.keep_alive_ticks;

  // The requester's packets are [0], answers to READs [1].
  tx_hdr_t hdr;
  tx_hdr_t [1:0] hdrs;
  qp_t message_hdr_qp, answer_hdr_qp;
  logic hdr_valid, hdr_ready;
  logic [1:0] hdrs_valid, hdrs_ready, parts_tvalid, parts_tready, parts_tlast;
  logic [1:0][DATA_W-1:0] parts_tdata;
  logic [1:0][DATA_W/8-1:0] parts_tkeep;
  ack_event_t ack;
  logic ack_valid;
  logic [N_QP-1:0] cc_eligible, backlog, message_backlog;
  logic sent_valid, message_sent, tx_cmd_valid;
  qp_t sent_qp, message_qp, tx_cmd_qp;
  qp_state_e tx_cmd_state;
  logic [15:0] sent_bytes, message_bytes;
  axi_pkg::axi_req_t store_req;
  axi_pkg::axi_rsp_t store_rsp;
  logic [DATA_W-1:0] store_wdata;
  logic stat_valid;
  qp_t stat_qp;
  psn_t stat_psn;
  outcome_t stat;

  logic [DATA_W-1:0] payload_tdata, frame_tdata, whole_tdata;
  logic [DATA_W/8-1:0] payload_tkeep, frame_tkeep, whole_tkeep;
  logic payload_tvalid, payload_tready, payload_tlast;
  logic frame_tvalid, frame_tready, frame_tlast;
  logic whole_tvalid, whole_tready, whole_tlast;  // with its ICRC

  // ---- fragments that servers READ ---------------------------------------------------------------------
  logic [175:0] desc_tdata;
  logic desc_tvalid, desc_tready, data_tvalid, data_tready, data_tlast, cpl_tvalid, cpl_tready;
  logic [DATA_W-1:0] data_tdata, keeper_wdata;
  logic [DATA_W/8-1:0] data_tkeep;
  logic [63:0] cpl_tdata;
  logic hold, reading, read_valid, keeper_fault_valid;
  qp_t keeper_fault_qp;
  pull_pkg::read_taken_t read_taken;
  axi_pkg::axi_wr_req_t keeper_req;
  axi_pkg::axi_wr_rsp_t keeper_rsp;

  if (Pulls) begin : gen_keeper
    logic cpl_room;
    assign m_axis_cpl_tdata  = cpl_tdata;
    assign m_axis_cpl_tvalid = cpl_tvalid && cpl_room;
    assign cpl_tready        = m_axis_cpl_tready && cpl_room;
    fragment_keeper #(
      .DATA_W(DATA_W),
      .N_QP(N_QP),
      .SLOTS(PULL_SLOTS)
    ) u_keeper (
      .clk,
      .rst,
      .stride(settings.pull_stride),
      .s_axis_desc_tdata,
      .s_event_number,
      .s_axis_desc_tvalid,
      .s_axis_desc_tready,
      .s_axis_data_tdata,
      .s_axis_data_tkeep,
      .s_axis_data_tvalid,
      .s_axis_data_tready,
      .s_axis_data_tlast,
      .m_axis_desc_tdata (desc_tdata),
      .m_axis_desc_tvalid(desc_tvalid),
      .m_axis_desc_tready(desc_tready),
      .m_axis_data_tdata (data_tdata),
      .m_axis_data_tkeep (data_tkeep),
      .m_axis_data_tvalid(data_tvalid),
      .m_axis_data_tready(data_tready),
      .m_axis_data_tlast (data_tlast),
      .cpl_valid  (m_axis_cpl_tvalid && m_axis_cpl_tready),
      .cpl        (cpl_tdata),
      .cpl_room,
      .read_valid,
      .read_taken,
      .reading,
      .hold,
      .cfg_rd     (cfg_rd[NCfg-1]),
      .cfg_qp     (cfg_qp[NCfg-1]),
      .window     (window[Pulls]),
      .ready,
      .fault_valid(keeper_fault_valid),
      .fault_qp   (keeper_fault_qp),
      .m_axi_req  (keeper_req),
      .m_axi_wdata(keeper_wdata),
      .m_axi_rsp  (keeper_rsp),
      .stat_announced(transport_stat.announced),
      .stat_dropped  (transport_stat.fragment_dropped),
      .stat_refused  (transport_stat.fragment_refused)
    );
    wire unused_keeper = &{1'b0, cfg[NCfg-1]};
  end else begin : gen_no_keeper
    assign {desc_tdata, desc_tvalid, s_axis_desc_tready} = {s_axis_desc_tdata, s_axis_desc_tvalid, desc_tready};
    assign {data_tdata, data_tkeep, data_tvalid, data_tlast, s_axis_data_tready} =
      {s_axis_data_tdata, s_axis_data_tkeep, s_axis_data_tvalid, s_axis_data_tlast, data_tready};
    assign {m_axis_cpl_tdata, m_axis_cpl_tvalid, cpl_tready} = {cpl_tdata, cpl_tvalid, m_axis_cpl_tready};
    assign {hold, keeper_fault_valid, keeper_fault_qp, keeper_req, keeper_wdata} = '0;
    assign {transport_stat.announced, transport_stat.fragment_dropped, transport_stat.fragment_refused} = '0;
    wire unused_keeper = &{1'b0, s_event_number, hold, reading, read_valid, read_taken, keeper_rsp, keeper_fault_valid,
      keeper_fault_qp, keeper_req, keeper_wdata};
  end

  if (WITH_REQUESTER) begin : gen_requester
    logic stat_init;
    logic [PayloadLenW-1:0] stat_bytes;
    ring_status_t stat_status;
    desc_t desc;
    assign desc = desc_tdata;
    wire unused_desc = &{1'b0, desc};

    roce_tx #(
      .DATA_W(DATA_W),
      .N_QP(N_QP),
      .RING_BYTES(RING_BYTES),
      .SLOTS(SLOTS),
      .CLK_KHZ(CLK_KHZ),
      .STORE(STORE),
      .AXI_ADDR_W(AXI_ADDR_W),
      .RETRANSMIT(RETRANSMIT),
      .WITH_CN_TAG(WITH_CN_TAG)
    ) u_roce_tx (
      .qpn_base        (settings.qpn_base),
      .cut_through     (settings.cut_through),
      .keep_alive_ticks(keep_alive_ticks_q),
      .hdr          (hdrs[0]),
      .hdr_qp       (message_hdr_qp),
      .hdr_valid    (hdrs_valid[0]),
      .hdr_ready    (hdrs_ready[0]),
      .m_axis_tdata (parts_tdata[0]),
      .m_axis_tkeep (parts_tkeep[0]),
      .m_axis_tvalid(parts_tvalid[0]),
      .m_axis_tready(parts_tready[0]),
      .m_axis_tlast (parts_tlast[0]),
      .cfg_qp   (cfg_qp[0]),
      .cfg_rd   (cfg_rd[0]),
      .cfg      (cfg[0]),
      .cmd_valid(tx_cmd_valid),
      .cmd_qp   (tx_cmd_qp),
      .cmd_state(tx_cmd_state),
      .stale    (transport_stat.stale_message),
      .backlog   (message_backlog),
      .sent_valid(message_sent),
      .sent_qp   (message_qp),
      .sent_bytes(message_bytes),
      .store_base       (settings.store_base[AXI_ADDR_W-1:0]),
      .store_write_error(transport_stat.store_write_error),
      .store_read_error (transport_stat.store_read_error),
      .m_axi_req  (store_req),
      .m_axi_wdata(store_wdata),
      .m_axi_rsp  (store_rsp),
      .clear_counters(settings.clear),
      .s_axis_desc_tdata (desc_tdata),
      .s_axis_desc_tvalid(desc_tvalid),
      .s_axis_desc_tready(desc_tready),
      .s_axis_data_tdata (data_tdata),
      .s_axis_data_tkeep (data_tkeep),
      .s_axis_data_tvalid(data_tvalid),
      .s_axis_data_tready(data_tready),
      .s_axis_data_tlast (data_tlast),
      .m_axis_cpl_tdata  (cpl_tdata),
      .m_axis_cpl_tvalid (cpl_tvalid),
      .m_axis_cpl_tready (cpl_tready),
      .*
    );

    latency_histogram #(
      .N_QP(N_QP)
    ) u_latency (
      .clear(settings.clear),
      .req(latency_req),
      .rsp(latency_rsp),
      .*
    );

    if (RING_FILL) begin : gen_ring_fill
      ring_fill #(.N_QP(N_QP)) u_ring_fill (.fill(ring_fill), .*);
    end else begin : gen_no_ring_fill
      assign ring_fill = '0;
    end

    transfer_meter #(
      .N_QP(N_QP)
    ) u_meter (
      .clear    (settings.clear),
      .arm_valid(desc_tvalid && desc_tready && desc.series),
      .arm_qp   (desc.qp),
      .req      (meter_req),
      .rsp      (meter_rsp),
      .*
    );
  end else begin : gen_no_requester
    answering_states #(
      .N_QP(N_QP)
    ) u_states (
      .cmd_valid(tx_cmd_valid),
      .cmd_qp   (tx_cmd_qp),
      .cmd_state(tx_cmd_state),
      .*
    );
    absent_block u_latency (.clk, .rst, .req(latency_req), .rsp(latency_rsp));
    absent_block u_meter (.clk, .rst, .req(meter_req), .rsp(meter_rsp));
    always_comb begin
      stat        = '0;
      stat.failed = qp_err_valid;
    end
    assign {desc_tready, data_tready, cpl_tdata, cpl_tvalid} = '0;
    assign {hdrs[0], hdrs_valid[0], parts_tdata[0], parts_tkeep[0], parts_tvalid[0], parts_tlast[0]} = '0;
    assign {message_hdr_qp, cfg_qp[0], cfg_rd[0], message_backlog, message_sent, message_qp, message_bytes} = '0;
    assign {store_req, store_wdata, st_una, st_nxt, st_wr, st_value, stat_valid, stat_qp, stat_psn, ring_fill} = '0;
    assign st_drained = 1'b1;
    assign {transport_stat.stale_message, transport_stat.store_write_error, transport_stat.store_read_error} = '0;
    wire unused_requester = &{
      1'b0, desc_tdata, desc_tvalid, data_tdata, data_tkeep, data_tvalid, data_tlast, cpl_tready, ack, ack_valid, keep_alive_ticks_q, hdrs_ready[0], parts_tready[0],
      cfg[0], store_rsp, st_count
    };
  end

  roce_framer #(
    .DATA_W(DATA_W)
  ) u_framer (
    .clk,
    .rst,
    .local_mac    (settings.local_mac),
    .local_ip     (settings.local_ip),
    .ttl          (settings.ttl),
    .hdr,
    .hdr_valid,
    .hdr_ready,
    .s_axis_tdata (payload_tdata),
    .s_axis_tkeep (payload_tkeep),
    .s_axis_tvalid(payload_tvalid),
    .s_axis_tready(payload_tready),
    .s_axis_tlast (payload_tlast),
    .m_axis_tdata (frame_tdata),
    .m_axis_tkeep (frame_tkeep),
    .m_axis_tvalid(frame_tvalid),
    .m_axis_tready(frame_tready),
    .m_axis_tlast (frame_tlast)
  );

  icrc_append #(
    .DATA_W(DATA_W)
  ) u_icrc_append (
    .clk,
    .rst,
    .s_axis_tdata (frame_tdata),
    .s_axis_tkeep (frame_tkeep),
    .s_axis_tvalid(frame_tvalid),
    .s_axis_tready(frame_tready),
    .s_axis_tlast (frame_tlast),
    .m_axis_tdata (whole_tdata),
    .m_axis_tkeep (whole_tkeep),
    .m_axis_tvalid(whole_tvalid),
    .m_axis_tready(whole_tready),
    .m_axis_tlast (whole_tlast)
  );

  if (WITH_CN_TAG) begin : gen_cn_tag
    cn_tag_insert #(
      .DATA_W(DATA_W),
      .N_QP(N_QP)
    ) u_cn_tag_insert (
      .clk,
      .rst,
      .choice_valid(cc_choice_valid),
      .choice_qp   (cmd_qp),
      .choice_law  (cc_choice.law),
      .hdr_valid   (hdr_valid && hdr_ready),
      .hdr_qp      (hdrs_ready[1] ? answer_hdr_qp : message_hdr_qp),
      .s_axis_tdata (whole_tdata),
      .s_axis_tkeep (whole_tkeep),
      .s_axis_tvalid(whole_tvalid),
      .s_axis_tready(whole_tready),
      .s_axis_tlast (whole_tlast),
      .m_axis_tdata (m_axis_tx_tdata),
      .m_axis_tkeep (m_axis_tx_tkeep),
      .m_axis_tvalid(m_axis_tx_tvalid),
      .m_axis_tready(m_axis_tx_tready),
      .m_axis_tlast (m_axis_tx_tlast)
    );
  end else begin : gen_no_cn_tag
    assign {m_axis_tx_tdata, m_axis_tx_tkeep, m_axis_tx_tvalid, m_axis_tx_tlast, whole_tready} =
      {whole_tdata, whole_tkeep, whole_tvalid, whole_tlast, m_axis_tx_tready};
    wire unused_hdr_qp = &{1'b0, message_hdr_qp, answer_hdr_qp};
  end

  // ---- receive: parser, acknowledgement receiver ------------------------------------------------------
  rx_roce_t rx;
  logic rx_valid, request_valid;
  roce_read_pkg::request_hdr_t request_hdr;
  roce_read_pkg::read_request_t request;
  logic cnp_valid;
  qp_t cnp_qp;

  roce_rx #(
    .DATA_W(DATA_W)
  ) u_roce_rx (
    .clk,
    .rst,
    .local_mac    (settings.local_mac),
    .local_ip     (settings.local_ip),
    .s_axis_tdata (s_axis_rx_tdata),
    .s_axis_tkeep (s_axis_rx_tkeep),
    .s_axis_tvalid(s_axis_rx_tvalid),
    .s_axis_tlast (s_axis_rx_tlast),
    .s_axis_tuser (s_axis_rx_tuser),
    .rx,
    .rx_valid,
    .stat_rx_roce   (receive_stat.roce),
    .stat_icrc_error(receive_stat.icrc_error),
    .stat_bad_pkey  (receive_stat.bad_pkey),
    .stat_malformed (receive_stat.malformed),
    .stat_not_for_us(receive_stat.not_for_us),
    .stat_other     (receive_stat.other)
  );

  ack_receiver #(
    .N_QP(N_QP),
    .WITH_READ(WITH_READ),
    .WITH_RECEIVE(WITH_RECEIVE)
  ) u_ack_receiver (
    .clk,
    .rst,
    .qpn_base(settings.qpn_base),
    .rx,
    .rx_valid,
    .request_hdr,
    .cfg_rd(cfg_rd[1]),
    .cfg_qp(cfg_qp[1]),
    .cfg   (cfg[1]),
    .ready,
    .ack,
    .ack_valid,
    .cnp_valid,
    .cnp_qp,
    .request,
    .request_valid,
    .stat_unknown_qp(receive_stat.unknown_qp),
    .stat_wrong_peer(receive_stat.wrong_peer),
    .stat_not_ready (receive_stat.not_ready),
    .stat_unserved  (receive_stat.unserved)
  );

  congestion_control #(
    .DATA_W(DATA_W),
    .N_QP(N_QP),
    .CLK_KHZ(CLK_KHZ),
    .WITH_QCN(WITH_QCN)
  ) u_congestion_control (
    .rx_tdata (s_axis_rx_tdata),
    .rx_tkeep (s_axis_rx_tkeep),
    .rx_tvalid(s_axis_rx_tvalid),
    .rx_tlast (s_axis_rx_tlast),
    .rx_tuser (s_axis_rx_tuser),
    .stat_cnm           (receive_stat.cnm),
    .stat_cnm_not_ready (receive_stat.cnm_not_ready),
    .stat_refused       (receive_stat.cnp_refused),
    .stat_ignored       (transport_stat.cnp_ignored),
    .stat_clamped       (transport_stat.cnp_clamped),
    .stat_overruled     (transport_stat.cnp_overruled),
    .stat_sample_dropped(transport_stat.sample_dropped),
    .*
  );

  // ---- requests of peers -----------------------------------------------------------------------------------
  if (Responds) begin : gen_responder
    logic answer_fault_valid, fault_valid, fault_q, answer_sent, answer_soon;
    qp_t answer_fault_qp, fault_qp, fault_qp_q, answer_qp;
    logic [15:0] answer_bytes;
    logic [N_QP-1:0] answer_backlog;
    axi_pkg::axi_req_t answer_req, memory_req;
    axi_pkg::axi_rsp_t answer_rsp, memory_rsp;
    logic [DATA_W-1:0] answer_wdata, answer_rdata;

    request_parser #(
      .DATA_W(DATA_W),
      .RECEIVE(WITH_RECEIVE)
    ) u_request_parser (
      .clk,
      .rst,
      .s_axis_tdata (s_axis_rx_tdata),
      .s_axis_tvalid(s_axis_rx_tvalid),
      .s_axis_tlast (s_axis_rx_tlast),
      .hdr(request_hdr)
    );

    read_responder #(
      .DATA_W(DATA_W),
      .N_QP(N_QP),
      .WITH_READ(WITH_READ),
      .WITH_RECEIVE(WITH_RECEIVE)
    ) u_responder (
      .clk,
      .rst,
      .qpn_base(settings.qpn_base),
      .request,
      .request_valid,
      .s_axis_rx_tdata,
      .s_axis_rx_tvalid,
      .s_axis_rx_tlast,
      .cfg_rd(cfg_rd[2]),
      .cfg_qp(cfg_qp[2]),
      .cfg   (cfg[2]),
      .window(window[0]),
      .ready,
      .hold,
      .reading,
      .taken_valid(read_valid),
      .taken      (read_taken),
      .fault_valid(answer_fault_valid),
      .fault_qp   (answer_fault_qp),
      .eligible  (cc_eligible),
      .backlog   (answer_backlog),
      .sent_valid(answer_sent),
      .sent_qp   (answer_qp),
      .sent_bytes(answer_bytes),
      .sent_ready(!message_sent),
      .tx_paused,
      .hdr          (hdrs[1]),
      .hdr_valid    (hdrs_valid[1]),
      .hdr_ready    (hdrs_ready[1]),
      .m_axis_tdata (parts_tdata[1]),
      .m_axis_tkeep (parts_tkeep[1]),
      .m_axis_tvalid(parts_tvalid[1]),
      .m_axis_tready(parts_tready[1]),
      .m_axis_tlast (parts_tlast[1]),
      .m_axis_soon  (answer_soon),
      .m_axis_receive_tdata,
      .m_axis_receive_tkeep,
      .m_axis_receive_tuser,
      .m_axis_receive_tvalid,
      .m_axis_receive_tready,
      .m_axis_receive_tlast,
      .m_axi_req    (answer_req),
      .m_axi_wdata  (answer_wdata),
      .m_axi_rsp    (answer_rsp),
      .m_axi_rdata  (answer_rdata),
      .stat         (receive_stat.reads)
    );

    assign answer_hdr_qp = answer_fault_qp;  // that of the answer at hdr, whether it faults or not
    assign tables_wdata  = answer_wdata;
    if (TABLES) begin : gen_tables
      logic tables_read;
      axi_split u_split (
        .clk,
        .rst,
        .s_axi_req  (answer_req),
        .s_axi_rsp  (answer_rsp),
        .s_axi_rd_at(tables_read),
        .m_axi_req  ({tables_req, memory_req}),
        .m_axi_rsp  ({tables_rsp, memory_rsp})
      );
      assign answer_rdata = tables_read ? tables_rdata : m_axi_rdata;
    end else begin : gen_no_tables
      assign tables_req = '0;
      assign {memory_req, answer_rsp, answer_rdata} = {answer_req, memory_rsp, m_axi_rdata};
      wire unused_tables = &{1'b0, tables_rsp, tables_rdata};
    end

    // Fragments that are kept, and what peers WRITE.
    axi_pkg::axi_req_t all_req;
    axi_pkg::axi_rsp_t all_rsp;
    logic [DATA_W-1:0] all_wdata;
    if (Pulls && WITH_RECEIVE) begin : gen_writers
      axi_write_mux #(
        .DATA_W(DATA_W)
      ) u_writers (
        .clk,
        .rst,
        .s_axi_req  ({keeper_req, memory_req.wr}),
        .s_axi_wdata({keeper_wdata, answer_wdata}),
        .s_axi_rsp  ({keeper_rsp, memory_rsp.wr}),
        .m_axi_req  (all_req.wr),
        .m_axi_wdata(all_wdata),
        .m_axi_rsp  (all_rsp.wr)
      );
    end else begin : gen_writer
      assign {all_req.wr, all_wdata} = Pulls ? {keeper_req, keeper_wdata} : {memory_req.wr, answer_wdata};
      assign {memory_rsp.wr, keeper_rsp} = {2{all_rsp.wr}};
    end
    assign {all_req.rd, memory_rsp.rd} = {memory_req.rd, all_rsp.rd};

    if (STORE == roce_tx_pkg::StoreOnChip) begin : gen_answers_alone
      assign m_axi_req = all_req;
      assign {m_axi_wdata, store_rsp, all_rsp} = {all_wdata, m_axi_rsp, m_axi_rsp};
      wire unused_store = &{1'b0, store_req, store_wdata};
    end else begin : gen_shared
      axi_mux #(
        .DATA_W(DATA_W)
      ) u_memory (
        .clk,
        .rst,
        .s_axi_req  ({all_req, store_req}),
        .s_axi_wdata({all_wdata, store_wdata}),
        .s_axi_rsp  ({all_rsp, store_rsp}),
        .m_axi_req,
        .m_axi_wdata,
        .m_axi_rsp
      );
    end

    packet_mux #(
      .DATA_W(DATA_W)
    ) u_mux (
      .clk,
      .rst,
      .s_hdr        (hdrs),
      .s_hdr_valid  (hdrs_valid),
      .s_hdr_ready  (hdrs_ready),
      .s_axis_tdata (parts_tdata),
      .s_axis_tkeep (parts_tkeep),
      .s_axis_tvalid(parts_tvalid),
      .s_axis_tready(parts_tready),
      .s_axis_tlast (parts_tlast),
      .s_axis_soon  ({answer_soon, 1'b0}),
      .hdr,
      .hdr_valid,
      .hdr_ready,
      .m_axis_tdata (payload_tdata),
      .m_axis_tkeep (payload_tkeep),
      .m_axis_tvalid(payload_tvalid),
      .m_axis_tready(payload_tready),
      .m_axis_tlast (payload_tlast)
    );

    // A fault ends the queue pair as software's command does; that of software goes first, then that of an answer.
    if (Pulls) begin : gen_keeper_fault
      logic keeper_fault_q;
      qp_t keeper_fault_qp_q;
      wire stays = fault_q && cmd_valid;
      assign fault_valid = answer_fault_valid || (keeper_fault_q && !stays);
      assign fault_qp    = answer_fault_valid ? answer_fault_qp : keeper_fault_qp_q;
      always_ff @(posedge clk) begin
        if (keeper_fault_valid) keeper_fault_qp_q <= keeper_fault_qp;
        keeper_fault_q <= (keeper_fault_valid || (keeper_fault_q && (answer_fault_valid || stays))) && !rst;
      end
    end else begin : gen_answer_fault
      assign {fault_valid, fault_qp} = {answer_fault_valid, answer_fault_qp};
    end
    assign tx_cmd_valid = cmd_valid || fault_q;
    assign tx_cmd_qp    = cmd_valid ? cmd_qp : fault_qp_q;
    assign tx_cmd_state = cmd_valid ? cmd_state : QpErr;
    always_ff @(posedge clk) begin
      if (fault_valid) fault_qp_q <= fault_qp;
      fault_q <= (fault_valid || (fault_q && cmd_valid)) && !rst;
    end

    assign backlog    = message_backlog | answer_backlog;
    assign sent_valid = message_sent || answer_sent;
    assign sent_qp    = message_sent ? message_qp : answer_qp;
    assign sent_bytes = message_sent ? message_bytes : answer_bytes;
  end else begin : gen_no_responder
    assign {answer_hdr_qp, request_hdr, reading, read_valid, read_taken, keeper_rsp} = '0;
    assign {m_axis_receive_tdata, m_axis_receive_tkeep, m_axis_receive_tuser, m_axis_receive_tvalid} = '0;
    assign m_axis_receive_tlast = 1'b0;
    assign receive_stat.reads = '0;
    assign {hdr, hdr_valid, hdrs_ready[0]} = {hdrs[0], hdrs_valid[0], hdr_ready};
    assign {payload_tdata, payload_tkeep, payload_tvalid, payload_tlast} =
      {parts_tdata[0], parts_tkeep[0], parts_tvalid[0], parts_tlast[0]};
    assign parts_tready = {1'b0, payload_tready};
    assign {hdrs[1], hdrs_valid[1], hdrs_ready[1], parts_tdata[1], parts_tkeep[1], parts_tvalid[1], parts_tlast[1]} = '0;
    assign {tx_cmd_valid, tx_cmd_qp, tx_cmd_state} = {cmd_valid, cmd_qp, cmd_state};
    assign {backlog, sent_valid, sent_qp, sent_bytes} = {message_backlog, message_sent, message_qp, message_bytes};
    assign {m_axi_req, m_axi_wdata, store_rsp} = {store_req, store_wdata, m_axi_rsp};
    assign {tables_req, tables_wdata} = '0;
    wire unused_responder = &{
      1'b0, tables_rsp, tables_rdata, m_axis_receive_tready, window, request, request_valid, hdrs[1], hdrs_valid[1], hdrs_ready[1], parts_tdata[1], parts_tkeep[1],
      parts_tvalid[1], parts_tready[1], parts_tlast[1]
    };
  end

  assign transport_stat.outcome = stat;
  assign receive_stat.cnp = cnp_valid;

  wire unused = &{1'b0, settings};
endmodule
