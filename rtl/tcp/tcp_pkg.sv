// SPDX-License-Identifier: SHL-2.1
// Types of the simplified TCP: the row of a stream, the events on it, and the resulting actions.
// Widths and meanings are those of simple_tcp in crates/transport, to which the rules are equal bit for bit
// (docs/tcp.md). Four sequence numbers divide a stream; sequence numbers and ticks wrap at 2^32:
//
//    una             nxt            max          written
//     |  under way    |  to be sent  |  never sent  |  free ...
//     |               |  again       |              |
package tcp_pkg;
  localparam int unsigned TcpMaxStreams = 64;

  typedef logic [$clog2(TcpMaxStreams)-1:0] tcp_stream_t;
  typedef logic [31:0] tcp_seq_t;
  typedef logic [31:0] tcp_tick_t;
  typedef logic [26:0] tcp_span_t;    // of ticks
  typedef logic [29:0] tcp_window_t;  // RFC 7323 section 2.3: below 2^30
  typedef logic [13:0] tcp_mss_t;

  localparam logic [15:0] TcpMinMss = 16'd64;
  localparam logic [15:0] TcpDefaultMss = 16'd536;           // RFC 9293 section 3.7.1
  localparam logic [7:0] TcpMaxScale = 8'd14;                // RFC 7323 section 2.3
  localparam tcp_mss_t TcpMaxMss = 14'd8960;               // of a frame of 9000 bytes
  localparam logic [31:0] TcpMaxHeld = 32'd1 << 30;          // bytes written and not acknowledged
  localparam logic [1:0] TcpDupThreshold = 2'd3;             // RFC 5681 section 3.2
  // From a router's limit to the next try of whole segments, in units of 2^24 ticks of 1 us: at least 604 s, at most 621
  // (RFC 1191 section 6.3).
  localparam logic [7:0] TcpPathAgain = 8'd37;

  // CMS-TCP figure 2: three states are left of eleven.
  typedef enum logic [1:0] {
    TcpClosed      = 2'd0,
    TcpSynSent     = 2'd1,
    TcpEstablished = 2'd2
  } tcp_state_e;

  // RFC 9293 section 3.1, the low octet of the control bits.
  typedef struct packed {
    logic [2:0] other;
    logic       ack;
    logic       psh;
    logic       rst;
    logic       syn;
    logic       fin;
  } tcp_flags_t;

  typedef struct packed {
    tcp_state_e  state;
    tcp_seq_t    una;             // SND.UNA
    tcp_seq_t    nxt;             // next to send; before max while data is sent again
    tcp_seq_t    max;             // SND.NXT
    tcp_seq_t    written;         // after the last byte that the user has written
    tcp_window_t window;          // SND.WND, scaled
    tcp_window_t max_window;      // MAX.SND.WND
    logic [3:0]  shift;           // the peer's window scale, 0 to 14
    tcp_mss_t    mss;             // payload bytes of a full segment
    tcp_mss_t    too_long;        // a router's limit on segments under way, until data is acknowledged; 0: none
    logic        shortened;       // mss is a router's limit
    tcp_mss_t    whole_mss;       // mss before that
    logic [7:0]  path_at;         // when the last limit was applied, in units of 2^24 ticks
    tcp_seq_t    rcv_nxt;         // RCV.NXT
    logic [1:0]  duplicates;      // duplicate acknowledgements in a row
    logic        repairing;       // a loss, until `recover` is acknowledged
    tcp_seq_t    recover;
    logic        resend;          // a segment from una goes next
    logic        probing;         // the window is closed
    logic [7:0]  tries;           // timeouts in a row without an answer
    logic [3:0]  backoff;         // doublings of the timeout
    logic        timer_on;        // when it expires is kept apart (tcp_timer)
    logic        timing;          // a round trip is measured
    tcp_seq_t    timed_seq;       // the acknowledgement that ends it
    tcp_tick_t   timed_at;
    logic        measured;
    logic [29:0] srtt;            // in eighths of a tick
    logic [28:0] rttvar;          // in quarters of a tick
    logic        syn_due;
    logic        ack_due;
    logic        reset_due;
    logic        reset_acks;      // that RST acknowledges rcv_nxt
    tcp_seq_t    reset_seq;
    logic        challenge_held;  // no challenge ACK before challenge_at
    tcp_tick_t   challenge_at;
  } tcp_row_t;

  // Common settings of all streams.
  typedef struct packed {
    tcp_mss_t    mss;                 // 64 to 8960
    logic [15:0] receive_window;      // in our headers; at least 1
    logic        nagle;               // RFC 9293 section 3.7.4
    logic        back_off;            // CMS-TCP section 3.1
    logic        adaptive;            // the timeout follows the round trip (RFC 6298), else it is rto_initial
    tcp_span_t   rto_initial;
    tcp_span_t   rto_min;
    tcp_span_t   rto_max;
    logic [7:0]  give_up;             // timeouts in a row; 0: never
    tcp_span_t   challenge_interval;
  } tcp_params_t;

  // ---- events: each touches one stream, in the order of their priority (tcp_sender) ---------------------------
  typedef enum logic [2:0] {
    TcpOpen     = 3'd0,  // seq: the initial sequence number
    TcpAbort    = 3'd1,
    TcpWritten  = 3'd2,  // ack: bytes, below 2^31
    TcpSegment  = 3'd3,
    TcpPathMtu  = 3'd4,  // ack: the sequence number in the returned header; mss
    TcpTick     = 3'd5,
    TcpTransmit = 3'd6
  } tcp_event_e;

  // Options of a SYN.
  typedef struct packed {
    logic        has_mss;
    logic [15:0] mss;
    logic        has_scale;
    logic [7:0]  scale;
    logic        malformed;  // a length that cannot be; options after it were not read
  } tcp_options_t;

  typedef struct packed {
    tcp_event_e   kind;
    tcp_seq_t     seq;
    logic [31:0]  ack;
    tcp_flags_t   flags;
    logic [15:0]  window;   // as in the header
    logic [15:0]  len;      // of payload
    tcp_options_t options;
  } tcp_event_t;

  // A segment to send, but for addresses, ports and payload.
  typedef struct packed {
    logic       valid;
    tcp_seq_t   seq;
    tcp_seq_t   ack;
    tcp_flags_t flags;  // with SYN it carries the options
    tcp_mss_t   len;    // of payload, from seq on
  } tcp_segment_t;

  // What a stream has to send now, and the room for it (tcp_room).
  typedef struct packed {
    logic [31:0] left;          // bytes of it
    logic [31:0] open;          // bytes that the peer takes
    tcp_mss_t    full;          // the most of a segment
    logic        may;           // a segment may go, if it is full,
    logic        any_length;    // or of any length,
    logic        may_be_short;  // or all that is left, or half of the largest window so far
    tcp_window_t max_window;    // the largest window so far
    logic        again;         // it begins with data that was sent before
    logic        idle;          // nothing is under way: una is max
  } tcp_room_t;

  // The data that a stream may send now, if any (tcp_pick); undefined for a stream without a connection.
  typedef struct packed {
    logic     valid;
    logic     last;   // of what was written
    logic     again;  // it begins with data that was sent before
    tcp_mss_t len;
    logic     idle;   // nothing is under way: una is max
  } tcp_choice_t;

  // Facts about a row before its event; a fact that only some kinds of event use is undefined for the others.
  typedef struct packed {
    // TcpSegment: the peer's sequence numbers
    logic        has_len;         // SEG.LEN is not 0
    logic        in_window;       // and not after a gap, except an RST
    logic        at_rcv_nxt;
    logic        is_keep_alive;   // RFC 9293 section 3.8.4: of no bytes, one before RCV.NXT
    tcp_seq_t    after_all;       // SEG.SEQ + SEG.LEN; while a connection opens, after the SYN (also of TcpOpen)
    // TcpSegment: its acknowledgement
    logic        ack_valid;       // RFC 5961 section 5.2
    logic        ack_reaches_una;
    logic        ack_is_una;
    logic        ack_is_max;
    logic        ack_is_written;
    logic        ack_passes_nxt;
    logic        ack_reaches_recover;
    logic        ack_reaches_timed;
    tcp_seq_t    acked;           // ack - una
    // TcpSegment: its window
    tcp_window_t window;          // scaled
    logic        window_same;
    logic        window_larger;   // than any before
    // TcpSegment: a measurement that ends with it
    logic [27:0] error;           // its round trip less the smoothed one, in ticks; two's complement
    logic [28:0] rttvar_left;     // three quarters of rttvar
    // TcpWritten, TcpPathMtu
    logic        fits;
    logic        path_mtu_counts;
    // TcpTick
    logic        expired;
    logic        spent;           // no more tries
    logic        path_over;       // a router's limit has been applied for long enough
    logic        challenge_over;  // the time between challenge ACKs has passed
    // of the row
    logic        idle;            // una is max
    logic        max_is_written;
    logic        window_closed;
    // TcpTransmit, TcpTick
    tcp_segment_t segment;        // what may be sent
    logic         again;          // its data was sent before
  } tcp_facts_t;

  // One bit for each thing that can happen, in the order of Counts in simple_tcp/actions.rs.
  typedef struct packed {
    logic window_closed;
    logic path_mtu;
    logic ignored;
    logic peer_data;
    logic bad_option;
    logic bad_ack;
    logic out_of_window;
    logic challenge;
    logic probe;
    logic duplicate_ack;
    logic fast_retransmit;
    logic timeout;
    logic retransmitted;
    logic segment;
  } tcp_counts_t;

  // Why a connection ended.
  typedef enum logic [2:0] {
    TcpNotEnded  = 3'd0,
    TcpRefused   = 3'd1,
    TcpReset     = 3'd2,
    TcpFinished  = 3'd3,
    TcpTimedOut  = 3'd4,
    TcpAborted   = 3'd5,
    TcpNoAddress = 3'd6,  // of a front end: ARP has no answer
    TcpBadMemory = 3'd7   // of rings in an AXI4 memory: it has answered with an error
  } tcp_end_e;

  // The results of an event, in addition to the new row.
  typedef struct packed {
    tcp_segment_t send;
    logic         opened;
    tcp_end_e     ended;
    logic [30:0]  acknowledged;  // bytes
    tcp_counts_t  counts;
  } tcp_actions_t;

  // ---- between tcp_sender and the modules around it ----------------------------------------------------------
  // Software opens or aborts a stream.
  typedef struct packed {
    tcp_stream_t stream;
    logic        opens;  // else it aborts
    tcp_seq_t    iss;    // of the SYN; not to be guessed (RFC 9293 section 3.4.1)
  } tcp_command_t;

  // Software opens a stream.
  typedef struct packed {
    tcp_stream_t stream;
    tcp_seq_t    iss;
  } tcp_opening_t;

  // Payload is in the ring of a stream.
  typedef struct packed {
    tcp_stream_t stream;
    logic [30:0] bytes;
  } tcp_write_t;

  // A segment of a stream's peer, or an ICMP error that quotes one of ours (TcpSegment, TcpPathMtu).
  typedef struct packed {
    tcp_stream_t stream;
    logic        epoch;   // of the connection whose peer it is from (tcp_ring_guard)
    tcp_event_t  what;
  } tcp_arrival_t;

  // The events of a stream, and its present state.
  typedef struct packed {
    tcp_stream_t  stream;
    tcp_event_e   kind;
    tcp_actions_t actions;
    tcp_state_e   state;
    tcp_seq_t     una;      // everything before it in the ring is free
    tcp_seq_t     nxt;
    tcp_seq_t     max;        // after the last byte that was sent
    tcp_seq_t     max_before; // the same before the event
    tcp_seq_t     written;
    tcp_window_t  window;
    logic [29:0]  srtt;
    logic         reset_due;  // an RST still has to be sent
  } tcp_done_t;

  // ---- frames ---------------------------------------------------------------------------------------------------
  // RFC 9293 section 3.1, the first octet on the wire in the most significant byte.
  typedef struct packed {
    logic [15:0] sport;
    logic [15:0] dport;
    logic [31:0] seq;
    logic [31:0] ack;
    logic [3:0]  offset;    // words of the header, options included
    logic [3:0]  reserved;
    tcp_flags_t  flags;
    logic [15:0] window;
    logic [15:0] checksum;
    logic [15:0] urgent;
  } tcp_hdr_t;

  localparam int unsigned TcpBytes = $bits(tcp_hdr_t) / 8;
  localparam int unsigned TcpOptionBytes = 40;  // at most

  // Where a stream's receiver is. The local port of stream n is port_base + n.
  typedef struct packed {
    logic [47:0] mac;
    logic [31:0] ip;
    logic [15:0] port;
  } tcp_peer_t;

  // The framer's input for a frame, in addition to the payload stream.
  typedef struct packed {
    tcp_peer_t    peer;
    logic [15:0]  port;         // our own
    logic [15:0]  window;       // our own
    tcp_mss_t     mss;          // option of a SYN
    logic [15:0]  payload_sum;  // of the payload's words, its first byte the upper one of the first; carries folded in
    tcp_segment_t segment;
  } tcp_tx_hdr_t;

  // Each frame without a MAC error counts once.
  typedef struct packed {
    logic segment;       // of a stream's peer
    logic bad_checksum;  // of TCP
    logic unknown;       // of no stream's peer
    logic dropped;       // a good one for which there was no room
    logic malformed;     // truncated, IP checksum or lengths wrong, fragment, IP options
    logic not_for_us;    // another's MAC or IP address
    logic other;         // not IPv4, not TCP
  } tcp_rx_counts_t;

  // ---- of a front end -----------------------------------------------------------------------------------------
  localparam int unsigned TcpMessages = 64;  // of a stream that may wait for their acknowledgement

  // Settings of all streams, as software writes them.
  typedef struct packed {
    tcp_params_t params;
    logic        framed;           // each message is preceded by its length, and padded with zeros to 8 bytes
    logic [7:0]  tos;
    logic [15:0] port_base;
    logic [15:0] reopen_interval;  // ms; 0: never
    logic [31:0] secret;           // of initial sequence numbers
  } tcp_cfg_t;

  // The outcome of an accepted message.
  typedef enum logic [1:0] {
    TcpGood,    // it is in the stream
    TcpCut,     // it is, but descriptor and payload disagreed
    TcpBad,     // its length is impossible: it is not
    TcpNowhere  // there is no such stream, or no server for its event
  } tcp_verdict_e;

  typedef struct packed {
    tcp_verdict_e      verdict;
    logic [31:0]       tag;
    penstock_pkg::qp_t qp;
  } tcp_message_t;

  // A message that tcp_ring_writer has finished.
  typedef struct packed {
    logic     dropped;  // its connection has ended, or was never there
    tcp_seq_t end_seq;  // after its last byte
  } tcp_laid_t;

  // Counters of a front end over all streams.
  typedef struct packed {
    tcp_rx_counts_t rx;
    logic           opened;
    logic           ended;
    logic           completed;  // a message
  } tcp_stat_t;

  // RFC 1071: carries go back in, twice, as the first may make another.
  function automatic logic [15:0] tcp_fold(logic [23:0] sum);
    logic [16:0] folded;
    folded = 17'(sum[15:0]) + 17'(sum[23:16]);
    return folded[15:0] + 16'(folded[16]);
  endfunction

  // The next segment of a stream: an RST, a SYN, the data that tcp_pick has chosen, an acknowledgement, in this order.
  function automatic tcp_segment_t tcp_next_segment(tcp_row_t row, tcp_choice_t choice);
    tcp_next_segment = '0;
    if (row.reset_due) begin
      tcp_next_segment.valid     = 1'b1;
      tcp_next_segment.seq       = row.reset_seq;
      tcp_next_segment.ack       = row.reset_acks ? row.rcv_nxt : '0;
      tcp_next_segment.flags.rst = 1'b1;
      tcp_next_segment.flags.ack = row.reset_acks;
    end else if (row.state == TcpSynSent && row.syn_due) begin
      tcp_next_segment.valid     = 1'b1;
      tcp_next_segment.seq       = row.una;
      tcp_next_segment.flags.syn = 1'b1;
    end else if (row.state == TcpEstablished) begin
      tcp_next_segment.valid     = choice.valid || row.ack_due;  // else the other fields are undefined
      tcp_next_segment.seq       = !choice.valid ? row.max : row.resend ? row.una : row.nxt;
      tcp_next_segment.ack       = row.rcv_nxt;
      tcp_next_segment.flags.ack = 1'b1;
      tcp_next_segment.flags.psh = choice.valid && choice.last;  // RFC 9293 section 3.9.1.2
      tcp_next_segment.len       = choice.valid ? choice.len : '0;
    end
  endfunction

  // RFC 9293 section 3.4: numbers that wrap. a comes before b.
  function automatic logic tcp_before(logic [31:0] a, logic [31:0] b);
    logic [31:0] distance;
    distance = a - b;
    return distance[31];
  endfunction
endpackage
