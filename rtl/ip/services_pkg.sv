// SPDX-License-Identifier: SHL-2.1
// Types of the network services: kinds of received frames, frames to send, settings, counts.
// Every frame of ARP, ICMP echo and UDP has a head of 42 bytes before its payload: Ethernet 14,
// then 28 bytes that are either an ARP packet or an IPv4 header and 8 bytes of ICMP or UDP.
package services_pkg;
  import ip_pkg::*;

  localparam logic [15:0] PortIpbus   = 16'd50001;   // IPbus 2.0
  localparam logic [15:0] PortCm      = 16'h4321;    // connection manager: requests
  localparam logic [15:0] PortCmReply = 16'h4322;    // and replies
  localparam logic [15:0] PortRoce    = 16'd4791;    // not a service: the transport's own
  localparam int unsigned HeadBytes   = EthBytes + Ipv4Bytes + UdpBytes;
  localparam int unsigned CmBytes     = 64;          // every message of the connection manager
  localparam int unsigned MadBytes    = 280;         // of the standard one: BTH to ICRC
  localparam int unsigned JumboBytes  = 9018;        // longest frame that is served, without FCS

  // Hosts that IPbus and the connection manager serve.
  localparam int unsigned AccessEntries = 8;
  typedef struct packed {
    logic                           enable;   // 0: everybody
    logic [AccessEntries-1:0][31:0] ip;
    logic [AccessEntries-1:0][31:0] netmask;  // bits of `ip` that count
  } access_list_t;

  typedef struct packed {
    logic [31:0] netmask;      // 0: every address is on the link
    logic [31:0] gateway;      // next hop of addresses outside of it
    logic [15:0] arp_age;      // seconds an entry lives without being refreshed; 0 = for ever
    logic [15:0] arp_retry;    // milliseconds between requests
    logic [3:0]  arp_tries;    // requests before an address counts as unknown
    logic        gratuitous;   // announce and defend the own address (RFC 5227)
    logic        echo;         // answer ICMP echo requests
    access_list_t access;
  } services_cfg_t;

  // ---- words of a head: number k is bytes 2 k and 2 k + 1, the first one on the wire in [15:8] ----
  typedef logic [4:0] word_index_t;

  localparam word_index_t WordDst       = 5'd0;   // three
  localparam word_index_t WordSrc       = 5'd3;   // three
  localparam word_index_t WordEthertype = 5'd6;
  // IPv4 (RFC 791)
  localparam word_index_t WordVersion   = 5'd7;   // with header length and TOS
  localparam word_index_t WordLength    = 5'd8;   // of the datagram
  localparam word_index_t WordFragment  = 5'd10;
  localparam word_index_t WordProtocol  = 5'd11;  // in [7:0], after the TTL
  localparam word_index_t WordIpSum     = 5'd12;
  localparam word_index_t WordIpSrc     = 5'd13;  // two
  localparam word_index_t WordIpDst     = 5'd15;  // two
  // UDP (RFC 768)
  localparam word_index_t WordSport     = 5'd17;
  localparam word_index_t WordDport     = 5'd18;
  localparam word_index_t WordUdpLength = 5'd19;
  localparam word_index_t WordUdpSum    = 5'd20;
  // ICMP echo (RFC 792)
  localparam word_index_t WordIcmpKind  = 5'd17;  // with code
  localparam word_index_t WordIcmpSum   = 5'd18;
  localparam word_index_t WordIcmpId    = 5'd19;  // and sequence
  // ARP for Ethernet and IPv4 (RFC 826)
  localparam word_index_t WordHtype     = 5'd7;
  localparam word_index_t WordPtype     = 5'd8;
  localparam word_index_t WordLengths   = 5'd9;   // of hardware and protocol addresses
  localparam word_index_t WordOper      = 5'd10;
  localparam word_index_t WordSha       = 5'd11;  // three
  localparam word_index_t WordSpa       = 5'd14;  // two
  localparam word_index_t WordTha       = 5'd16;  // three
  localparam word_index_t WordTpa       = 5'd19;  // two
  // after the head, any number
  localparam word_index_t WordPayload   = 5'd21;

  localparam logic [15:0] ArpHtype   = 16'h0001;
  localparam logic [15:0] ArpPtype   = 16'h0800;
  localparam logic [15:0] ArpLengths = 16'h0604;
  localparam logic [15:0] ArpRequest = 16'h0001;
  localparam logic [15:0] ArpReply   = 16'h0002;
  localparam logic [47:0] MacBroadcast    = '1;
  localparam logic [15:0] Ipv4Version     = 16'h4500;  // without options; TOS 0
  localparam logic [15:0] IcmpEchoRequest = 16'h0800;  // kind 8, code 0

  // A choice of words: bit k is word k.
  typedef logic [31:0] words_t;

  function automatic words_t span(word_index_t first, int unsigned count);
    return ((32'd1 << count) - 32'd1) << first;
  endfunction

  // Words of streams have their first byte in [7:0], words of heads in [15:8].
  function automatic logic [15:0] swap_bytes(logic [15:0] word);
    return {word[7:0], word[15:8]};
  endfunction

  // ---- the parser's verdict on a frame ------------------------------------------------------
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

  // ---- a received frame, word by word, and the verdict after its last word ---------------------
  typedef struct packed {
    logic        valid;
    word_index_t index;
    logic [15:0] data;      // of the payload's last byte if `odd`: in [15:8], and zeros
    logic        odd;
    logic        last;      // of the datagram: padding after it is not shown
    logic        zero;      // data is 0
    logic [15:0] differs;   // from our own values at this place: addresses, and fields with one valid value
    logic        same;      // nothing differs
    logic        done;      // the frame is over, and `kind` classifies it
    kind_e       kind;
  } parsed_t;

  // One side of a UDP flow.
  typedef struct packed {
    logic [47:0] mac;
    logic [31:0] ip;
    logic [15:0] port;
  } udp_peer_t;

  // ---- who has frames to send -------------------------------------------------------------------
  localparam int unsigned Senders = 4;
  typedef enum logic [1:0] {
    SendArp   = 2'd0,
    SendEcho  = 2'd1,
    SendIpbus = 2'd2,
    SendCm    = 2'd3
  } sender_e;

  // The word that a sender shows for the index at which the framer is.
  typedef struct packed {
    logic        valid;     // words of a head always are
    logic [15:0] data;      // zeros in [7:0] if `odd`
    logic        odd;       // half of it counts
    logic        last;      // of the payload; with the head's last word: there is none
  } sent_t;

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
    logic arp_replies;        // that we had requested, or of a cached address
    logic arp_refused;        // unsolicited replies, impossible senders, no room
    logic arp_conflicts;      // another host claims our address
    logic arp_requests_sent;
    logic arp_unresolved;     // lookups given up
    logic echo_replies;
    logic echo_dropped;       // no room, or longer than the store
    logic udp_strangers;      // a datagram to a served port from a host that is not on the access list
    logic udp_dropped;        // no room for a datagram to a served port, or an empty one
    logic cm_malformed;       // a datagram to the connection manager that is not 64 bytes long
    logic mad_malformed;      // a packet to queue pair 1 that is not 280 bytes long
    logic tx_frames;
  } services_stat_t;

endpackage
