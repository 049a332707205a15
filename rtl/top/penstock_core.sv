// SPDX-License-Identifier: SHL-2.1
// The front end without its MAC: messages in, completions out, Ethernet frames (no FCS) on both sides,
// registers on AXI4-Lite. Connects its modules and contains no logic of its own.
// Out: messages -> transport -> port -> MAC. In: MAC -> port -> transport and slow control.
module penstock_core
  import penstock_pkg::*;
#(
  parameter  int unsigned DATA_W      = 64,
  parameter  int unsigned CLK_KHZ     = 156250,
  parameter  int unsigned LINE_MBPS   = 10000,
  localparam int unsigned UserW       = $bits(event_pkg::fragment_t),
  `include "front_end_parameters.svh"
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

  // The MAC's counts; whether pause or PFC holds our data now.
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

  // Streams of a detector, one an input with its clock and reset (event_pkg::fragment_t); quiet when N_IN is 0.
  input  logic [Inputs-1:0]          s_event_clk,
  input  logic [Inputs-1:0]          s_event_rst,
  input  logic [Inputs*DATA_W-1:0]   s_axis_event_tdata,
  input  logic [Inputs*DATA_W/8-1:0] s_axis_event_tkeep,
  input  logic [Inputs*UserW-1:0]    s_axis_event_tuser,
  input  logic [Inputs-1:0]          s_axis_event_tvalid,
  output logic [Inputs-1:0]          s_axis_event_tready,
  input  logic [Inputs-1:0]          s_axis_event_tlast,

  // Triggers and time, with TIMING.
  input  timing_pkg::timing_in_t     timing_in,
  output timing_pkg::timing_out_t    timing_out,

  // Rates of the queue pairs over time (cc_sample_t); dropped and counted while not taken.
  output logic [127:0]        m_axis_sample_tdata,
  output logic                m_axis_sample_tvalid,
  input  logic                m_axis_sample_tready,

  // SENDs of peers, and notices of WRITEs with immediate (roce_read_pkg::receive_user_t); quiet without WITH_RECEIVE.
  output logic [DATA_W-1:0]   m_axis_receive_tdata,
  output logic [DATA_W/8-1:0] m_axis_receive_tkeep,
  output roce_read_pkg::receive_user_t m_axis_receive_tuser,
  output logic                m_axis_receive_tvalid,
  input  logic                m_axis_receive_tready,
  output logic                m_axis_receive_tlast,

  // The memory of the rings, when STORE is 1, and of windows; quiet otherwise. m_axi_rst comes with rst.
  input  logic                m_axi_rst,
  output axi_pkg::axi_req_t   m_axi_req,
  output logic [DATA_W-1:0]   m_axi_wdata,
  input  axi_pkg::axi_rsp_t   m_axi_rsp,
  input  logic [DATA_W-1:0]   m_axi_rdata,

  // Registers.
  input  axi_pkg::axil_req_t s_axil_req,
  output axi_pkg::axil_rsp_t s_axil_rsp
);
  import ctrl_pkg::*;

  if (DATA_W != 64 && DATA_W != 512) begin : gen_check_data_w
    $fatal(1, "%m: DATA_W is %0d, must be 64 or 512", DATA_W);
  end
  if (N_QP < 1 || N_QP > 256 || N_QP != 2 ** $clog2(N_QP)) begin : gen_check_n_qp
    $fatal(1, "%m: N_QP is %0d; it must be a power of two, 1 to 256", N_QP);
  end
  if (CLK_KHZ < 1000 || CLK_KHZ > 1_000_000) begin : gen_check_clk_khz
    $fatal(1, "%m: CLK_KHZ is %0d; it must be 1000 to 1000000", CLK_KHZ);
  end
  if (WITH_QCN > 1 || WITH_SOURCE > 1 || WITH_SERVICES > 1 || RETRANSMIT > 1) begin : gen_check_options
    $fatal(1, "%m: WITH_QCN is %0d, WITH_SOURCE %0d, WITH_SERVICES %0d, RETRANSMIT %0d; each must be 0 or 1",
      WITH_QCN, WITH_SOURCE, WITH_SERVICES, RETRANSMIT);
  end
  if (WITH_CN_TAG > WITH_QCN) begin : gen_check_cn_tag
    $fatal(1, "%m: WITH_CN_TAG is %0d with WITH_QCN %0d; it must be 0 or 1, and 0 without QCN", WITH_CN_TAG, WITH_QCN);
  end
  if (WITH_READ > 1 || WITH_RECEIVE > 1) begin : gen_check_responder
    $fatal(1, "%m: WITH_READ is %0d, WITH_RECEIVE %0d; each must be 0 or 1", WITH_READ, WITH_RECEIVE);
  end
  if (WITH_READ + WITH_RECEIVE != 0 && WITH_ROCE == 0) begin : gen_check_windows
    $fatal(1, "%m: WITH_READ is %0d, WITH_RECEIVE %0d with WITH_ROCE %0d; that must be 1", WITH_READ, WITH_RECEIVE,
      WITH_ROCE);
  end
  if (PULL_SLOTS != 0 && (WITH_READ == 0 || WITH_REQUESTER == 0 || WITH_TCP != 0)) begin : gen_check_pull
    $fatal(1, "%m: PULL_SLOTS is %0d with WITH_READ %0d, WITH_REQUESTER %0d, WITH_TCP %0d; these must be 1, 1, 0",
      PULL_SLOTS, WITH_READ, WITH_REQUESTER, WITH_TCP);
  end
  if (PULL_SLOTS != 0 && !(PULL_SLOTS inside {64, 128, 256, 512, 1024, 2048, 4096})) begin : gen_check_pull_slots
    $fatal(1, "%m: PULL_SLOTS is %0d; it must be 0, or a power of two, 64 to 4096", PULL_SLOTS);
  end
  if (WITH_REQUESTER > 1) begin : gen_check_requester
    $fatal(1, "%m: WITH_REQUESTER is %0d; it must be 0 or 1", WITH_REQUESTER);
  end
  if (WITH_REQUESTER == 0 && WITH_READ + WITH_RECEIVE == 0) begin : gen_check_answers
    $fatal(1, "%m: WITH_REQUESTER is 0; WITH_READ or WITH_RECEIVE must be 1");
  end
  if (WITH_REQUESTER == 0 && STORE + N_IN + WITH_SOURCE + WITH_TCP != 0) begin : gen_check_no_messages
    $fatal(1, "%m: WITH_REQUESTER is 0 with STORE %0d, N_IN %0d, WITH_SOURCE %0d, WITH_TCP %0d; these must be 0", STORE,
      N_IN, WITH_SOURCE, WITH_TCP);
  end
  if (WITH_RDMA_CM > 1) begin : gen_check_rdma_cm
    $fatal(1, "%m: WITH_RDMA_CM is %0d; it must be 0 or 1", WITH_RDMA_CM);
  end
  if (WITH_RDMA_CM == 1 && (WITH_SERVICES == 0 || WITH_READ + WITH_RECEIVE == 0)) begin : gen_check_rdma_windows
    $fatal(1, "%m: WITH_RDMA_CM is 1 with WITH_SERVICES %0d, WITH_READ %0d, WITH_RECEIVE %0d; services and one of these must be 1",
      WITH_SERVICES, WITH_READ, WITH_RECEIVE);
  end
  if (WITH_SERVICES == 0 && WITH_TCP != 0) begin : gen_check_services
    $fatal(1, "%m: WITH_SERVICES is 0 with WITH_TCP %0d; it must be 1: streams find their peers by ARP", WITH_TCP);
  end

  localparam int unsigned Targets = WITH_ROCE + WITH_TCP == 0 ? 1 : WITH_ROCE * N_QP + WITH_TCP * N_STREAMS;  // of messages

  // ---- registers -----------------------------------------------------------------------------------
  settings_t settings;
  reg_req_t counters_req, qp_req, rings_req, servers_req, replay_req, latency_req, meter_req;
  reg_req_t event_inputs_req, hooks_req, streams_req;
  reg_rsp_t counters_rsp, qp_rsp, rings_rsp, servers_rsp, replay_rsp, latency_rsp, meter_rsp;
  reg_rsp_t event_inputs_rsp, hooks_rsp, streams_rsp;
  cm_pkg::cm_status_t cm_status;
  slow_control_stat_t slow;
  destination_pkg::destination_status_t destination_status;
  source_pkg::source_status_t source_status;
  timing_pkg::timing_status_t timing_status;
  message_stat_t message_stat;
  transport_stat_t transport_stat;
  receive_stat_t receive_stat;

  axi_pkg::axil_req_t regs_req, slow_req;
  axi_pkg::axil_rsp_t regs_rsp, slow_rsp;

  registers #(
    .DATA_W(DATA_W),
    .N_QP(N_QP),
    .RING_BYTES(RING_BYTES),
    .SLOTS(SLOTS),
    .CLK_KHZ(CLK_KHZ),
    .LINE_MBPS(LINE_MBPS),
    .N_IN(N_IN),
    .EVENT_BYTES(EVENT_BYTES),
    .WITH_ROCE(WITH_ROCE),
    .WITH_TCP(WITH_TCP),
    .N_STREAMS(N_STREAMS),
    .HOOK(HOOK),
    .STREAMING(STREAMING),
    .RETRANSMIT(RETRANSMIT),
    .WITH_QCN(WITH_QCN),
    .WITH_SOURCE(WITH_SOURCE),
    .WITH_SERVICES(WITH_SERVICES),
    .WITH_REQUESTER(WITH_REQUESTER),
    .WITH_READ(WITH_READ),
    .WITH_RECEIVE(WITH_RECEIVE),
    .PULL_SLOTS(PULL_SLOTS),
    .WITH_RDMA_CM(WITH_RDMA_CM)
  ) u_registers (
    .s_axil_req(regs_req),
    .s_axil_rsp(regs_rsp),
    .*
  );

  // ---- tables that peers WRITE and READ ----------------------------------------------------------------
  localparam int unsigned Hooks = HOOK == stages_pkg::HookSuppression ? N_IN : 0;
  localparam bit Tables = WITH_RECEIVE == 1 && (WITH_SOURCE == 1 || Hooks != 0);
  axi_pkg::axi_req_t tables_req;
  axi_pkg::axi_rsp_t tables_rsp;
  logic [DATA_W-1:0] tables_wdata, tables_rdata, fill_data;
  table_fill_t replay_fill, hooks_fill;

  if (Tables) begin : gen_tables
    axi_pkg::axil_req_t read_req;
    axi_pkg::axil_rsp_t read_rsp;
    peer_tables #(
      .DATA_W(DATA_W),
      .SOURCE(WITH_SOURCE == 1),
      .HOOKS(Hooks)
    ) u_tables (
      .clk,
      .rst,
      .s_axi_req  (tables_req),
      .s_axi_wdata(tables_wdata),
      .s_axi_rsp  (tables_rsp),
      .s_axi_rdata(tables_rdata),
      .replay_fill,
      .hooks_fill,
      .fill_data,
      .m_axil_req (read_req),
      .m_axil_rsp (read_rsp)
    );
    axil_mux u_registers_mux (
      .clk,
      .rst,
      .s_axil_req({read_req, slow_req}),
      .s_axil_rsp({read_rsp, slow_rsp}),
      .m_axil_req(regs_req),
      .m_axil_rsp(regs_rsp)
    );
  end else begin : gen_no_tables
    assign {tables_rsp, tables_rdata, replay_fill, hooks_fill, fill_data} = '0;
    assign {regs_req, slow_rsp} = {slow_req, regs_rsp};
    wire unused_tables = &{1'b0, tables_req, tables_wdata};
  end

  logic [Targets-1:0] ready;  // queue pairs or streams that take messages

  // ---- the detector's events -----------------------------------------------------------------------
  logic [175:0] event_desc_tdata;
  logic event_desc_tvalid, event_desc_tready;
  logic [DATA_W-1:0] event_data_tdata;
  logic [DATA_W/8-1:0] event_data_tkeep;
  logic event_data_tvalid, event_data_tready, event_data_tlast;

  logic [31:0] ring_fill;

  event_source #(
    .DATA_W(DATA_W),
    .N_IN(N_IN),
    .EVENT_BYTES(EVENT_BYTES),
    .TIMING(TIMING),
    .CLK_KHZ(CLK_KHZ),
    .SECOND_NS(SECOND_NS),
    .TRIGGERS(TRIGGERS),
    .HOOK(HOOK),
    .STREAMING(STREAMING)
  ) u_event_source (
    .cfg       (settings.events),
    .resync    (settings.events_resync),
    .clear     (settings.clear),
    .stages    (settings.stages),
    .timing_cfg(settings.timing),
    .m_axis_desc_tdata (event_desc_tdata),
    .m_axis_desc_tvalid(event_desc_tvalid),
    .m_axis_desc_tready(event_desc_tready),
    .m_axis_data_tdata (event_data_tdata),
    .m_axis_data_tkeep (event_data_tkeep),
    .m_axis_data_tvalid(event_data_tvalid),
    .m_axis_data_tready(event_data_tready),
    .m_axis_data_tlast (event_data_tlast),
    .stat_message(message_stat.event_message),
    .req(event_inputs_req),
    .rsp(event_inputs_rsp),
    .*
  );

  // ---- messages and where they go --------------------------------------------------------------------
  logic [175:0] desc_tdata;
  logic [63:0] desc_event;
  logic desc_tvalid, desc_tready;
  logic [DATA_W-1:0] message_tdata;
  logic [DATA_W/8-1:0] message_tkeep;
  logic message_tvalid, message_tready, message_tlast;

  if (WITH_REQUESTER == 1) begin : gen_messages
    message_input #(
      .DATA_W(DATA_W),
      .N_QP(Targets),
      .EVENTS(N_IN != 0),
      .SOURCE(WITH_SOURCE == 1),
      .PEERS(Tables),
      .RINGS(WITH_ROCE * N_QP),
      .PULL(PULL_SLOTS != 0)
    ) u_message_input (
      .s_axis_event_desc_tdata (event_desc_tdata),
      .s_axis_event_desc_tvalid(event_desc_tvalid),
      .s_axis_event_desc_tready(event_desc_tready),
      .s_axis_event_data_tdata (event_data_tdata),
      .s_axis_event_data_tkeep (event_data_tkeep),
      .s_axis_event_data_tvalid(event_data_tvalid),
      .s_axis_event_data_tready(event_data_tready),
      .s_axis_event_data_tlast (event_data_tlast),
      .m_axis_desc_tdata (desc_tdata),
      .m_event_number    (desc_event),
      .m_axis_desc_tvalid(desc_tvalid),
      .m_axis_desc_tready(desc_tready),
      .m_axis_data_tdata (message_tdata),
      .m_axis_data_tkeep (message_tkeep),
      .m_axis_data_tvalid(message_tvalid),
      .m_axis_data_tready(message_tready),
      .m_axis_data_tlast (message_tlast),
      .cpl_valid          (m_axis_cpl_tvalid && m_axis_cpl_tready),
      .cpl                (m_axis_cpl_tdata),
      .stat_no_server     (message_stat.no_server),
      .stat_slot_too_small(message_stat.beyond_slot),
      .*
    );
  end else begin : gen_no_messages
    absent_block u_replay (.clk, .rst, .req(replay_req), .rsp(replay_rsp));
    absent_block u_rings (.clk, .rst, .req(rings_req), .rsp(rings_rsp));
    absent_block u_servers (.clk, .rst, .req(servers_req), .rsp(servers_rsp));
    assign {source_status, destination_status, message_stat.no_server, message_stat.beyond_slot} = '0;
    assign {s_axis_desc_tready, s_axis_data_tready, event_desc_tready, event_data_tready} = '0;
    assign {desc_tdata, desc_event, desc_tvalid, message_tdata, message_tkeep, message_tvalid, message_tlast} = '0;
    wire unused_messages = &{
      1'b0, s_axis_desc_tdata, s_axis_desc_tvalid, s_axis_data_tdata, s_axis_data_tkeep, s_axis_data_tvalid,
      s_axis_data_tlast, event_desc_tdata, event_desc_tvalid, event_data_tdata, event_data_tkeep, event_data_tvalid,
      event_data_tlast, desc_tready, message_tready, ready, replay_fill, fill_data
    };
  end

  // ---- the transports ----------------------------------------------------------------------------------
  logic [DATA_W-1:0] transport_tdata, rx_tdata;
  logic [DATA_W/8-1:0] transport_tkeep, rx_tkeep;
  logic transport_tvalid, transport_tready, transport_tlast;
  logic rx_tvalid, rx_tlast, rx_tuser;
  logic qp_err_valid, qp_stop_valid;
  qp_t qp_err_qp, qp_stop_qp;
  logic lookup_valid, lookup_ready, lookup_fresh, found_valid, found;
  logic [31:0] lookup_ip;
  logic [47:0] found_mac;
  tcp_pkg::tcp_stat_t tcp_stat;

  transports #(
    .DATA_W(DATA_W),
    .N_QP(N_QP),
    .RING_BYTES(RING_BYTES),
    .SLOTS(SLOTS),
    .CLK_KHZ(CLK_KHZ),
    .STORE(STORE),
    .AXI_ADDR_W(AXI_ADDR_W),
    .RING_FILL(TIMING == 1),
    .WITH_ROCE(WITH_ROCE),
    .WITH_TCP(WITH_TCP),
    .N_STREAMS(N_STREAMS),
    .RETRANSMIT(RETRANSMIT == 1),
    .WITH_QCN(WITH_QCN == 1),
    .WITH_CN_TAG(WITH_CN_TAG == 1),
    .WITH_REQUESTER(WITH_REQUESTER == 1),
    .WITH_READ(WITH_READ == 1),
    .WITH_RECEIVE(WITH_RECEIVE == 1),
    .TABLES(Tables),
    .PULL_SLOTS(PULL_SLOTS)
  ) u_transports (
    .probe(cm_status.probe),
    .s_axis_desc_tdata (desc_tdata),
    .s_event_number    (desc_event),
    .s_axis_desc_tvalid(desc_tvalid),
    .s_axis_desc_tready(desc_tready),
    .s_axis_data_tdata (message_tdata),
    .s_axis_data_tkeep (message_tkeep),
    .s_axis_data_tvalid(message_tvalid),
    .s_axis_data_tready(message_tready),
    .s_axis_data_tlast (message_tlast),
    .m_axis_tx_tdata (transport_tdata),
    .m_axis_tx_tkeep (transport_tkeep),
    .m_axis_tx_tvalid(transport_tvalid),
    .m_axis_tx_tready(transport_tready),
    .m_axis_tx_tlast (transport_tlast),
    .s_axis_rx_tdata (rx_tdata),
    .s_axis_rx_tkeep (rx_tkeep),
    .s_axis_rx_tvalid(rx_tvalid),
    .s_axis_rx_tlast (rx_tlast),
    .s_axis_rx_tuser (rx_tuser),
    .*
  );

  // ---- port: flow control and VLAN -------------------------------------------------------------------
  eth_pkg::port_cfg_t port_cfg;
  eth_pkg::port_stat_t port_stat;
  logic [DATA_W-1:0] service_tdata;
  logic [DATA_W/8-1:0] service_tkeep;
  logic service_tvalid, service_tready, service_tlast;
  logic [15:0] level_bytes;

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
    .line_share           (mac.line_share),
    .local_mac            (settings.local_mac),
    .level_bytes,
    .tx_paused,
    .stat                 (port_stat),
    .s_axis_roce_tdata    (transport_tdata),
    .s_axis_roce_tkeep    (transport_tkeep),
    .s_axis_roce_tvalid   (transport_tvalid),
    .s_axis_roce_tready   (transport_tready),
    .s_axis_roce_tlast    (transport_tlast),
    .s_axis_service_tdata (service_tdata),
    .s_axis_service_tkeep (service_tkeep),
    .s_axis_service_tvalid(service_tvalid),
    .s_axis_service_tready(service_tready),
    .s_axis_service_tlast (service_tlast),
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

  // ---- all other ways to the registers: network services, IPbus, connection manager -------------------
  slow_control #(
    .DATA_W(DATA_W),
    .N_QP(N_QP),
    .CLK_KHZ(CLK_KHZ),
    .WITH_ROCE(WITH_ROCE),
    .WITH_TCP(WITH_TCP),
    .SERVICES(WITH_SERVICES == 1),
    .RDMA_CM(WITH_RDMA_CM == 1)
  ) u_slow_control (
    .clk,
    .rst,
    .settings,
    .cm_status,
    .stat   (slow),
    .link_up(!mac.local_fault && !mac.remote_fault),
    .qp_err_valid,
    .qp_err_qp,
    .qp_stop_valid,
    .qp_stop_qp,
    .level_bytes,
    .s_axis_rx_tdata (rx_tdata),
    .s_axis_rx_tkeep (rx_tkeep),
    .s_axis_rx_tvalid(rx_tvalid),
    .s_axis_rx_tlast (rx_tlast),
    .s_axis_rx_tuser (rx_tuser),
    .m_axis_tx_tdata (service_tdata),
    .m_axis_tx_tkeep (service_tkeep),
    .m_axis_tx_tvalid(service_tvalid),
    .m_axis_tx_tready(service_tready),
    .m_axis_tx_tlast (service_tlast),
    .m_axil_req(slow_req),
    .m_axil_rsp(slow_rsp),
    .*
  );

  // ---- counters --------------------------------------------------------------------------------------
  event_counters u_counters (
    .clk,
    .rst,
    .clear    (settings.clear),
    .mac,
    .port_stat,
    .tx_paused,
    .slow,
    .message  (message_stat),
    .transport(transport_stat),
    .receive  (receive_stat),
    .tcp      (tcp_stat),
    .req      (counters_req),
    .rsp      (counters_rsp)
  );

  wire unused = &{1'b0, settings};

endmodule
