// SPDX-License-Identifier: SHL-2.1
// All access paths to the registers: the ports of the design, IPbus over UDP, and the connection manager; with the
// network services that carry the last two. Frames in and out are DATA_W wide, the datapath inside is 16 bits wide.
// Connects the modules and contains no logic of its own. Without queue pairs (WITH_ROCE = 0) there is no connection
// manager: its datagrams are dropped. Without SERVICES the pins are the only way, and no frame is taken or sent.
//
//   frames -> service_rx -> services <-> ipbus_target ------+
//                             ^    <-> connections ---------+-> axil_mux -> registers
//   frames <- service_tx <----+                      pins --+
module slow_control
  import penstock_pkg::*;
  import ctrl_pkg::*;
#(
  parameter int unsigned DATA_W    = 64,
  parameter int unsigned N_QP      = 4,
  parameter int unsigned CLK_KHZ   = 156250,
  parameter int unsigned WITH_ROCE = 1,
  parameter int unsigned WITH_TCP  = 0,
  parameter bit          SERVICES  = 1'b1,
  parameter bit          RDMA_CM   = 1'b0  // the standard connection manager, too
) (
  input logic clk,
  input logic rst,

  input  settings_t               settings,
  output cm_pkg::cm_status_t      cm_status,
  output slow_control_stat_t      stat,
  input  logic                    link_up,
  input  logic                    qp_err_valid,
  input  qp_t                     qp_err_qp,
  input  logic                    qp_stop_valid,
  input  qp_t                     qp_stop_qp,
  output logic [15:0]             level_bytes,  // fill of the receive buffer

  // MAC address of a next hop, for streams; its answer is a pulse of found_valid.
  input  logic                    lookup_valid,
  output logic                    lookup_ready,
  input  logic [31:0]             lookup_ip,
  input  logic                    lookup_fresh,
  output logic                    found_valid,
  output logic                    found,
  output logic [47:0]             found_mac,

  // Frames from the MAC, which cannot be stalled; frames to it.
  input  logic [DATA_W-1:0]   s_axis_rx_tdata,
  input  logic [DATA_W/8-1:0] s_axis_rx_tkeep,
  input  logic                s_axis_rx_tvalid,
  input  logic                s_axis_rx_tlast,
  input  logic                s_axis_rx_tuser,
  output logic [DATA_W-1:0]   m_axis_tx_tdata,
  output logic [DATA_W/8-1:0] m_axis_tx_tkeep,
  output logic                m_axis_tx_tvalid,
  input  logic                m_axis_tx_tready,
  output logic                m_axis_tx_tlast,

  // The pins, and the register block.
  input  axi_pkg::axil_req_t s_axil_req,
  output axi_pkg::axil_rsp_t s_axil_rsp,
  output axi_pkg::axil_req_t m_axil_req,
  input  axi_pkg::axil_rsp_t m_axil_rsp
);
  import services_pkg::udp_peer_t;

  if (SERVICES) begin : gen_services
    // ---- frames ---------------------------------------------------------------------------------------
    logic [15:0] rx_tdata, tx_data;
    logic [1:0]  rx_tkeep;
    logic [12:0] tx_index;
    logic rx_tvalid, rx_tready, rx_tlast, tx_room, tx_valid, tx_body, tx_last, tx_odd, tx_commit;

    service_rx #(
      .DATA_W(DATA_W),
      .TCP(WITH_TCP == 1),
      .MADS(RDMA_CM)
    ) u_rx (
      .clk, .rst,
      .local_mac(settings.local_mac),
      .s_axis_tdata (s_axis_rx_tdata),
      .s_axis_tkeep (s_axis_rx_tkeep),
      .s_axis_tvalid(s_axis_rx_tvalid),
      .s_axis_tlast (s_axis_rx_tlast),
      .s_axis_tuser (s_axis_rx_tuser),
      .m_axis_tdata (rx_tdata),
      .m_axis_tkeep (rx_tkeep),
      .m_axis_tvalid(rx_tvalid),
      .m_axis_tready(rx_tready),
      .m_axis_tlast (rx_tlast),
      .level_bytes,
      .stat(stat.rx)
    );

    service_tx #(
      .DATA_W(DATA_W)
    ) u_tx (
      .clk, .rst,
      .room     (tx_room),
      .wr_valid (tx_valid),
      .wr_index (tx_index),
      .wr_data  (tx_data),
      .wr_body  (tx_body),
      .wr_last  (tx_last),
      .wr_odd   (tx_odd),
      .wr_commit(tx_commit),
      .m_axis_tdata (m_axis_tx_tdata),
      .m_axis_tkeep (m_axis_tx_tkeep),
      .m_axis_tvalid(m_axis_tx_tvalid),
      .m_axis_tready(m_axis_tx_tready),
      .m_axis_tlast (m_axis_tx_tlast)
    );

    // ---- services -------------------------------------------------------------------------------------
    logic [15:0] ipbus_rx_tdata, ipbus_tx_tdata;
    logic [1:0]  ipbus_rx_tkeep, ipbus_tx_tkeep;
    logic ipbus_rx_tvalid, ipbus_rx_tready, ipbus_rx_tlast, ipbus_tx_tvalid, ipbus_tx_tready, ipbus_tx_tlast;
    udp_peer_t ipbus_rx_tuser, ipbus_tx_tuser;

    logic cm_rx_tvalid, cm_rx_tready, cm_rx_tlast, cm_tx_tvalid, cm_tx_tready, cm_tx_tlast;
    logic cm_lookup_valid, cm_lookup_ready, cm_found_valid;
    logic arp_lookup_valid, arp_lookup_ready, arp_lookup_fresh, arp_found_valid;
    logic [15:0] cm_rx_tdata, cm_tx_tdata;
    logic [31:0] cm_rx_ip, cm_tx_ip, cm_lookup_ip, arp_lookup_ip;
    logic [15:0] mad_tdata;
    logic [31:0] mad_rx_ip;
    logic mad_tvalid, mad_tready, mad_tlast;
    logic [15:0] unused_cm_rx_sport, unused_cm_rx_dport, cm_tx_dport, cm_tx_sport;

    if (WITH_TCP == 1) begin : gen_lookups
      lookup_mux u_lookups (
        .clk, .rst,
        .req_valid  ({lookup_valid, cm_lookup_valid}),
        .req_ready  ({lookup_ready, cm_lookup_ready}),
        .req_ip     ({lookup_ip, cm_lookup_ip}),
        .req_fresh  ({lookup_fresh, 1'b0}),
        .found_valid({found_valid, cm_found_valid}),
        .lookup_valid(arp_lookup_valid),
        .lookup_ready(arp_lookup_ready),
        .lookup_ip   (arp_lookup_ip),
        .lookup_fresh(arp_lookup_fresh),
        .answered    (arp_found_valid)
      );
    end else begin : gen_one_requester
      assign lookup_ready     = 1'b0;
      assign found_valid      = 1'b0;
      assign arp_lookup_valid = cm_lookup_valid;
      assign arp_lookup_ip    = cm_lookup_ip;
      assign arp_lookup_fresh = 1'b0;
      assign cm_lookup_ready  = arp_lookup_ready;
      assign cm_found_valid   = arp_found_valid;
      wire unused_lookup = &{1'b0, lookup_valid, lookup_ip, lookup_fresh};
    end

    services #(
      .CLK_KHZ(CLK_KHZ),
      .MADS(RDMA_CM)
    ) u_services (
      .clk, .rst,
      .local_mac(settings.local_mac),
      .local_ip (settings.local_ip),
      .ttl      (settings.ttl),
      .cfg      (settings.services),
      .link_up,
      .s_axis_rx_tdata (rx_tdata),
      .s_axis_rx_tkeep (rx_tkeep),
      .s_axis_rx_tvalid(rx_tvalid),
      .s_axis_rx_tready(rx_tready),
      .s_axis_rx_tlast (rx_tlast),
      .tx_room, .tx_valid, .tx_index, .tx_data, .tx_body, .tx_last, .tx_odd, .tx_commit,
      .m_axis_ipbus_tdata (ipbus_rx_tdata),
      .m_axis_ipbus_tkeep (ipbus_rx_tkeep),
      .m_axis_ipbus_tvalid(ipbus_rx_tvalid),
      .m_axis_ipbus_tready(ipbus_rx_tready),
      .m_axis_ipbus_tlast (ipbus_rx_tlast),
      .m_axis_ipbus_tuser (ipbus_rx_tuser),
      .s_axis_ipbus_tdata (ipbus_tx_tdata),
      .s_axis_ipbus_tkeep (ipbus_tx_tkeep),
      .s_axis_ipbus_tvalid(ipbus_tx_tvalid),
      .s_axis_ipbus_tready(ipbus_tx_tready),
      .s_axis_ipbus_tlast (ipbus_tx_tlast),
      .s_axis_ipbus_tuser (ipbus_tx_tuser),
      .m_axis_cm_tdata (cm_rx_tdata),
      .m_axis_cm_tvalid(cm_rx_tvalid),
      .m_axis_cm_tready(cm_rx_tready),
      .m_axis_cm_tlast (cm_rx_tlast),
      .cm_rx_ip,
      .cm_rx_sport(unused_cm_rx_sport),
      .cm_rx_dport(unused_cm_rx_dport),
      .m_axis_mad_tdata (mad_tdata),
      .m_axis_mad_tvalid(mad_tvalid),
      .m_axis_mad_tready(mad_tready),
      .m_axis_mad_tlast (mad_tlast),
      .mad_rx_ip,
      .s_axis_cm_tdata (cm_tx_tdata),
      .s_axis_cm_tvalid(cm_tx_tvalid),
      .s_axis_cm_tready(cm_tx_tready),
      .s_axis_cm_tlast (cm_tx_tlast),
      .cm_tx_ip, .cm_tx_dport, .cm_tx_sport,
      .lookup_valid(arp_lookup_valid),
      .lookup_ready(arp_lookup_ready),
      .lookup_ip   (arp_lookup_ip),
      .lookup_fresh(arp_lookup_fresh),
      .found_valid (arp_found_valid),
      .found, .found_mac,
      .stat(stat.services)
    );

    // ---- masters of the register bus --------------------------------------------------------------------
    localparam int unsigned N     = 3;
    localparam int unsigned Pins  = 0;
    localparam int unsigned Ipbus = 1;
    localparam int unsigned Cm    = 2;

    axi_pkg::axil_req_t [N-1:0] axil_req;
    axi_pkg::axil_rsp_t [N-1:0] axil_rsp;

    assign axil_req[Pins] = s_axil_req;
    assign s_axil_rsp     = axil_rsp[Pins];

    ipbus_target u_ipbus (
      .clk, .rst,
      .s_axis_tdata (ipbus_rx_tdata),
      .s_axis_tkeep (ipbus_rx_tkeep),
      .s_axis_tvalid(ipbus_rx_tvalid),
      .s_axis_tready(ipbus_rx_tready),
      .s_axis_tlast (ipbus_rx_tlast),
      .s_axis_tuser (ipbus_rx_tuser),
      .m_axis_tdata (ipbus_tx_tdata),
      .m_axis_tkeep (ipbus_tx_tkeep),
      .m_axis_tvalid(ipbus_tx_tvalid),
      .m_axis_tready(ipbus_tx_tready),
      .m_axis_tlast (ipbus_tx_tlast),
      .m_axis_tuser (ipbus_tx_tuser),
      .m_axil_req(axil_req[Ipbus]),
      .m_axil_rsp(axil_rsp[Ipbus]),
      .stat(stat.ipbus)
    );

    if (WITH_ROCE == 1) begin : gen_connections
      connections #(
        .N_QP   (N_QP),
        .CLK_KHZ(CLK_KHZ),
        .RDMA_CM(RDMA_CM)
      ) u_connections (
        .clk, .rst,
        .cfg      (settings.connection),
        .rdma_port(settings.rdma_cm_port),
        .local_mac(settings.local_mac),
        .status  (cm_status),
        .local_ip(settings.local_ip),
        .qpn_base(settings.qpn_base),
        .qp_err_valid, .qp_err_qp, .qp_stop_valid, .qp_stop_qp,
        .s_axis_cm_tdata (cm_rx_tdata),
        .s_axis_cm_tvalid(cm_rx_tvalid),
        .s_axis_cm_tready(cm_rx_tready),
        .s_axis_cm_tlast (cm_rx_tlast),
        .cm_rx_ip,
        .s_axis_mad_tdata (mad_tdata),
        .s_axis_mad_tvalid(mad_tvalid),
        .s_axis_mad_tready(mad_tready),
        .s_axis_mad_tlast (mad_tlast),
        .mad_rx_ip,
        .m_axis_cm_tdata (cm_tx_tdata),
        .m_axis_cm_tvalid(cm_tx_tvalid),
        .m_axis_cm_tready(cm_tx_tready),
        .m_axis_cm_tlast (cm_tx_tlast),
        .cm_tx_ip, .cm_tx_dport, .cm_tx_sport,
        .lookup_valid(cm_lookup_valid),
        .lookup_ready(cm_lookup_ready),
        .lookup_ip   (cm_lookup_ip),
        .found_valid (cm_found_valid),
        .found, .found_mac,
        .m_axil_req(axil_req[Cm]),
        .m_axil_rsp(axil_rsp[Cm]),
        .stat_request  (stat.cm_requests),
        .stat_refused  (stat.cm_refused),
        .stat_ignored  (stat.cm_ignored),
        .stat_timeout  (stat.cm_timeouts),
        .stat_peer_lost(stat.cm_peers_lost),
        .stat_rdma     (stat.rdma_cm)
      );
    end else begin : gen_no_connections
      assign cm_status       = '0;
      assign cm_rx_tready    = 1'b1;
      assign cm_tx_tdata     = '0;
      assign cm_tx_tvalid    = 1'b0;
      assign cm_tx_tlast     = 1'b0;
      assign cm_tx_ip        = '0;
      assign cm_tx_dport     = '0;
      assign cm_tx_sport     = '0;
      assign cm_lookup_valid = 1'b0;
      assign cm_lookup_ip    = '0;
      assign axil_req[Cm]    = '0;
      assign {stat.cm_requests, stat.cm_refused, stat.cm_ignored, stat.cm_timeouts, stat.cm_peers_lost,
              stat.rdma_cm} = '0;
      assign mad_tready = 1'b1;
      wire unused_connections = &{
        1'b0, qp_err_valid, qp_err_qp, qp_stop_valid, qp_stop_qp, cm_rx_tdata, cm_rx_tvalid, cm_rx_tlast, cm_rx_ip,
        mad_tdata, mad_tvalid, mad_tlast, mad_rx_ip, cm_tx_tready, cm_lookup_ready, cm_found_valid, axil_rsp[Cm]
      };
    end

    axil_mux #(.N(N)) u_mux (
      .clk, .rst,
      .s_axil_req(axil_req),
      .s_axil_rsp(axil_rsp),
      .m_axil_req,
      .m_axil_rsp
    );

    wire unused = &{1'b0, unused_cm_rx_sport, unused_cm_rx_dport};
  end else begin : gen_pins_only
    assign m_axil_req = s_axil_req;
    assign s_axil_rsp = m_axil_rsp;
    assign {cm_status, stat, level_bytes, lookup_ready, found_valid, found, found_mac} = '0;
    assign {m_axis_tx_tdata, m_axis_tx_tkeep, m_axis_tx_tvalid, m_axis_tx_tlast} = '0;
    wire unused_pins = &{
      1'b0, clk, rst, link_up, qp_err_valid, qp_err_qp, qp_stop_valid, qp_stop_qp, lookup_valid, lookup_ip, lookup_fresh,
      s_axis_rx_tdata, s_axis_rx_tkeep, s_axis_rx_tvalid, s_axis_rx_tlast, s_axis_rx_tuser, m_axis_tx_tready
    };
  end

  wire unused = &{1'b0, settings};

endmodule
