// SPDX-License-Identifier: SHL-2.1
// The network services of the front end: ARP, ICMP echo, UDP for IPbus and for the connection manager.
// Joins their modules. Promise: a frame that is not for us, broken, or cut short changes no state and is
// counted; every frame that leaves is whole and has right checksums (RFC 826, 791, 792, 768, 1122, 5227).
//
//   service_rx -> service_parser -+-> arp --------+
//                                 +-> icmp_echo --+-> service_framer -> service_tx
//                                 +-> udp_rx      |
//        ipbus_target <- -> udp_tx ---------------+
//        connection manager <- -> cm_port, udp_tx +
module services
  import services_pkg::*;
#(
  parameter int unsigned CLK_KHZ     = 156250,
  parameter int unsigned ARP_ENTRIES = 16,
  parameter int unsigned ECHO_BYTES  = 16384,  // payloads of echo requests that wait
  parameter int unsigned IPBUS_BYTES = 16384   // payloads of IPbus requests that wait
) (
  input  logic clk,
  input  logic rst,

  input  logic [47:0]   local_mac,
  input  logic [31:0]   local_ip,
  input  logic [7:0]    ttl,
  input  services_cfg_t cfg,
  input  logic          link_up,

  // whole frames from service_rx, and to service_tx
  input  logic [63:0] s_axis_rx_tdata,
  input  logic [7:0]  s_axis_rx_tkeep,
  input  logic        s_axis_rx_tvalid,
  output logic        s_axis_rx_tready,
  input  logic        s_axis_rx_tlast,
  output logic [63:0] m_axis_tx_tdata,
  output logic [7:0]  m_axis_tx_tkeep,
  output logic        m_axis_tx_tvalid,
  input  logic        m_axis_tx_tready,
  output logic        m_axis_tx_tlast,

  // payloads to and from ipbus_target; tuser is the other side, with every beat
  output logic [63:0] m_axis_ipbus_tdata,
  output logic [7:0]  m_axis_ipbus_tkeep,
  output logic        m_axis_ipbus_tvalid,
  input  logic        m_axis_ipbus_tready,
  output logic        m_axis_ipbus_tlast,
  output udp_peer_t   m_axis_ipbus_tuser,
  input  logic [63:0] s_axis_ipbus_tdata,
  input  logic [7:0]  s_axis_ipbus_tkeep,
  input  logic        s_axis_ipbus_tvalid,
  output logic        s_axis_ipbus_tready,
  input  logic        s_axis_ipbus_tlast,
  input  udp_peer_t   s_axis_ipbus_tuser,

  // the connection manager: messages of eight beats, with the other side's address and ports during all of them
  output logic [63:0] m_axis_cm_tdata,
  output logic        m_axis_cm_tvalid,
  input  logic        m_axis_cm_tready,
  output logic        m_axis_cm_tlast,
  output logic [31:0] cm_rx_ip,
  output logic [15:0] cm_rx_sport,
  output logic [15:0] cm_rx_dport,
  input  logic [63:0] s_axis_cm_tdata,
  input  logic        s_axis_cm_tvalid,
  output logic        s_axis_cm_tready,
  input  logic        s_axis_cm_tlast,
  input  logic [31:0] cm_tx_ip,
  input  logic [15:0] cm_tx_dport,
  input  logic [15:0] cm_tx_sport,

  // the MAC address of the next hop to an address; one lookup at a time, its answer a pulse of found_valid
  input  logic        lookup_valid,
  output logic        lookup_ready,
  input  logic [31:0] lookup_ip,
  output logic        found_valid,
  output logic        found,
  output logic [47:0] found_mac,

  output services_stat_t stat
);
  // ---- receive ------------------------------------------------------------------------------------------
  logic [63:0] payload_data;
  logic        payload_valid, payload_last, done;
  logic [2:0]  payload_tail;
  kind_e       kind;
  ip_head_t    head;
  logic [13:0] payload_bytes;
  logic        port_unserved;

  service_parser u_parser (
    .clk, .rst, .local_mac, .local_ip,
    .s_axis_tdata (s_axis_rx_tdata),
    .s_axis_tkeep (s_axis_rx_tkeep),
    .s_axis_tvalid(s_axis_rx_tvalid),
    .s_axis_tready(s_axis_rx_tready),
    .s_axis_tlast (s_axis_rx_tlast),
    .payload_data, .payload_valid, .payload_last, .payload_tail,
    .done, .kind, .head, .payload_bytes
  );

  udp_rx #(.STORE_BYTES(IPBUS_BYTES)) u_udp_rx (
    .clk, .rst,
    .payload_data, .payload_valid, .payload_last, .payload_tail,
    .done, .kind, .head, .payload_bytes,
    .m_axis_ipbus_tdata, .m_axis_ipbus_tkeep, .m_axis_ipbus_tvalid,
    .m_axis_ipbus_tready, .m_axis_ipbus_tlast, .m_axis_ipbus_tuser,
    .m_axis_cm_tdata, .m_axis_cm_tvalid, .m_axis_cm_tready, .m_axis_cm_tlast,
    .cm_rx_ip, .cm_rx_sport, .cm_rx_dport,
    .stat_unserved    (port_unserved),
    .stat_dropped     (stat.udp_dropped),
    .stat_cm_malformed(stat.cm_malformed)
  );

  always_ff @(posedge clk) begin
    stat.malformed  <= done && kind == KindMalformed && !rst;
    stat.fragments  <= done && kind == KindFragment && !rst;
    stat.not_for_us <= done && kind == KindNotForUs && !rst;
    stat.checksum   <= done && kind == KindChecksum && !rst;
    stat.unserved   <= ((done && kind == KindUnserved) || port_unserved) && !rst;
  end

  // ---- what is sent: a request and a payload stream each ----------------------------------------------------
  localparam int unsigned N    = 3;
  localparam int unsigned Arp  = 0;
  localparam int unsigned Echo = 1;
  localparam int unsigned Udp  = 2;

  tx_req_t [N-1:0]       req;
  logic    [N-1:0]       req_valid, req_ready, tvalid, tready, tlast;
  logic    [N-1:0][63:0] tdata;
  logic    [N-1:0][7:0]  tkeep;

  icmp_echo #(.STORE_BYTES(ECHO_BYTES)) u_icmp_echo (
    .clk, .rst,
    .enable(cfg.echo),
    .payload_data, .payload_valid, .payload_last, .payload_tail,
    .done, .kind, .head, .payload_bytes,
    .req          (req[Echo]),
    .req_valid    (req_valid[Echo]),
    .req_ready    (req_ready[Echo]),
    .m_axis_tdata (tdata[Echo]),
    .m_axis_tkeep (tkeep[Echo]),
    .m_axis_tvalid(tvalid[Echo]),
    .m_axis_tready(tready[Echo]),
    .m_axis_tlast (tlast[Echo]),
    .stat_replies (stat.echo_replies),
    .stat_dropped (stat.echo_dropped)
  );

  udp_peer_t   cm_peer, udp_peer;
  logic [15:0] udp_sport;
  logic [63:0] cm_tdata, udp_tdata;
  logic [7:0]  cm_tkeep, udp_tkeep;
  logic cm_tvalid, cm_tready, cm_tlast, udp_tvalid, udp_tready, udp_tlast;

  udp_join u_udp_join (
    .clk, .rst,
    .s_peer       ({cm_peer, s_axis_ipbus_tuser}),
    .s_sport      ({cm_tx_sport, PortIpbus}),
    .s_axis_tdata ({cm_tdata, s_axis_ipbus_tdata}),
    .s_axis_tkeep ({cm_tkeep, s_axis_ipbus_tkeep}),
    .s_axis_tvalid({cm_tvalid, s_axis_ipbus_tvalid}),
    .s_axis_tready({cm_tready, s_axis_ipbus_tready}),
    .s_axis_tlast ({cm_tlast, s_axis_ipbus_tlast}),
    .m_peer       (udp_peer),
    .m_sport      (udp_sport),
    .m_axis_tdata (udp_tdata),
    .m_axis_tkeep (udp_tkeep),
    .m_axis_tvalid(udp_tvalid),
    .m_axis_tready(udp_tready),
    .m_axis_tlast (udp_tlast)
  );

  udp_tx #(.STORE_BYTES(4096)) u_udp_tx (
    .clk, .rst,
    .peer         (udp_peer),
    .sport        (udp_sport),
    .s_axis_tdata (udp_tdata),
    .s_axis_tkeep (udp_tkeep),
    .s_axis_tvalid(udp_tvalid),
    .s_axis_tready(udp_tready),
    .s_axis_tlast (udp_tlast),
    .req          (req[Udp]),
    .req_valid    (req_valid[Udp]),
    .req_ready    (req_ready[Udp]),
    .m_axis_tdata (tdata[Udp]),
    .m_axis_tkeep (tkeep[Udp]),
    .m_axis_tvalid(tvalid[Udp]),
    .m_axis_tready(tready[Udp]),
    .m_axis_tlast (tlast[Udp])
  );

  service_framer #(.N(N)) u_framer (
    .clk, .rst, .local_mac, .local_ip, .ttl,
    .req, .req_valid, .req_ready,
    .s_axis_tdata (tdata),
    .s_axis_tkeep (tkeep),
    .s_axis_tvalid(tvalid),
    .s_axis_tready(tready),
    .s_axis_tlast (tlast),
    .m_axis_tdata (m_axis_tx_tdata),
    .m_axis_tkeep (m_axis_tx_tkeep),
    .m_axis_tvalid(m_axis_tx_tvalid),
    .m_axis_tready(m_axis_tx_tready),
    .m_axis_tlast (m_axis_tx_tlast),
    .stat_frame   (stat.tx_frames)
  );

  // ---- ARP, asked by the connection manager's messages and by the lookup port in turn -------------------------
  logic        cm_lookup_valid, cm_lookup_ready, arp_lookup_valid, arp_lookup_ready, arp_found_valid;
  logic [31:0] cm_lookup_ip, arp_lookup_ip;
  logic        for_cm, for_cm_q;  // whose turn; whose lookup is under way
  logic [335:0] head_bits;

  assign head_bits        = head;
  assign for_cm           = cm_lookup_valid && !(lookup_valid && for_cm_q);
  assign arp_lookup_valid = cm_lookup_valid || lookup_valid;
  assign arp_lookup_ip    = for_cm ? cm_lookup_ip : lookup_ip;
  assign cm_lookup_ready  = arp_lookup_ready && for_cm;
  assign lookup_ready     = arp_lookup_ready && !for_cm;
  assign found_valid      = arp_found_valid && !for_cm_q;

  always_ff @(posedge clk) begin
    if (arp_lookup_valid && arp_lookup_ready) for_cm_q <= for_cm;
    if (rst) for_cm_q <= 1'b0;
  end

  arp #(
    .CLK_KHZ(CLK_KHZ),
    .ENTRIES(ARP_ENTRIES)
  ) u_arp (
    .clk, .rst, .local_mac, .local_ip, .cfg, .link_up,
    .rx_valid(done && kind == KindArp),
    .rx      (head_bits[223:0]),
    .lookup_valid(arp_lookup_valid),
    .lookup_ready(arp_lookup_ready),
    .lookup_ip   (arp_lookup_ip),
    .found_valid (arp_found_valid),
    .found, .found_mac,
    .req      (req[Arp]),
    .req_valid(req_valid[Arp]),
    .req_ready(req_ready[Arp]),
    .stat_requests     (stat.arp_requests),
    .stat_replies      (stat.arp_replies),
    .stat_refused      (stat.arp_refused),
    .stat_conflicts    (stat.arp_conflicts),
    .stat_requests_sent(stat.arp_requests_sent),
    .stat_unresolved   (stat.arp_unresolved)
  );

  assign tdata[Arp]  = '0;
  assign tkeep[Arp]  = '0;
  assign tvalid[Arp] = 1'b0;
  assign tlast[Arp]  = 1'b0;

  cm_port u_cm_port (
    .clk, .rst,
    .s_axis_tdata (s_axis_cm_tdata),
    .s_axis_tvalid(s_axis_cm_tvalid),
    .s_axis_tready(s_axis_cm_tready),
    .s_axis_tlast (s_axis_cm_tlast),
    .ip           (cm_tx_ip),
    .dport        (cm_tx_dport),
    .lookup_valid(cm_lookup_valid),
    .lookup_ready(cm_lookup_ready),
    .lookup_ip   (cm_lookup_ip),
    .found_valid (arp_found_valid && for_cm_q),
    .found, .found_mac,
    .peer         (cm_peer),
    .m_axis_tdata (cm_tdata),
    .m_axis_tkeep (cm_tkeep),
    .m_axis_tvalid(cm_tvalid),
    .m_axis_tready(cm_tready),
    .m_axis_tlast (cm_tlast)
  );

  wire unused = &{1'b0, head_bits[335:224], tready[Arp]};
endmodule
