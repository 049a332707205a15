// SPDX-License-Identifier: SHL-2.1
// The transports of a front end between messages and frames: RoCEv2 to queue pairs, TCP to streams, or both.
// With both, targets below N_QP are queue pairs, those from N_QP on the streams. With STORE = 1 the rings of all
// targets are in one AXI4 memory, in that order; transactions of streams have ID 1 if there are queue pairs, too, and those
// of READs if there are rings of queue pairs.
// Requests to the memory outlive `rst` (axi_reset_guard).
// Connects its modules and contains no logic of its own.
module transports
  import penstock_pkg::*;
  import ctrl_pkg::*;
#(
  parameter  int unsigned DATA_W     = 64,
  parameter  int unsigned N_QP       = 4,
  parameter  int unsigned RING_BYTES = 262144,  // of each queue pair and stream
  parameter  int unsigned SLOTS      = 256,
  parameter  int unsigned CLK_KHZ    = 156250,
  parameter  int unsigned STORE      = 0,       // rings: 0 on chip, 1 in AXI4 memory (m_axi)
  parameter  int unsigned AXI_ADDR_W = 64,
  parameter  bit          RING_FILL  = 1'b0,
  parameter  int unsigned WITH_ROCE  = 1,
  parameter  int unsigned WITH_TCP   = 0,
  parameter  int unsigned N_STREAMS  = 4,
  parameter  bit          RETRANSMIT = 1'b1,    // of RoCE
  parameter  bit          WITH_QCN   = 1'b1,
  parameter  bit          WITH_CN_TAG = 1'b0,   // frames of queue pairs under QCN carry a CN-TAG
  parameter  bit          WITH_REQUESTER = 1'b1,  // 0: messages do not go by RoCE; peers are answered alone
  parameter  bit          WITH_READ  = 1'b0,    // peers of queue pairs may READ the memory at m_axi,
  parameter  bit          WITH_RECEIVE = 1'b0,  // and WRITE there, and SEND
  parameter  bit          TABLES     = 1'b0,    // addresses from 2^63 on are those of tables
  parameter  int unsigned PULL_SLOTS = 0,       // fragments that queue pairs keep for their servers
  localparam int unsigned Targets    = WITH_ROCE + WITH_TCP == 0 ? 1 : WITH_ROCE * N_QP + WITH_TCP * N_STREAMS
) (
  input  logic                clk,
  input  logic                rst,

  input  settings_t           settings,
  input  logic                probe,            // as of roce_transport

  // messages: descriptors (desc_t), and their payloads in the same order; completions (cpl_t)
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

  // frames to and from the port
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

  output logic [Targets-1:0]  ready,
  output logic [31:0]         ring_fill,

  // of RoCE; quiet without it
  output logic                qp_err_valid,
  output qp_t                 qp_err_qp,
  output logic                qp_stop_valid,
  output qp_t                 qp_stop_qp,
  output logic [127:0]        m_axis_sample_tdata,
  output logic                m_axis_sample_tvalid,
  input  logic                m_axis_sample_tready,

  // SENDs of peers, and notices of WRITEs with immediate (roce_read_pkg::receive_user_t); quiet without
  output logic [DATA_W-1:0]   m_axis_receive_tdata,
  output logic [DATA_W/8-1:0] m_axis_receive_tkeep,
  output roce_read_pkg::receive_user_t m_axis_receive_tuser,
  output logic                m_axis_receive_tvalid,
  input  logic                m_axis_receive_tready,
  output logic                m_axis_receive_tlast,

  // the rings' memory, or that of windows; quiet without either. m_axi_rst comes with rst
  input  logic                m_axi_rst,
  output axi_pkg::axi_req_t   m_axi_req,
  output logic [DATA_W-1:0]   m_axi_wdata,
  input  axi_pkg::axi_rsp_t   m_axi_rsp,
  input  logic [DATA_W-1:0]   m_axi_rdata,

  // tables that peers WRITE and READ; quiet without TABLES
  output axi_pkg::axi_req_t   tables_req,
  output logic [DATA_W-1:0]   tables_wdata,
  input  axi_pkg::axi_rsp_t   tables_rsp,
  input  logic [DATA_W-1:0]   tables_rdata,

  // of TCP; quiet without it
  output logic                lookup_valid,
  input  logic                lookup_ready,
  output logic [31:0]         lookup_ip,
  output logic                lookup_fresh,
  input  logic                found_valid,
  input  logic                found,
  input  logic [47:0]         found_mac,

  // registers; counters
  input  reg_req_t            qp_req,
  output reg_rsp_t            qp_rsp,
  input  reg_req_t            latency_req,
  output reg_rsp_t            latency_rsp,
  input  reg_req_t            meter_req,
  output reg_rsp_t            meter_rsp,
  input  reg_req_t            streams_req,
  output reg_rsp_t            streams_rsp,
  output transport_stat_t     transport_stat,
  output receive_stat_t       receive_stat,
  output tcp_pkg::tcp_stat_t  tcp_stat
);
  if (WITH_ROCE > 1 || WITH_TCP > 1 || WITH_ROCE + WITH_TCP == 0) begin : gen_check_transport
    $fatal(1, "%m: WITH_ROCE is %0d, WITH_TCP %0d; each must be 0 or 1, and one of them 1", WITH_ROCE, WITH_TCP);
  end
  if (N_STREAMS < 1 || N_STREAMS > tcp_pkg::TcpMaxStreams) begin : gen_check_streams
    $fatal(1, "%m: N_STREAMS is %0d; it must be 1 to %0d", N_STREAMS, tcp_pkg::TcpMaxStreams);
  end
  if (Targets > 256) begin : gen_check_targets
    $fatal(1, "%m: N_QP is %0d with N_STREAMS %0d; together they must be 256 or less", N_QP, N_STREAMS);
  end
  if ((WITH_READ || WITH_RECEIVE) && STORE == 1 && WITH_TCP == 1) begin : gen_check_masters
    $fatal(1, "%m: WITH_TCP is %0d with WITH_READ %0d, WITH_RECEIVE %0d and STORE 1; it must be 0", WITH_TCP, WITH_READ,
      WITH_RECEIVE);
  end
  localparam int unsigned MemoryW = $clog2(RING_BYTES) + $clog2(Targets);  // address bits of all rings
  localparam bit Memory = STORE == 1 || WITH_READ || WITH_RECEIVE;
  if (STORE == 1 && (AXI_ADDR_W < MemoryW || AXI_ADDR_W > 64)) begin : gen_check_addr_w
    $fatal(1, "%m: AXI_ADDR_W is %0d; it must be %0d to 64 for %0d rings of %0d bytes", AXI_ADDR_W, MemoryW, Targets,
      RING_BYTES);
  end

  // ---- each side's own: 0 RoCE, 1 TCP; the only one, or both --------------------------------------------------------
  logic [1:0][175:0] desc_tdata;
  logic [1:0] desc_tvalid, desc_tready, data_tvalid, data_tready, data_tlast, cpl_tvalid, cpl_tready;
  logic [1:0][DATA_W-1:0] data_tdata, frame_tdata;
  logic [1:0][DATA_W/8-1:0] data_tkeep, frame_tkeep;
  logic [1:0][63:0] cpl_tdata;
  logic [1:0] frame_tvalid, frame_tready, frame_tlast;
  logic [1:0][31:0] fill;
  assign ring_fill = fill[0] > fill[1] ? fill[0] : fill[1];
  reg_req_t [1:0] latency_reqs, meter_reqs;  // row i is target i
  reg_rsp_t [1:0] latency_rsps, meter_rsps;
  axi_pkg::axi_req_t [1:0] axi_reqs;
  axi_pkg::axi_rsp_t [1:0] axi_rsps;
  logic [1:0][DATA_W-1:0] axi_wdata;
  axi_pkg::axi_req_t rings_req;  // of all rings
  axi_pkg::axi_rsp_t rings_rsp;
  logic [DATA_W-1:0] rings_wdata;
  transport_stat_t [1:0] stats;
  assign transport_stat = stats[0] | stats[1];
  assign latency_rsp = latency_rsps[0] | latency_rsps[1];
  assign meter_rsp   = meter_rsps[0] | meter_rsps[1];

  if (WITH_ROCE + WITH_TCP == 2) begin : gen_both
    message_split #(
      .DATA_W (DATA_W),
      .N_FIRST(N_QP)
    ) u_split (
      .m_axis_desc_tdata (desc_tdata),
      .m_axis_desc_tvalid(desc_tvalid),
      .m_axis_desc_tready(desc_tready),
      .m_axis_data_tdata (data_tdata),
      .m_axis_data_tkeep (data_tkeep),
      .m_axis_data_tvalid(data_tvalid),
      .m_axis_data_tready(data_tready),
      .m_axis_data_tlast (data_tlast),
      .*
    );
    completion_mux #(
      .N_FIRST(N_QP)
    ) u_completions (
      .s_axis_cpl_tdata (cpl_tdata),
      .s_axis_cpl_tvalid(cpl_tvalid),
      .s_axis_cpl_tready(cpl_tready),
      .*
    );
    frame_mux #(
      .DATA_W(DATA_W)
    ) u_frames (
      .clk,
      .rst,
      .s_axis_tdata (frame_tdata),
      .s_axis_tkeep (frame_tkeep),
      .s_axis_tvalid(frame_tvalid),
      .s_axis_tready(frame_tready),
      .s_axis_tlast (frame_tlast),
      .m_axis_tdata (m_axis_tx_tdata),
      .m_axis_tkeep (m_axis_tx_tkeep),
      .m_axis_tvalid(m_axis_tx_tvalid),
      .m_axis_tready(m_axis_tx_tready),
      .m_axis_tlast (m_axis_tx_tlast)
    );
    target_rows #(.N_FIRST(N_QP), .SHIFT(7), .SHIFT_HIGH(5)) u_latency_rows (
      .req(latency_req), .first_req(latency_reqs[0]), .second_req(latency_reqs[1])
    );
    target_rows #(.N_FIRST(N_QP)) u_meter_rows (
      .req(meter_req), .first_req(meter_reqs[0]), .second_req(meter_reqs[1])
    );
    if (Memory) begin : gen_memory
      axi_mux #(
        .DATA_W(DATA_W)
      ) u_memory (
        .clk,
        .rst,
        .s_axi_req  (axi_reqs),
        .s_axi_wdata(axi_wdata),
        .s_axi_rsp  (axi_rsps),
        .m_axi_req  (rings_req),
        .m_axi_wdata(rings_wdata),
        .m_axi_rsp  (rings_rsp)
      );
    end else begin : gen_no_memory
      assign {rings_req, rings_wdata, axi_rsps} = '0;
      wire unused_memory = &{1'b0, axi_reqs, axi_wdata, rings_rsp};
    end
  end else begin : gen_one
    localparam int unsigned Side = WITH_TCP;
    for (genvar i = 0; i < 2; i++) begin : gen_side
      localparam bit Here = i == Side;
      assign desc_tdata[i]   = s_axis_desc_tdata;
      assign desc_tvalid[i]  = s_axis_desc_tvalid && Here;
      assign data_tdata[i]   = s_axis_data_tdata;
      assign data_tkeep[i]   = s_axis_data_tkeep;
      assign data_tvalid[i]  = s_axis_data_tvalid && Here;
      assign data_tlast[i]   = s_axis_data_tlast;
      assign cpl_tready[i]   = m_axis_cpl_tready && Here;
      assign frame_tready[i] = m_axis_tx_tready && Here;
      assign axi_rsps[i]     = Here ? rings_rsp : '0;
    end
    assign latency_reqs = {2{latency_req}};
    assign meter_reqs   = {2{meter_req}};
    assign s_axis_desc_tready = desc_tready[Side];
    assign s_axis_data_tready = data_tready[Side];
    assign m_axis_cpl_tdata   = cpl_tdata[Side];
    assign m_axis_cpl_tvalid  = cpl_tvalid[Side];
    assign m_axis_tx_tdata    = frame_tdata[Side];
    assign m_axis_tx_tkeep    = frame_tkeep[Side];
    assign m_axis_tx_tvalid   = frame_tvalid[Side];
    assign m_axis_tx_tlast    = frame_tlast[Side];
    assign rings_req          = axi_reqs[Side];
    assign rings_wdata        = axi_wdata[Side];
  end

  if (Memory) begin : gen_guard
    axi_reset_guard #(
      .DATA_W(DATA_W)
    ) u_guard (
      .clk,
      .rst,
      .m_axi_rst,
      .s_axi_req  (rings_req),
      .s_axi_wdata(rings_wdata),
      .s_axi_rsp  (rings_rsp),
      .m_axi_req,
      .m_axi_wdata,
      .m_axi_rsp
    );
  end else begin : gen_no_guard
    assign {m_axi_req, m_axi_wdata, rings_rsp} = '0;
    wire unused_guard = &{1'b0, m_axi_rst, rings_req, rings_wdata, m_axi_rsp};
  end

  // ---- RoCE ---------------------------------------------------------------------------------------------------------
  if (WITH_ROCE == 1) begin : gen_roce
    roce_transport #(
      .DATA_W(DATA_W),
      .N_QP(N_QP),
      .RING_BYTES(RING_BYTES),
      .SLOTS(SLOTS),
      .CLK_KHZ(CLK_KHZ),
      .STORE(STORE),
      .AXI_ADDR_W(AXI_ADDR_W),
      .RING_FILL(RING_FILL),
      .RETRANSMIT(RETRANSMIT),
      .WITH_QCN(WITH_QCN),
      .WITH_CN_TAG(WITH_CN_TAG),
      .WITH_REQUESTER(WITH_REQUESTER),
      .WITH_READ(WITH_READ),
      .WITH_RECEIVE(WITH_RECEIVE),
      .TABLES(TABLES),
      .PULL_SLOTS(PULL_SLOTS)
    ) u_roce (
      .s_axis_desc_tdata (desc_tdata[0]),
      .s_axis_desc_tvalid(desc_tvalid[0]),
      .s_axis_desc_tready(desc_tready[0]),
      .s_axis_data_tdata (data_tdata[0]),
      .s_axis_data_tkeep (data_tkeep[0]),
      .s_axis_data_tvalid(data_tvalid[0]),
      .s_axis_data_tready(data_tready[0]),
      .s_axis_data_tlast (data_tlast[0]),
      .m_axis_tx_tdata (frame_tdata[0]),
      .m_axis_tx_tkeep (frame_tkeep[0]),
      .m_axis_tx_tvalid(frame_tvalid[0]),
      .m_axis_tx_tready(frame_tready[0]),
      .m_axis_tx_tlast (frame_tlast[0]),
      .m_axis_cpl_tdata (cpl_tdata[0]),
      .m_axis_cpl_tvalid(cpl_tvalid[0]),
      .m_axis_cpl_tready(cpl_tready[0]),
      .m_axi_req        (axi_reqs[0]),
      .m_axi_wdata      (axi_wdata[0]),
      .m_axi_rsp        (axi_rsps[0]),
      .transport_stat   (stats[0]),
      .ready            (ready[N_QP-1:0]),
      .ring_fill        (fill[0]),
      .latency_req      (latency_reqs[0]),
      .latency_rsp      (latency_rsps[0]),
      .meter_req        (meter_reqs[0]),
      .meter_rsp        (meter_rsps[0]),
      .*
    );
  end else begin : gen_no_roce
    absent_block u_queue_pairs (.clk, .rst, .req(qp_req), .rsp(qp_rsp));
    assign {latency_rsps[0], meter_rsps[0]} = '0;
    assign {qp_err_valid, qp_err_qp, qp_stop_valid, qp_stop_qp} = '0;
    assign {m_axis_sample_tdata, m_axis_sample_tvalid} = '0;
    assign {m_axis_receive_tdata, m_axis_receive_tkeep, m_axis_receive_tuser, m_axis_receive_tvalid} = '0;
    assign m_axis_receive_tlast = 1'b0;
    assign {axi_reqs[0], axi_wdata[0], tables_req, tables_wdata} = '0;
    assign stats[0] = '0;
    assign {desc_tready[0], data_tready[0], cpl_tdata[0], cpl_tvalid[0], fill[0]} = '0;
    assign {frame_tdata[0], frame_tkeep[0], frame_tvalid[0], frame_tlast[0]} = '0;
    assign receive_stat   = '0;
    wire unused_roce = &{
      1'b0, s_event_number, tables_rsp, tables_rdata, latency_reqs[0], meter_reqs[0], m_axis_sample_tready, m_axis_receive_tready, axi_rsps[0], m_axi_rdata, probe, desc_tdata[0],
      desc_tvalid[0], data_tdata[0], data_tkeep[0], data_tvalid[0], data_tlast[0], cpl_tready[0], frame_tready[0]
    };
  end

  // ---- TCP ----------------------------------------------------------------------------------------------------------
  if (WITH_TCP == 1) begin : gen_tcp
    logic ring_write_error, ring_read_error;
    always_comb begin
      stats[1] = '0;
      stats[1].store_write_error = ring_write_error;
      stats[1].store_read_error  = ring_read_error;
    end
    tcp_transport #(
      .DATA_W(DATA_W),
      .N_STREAMS(N_STREAMS),
      .RING_BYTES(RING_BYTES),
      .CLK_KHZ(CLK_KHZ),
      .STORE(STORE),
      .AXI_ADDR_W(AXI_ADDR_W),
      .FIRST_RING(WITH_ROCE * N_QP),
      .RING_FILL(RING_FILL)
    ) u_tcp (
      .s_axis_desc_tdata (desc_tdata[1]),
      .s_axis_desc_tvalid(desc_tvalid[1]),
      .s_axis_desc_tready(desc_tready[1]),
      .s_axis_data_tdata (data_tdata[1]),
      .s_axis_data_tkeep (data_tkeep[1]),
      .s_axis_data_tvalid(data_tvalid[1]),
      .s_axis_data_tready(data_tready[1]),
      .s_axis_data_tlast (data_tlast[1]),
      .m_axis_tx_tdata (frame_tdata[1]),
      .m_axis_tx_tkeep (frame_tkeep[1]),
      .m_axis_tx_tvalid(frame_tvalid[1]),
      .m_axis_tx_tready(frame_tready[1]),
      .m_axis_tx_tlast (frame_tlast[1]),
      .m_axis_cpl_tdata (cpl_tdata[1]),
      .m_axis_cpl_tvalid(cpl_tvalid[1]),
      .m_axis_cpl_tready(cpl_tready[1]),
      .m_axi_req        (axi_reqs[1]),
      .m_axi_wdata      (axi_wdata[1]),
      .m_axi_rsp        (axi_rsps[1]),
      .ready            (ready[Targets-1-:N_STREAMS]),
      .ring_fill        (fill[1]),
      .latency_req      (latency_reqs[1]),
      .latency_rsp      (latency_rsps[1]),
      .meter_req        (meter_reqs[1]),
      .meter_rsp        (meter_rsps[1]),
      .*
    );
  end else begin : gen_no_tcp
    absent_block u_streams (.clk, .rst, .req(streams_req), .rsp(streams_rsp));
    assign {latency_rsps[1], meter_rsps[1]} = '0;
    assign {axi_reqs[1], axi_wdata[1], stats[1]} = '0;
    assign {lookup_valid, lookup_ip, lookup_fresh} = '0;
    assign tcp_stat = '0;
    assign {desc_tready[1], data_tready[1], cpl_tdata[1], cpl_tvalid[1], fill[1]} = '0;
    assign {frame_tdata[1], frame_tkeep[1], frame_tvalid[1], frame_tlast[1]} = '0;
    wire unused_tcp = &{
      1'b0, latency_reqs[1], meter_reqs[1], axi_rsps[1], lookup_ready, found_valid, found, found_mac, desc_tdata[1],
      desc_tvalid[1], data_tdata[1], data_tkeep[1],
      data_tvalid[1], data_tlast[1], cpl_tready[1], frame_tready[1]
    };
  end

  wire unused = &{1'b0, settings};
endmodule
