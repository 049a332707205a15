// SPDX-License-Identifier: SHL-2.1
// Types of the QCN switch. A length of a queue is in octets of frames without FCS, as in the simulated switch.
// Frames move in cells of 64 octets; the first octet of a cell is its lowest.
package switch_pkg;

  localparam int unsigned QueueBytesW = 24;
  localparam int unsigned WeightW     = 8;
  localparam int unsigned CellBytes   = 64;
  localparam int unsigned CellW       = 8 * CellBytes;
  localparam int unsigned FrameBytesW = 14;
  localparam int unsigned QuotedBytes = 44;  // of the sampled frame in a notification; up to the BTH of RoCEv2

  localparam logic [15:0] EtherTypeVlan  = 16'h8100;
  localparam logic [15:0] EtherTypeIpv4  = 16'h0800;
  localparam logic [15:0] EtherTypeCnTag = 16'h22E9;
  localparam logic [15:0] EtherTypeCnm   = 16'h22E7;

  typedef logic [QueueBytesW-1:0] queue_bytes_t;
  typedef logic [FrameBytesW-1:0] frame_bytes_t;
  typedef logic [CellW-1:0]       cell_t;

  // Congestion points (IEEE 802.1Qau clause 30.2.1).
  typedef struct packed {
    queue_bytes_t            q_eq;          // Q_eq: equilibrium length of the queue
    logic [WeightW-1:0]      w;             // weight of the queue's growth relative to its length
    logic [7:0]              jitter;        // of the octets between samples, in 1/256
    logic [31:0]             seed;          // of the jitter; effective at reset
    queue_bytes_t [7:0]      sample_bytes;  // octets from one sample to the next, by eighths of |F_b|
  } qcn_point_cfg_t;

  // One sample of a queue.
  typedef struct packed {
    logic [5:0]   feedback;   // |F_b|
    queue_bytes_t queue_now;  // with the sampled frame
    queue_bytes_t queue_old;  // at the sample before
  } qcn_sample_t;

  // How ingress ports are stopped by the queue that their frames join, and the switch's answer to PAUSE of peers.
  typedef struct packed {
    logic         pause_en;     // send 802.3x pause
    logic         pfc_en;       // send PFC instead, for `classes`
    logic [7:0]   classes;      // priorities that PFC may stop
    logic [15:0]  quanta;       // requested each time, refreshed after half of them
    queue_bytes_t xoff_bytes;   // the queue above which the port of a frame that joins it is stopped
    queue_bytes_t xon_bytes;    // ... and down to which it stays stopped
    logic         obey_pause;
    logic         obey_pfc;
  } switch_pause_cfg_t;

  typedef struct packed {
    logic [47:0]       mac;                // of the switch: source of notifications, pause and PFC
    logic              learn;              // addresses of sources
    logic [7:0][2:0]   queue_of_priority;  // 802.1Q: priority to traffic class
    queue_bytes_t      limit_bytes;        // longest queue; a frame that would make it longer is dropped
    logic [7:0]        qcn_queues;         // of each port: those with a congestion point at work
    logic [2:0]        cnm_priority;       // of notifications
    qcn_point_cfg_t    point;
    switch_pause_cfg_t pause;
  } switch_cfg_t;

  // The management port: the switch's own addresses, and what it serves there.
  typedef struct packed {
    logic [47:0] mac;
    logic [31:0] ip;
    logic [7:0]  ttl;
    logic        gratuitous;  // announce and defend the address (RFC 5227)
    logic        echo;        // answer pings
    services_pkg::access_list_t access;
  } management_cfg_t;

  // An entry of the MAC table, written by software; entries that are not static are learned.
  typedef struct packed {
    logic        valid;
    logic        is_static;
    logic [47:0] mac;
    logic [2:0]  port_index;
  } mac_entry_t;

  // The properties of a whole frame.
  typedef struct packed {
    frame_bytes_t bytes;
    logic [2:0]   prio;
    logic [47:0]  dst;
    logic [47:0]  src;
  } frame_t;

  // A notification (IEEE 802.1Qau clause 33.4), as far as it is not constant.
  typedef struct packed {
    logic [47:0]                dst;         // source of the sampled frame
    logic                       has_vlan;    // the sampled frame has a VLAN tag
    logic [11:0]                vid;
    logic [15:0]                flow;
    logic [5:0]                 feedback;
    logic [15:0]                point;       // the congestion point: port << 3 | queue
    logic [15:0]                q_offset;    // Q_eq - q, in 64 octets
    logic [15:0]                q_delta;     // q - q_old, in 64 octets
    logic [2:0]                 prio;        // of the sampled frame
    logic [47:0]                sampled_dst;
    logic [5:0]                 quoted;      // octets
    logic [QuotedBytes*8-1:0]   msdu;        // first octet on top, zeros after the end
  } cnm_request_t;

  // Events of a port, one pulse each.
  typedef struct packed {
    logic rx_frame;     // good frames
    logic rx_bad;       // frames that the MAC marked bad, and longer ones than MAX_BYTES
    logic rx_lost;      // good frames for which the port's store had no room
    logic rx_filtered;  // good frames without a port to leave by
    logic rx_pause;
    logic rx_pfc;
    logic tx_frame;     // forwarded frames
    logic tx_dropped;   // frames that found one of the port's queues full
    logic tx_cnm;       // notifications sent
    logic cnm_dropped;  // notifications that found no room
    logic tx_pause;
    logic tx_pfc;
  } switch_stat_t;

  // Events of the management port, one pulse each.
  typedef struct packed {
    logic rx_frame;           // good frames for the services
    logic rx_bad;
    logic rx_lost;            // no room
    logic arp_requests;
    logic icmp_echo_replies;
    logic ipbus_packets;
    logic ipbus_bus_errors;
    logic udp_strangers;
  } management_stat_t;

  // Where the EtherType of a frame is after its tags, and their values.
  typedef struct packed {
    logic        has_vlan;
    logic [15:0] tci;
    logic        has_flow;  // a CN-TAG
    logic [15:0] flow;
    logic [15:0] ethertype;
  } tags_t;

  // Two octets of a cell from `at` on, the first one on top.
  function automatic logic [15:0] half_at(cell_t first, int unsigned at);
    return {first[8*at+:8], first[8*at+8+:8]};
  endfunction

  function automatic tags_t tags_of(cell_t first);
    tags_t tags;
    logic [15:0] next;
    tags.has_vlan    = half_at(first, 12) == EtherTypeVlan;
    tags.tci       = half_at(first, 14);
    next           = tags.has_vlan ? half_at(first, 16) : half_at(first, 12);
    tags.has_flow  = next == EtherTypeCnTag;
    tags.flow      = tags.has_vlan ? half_at(first, 18) : half_at(first, 14);
    tags.ethertype = next;
    if (tags.has_flow) tags.ethertype = tags.has_vlan ? half_at(first, 20) : half_at(first, 16);
    return tags;
  endfunction

  // The frame from its last EtherType on, that is without addresses and tags; first octet lowest.
  function automatic cell_t msdu_of(cell_t first, tags_t tags);
    return first >> (8 * (12 + (tags.has_vlan ? 4 : 0) + (tags.has_flow ? 4 : 0)));
  endfunction

  // The priority of a frame: that of its VLAN tag, else DSCP / 8; notifications have their own.
  function automatic logic [2:0] priority_of(cell_t first, logic [2:0] cnm_priority);
    tags_t tags;
    cell_t msdu;
    tags = tags_of(first);
    msdu = msdu_of(first, tags);
    if (tags.has_vlan) return tags.tci[15:13];
    if (tags.ethertype == EtherTypeCnm) return cnm_priority;
    return tags.ethertype == EtherTypeIpv4 ? msdu[8*3+5+:3] : '0;
  endfunction

  // a - b in units of 64 octets, rounded towards zero and held at the ends of the range.
  function automatic logic [15:0] in_cells(queue_bytes_t a, queue_bytes_t b);
    queue_bytes_t octets;
    octets = (a < b ? b - a : a - b) >> 6;
    if (a < b) return octets > 32768 ? 16'h8000 : -16'(octets);
    return octets > 32767 ? 16'h7FFF : 16'(octets);
  endfunction

endpackage
