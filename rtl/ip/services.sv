// SPDX-License-Identifier: SHL-2.1
// The network services of the front end: ARP, ICMP echo, UDP for IPbus and for the connection manager.
// Connects their modules. Promise: a frame for another host, a broken one, or a truncated one changes no state and is
// counted; every frame that is sent is complete and has right checksums (RFC 826, 791, 792, 768, 1122, 5227).
//
//   service_rx -> service_parser -+-> arp ----------+
//                                 +-> icmp_echo ----+-> service_framer -> service_tx
//                                 +-> udp_rx        |
//        ipbus_target <- -> udp_send ---------------+
//        connection manager <- -> cm_port, udp_send +
//
// The datapath is 16 bits wide: 2.5 Gb/s at 156.25 MHz. Bursts wait in service_rx.
module services
  import services_pkg::*;
#(
  parameter int unsigned CLK_KHZ     = 156250,
  parameter int unsigned ARP_ENTRIES = 16,
  parameter int unsigned ECHO_BYTES  = 16384,  // echo requests that wait
  parameter int unsigned IPBUS_BYTES = 32768,  // IPbus requests that wait: uHAL has 16 under way
  parameter bit          MADS        = 1'b0    // packets to queue pair 1
) (
  input  logic clk,
  input  logic rst,

  input  logic [47:0]   local_mac,
  input  logic [31:0]   local_ip,
  input  logic [7:0]    ttl,
  input  services_cfg_t cfg,
  input  logic          link_up,

  // whole frames from service_rx
  input  logic [15:0] s_axis_rx_tdata,
  input  logic [1:0]  s_axis_rx_tkeep,
  input  logic        s_axis_rx_tvalid,
  output logic        s_axis_rx_tready,
  input  logic        s_axis_rx_tlast,

  // to service_tx
  input  logic        tx_room,
  output logic        tx_valid,
  output logic [12:0] tx_index,
  output logic [15:0] tx_data,
  output logic        tx_body,
  output logic        tx_last,
  output logic        tx_odd,
  output logic        tx_commit,

  // payloads to and from ipbus_target; tuser is the other side, with every word
  output logic [15:0] m_axis_ipbus_tdata,
  output logic [1:0]  m_axis_ipbus_tkeep,
  output logic        m_axis_ipbus_tvalid,
  input  logic        m_axis_ipbus_tready,
  output logic        m_axis_ipbus_tlast,
  output udp_peer_t   m_axis_ipbus_tuser,
  input  logic [15:0] s_axis_ipbus_tdata,
  input  logic [1:0]  s_axis_ipbus_tkeep,
  input  logic        s_axis_ipbus_tvalid,
  output logic        s_axis_ipbus_tready,
  input  logic        s_axis_ipbus_tlast,
  input  udp_peer_t   s_axis_ipbus_tuser,

  // the connection manager: messages of 32 words, with the other side's address and ports during all of them
  output logic [15:0] m_axis_cm_tdata,
  output logic        m_axis_cm_tvalid,
  input  logic        m_axis_cm_tready,
  output logic        m_axis_cm_tlast,
  output logic [31:0] cm_rx_ip,
  output logic [15:0] cm_rx_sport,
  output logic [15:0] cm_rx_dport,
  output logic [15:0] m_axis_mad_tdata,    // packets to queue pair 1, likewise; they leave through the other port
  output logic        m_axis_mad_tvalid,
  input  logic        m_axis_mad_tready,
  output logic        m_axis_mad_tlast,
  output logic [31:0] mad_rx_ip,
  input  logic [15:0] s_axis_cm_tdata,
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
  input  logic        lookup_fresh,  // not from the cache
  output logic        found_valid,
  output logic        found,
  output logic [47:0] found_mac,

  output services_stat_t stat
);
  // ---- receive ------------------------------------------------------------------------------------------
  parsed_t parsed;
  logic   port_unserved;

  service_parser u_parser (
    .clk, .rst, .local_mac, .local_ip,
    .s_axis_tdata (s_axis_rx_tdata),
    .s_axis_tkeep (s_axis_rx_tkeep),
    .s_axis_tvalid(s_axis_rx_tvalid),
    .s_axis_tready(s_axis_rx_tready),
    .s_axis_tlast (s_axis_rx_tlast),
    .parsed
  );

  udp_rx #(.STORE_BYTES(IPBUS_BYTES), .MADS(MADS)) u_udp_rx (
    .clk, .rst,
    .access(cfg.access),
    .parsed,
    .m_axis_ipbus_tdata, .m_axis_ipbus_tkeep, .m_axis_ipbus_tvalid,
    .m_axis_ipbus_tready, .m_axis_ipbus_tlast, .m_axis_ipbus_tuser,
    .m_axis_cm_tdata, .m_axis_cm_tvalid, .m_axis_cm_tready, .m_axis_cm_tlast,
    .cm_rx_ip, .cm_rx_sport, .cm_rx_dport,
    .m_axis_mad_tdata, .m_axis_mad_tvalid, .m_axis_mad_tready, .m_axis_mad_tlast, .mad_rx_ip,
    .stat_unserved    (port_unserved),
    .stat_stranger    (stat.udp_strangers),
    .stat_dropped     (stat.udp_dropped),
    .stat_cm_malformed(stat.cm_malformed),
    .stat_mad_malformed(stat.mad_malformed)
  );

  always_ff @(posedge clk) begin
    stat.malformed  <= parsed.done && parsed.kind == KindMalformed && !rst;
    stat.fragments  <= parsed.done && parsed.kind == KindFragment && !rst;
    stat.not_for_us <= parsed.done && parsed.kind == KindNotForUs && !rst;
    stat.checksum   <= parsed.done && parsed.kind == KindChecksum && !rst;
    stat.unserved   <= ((parsed.done && parsed.kind == KindUnserved) || port_unserved) && !rst;
  end

  // ---- transmit ---------------------------------------------------------------------------------------------
  logic  [Senders-1:0] req, granted, sent, take;
  sent_t [Senders-1:0] word;
  word_index_t         index;
  udp_peer_t           cm_peer;
  logic                cm_tvalid, cm_tready;

  service_framer u_framer (
    .clk, .rst, .local_mac, .local_ip, .ttl,
    .req, .granted, .sent, .index, .word, .take,
    .room      (tx_room),
    .wr_valid  (tx_valid),
    .wr_index  (tx_index),
    .wr_data   (tx_data),
    .wr_body   (tx_body),
    .wr_last   (tx_last),
    .wr_odd    (tx_odd),
    .wr_commit (tx_commit),
    .stat_frame(stat.tx_frames)
  );

  icmp_echo #(.STORE_BYTES(ECHO_BYTES)) u_icmp_echo (
    .clk, .rst,
    .enable (cfg.echo),
    .parsed,
    .req (req[SendEcho]),
    .granted(granted[SendEcho]),
    .index,
    .word   (word[SendEcho]),
    .take   (take[SendEcho]),
    .stat_replies(stat.echo_replies),
    .stat_dropped(stat.echo_dropped)
  );

  udp_send u_ipbus_send (
    .peer  (s_axis_ipbus_tuser),
    .sport (PortIpbus),
    .s_axis_tdata (s_axis_ipbus_tdata),
    .s_axis_tkeep (s_axis_ipbus_tkeep),
    .s_axis_tvalid(s_axis_ipbus_tvalid),
    .s_axis_tready(s_axis_ipbus_tready),
    .s_axis_tlast (s_axis_ipbus_tlast),
    .req(req[SendIpbus]),
    .index,
    .word  (word[SendIpbus]),
    .take  (take[SendIpbus])
  );

  udp_send u_cm_send (
    .peer  (cm_peer),
    .sport (cm_tx_sport),
    .s_axis_tdata (s_axis_cm_tdata),
    .s_axis_tkeep ('1),
    .s_axis_tvalid(cm_tvalid),
    .s_axis_tready(cm_tready),
    .s_axis_tlast (s_axis_cm_tlast),
    .req(req[SendCm]),
    .index,
    .word  (word[SendCm]),
    .take  (take[SendCm])
  );

  // ---- ARP, used by the connection manager's messages and by the lookup port in turn --------------------------
  logic        cm_lookup_valid, cm_lookup_ready, arp_lookup_valid, arp_lookup_ready, arp_found_valid;
  logic [31:0] cm_lookup_ip, arp_lookup_ip;
  logic        for_cm, for_cm_q;  // owner of the turn; owner of the lookup in progress

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
    .parsed,
    .lookup_valid(arp_lookup_valid),
    .lookup_ready(arp_lookup_ready),
    .lookup_ip   (arp_lookup_ip),
    .lookup_fresh(lookup_fresh && !for_cm),
    .found_valid (arp_found_valid),
    .found, .found_mac,
    .req (req[SendArp]),
    .granted(granted[SendArp]),
    .sent   (sent[SendArp]),
    .index,
    .word   (word[SendArp]),
    .stat_requests     (stat.arp_requests),
    .stat_replies      (stat.arp_replies),
    .stat_refused      (stat.arp_refused),
    .stat_conflicts    (stat.arp_conflicts),
    .stat_requests_sent(stat.arp_requests_sent),
    .stat_unresolved   (stat.arp_unresolved)
  );

  cm_port u_cm_port (
    .clk, .rst,
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
    .m_axis_tvalid(cm_tvalid),
    .m_axis_tready(cm_tready)
  );

  wire unused = &{1'b0, granted[SendCm:SendIpbus], sent[SendCm:SendEcho], take[SendArp]};
endmodule
