// SPDX-License-Identifier: SHL-2.1
// Types of the network services: what a received frame is, what is to be sent, settings, counts.
// Every frame of ARP, ICMP echo and UDP has a head of 42 bytes in front of its payload: Ethernet 14,
// then 28 bytes that are either an ARP packet or an IPv4 header and 8 bytes of ICMP or UDP.
package services_pkg;
  import ip_pkg::*;

  localparam logic [15:0] PortIpbus   = 16'd50001;   // IPbus 2.0
  localparam logic [15:0] PortCm      = 16'h4321;    // connection manager: requests
  localparam logic [15:0] PortCmReply = 16'h4322;    // and replies
  localparam logic [15:0] PortRoce    = 16'd4791;    // not a service: the transport's own
  localparam int unsigned HeadBytes   = EthBytes + Ipv4Bytes + UdpBytes;
  localparam int unsigned CmBytes     = 64;          // every message of the connection manager
  localparam int unsigned JumboBytes  = 9018;        // longest frame that is served, without FCS

  typedef struct packed {
    logic [31:0] netmask;      // 0: every address is on the link
    logic [31:0] gateway;      // next hop of addresses outside of it
    logic [15:0] arp_age;      // seconds an entry lives without being refreshed; 0 = for ever
    logic [15:0] arp_retry;    // milliseconds between requests
    logic [3:0]  arp_tries;    // requests before an address counts as unknown
    logic        gratuitous;   // announce and defend the own address (RFC 5227)
    logic        echo;         // answer ICMP echo requests
  } services_cfg_t;

  // RFC 826 for Ethernet and IPv4.
  typedef struct packed {
    logic [15:0] htype;
    logic [15:0] ptype;
    logic [7:0]  hlen;
    logic [7:0]  plen;
    logic [15:0] oper;
    logic [47:0] sha;
    logic [31:0] spa;
    logic [47:0] tha;
    logic [31:0] tpa;
  } arp_t;

  localparam logic [63:0] ArpRequest = 64'h0001_0800_0604_0001;  // htype to oper
  localparam logic [63:0] ArpReply   = 64'h0001_0800_0604_0002;
  localparam logic [47:0] MacBroadcast = '1;

  typedef struct packed {
    logic [7:0]  kind;         // 8 echo request, 0 echo reply
    logic [7:0]  code;
    logic [15:0] checksum;
    logic [31:0] id_sequence;
  } icmp_t;

  localparam logic [7:0] IcmpEchoRequest = 8'd8;

  // The head of an IPv4 frame; `l4` is a udp_hdr_t or an icmp_t.
  typedef struct packed {
    eth_hdr_t    eth;
    ipv4_hdr_t   ip;
    logic [63:0] l4;
  } ip_head_t;

  // ---- what the parser found a frame to be --------------------------------------------------
  typedef enum logic [2:0] {
    KindArp       = 3'd0,
    KindEcho      = 3'd1,   // ICMP echo request for us, checksums right
    KindUdp       = 3'd2,   // UDP for us, checksums right
    KindMalformed = 3'd3,   // truncated, lengths that disagree, options, impossible addresses
    KindFragment  = 3'd4,
    KindNotForUs  = 3'd5,   // another IPv4 address, or ours in a broadcast frame
    KindChecksum  = 3'd6,
    KindUnserved  = 3'd7    // another protocol or ICMP message
  } kind_e;

  // One side of a UDP flow.
  typedef struct packed {
    logic [47:0] mac;
    logic [31:0] ip;
    logic [15:0] port;
  } udp_peer_t;

  // ---- what a service wants to send -----------------------------------------------------------
  typedef enum logic [1:0] {
    SendArp  = 2'd0,
    SendEcho = 2'd1,
    SendUdp  = 2'd2
  } send_e;

  typedef struct packed {
    send_e        kind;
    logic [47:0]  dst_mac;
    logic [31:0]  ip;             // destination; of ARP the target protocol address
    logic [7:0]   tos;
    logic [63:0]  l4;             // ARP: arp_l4_t; ICMP: icmp_t; UDP: udp_l4_t
    logic [13:0]  payload_bytes;  // of the stream that follows; 0 = none
  } tx_req_t;

  typedef struct packed {
    logic [15:0] oper;
    logic [47:0] tha;
  } arp_l4_t;

  typedef struct packed {
    logic [15:0] sport;
    logic [15:0] dport;
    logic [15:0] reserved;
    logic [15:0] payload_sum;     // one's complement
  } udp_l4_t;

  // The sum of a beat's four words (first byte on the wire in [7:0]).
  function automatic logic [17:0] beat_sum(logic [63:0] data);
    return 18'({data[7:0], data[15:8]}) + 18'({data[23:16], data[31:24]})
         + 18'({data[39:32], data[47:40]}) + 18'({data[55:48], data[63:56]});
  endfunction

  // One's-complement sum of RFC 1071 from a sum with up to 16 bits of carries.
  function automatic logic [15:0] fold32(logic [31:0] sum);
    logic [16:0] once;
    once = 17'(sum[15:0]) + 17'(sum[31:16]);
    return once[15:0] + 16'(once[16]);
  endfunction

  // The mask of the first `bytes` lanes, 0 meaning all of them.
  function automatic logic [7:0] lanes(logic [2:0] bytes);
    return bytes == '0 ? 8'hFF : ~(8'hFF << bytes);
  endfunction

  // ---- counts: one pulse each -------------------------------------------------------------------
  typedef struct packed {
    logic rx_frames;          // taken from the MAC for the services
    logic rx_overflow;        // for the services, but the store was full, or the frame too long
    logic rx_foreign;         // another MAC address or EtherType (VLAN too); RoCE and bad frames are not counted
  } service_rx_stat_t;

  typedef struct packed {
    logic malformed;
    logic fragments;
    logic not_for_us;
    logic checksum;
    logic unserved;           // protocol, ICMP message or UDP port that no one serves
    logic arp_requests;       // for our address
    logic arp_replies;        // that we had asked for, or of an address we hold
    logic arp_refused;        // unsolicited replies, impossible senders, no room
    logic arp_conflicts;      // another host claims our address
    logic arp_requests_sent;
    logic arp_unresolved;     // lookups given up
    logic echo_replies;
    logic echo_dropped;       // no room, or longer than the store
    logic udp_dropped;        // no room for a datagram to a served port, or an empty one
    logic cm_malformed;       // a datagram to the connection manager that is not 64 bytes long
    logic tx_frames;
  } services_stat_t;

endpackage
