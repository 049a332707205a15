// SPDX-License-Identifier: SHL-2.1
// TCP between messages and frames, with all parts specific to it: the streams' table and commands, messages as bytes
// of their streams, completions, counts, meters, fill of the rings. The counterpart of roce_transport.
// Connects its modules; adds logic that limits settings to their ranges.
//
//   messages -> tcp_messages -> tcp_endpoint -> frames
//   completions <- tcp_completions <-+ ^ ^ <--- frames
//   registers <-> tcp_table -> tcp_opener <-> ARP
module tcp_transport
  import penstock_pkg::*;
  import ctrl_pkg::*;
  import tcp_pkg::*;
#(
  parameter int unsigned DATA_W     = 64,
  parameter int unsigned N_STREAMS  = 4,
  parameter int unsigned RING_BYTES = 262144,  // of each stream
  parameter int unsigned CLK_KHZ    = 156250,
  parameter int unsigned STORE      = 0,       // rings: 0 on chip, 1 in AXI4 memory (m_axi)
  parameter int unsigned AXI_ADDR_W = 64,
  parameter int unsigned FIRST_RING = 0,       // rings from settings.store_base on before those of streams
  parameter bit          RING_FILL  = 1'b0     // ring_fill is requested
) (
  input  logic                 clk,
  input  logic                 rst,

  input  settings_t            settings,

  // messages: descriptors (desc_t; qp is the stream), and their payloads in the same order; completions (cpl_t)
  input  logic [175:0]         s_axis_desc_tdata,
  input  logic                 s_axis_desc_tvalid,
  output logic                 s_axis_desc_tready,
  input  logic [DATA_W-1:0]    s_axis_data_tdata,
  input  logic [DATA_W/8-1:0]  s_axis_data_tkeep,
  input  logic                 s_axis_data_tvalid,
  output logic                 s_axis_data_tready,
  input  logic                 s_axis_data_tlast,
  output logic [63:0]          m_axis_cpl_tdata,
  output logic                 m_axis_cpl_tvalid,
  input  logic                 m_axis_cpl_tready,

  // frames to and from the port; the receive side cannot be stalled
  output logic [DATA_W-1:0]    m_axis_tx_tdata,
  output logic [DATA_W/8-1:0]  m_axis_tx_tkeep,
  output logic                 m_axis_tx_tvalid,
  input  logic                 m_axis_tx_tready,
  output logic                 m_axis_tx_tlast,
  input  logic [DATA_W-1:0]    s_axis_rx_tdata,
  input  logic [DATA_W/8-1:0]  s_axis_rx_tkeep,
  input  logic                 s_axis_rx_tvalid,
  input  logic                 s_axis_rx_tlast,
  input  logic                 s_axis_rx_tuser,
  input  logic                 tx_paused,

  output logic [N_STREAMS-1:0] ready,      // streams that are established
  output logic [31:0]          ring_fill,  // blocks of 4096 bytes in the fullest ring; 0 without RING_FILL

  // the rings' memory; quiet when they are on chip
  output axi_pkg::axi_req_t    m_axi_req,
  output logic [DATA_W-1:0]    m_axi_wdata,
  input  axi_pkg::axi_rsp_t    m_axi_rsp,
  input  logic [DATA_W-1:0]    m_axi_rdata,
  output logic                 ring_write_error,
  output logic                 ring_read_error,

  // MAC address of the next hop
  output logic                 lookup_valid,
  input  logic                 lookup_ready,
  output logic [31:0]          lookup_ip,
  output logic                 lookup_fresh,
  input  logic                 found_valid,
  input  logic                 found,
  input  logic [47:0]          found_mac,

  // registers of the rows; counters
  input  reg_req_t             streams_req,
  output reg_rsp_t             streams_rsp,
  input  reg_req_t             meter_req,
  output reg_rsp_t             meter_rsp,
  input  reg_req_t             latency_req,
  output reg_rsp_t             latency_rsp,
  output tcp_stat_t            tcp_stat
);
  // ---- settings, those out of range at the nearest; they change between events --------------------------------------
  tcp_cfg_t cfg;
  tcp_params_t bounded, params_q;
  logic busy;
  assign cfg = settings.tcp;
  always_comb begin
    bounded = cfg.params;
    if (16'(cfg.params.mss) < TcpMinMss) bounded.mss = TcpMinMss[13:0];
    if (cfg.params.mss > TcpMaxMss) bounded.mss = TcpMaxMss;
    if (cfg.params.receive_window == '0) bounded.receive_window = 16'd1;
  end
  always_ff @(posedge clk) if (!busy || rst) params_q <= bounded;

  localparam int unsigned StreamW = N_STREAMS > 1 ? $clog2(N_STREAMS) : 1;

  // ---- the table, and the opener of streams -------------------------------------------------------------------------
  logic [N_STREAMS-1:0] opens, aborts, reopen, opening, live, clean, room;
  tcp_end_e [N_STREAMS-1:0] ended;
  tcp_done_t done;
  logic done_valid, peer_rd, unreachable;
  tcp_stream_t opener_stream, count_stream;
  logic [1:0] peer_word;
  logic [31:0] peer_data, count;
  logic [4:0] count_word;
  tcp_peer_t peer;
  tcp_opening_t open_command;
  tcp_stream_t abort_stream;
  logic open_valid, open_ready, moved, abort_valid, abort_ready;
  logic [N_STREAMS-1:0] unanswered;
  always_comb begin
    unanswered = '0;
    unanswered[done.stream[StreamW-1:0]] = done_valid && (done.actions.counts.timeout || done.actions.counts.probe);
  end

  tcp_table #(
    .N_STREAMS(N_STREAMS)
  ) u_table (
    .req(streams_req),
    .rsp(streams_rsp),
    .peer_stream       (opener_stream),
    .unreachable_stream(opener_stream),
    .*
  );

  tcp_opener #(
    .N_STREAMS(N_STREAMS),
    .CLK_KHZ  (CLK_KHZ)
  ) u_opener (
    .reopen_interval(cfg.reopen_interval),
    .secret         (cfg.secret),
    .peer_stream    (opener_stream),
    .*
  );

  // ---- messages to streams ------------------------------------------------------------------------------------------
  tcp_stream_t bytes_stream;
  logic [DATA_W-1:0] bytes_tdata;
  logic [DATA_W/8-1:0] bytes_tkeep;
  logic bytes_tvalid, bytes_tready, bytes_tlast;
  tcp_message_t message;
  logic message_valid, message_ready;

  tcp_messages #(
    .DATA_W   (DATA_W),
    .N_STREAMS(N_STREAMS)
  ) u_messages (
    .framed       (cfg.framed),
    .m_stream     (bytes_stream),
    .m_axis_tdata (bytes_tdata),
    .m_axis_tkeep (bytes_tkeep),
    .m_axis_tvalid(bytes_tvalid),
    .m_axis_tready(bytes_tready),
    .m_axis_tlast (bytes_tlast),
    .*
  );

  // ---- streams and frames -------------------------------------------------------------------------------------------
  tcp_laid_t laid;
  logic laid_valid;
  tcp_rx_counts_t rx_counts;
  logic [AXI_ADDR_W-1:0] ring_base;
  always_ff @(posedge clk)
    ring_base <= settings.store_base[AXI_ADDR_W-1:0] + (AXI_ADDR_W'(FIRST_RING) << $clog2(RING_BYTES));

  tcp_endpoint #(
    .DATA_W    (DATA_W),
    .N_STREAMS (N_STREAMS),
    .RING_BYTES(RING_BYTES),
    .CLK_KHZ   (CLK_KHZ),
    .STORE     (STORE),
    .AXI_ADDR_W(AXI_ADDR_W)
  ) u_endpoint (
    .local_mac(settings.local_mac),
    .local_ip (settings.local_ip),
    .ttl      (settings.ttl),
    .tos      (cfg.tos),
    .port_base(cfg.port_base),
    .params   (params_q),
    .s_msg_stream     (bytes_stream),
    .s_axis_msg_tdata (bytes_tdata),
    .s_axis_msg_tkeep (bytes_tkeep),
    .s_axis_msg_tvalid(bytes_tvalid),
    .s_axis_msg_tready(bytes_tready),
    .s_axis_msg_tlast (bytes_tlast),
    .s_axis_tdata (s_axis_rx_tdata),
    .s_axis_tkeep (s_axis_rx_tkeep),
    .s_axis_tvalid(s_axis_rx_tvalid),
    .s_axis_tlast (s_axis_rx_tlast),
    .s_axis_tuser (s_axis_rx_tuser),
    .m_axis_tdata (m_axis_tx_tdata),
    .m_axis_tkeep (m_axis_tx_tkeep),
    .m_axis_tvalid(m_axis_tx_tvalid),
    .m_axis_tready(m_axis_tx_tready),
    .m_axis_tlast (m_axis_tx_tlast),
    .*
  );

  // ---- completions and counts ---------------------------------------------------------------------------------------
  tcp_completions #(
    .N_STREAMS(N_STREAMS)
  ) u_completions (
    .*
  );

  cpl_t cpl;
  logic completed, of_stream;
  assign cpl       = m_axis_cpl_tdata;
  assign completed = m_axis_cpl_tvalid && m_axis_cpl_tready;
  assign of_stream = 32'(cpl.qp) < N_STREAMS;

  tcp_counters #(
    .N_STREAMS(N_STREAMS)
  ) u_counters (
    .clear     (settings.clear),
    .cpl_stream(tcp_stream_t'(cpl.qp)),
    .cpl_ok    (cpl.status == WcSuccess),
    .cpl_valid (completed && of_stream),
    .rd_stream (count_stream),
    .rd_word   (count_word),
    .rd_count  (count),
    .*
  );

  desc_t desc;
  assign desc = s_axis_desc_tdata;
  tcp_meter #(
    .N_STREAMS (N_STREAMS),
    .RING_BYTES(RING_BYTES)
  ) u_meter (
    .clear    (settings.clear),
    .arm_valid(s_axis_desc_tvalid && s_axis_desc_tready && desc.series),
    .arm_qp   (desc.qp),
    .req      (meter_req),
    .rsp      (meter_rsp),
    .*
  );

  assign tcp_stat = '{
    rx:        rx_counts,
    opened:    done_valid && done.actions.opened,
    ended:     done_valid && done.actions.ended != TcpNotEnded,
    completed: completed
  };

  // ---- fill of the rings, in blocks of 4096 bytes -------------------------------------------------------------------
  if (RING_FILL) begin : gen_ring_fill
    roce_tx_pkg::ring_status_t held;
    logic held_valid_q;
    tcp_stream_t held_stream_q;
    tcp_seq_t bytes_q;
    always_ff @(posedge clk) begin
      held_valid_q  <= done_valid && !rst;
      held_stream_q <= done.stream;
      bytes_q       <= done.state == TcpClosed ? '0 : done.written - done.una;
    end
    always_comb begin
      held       = '0;
      held.state = QpRts;
      held.wr    = psn_t'((bytes_q + 32'd4095) >> 12);
    end
    ring_fill #(.N_QP(N_STREAMS)) u_ring_fill (
      .clk, .rst,
      .stat_valid (held_valid_q),
      .stat_qp    (qp_t'(held_stream_q)),
      .stat_status(held),
      .fill       (ring_fill)
    );
  end else begin : gen_no_ring_fill
    assign ring_fill = '0;
  end

  wire unused = &{1'b0, settings, cpl, desc};
endmodule
