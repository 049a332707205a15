// SPDX-License-Identifier: SHL-2.1
// The connection managers: FEROCE's, which opens and closes queue pairs, and with RDMA_CM the passive side of the
// standard one, which requests that of it. Connects them. Datagrams to and from both go by the same port of the services.
//
//   64-byte messages -> stream_turns -> connection_manager -> stream_turns -> datagrams
//                            ^                 |                   ^
//                            +---- rdma_cm <---+                   |
//   MADs ----------------------->     +----------------------------+
module connections
  import penstock_pkg::*;
  import cm_pkg::*;
#(
  parameter int unsigned N_QP    = 4,
  parameter int unsigned CLK_KHZ = 156250,
  parameter bit          RDMA_CM = 1'b0
) (
  input  logic clk,
  input  logic rst,

  input  cm_cfg_t     cfg,
  input  logic [15:0] rdma_port,
  output cm_status_t  status,
  input  logic [47:0] local_mac,
  input  logic [31:0] local_ip,
  input  logic [23:0] qpn_base,

  // a queue pair has failed; software has put one into the error state
  input  logic        qp_err_valid,
  input  qp_t         qp_err_qp,
  input  logic        qp_stop_valid,
  input  qp_t         qp_stop_qp,

  // UDP payloads: FEROCE's messages, and MADs with their packets' headers; the sender's address with every word
  input  logic [15:0] s_axis_cm_tdata,
  input  logic        s_axis_cm_tvalid,
  output logic        s_axis_cm_tready,
  input  logic        s_axis_cm_tlast,
  input  logic [31:0] cm_rx_ip,
  input  logic [15:0] s_axis_mad_tdata,
  input  logic        s_axis_mad_tvalid,
  output logic        s_axis_mad_tready,
  input  logic        s_axis_mad_tlast,
  input  logic [31:0] mad_rx_ip,
  // both, with their ways
  output logic [15:0] m_axis_cm_tdata,
  output logic        m_axis_cm_tvalid,
  input  logic        m_axis_cm_tready,
  output logic        m_axis_cm_tlast,
  output logic [31:0] cm_tx_ip,
  output logic [15:0] cm_tx_dport,
  output logic [15:0] cm_tx_sport,

  // MAC address of the next hop
  output logic        lookup_valid,
  input  logic        lookup_ready,
  output logic [31:0] lookup_ip,
  input  logic        found_valid,
  input  logic        found,
  input  logic [47:0] found_mac,

  // registers
  output axi_pkg::axil_req_t m_axil_req,
  input  axi_pkg::axil_rsp_t m_axil_rsp,

  output logic stat_request,
  output logic stat_refused,
  output logic stat_ignored,
  output logic stat_timeout,
  output logic stat_peer_lost,
  output rdma_cm_pkg::rdma_cm_stat_t stat_rdma
);
  logic [15:0] request_tdata, answer_tdata, answer_dport, answer_sport;
  logic [31:0] request_ip, answer_ip;
  logic request_tvalid, request_tready, request_tlast, answer_tvalid, answer_tready, answer_tlast;
  proxied_t proxied;
  axi_pkg::axil_req_t manager_req;
  axi_pkg::axil_rsp_t manager_rsp;

  connection_manager #(
    .N_QP   (N_QP),
    .CLK_KHZ(CLK_KHZ)
  ) u_connection_manager (
    .clk, .rst, .cfg, .proxied, .status, .local_ip, .qpn_base,
    .qp_err_valid, .qp_err_qp, .qp_stop_valid, .qp_stop_qp,
    .s_axis_cm_tdata (request_tdata),
    .s_axis_cm_tvalid(request_tvalid),
    .s_axis_cm_tready(request_tready),
    .s_axis_cm_tlast (request_tlast),
    .cm_rx_ip        (request_ip),
    .m_axis_cm_tdata (answer_tdata),
    .m_axis_cm_tvalid(answer_tvalid),
    .m_axis_cm_tready(answer_tready),
    .m_axis_cm_tlast (answer_tlast),
    .cm_tx_ip        (answer_ip),
    .cm_tx_dport     (answer_dport),
    .cm_tx_sport     (answer_sport),
    .lookup_valid, .lookup_ready, .lookup_ip, .found_valid, .found, .found_mac,
    .m_axil_req(manager_req),
    .m_axil_rsp(manager_rsp),
    .stat_request, .stat_refused, .stat_ignored, .stat_timeout, .stat_peer_lost
  );

  if (RDMA_CM) begin : gen_rdma_cm
    logic [15:0] mad_tdata, proxy_tdata;
    logic [31:0] peer_ip;
    logic mad_tvalid, mad_tready, mad_tlast, proxy_tvalid, proxy_tready, proxy_tlast;
    logic of_proxy, has_begun, is_proxied, unused_tx_owner, unused_tx_busy;
    proxied_t named;
    axi_pkg::axil_req_t windows_req;
    axi_pkg::axil_rsp_t windows_rsp;
    penstock_regs_pkg::qp_transport_t transport;

    assign transport = cfg.transport;

    rdma_cm #(
      .N_QP   (N_QP),
      .CLK_KHZ(CLK_KHZ)
    ) u_rdma_cm (
      .clk, .rst,
      .port(rdma_port),
      .local_mac, .local_ip, .qpn_base,
      .mtu(transport.mtu),
      .s_axis_mad_tdata, .s_axis_mad_tvalid, .s_axis_mad_tready, .s_axis_mad_tlast, .mad_rx_ip,
      .m_axis_mad_tdata (mad_tdata),
      .m_axis_mad_tvalid(mad_tvalid),
      .m_axis_mad_tready(mad_tready),
      .m_axis_mad_tlast (mad_tlast),
      .peer_ip,
      .m_axis_cm_tdata (proxy_tdata),
      .m_axis_cm_tvalid(proxy_tvalid),
      .m_axis_cm_tready(proxy_tready),
      .m_axis_cm_tlast (proxy_tlast),
      .proxied(named),
      .s_axis_cm_tdata (answer_tdata),
      .s_axis_cm_tvalid(answer_tvalid && is_proxied),
      .m_axil_req(windows_req),
      .m_axil_rsp(windows_rsp),
      .stat(stat_rdma)
    );

    stream_turns #(.W(48)) u_requests (
      .clk, .rst,
      .s_data ({{peer_ip, proxy_tdata}, {cm_rx_ip, s_axis_cm_tdata}}),
      .s_valid({proxy_tvalid, s_axis_cm_tvalid}),
      .s_ready({proxy_tready, s_axis_cm_tready}),
      .s_last ({proxy_tlast, s_axis_cm_tlast}),
      .m_data ({request_ip, request_tdata}),
      .m_valid(request_tvalid),
      .m_ready(request_tready),
      .m_last (request_tlast),
      .owner  (of_proxy),
      .busy   (has_begun)
    );

    // From the first word of a request to its last, which stays until it is answered, the manager sends nothing else.
    assign is_proxied = of_proxy && has_begun;
    always_comb begin
      proxied       = named;
      proxied.valid = is_proxied;
    end

    logic datagram_tready;
    assign answer_tready = is_proxied || datagram_tready;

    stream_turns #(.W(80)) u_datagrams (
      .clk, .rst,
      .s_data ({{peer_ip, services_pkg::PortRoce, rdma_cm_pkg::SourcePort, mad_tdata},
                {answer_ip, answer_dport, answer_sport, answer_tdata}}),
      .s_valid({mad_tvalid, answer_tvalid && !is_proxied}),
      .s_ready({mad_tready, datagram_tready}),
      .s_last ({mad_tlast, answer_tlast}),
      .m_data ({cm_tx_ip, cm_tx_dport, cm_tx_sport, m_axis_cm_tdata}),
      .m_valid(m_axis_cm_tvalid),
      .m_ready(m_axis_cm_tready),
      .m_last (m_axis_cm_tlast),
      .owner  (unused_tx_owner),
      .busy   (unused_tx_busy)
    );

    axil_mux #(.N(2)) u_registers (
      .clk, .rst,
      .s_axil_req({windows_req, manager_req}),
      .s_axil_rsp({windows_rsp, manager_rsp}),
      .m_axil_req,
      .m_axil_rsp
    );

    wire unused = &{1'b0, unused_tx_owner, unused_tx_busy, transport};
  end else begin : gen_feroce_alone
    assign request_tdata    = s_axis_cm_tdata;
    assign request_tvalid   = s_axis_cm_tvalid;
    assign s_axis_cm_tready = request_tready;
    assign request_tlast    = s_axis_cm_tlast;
    assign request_ip       = cm_rx_ip;
    assign m_axis_cm_tdata  = answer_tdata;
    assign m_axis_cm_tvalid = answer_tvalid;
    assign answer_tready    = m_axis_cm_tready;
    assign m_axis_cm_tlast  = answer_tlast;
    assign cm_tx_ip         = answer_ip;
    assign cm_tx_dport      = answer_dport;
    assign cm_tx_sport      = answer_sport;
    assign m_axil_req       = manager_req;
    assign manager_rsp      = m_axil_rsp;
    assign proxied          = '0;
    assign {s_axis_mad_tready, stat_rdma} = '0;
    wire unused = &{
      1'b0, rdma_port, local_mac, s_axis_mad_tdata, s_axis_mad_tvalid, s_axis_mad_tlast, mad_rx_ip
    };
  end
endmodule
