// SPDX-License-Identifier: SHL-2.1
// The front end without its MAC: messages in, completions out, Ethernet frames (no FCS) on both sides,
// registers on AXI4-Lite. Joins the rooms and holds no logic of its own.
// Design section 2: descriptor -> transport -> framer -> ICRC -> port -> MAC; MAC -> port -> parser -> acknowledgement receiver.
module penstock_core
  import penstock_pkg::*;
#(
  parameter int unsigned DATA_W     = 64,
  parameter int unsigned N_QP       = 4,
  parameter int unsigned RING_BYTES = 262144,  // payload bytes kept per queue pair
  parameter int unsigned SLOTS      = 256,     // packets kept per queue pair
  parameter int unsigned CLK_KHZ    = 156250,
  parameter int unsigned LINE_MBPS  = 10000
) (
  input logic clk,
  input logic rst,

  // Frames to and from the MAC; the receive side cannot be stalled, tuser marks a bad frame at tlast.
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

  // What the MAC has seen; whether pause or PFC holds our data now.
  input  eth_pkg::mac_status_t mac,
  output logic                 tx_paused,

  // Work requests, message payloads in the same order, completions.
  input  logic [175:0]        s_axis_desc_tdata,
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

  // Rates of the queue pairs over time (cc_sample_t); dropped and counted while not taken.
  output logic [127:0]        m_axis_sample_tdata,
  output logic                m_axis_sample_tvalid,
  input  logic                m_axis_sample_tready,

  // Registers.
  input  logic [17:0] s_axil_awaddr,
  input  logic [2:0]  s_axil_awprot,
  input  logic        s_axil_awvalid,
  output logic        s_axil_awready,
  input  logic [31:0] s_axil_wdata,
  input  logic [3:0]  s_axil_wstrb,
  input  logic        s_axil_wvalid,
  output logic        s_axil_wready,
  output logic [1:0]  s_axil_bresp,
  output logic        s_axil_bvalid,
  input  logic        s_axil_bready,
  input  logic [17:0] s_axil_araddr,
  input  logic [2:0]  s_axil_arprot,
  input  logic        s_axil_arvalid,
  output logic        s_axil_arready,
  output logic [31:0] s_axil_rdata,
  output logic [1:0]  s_axil_rresp,
  output logic        s_axil_rvalid,
  input  logic        s_axil_rready
);
  import ctrl_pkg::*;
  import penstock_regs_pkg::*;
  import roce_tx_pkg::qp_tx_counters_t, roce_tx_pkg::outcome_t, roce_tx_pkg::ring_status_t;

  if (DATA_W != 64 && DATA_W != 512) begin : gen_check_data_w
    $error("%m: DATA_W is %0d, must be 64 or 512", DATA_W);
  end

  // ---- registers and queue-pair table --------------------------------------------------------------
  settings_t settings;
  reg_req_t counters_req, qp_req, rings_req, servers_req, replay_req, latency_req;
  reg_rsp_t counters_rsp, qp_rsp, rings_rsp, servers_rsp, replay_rsp, latency_rsp;
  cm_pkg::cm_status_t cm_status;
  slow_control_stat_t slow;
  destination_pkg::destination_status_t destination_status;
  source_pkg::source_status_t source_status;
  logic [CntNumber-1:0] pulse;

  assign cm_status = '0;
  assign slow = '0;

  registers #(
    .DATA_W(DATA_W),
    .N_QP(N_QP),
    .RING_BYTES(RING_BYTES),
    .SLOTS(SLOTS),
    .CLK_KHZ(CLK_KHZ),
    .LINE_MBPS(LINE_MBPS)
  ) u_registers (
    .*
  );

  counters u_counters (
    .clk,
    .rst,
    .clear(settings.clear),
    .pulse,
    .req(counters_req),
    .rsp(counters_rsp)
  );

  localparam int unsigned NCfg = 2;  // readers of queue-pair rows: transport, acknowledgement receiver

  qp_t       [NCfg-1:0] cfg_qp;
  logic      [NCfg-1:0] cfg_rd;
  qp_cfg_t   [NCfg-1:0] cfg;
  logic                 cmd_valid, qp_err_valid;
  qp_t                  cmd_qp, qp_err_qp, st_qp;
  qp_state_e            cmd_state, st_state;
  logic                 st_drained;
  psn_t                 st_una, st_nxt, st_wr;
  qp_tx_counters_t      st_counters;
  logic          [63:0] st_bytes_acked;
  cc_status_t           st_cc;
  logic                 cc_choice_valid;
  cc_choice_t           cc_choice;
  logic      [N_QP-1:0] ready;

  qp_table #(
    .N_QP(N_QP),
    .N_PORTS(NCfg)
  ) u_qp_table (
    .clk,
    .rst,
    .req(qp_req),
    .rsp(qp_rsp),
    .cfg_qp,
    .cfg_rd,
    .cfg,
    .cmd_valid,
    .cmd_qp,
    .cmd_state,
    .qp_err_valid,
    .qp_err_qp,
    .ready,
    .st_qp,
    .st_state,
    .st_drained,
    .st_una,
    .st_nxt,
    .st_wr,
    .st_counters,
    .st_bytes_acked,
    .st_cc,
    .cc_choice_valid,
    .cc_choice
  );

  // ---- messages: the user's and those of the message source ------------------------------------------
  logic [175:0] source_desc_tdata, message_desc_tdata;
  logic source_desc_tvalid, source_desc_tready, message_desc_tvalid, message_desc_tready;
  logic [DATA_W-1:0] source_tdata, message_tdata;
  logic [DATA_W/8-1:0] source_tkeep, message_tkeep;
  logic source_tvalid, source_tready, source_tlast, message_tvalid, message_tready, message_tlast;

  message_source #(
    .DATA_W(DATA_W)
  ) u_source (
    .clk,
    .rst,
    .cfg   (settings.source),
    .start (settings.source_start),
    .stop  (settings.source_stop),
    .clear (settings.clear),
    .status(source_status),
    .replay_req,
    .replay_rsp,
    .m_axis_desc_tdata (source_desc_tdata),
    .m_axis_desc_tvalid(source_desc_tvalid),
    .m_axis_desc_tready(source_desc_tready),
    .m_axis_data_tdata (source_tdata),
    .m_axis_data_tkeep (source_tkeep),
    .m_axis_data_tvalid(source_tvalid),
    .m_axis_data_tready(source_tready),
    .m_axis_data_tlast (source_tlast)
  );

  message_mux #(
    .DATA_W(DATA_W)
  ) u_message_mux (
    .clk,
    .rst,
    .s_axis_desc_tdata,
    .s_axis_desc_tvalid,
    .s_axis_desc_tready,
    .s_axis_data_tdata,
    .s_axis_data_tkeep,
    .s_axis_data_tvalid,
    .s_axis_data_tready,
    .s_axis_data_tlast,
    .s_axis_source_desc_tdata (source_desc_tdata),
    .s_axis_source_desc_tvalid(source_desc_tvalid),
    .s_axis_source_desc_tready(source_desc_tready),
    .s_axis_source_data_tdata (source_tdata),
    .s_axis_source_data_tkeep (source_tkeep),
    .s_axis_source_data_tvalid(source_tvalid),
    .s_axis_source_data_tready(source_tready),
    .s_axis_source_data_tlast (source_tlast),
    .m_axis_desc_tdata (message_desc_tdata),
    .m_axis_desc_tvalid(message_desc_tvalid),
    .m_axis_desc_tready(message_desc_tready),
    .m_axis_data_tdata (message_tdata),
    .m_axis_data_tkeep (message_tkeep),
    .m_axis_data_tvalid(message_tvalid),
    .m_axis_data_tready(message_tready),
    .m_axis_data_tlast (message_tlast)
  );

  // ---- where messages go -----------------------------------------------------------------------------
  logic [175:0] desc_tdata;
  logic desc_tvalid, desc_tready;

  destination #(
    .N_QP(N_QP)
  ) u_destination (
    .clk,
    .rst,
    .s_axis_desc_tdata (message_desc_tdata),
    .s_axis_desc_tvalid(message_desc_tvalid),
    .s_axis_desc_tready(message_desc_tready),
    .m_axis_desc_tdata (desc_tdata),
    .m_axis_desc_tvalid(desc_tvalid),
    .m_axis_desc_tready(desc_tready),
    .cfg   (settings.destination),
    .status(destination_status),
    .rings_req,
    .rings_rsp,
    .servers_req,
    .servers_rsp,
    .stat_no_server     (pulse[CntEventsWithoutServer]),
    .stat_slot_too_small(pulse[CntMessagesBeyondSlot])
  );

  // ---- transmit: transport, framer, ICRC -------------------------------------------------------------
  tx_hdr_t hdr;
  logic hdr_valid, hdr_ready;
  ack_event_t ack;
  logic ack_valid;
  logic [N_QP-1:0] cc_eligible, backlog;
  logic sent_valid;
  qp_t sent_qp;
  logic [15:0] sent_bytes;
  logic stat_valid, stat_init;
  qp_t stat_qp;
  psn_t stat_psn;
  outcome_t stat;
  ring_status_t stat_status;

  logic [DATA_W-1:0] payload_tdata, frame_tdata;
  logic [DATA_W/8-1:0] payload_tkeep, frame_tkeep;
  logic payload_tvalid, payload_tready, payload_tlast;
  logic frame_tvalid, frame_tready, frame_tlast;

  logic [DATA_W-1:0] roce_tdata, rx_tdata;
  logic [DATA_W/8-1:0] roce_tkeep, rx_tkeep;
  logic roce_tvalid, roce_tready, roce_tlast;
  logic rx_tvalid, rx_tlast, rx_tuser;

  roce_tx #(
    .DATA_W(DATA_W),
    .N_QP(N_QP),
    .RING_BYTES(RING_BYTES),
    .SLOTS(SLOTS),
    .CLK_KHZ(CLK_KHZ)
  ) u_roce_tx (
    .clk,
    .rst,
    .qpn_base(settings.qpn_base),
    .cut_through(settings.cut_through),
    .keep_alive_ticks(settings.keep_alive_ticks),
    .s_axis_desc_tdata (desc_tdata),
    .s_axis_desc_tvalid(desc_tvalid),
    .s_axis_desc_tready(desc_tready),
    .s_axis_data_tdata (message_tdata),
    .s_axis_data_tkeep (message_tkeep),
    .s_axis_data_tvalid(message_tvalid),
    .s_axis_data_tready(message_tready),
    .s_axis_data_tlast (message_tlast),
    .m_axis_cpl_tdata,
    .m_axis_cpl_tvalid,
    .m_axis_cpl_tready,
    .hdr,
    .hdr_valid,
    .hdr_ready,
    .m_axis_tdata (payload_tdata),
    .m_axis_tkeep (payload_tkeep),
    .m_axis_tvalid(payload_tvalid),
    .m_axis_tready(payload_tready),
    .m_axis_tlast (payload_tlast),
    .ack,
    .ack_valid,
    .cfg_qp(cfg_qp[0]),
    .cfg_rd(cfg_rd[0]),
    .cfg   (cfg[0]),
    .cmd_valid,
    .cmd_qp,
    .cmd_state,
    .qp_err_valid,
    .qp_err_qp,
    .cc_eligible,
    .backlog,
    .sent_valid,
    .sent_qp,
    .sent_bytes,
    .tx_paused,
    // the send rings are on chip
    .store_base('0), .store_write_error(), .store_read_error(),
    .m_axi_awid(), .m_axi_awaddr(), .m_axi_awlen(), .m_axi_awsize(), .m_axi_awburst(), .m_axi_awlock(),
    .m_axi_awcache(), .m_axi_awprot(), .m_axi_awvalid(), .m_axi_wdata(), .m_axi_wstrb(), .m_axi_wlast(),
    .m_axi_wvalid(), .m_axi_bready(), .m_axi_arid(), .m_axi_araddr(), .m_axi_arlen(), .m_axi_arsize(),
    .m_axi_arburst(), .m_axi_arlock(), .m_axi_arcache(), .m_axi_arprot(), .m_axi_arvalid(), .m_axi_rready(),
    .m_axi_awready('0), .m_axi_wready('0), .m_axi_bid('0), .m_axi_bresp('0), .m_axi_bvalid('0),
    .m_axi_arready('0), .m_axi_rid('0), .m_axi_rdata('0), .m_axi_rresp('0), .m_axi_rlast('0), .m_axi_rvalid('0),
    .st_qp,
    .st_state,
    .st_drained,
    .st_una,
    .st_nxt,
    .st_wr,
    .st_counters,
    .st_bytes_acked,
    .clear_counters(settings.clear),
    .stat_valid,
    .stat_init,
    .stat_qp,
    .stat_psn,
    .stat,
    .stat_status
  );

  latency_histogram #(
    .N_QP(N_QP)
  ) u_latency (
    .clk,
    .rst,
    .clear(settings.clear),
    .stat_valid,
    .stat_init,
    .stat_qp,
    .stat_psn,
    .stat,
    .stat_status,
    .req(latency_req),
    .rsp(latency_rsp)
  );

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
    .m_axis_tdata (roce_tdata),
    .m_axis_tkeep (roce_tkeep),
    .m_axis_tvalid(roce_tvalid),
    .m_axis_tready(roce_tready),
    .m_axis_tlast (roce_tlast)
  );

  // ---- port: flow control and VLAN -------------------------------------------------------------------
  eth_pkg::port_cfg_t port_cfg;
  eth_pkg::port_stat_t port_stat;

  assign port_cfg = '{
      vlan: settings.vlan,
      flow_control: '{
          pause_en: settings.pause_en, pfc_en: settings.pfc_en, traffic_class: settings.traffic_class
      },
      pause_tx: settings.pause_tx
  };

  eth_port #(
    .DATA_W(DATA_W),
    .CLK_KHZ(CLK_KHZ),
    .LINE_MBPS(LINE_MBPS)
  ) u_port (
    .clk,
    .rst,
    .cfg                  (port_cfg),
    .local_mac            (settings.local_mac),
    .level_bytes          ('0),
    .tx_paused,
    .stat                 (port_stat),
    .s_axis_roce_tdata    (roce_tdata),
    .s_axis_roce_tkeep    (roce_tkeep),
    .s_axis_roce_tvalid   (roce_tvalid),
    .s_axis_roce_tready   (roce_tready),
    .s_axis_roce_tlast    (roce_tlast),
    .s_axis_service_tdata ('0),
    .s_axis_service_tkeep ('0),
    .s_axis_service_tvalid(1'b0),
    .s_axis_service_tready(),
    .s_axis_service_tlast (1'b0),
    .m_axis_mac_tdata     (m_axis_tx_tdata),
    .m_axis_mac_tkeep     (m_axis_tx_tkeep),
    .m_axis_mac_tvalid    (m_axis_tx_tvalid),
    .m_axis_mac_tready    (m_axis_tx_tready),
    .m_axis_mac_tlast     (m_axis_tx_tlast),
    .s_axis_mac_tdata     (s_axis_rx_tdata),
    .s_axis_mac_tkeep     (s_axis_rx_tkeep),
    .s_axis_mac_tvalid    (s_axis_rx_tvalid),
    .s_axis_mac_tlast     (s_axis_rx_tlast),
    .s_axis_mac_tuser     (s_axis_rx_tuser),
    .m_axis_rx_tdata      (rx_tdata),
    .m_axis_rx_tkeep      (rx_tkeep),
    .m_axis_rx_tvalid     (rx_tvalid),
    .m_axis_rx_tlast      (rx_tlast),
    .m_axis_rx_tuser      (rx_tuser)
  );

  // ---- receive: parser, acknowledgement receiver ------------------------------------------------------
  rx_roce_t rx;
  logic rx_valid;
  logic cnp_valid, cnp_ignored, cnm_valid;
  qp_t cnp_qp, cnm_qp;
  feedback_t cnm_feedback;

  roce_rx #(
    .DATA_W(DATA_W)
  ) u_roce_rx (
    .clk,
    .rst,
    .local_mac    (settings.local_mac),
    .local_ip     (settings.local_ip),
    .s_axis_tdata (rx_tdata),
    .s_axis_tkeep (rx_tkeep),
    .s_axis_tvalid(rx_tvalid),
    .s_axis_tlast (rx_tlast),
    .s_axis_tuser (rx_tuser),
    .rx,
    .rx_valid,
    .stat_rx_roce   (pulse[CntRxRocePackets]),
    .stat_icrc_error(pulse[CntRxIcrcEncapsulated]),
    .stat_bad_pkey  (),
    .stat_malformed (pulse[CntRxMalformed]),
    .stat_not_for_us(pulse[CntRxNotForUs]),
    .stat_other     (pulse[CntRxOther])
  );

  ack_receiver #(
    .N_QP(N_QP)
  ) u_ack_receiver (
    .clk,
    .rst,
    .qpn_base(settings.qpn_base),
    .rx,
    .rx_valid,
    .cfg_rd(cfg_rd[1]),
    .cfg_qp(cfg_qp[1]),
    .cfg   (cfg[1]),
    .ready,
    .ack,
    .ack_valid,
    .cnp_valid,
    .cnp_qp,
    .stat_unknown_qp(pulse[CntRxUnknownQp]),
    .stat_wrong_peer(pulse[CntRxWrongPeer]),
    .stat_not_ready (pulse[CntRxNotReady]),
    .stat_unserved  (pulse[CntRxUnserved])
  );

  // ---- congestion control ----------------------------------------------------------------------------
  cnm_receiver #(
    .DATA_W(DATA_W),
    .N_QP(N_QP)
  ) u_cnm_receiver (
    .clk,
    .rst,
    .local_mac(settings.local_mac),
    .ready,
    .s_axis_tdata (rx_tdata),
    .s_axis_tkeep (rx_tkeep),
    .s_axis_tvalid(rx_tvalid),
    .s_axis_tlast (rx_tlast),
    .s_axis_tuser (rx_tuser),
    .cnm_valid,
    .cnm_qp,
    .cnm_feedback,
    .stat_rx_cnm   (pulse[CntRxCnmPackets]),
    .stat_not_ready(pulse[CntRxCnmNotReady])
  );

  logic act_cnp_valid, act_cnm_valid;
  qp_t act_cnp_qp, act_cnm_qp;
  feedback_t act_cnm_feedback;

  cnp_limiter u_cnp_limiter (
    .clk,
    .rst,
    .interval(settings.cnp_interval),
    .burst   (settings.cnp_burst),
    .in_cnp_valid   (cnp_valid),
    .in_cnp_qp      (cnp_qp),
    .in_cnm_valid   (cnm_valid),
    .in_cnm_qp      (cnm_qp),
    .in_cnm_feedback(cnm_feedback),
    .cnp_valid   (act_cnp_valid),
    .cnp_qp      (act_cnp_qp),
    .cnm_valid   (act_cnm_valid),
    .cnm_qp      (act_cnm_qp),
    .cnm_feedback(act_cnm_feedback),
    .stat_refused(pulse[CntRxCnpRefused])
  );

  cc_engine #(
    .N_QP(N_QP),
    .PacketCyclesLog2($clog2(4096 / (DATA_W / 8)))
  ) u_cc_engine (
    .clk,
    .rst,
    .params    (settings.cc),
    .qcn_params(settings.qcn),
    .choice_valid(cc_choice_valid),
    .choice_qp   (cmd_qp),
    .choice      (cc_choice),
    .init_valid(cmd_valid && cmd_state == QpRts),
    .init_qp   (cmd_qp),
    .cnp_valid   (act_cnp_valid),
    .cnp_qp      (act_cnp_qp),
    .cnm_valid   (act_cnm_valid),
    .cnm_qp      (act_cnm_qp),
    .cnm_feedback(act_cnm_feedback),
    .cnp_ignored,
    .sent_valid,
    .sent_qp,
    .sent_bytes,
    .backlog,
    .paused    (tx_paused),
    .eligible  (cc_eligible),
    .st_qp,
    .st        (st_cc),
    .sampling  (settings.sampling),
    .m_axis_sample_tdata,
    .m_axis_sample_tvalid,
    .m_axis_sample_tready,
    .sample_dropped(pulse[CntSamplesDropped])
  );

  // ---- what is counted -------------------------------------------------------------------------------
  assign pulse[CntTxFrames]      = mac.tx_frame;
  assign pulse[CntTxUnderruns]   = mac.tx_underrun;
  assign pulse[CntTxPauseCycles] = tx_paused;
  assign pulse[CntRxFrames]      = mac.rx_frame;
  assign pulse[CntRxFcsErrors]   = mac.rx_bad_fcs;
  assign pulse[CntRxBadFrames]   = mac.rx_bad_frame;
  assign pulse[CntRxPause]       = port_stat.rx_pause;
  assign pulse[CntRxPfc]         = port_stat.rx_pfc;
  assign pulse[CntRxUndersize]   = mac.rx_undersize;
  assign pulse[CntRxOversize]    = mac.rx_oversize;
  assign pulse[CntLinkFaults]    = mac.link_fault;
  assign pulse[CntTxDropped]     = mac.tx_dropped;
  assign pulse[CntRxVlanDrop]    = port_stat.rx_vlan_drop;
  assign pulse[CntTxPause]       = port_stat.tx_pause;
  assign pulse[CntTxPfc]         = port_stat.tx_pfc;
  assign pulse[CntRxCnpPackets]  = cnp_valid;
  assign pulse[CntRpCnpIgnored]  = cnp_ignored;

  assign pulse[CntPacketsSent]          = sent_valid;
  assign pulse[CntPacketsRetransmitted] = stat.retransmit;
  assign pulse[CntPacketSeqErr]         = stat.packet_seq_err;
  assign pulse[CntRnrNak]               = stat.rnr_nak;
  assign pulse[CntLocalAckTimeoutErr]   = stat.timeout;
  assign pulse[CntStaleAcks]            = stat.stale_ack;
  assign pulse[CntMessagesDone]         = stat.complete;
  assign pulse[CntQpErrors]             = qp_err_valid;

  assign pulse[CntServiceRxFrames]   = slow.rx.rx_frames;
  assign pulse[CntServiceRxOverflow] = slow.rx.rx_overflow;
  assign pulse[CntServiceRxForeign]  = slow.rx.rx_foreign;
  assign pulse[CntIpMalformed]       = slow.services.malformed;
  assign pulse[CntIpFragments]       = slow.services.fragments;
  assign pulse[CntIpNotForUs]        = slow.services.not_for_us;
  assign pulse[CntIpChecksum]        = slow.services.checksum;
  assign pulse[CntIpUnserved]        = slow.services.unserved;
  assign pulse[CntArpRequests]       = slow.services.arp_requests;
  assign pulse[CntArpReplies]        = slow.services.arp_replies;
  assign pulse[CntArpRefused]        = slow.services.arp_refused;
  assign pulse[CntArpConflicts]      = slow.services.arp_conflicts;
  assign pulse[CntArpRequestsSent]   = slow.services.arp_requests_sent;
  assign pulse[CntArpUnresolved]     = slow.services.arp_unresolved;
  assign pulse[CntIcmpEchoReplies]   = slow.services.echo_replies;
  assign pulse[CntIcmpEchoDropped]   = slow.services.echo_dropped;
  assign pulse[CntUdpDropped]        = slow.services.udp_dropped;
  assign pulse[CntCmMalformed]       = slow.services.cm_malformed;
  assign pulse[CntServiceTxFrames]   = slow.services.tx_frames;
  assign pulse[CntIpbusPackets]      = slow.ipbus.packets;
  assign pulse[CntIpbusMalformed]    = slow.ipbus.malformed;
  assign pulse[CntIpbusOutOfOrder]   = slow.ipbus.out_of_order;
  assign pulse[CntIpbusResent]       = slow.ipbus.resent;
  assign pulse[CntIpbusBusErrors]    = slow.ipbus.bus_errors;
  assign pulse[CntIpbusBadHeaders]   = slow.ipbus.bad_headers;
  assign pulse[CntCmRequests]        = slow.cm_requests;
  assign pulse[CntCmRefused]         = slow.cm_refused;
  assign pulse[CntCmIgnored]         = slow.cm_ignored;
  assign pulse[CntCmTimeouts]        = slow.cm_timeouts;
  assign pulse[CntCmPeersLost]       = slow.cm_peers_lost;

  // The rest of an operation's outcome concerns the transport alone, which also counts per queue pair.
  wire unused = &{1'b0, settings};

endmodule
