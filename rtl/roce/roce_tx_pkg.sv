// SPDX-License-Identifier: SHL-2.1
// Types shared by the parts of roce_tx: the state of a queue pair and the operations on it.
// Five PSNs divide a send ring; each is "the first PSN that is not yet ...", all modulo 2^24:
//
//    tail            una            nxt           sent_end          wr
//     |  acknowledged |  outstanding | to be resent  |  never sent   |  free ...
//     |  (completing) |              | (after a rewind)              |
package roce_tx_pkg;
  import penstock_pkg::*;

  // Where the send rings are: parameter STORE of roce_tx and of tcp_endpoint.
  localparam int unsigned StoreOnChip = 0;
  localparam int unsigned StoreAxi = 1;

  // Time in ticks of 1.024 us: a quarter of the ACK timer's unit, fine enough for RNR's 10 us.
  typedef logic [35:0] tick_t;

  // Number of a message on its queue pair (SSN, and the peer's MSN), modulo 2^12: rings and credits
  // are far shorter.
  typedef logic [11:0] ssn_t;

  typedef struct packed {
    qp_state_e  state;
    logic       open_pending;  // RTS was requested; waits until ring and segmenter are empty
    wc_status_e err_status;    // of the first message that fails after leaving QpRts
    logic       err_reported;  // it has completed; later ones are flushed
    mtu_e       mtu;           // as it was when the QP opened
    psn_t       tail;          // oldest slot in use
    psn_t       una;           // first unacknowledged
    psn_t       nxt;           // next to be sent
    psn_t       sent_end;      // after the highest ever sent
    psn_t       wr;            // next to be written by the segmenter
    psn_t       req_end;       // after the last one sent with AckReq: the ACK timer runs if != una
    logic       poisoned;      // the slot at `poison` is no packet: its message has a wrong length
    psn_t       poison;
    logic [2:0] retry_left;
    logic [2:0] rnr_left;
    logic       rnr_wait;      // the timer is the RNR timer, nothing is sent
    logic       timer_on;
    tick_t      deadline;      // of the timer; while it is off, the last time something was acknowledged
    logic       midway;        // the packet at sent_end is not the first of its message
    // End-to-end credits, IBTA 9.7.7.2
    logic       unlimited;     // the peer gives none, or has not acknowledged yet
    logic       credit_wait;   // the packet at nxt waits for an acknowledgement to bring credits
    ssn_t       lsn;           // number of the last message that has a receive buffer
    ssn_t       ssn;           // number of the message at nxt
    ssn_t       una_ssn;       // number of the message at una
  } qp_row_t;

  // ---- a build without retransmission: RETRANSMIT = 0 ---------------------------------------------
  // Every packet leaves once. It is that of retry_cnt = 0 and rnr_retry = 0, whatever the table holds: the first loss
  // and the first receiver that is not ready end the queue pair. Nothing goes back, so nxt is sent_end, and what only a
  // rewind looks up is not kept (proved: requester_once_props).
  function automatic qp_cfg_t without_retries(qp_cfg_t cfg);
    without_retries = cfg;
    without_retries.retry_cnt = '0;
    without_retries.rnr_retry = '0;
  endfunction

  function automatic qp_row_t sent_once(qp_row_t row);
    sent_once = row;
    sent_once.sent_end   = row.nxt;
    sent_once.retry_left = '0;
    sent_once.rnr_left   = '0;
    sent_once.rnr_wait   = 1'b0;
    sent_once.una_ssn    = '0;
  endfunction

  // ---- operations: each touches one queue pair, in the order they enter the pipeline -----------
  typedef enum logic [2:0] {
    DoInit    = 3'd0,  // after reset: write a fresh row
    DoCmd     = 3'd1,  // software requests a state
    DoSend    = 3'd2,  // the scheduler chose this QP: send the packet at nxt
    DoCommit  = 3'd3,  // the segmenter filled the slot at wr
    DoLoad    = 3'd4,  // the segmenter begins a message and needs tail, wr, mtu
    DoVisit   = 3'd5,  // look at the timer and at a waiting open
    DoAck     = 3'd6,  // acknowledgement
    DoRelease = 3'd7   // free the slot at tail, complete its message
  } op_kind_e;

  typedef struct packed {
    op_kind_e   kind;
    qp_t        qp;
    qp_state_e  state;  // DoCmd
    logic       bad;    // DoCommit: the message's length is wrong
    ack_event_t ack;    // DoAck
  } op_t;

  // Facts about a row before its operation; a fact that only some kinds of operation use is undefined for the others.
  typedef struct packed {
    // DoAck
    psn_t upto;          // everything before it has arrived
    logic in_window;     // a packet that is outstanding, of a live queue pair
    logic repeats_last;  // of what is known to have arrived, likewise; may still bring credits
    logic progress;      // upto is after una
    logic passes_nxt;    // ... and after a rewound nxt
    logic passes_req;
    logic requested_beyond;  // a packet after upto has AckReq
    logic repeated;      // already rewound to this PSN and nothing sent since
    ssn_t limit;         // number of the last message that has a receive buffer
    logic credits;       // that is more than lsn
    // DoSend
    logic beyond;        // the message at nxt has no receive buffer
    logic can_send;
    logic again;         // the packet at nxt was sent before
    logic last_ready;    // no packet after it can be sent yet
    logic last_again;    // no packet after it was sent before
    logic at_una;        // nothing is outstanding
    logic requested_all;     // the packet before it has AckReq
    // DoRelease
    logic can_release;
    logic acked;         // the packet at tail
    logic to_poison;     // the slot after it is not a packet
    // DoCommit, DoVisit
    logic empty;
    logic expired;       // the timer
    logic silent;        // for the time after which a keep-alive goes
  } facts_t;

  // The results of an operation, in addition to the new row.
  typedef struct packed {
    logic       left_rts;
    logic       failed;         // fell into QpErr
    logic       keep_alive;     // silent for long: an empty message is requested from the segmenter
    logic       send;
    logic       ack_req;
    logic       retransmit;
    logic       freed;
    logic       complete;
    wc_status_e status;
    logic       packet_seq_err;
    logic       rnr_nak;
    logic       timeout;
    logic       stale_ack;
  } outcome_t;

  // An acknowledgement inside the window ends at nxt, and finds nothing rewound.
  function automatic facts_t facts_sent_once(facts_t facts);
    facts_sent_once = facts;
    facts_sent_once.passes_nxt = 1'b0;
    facts_sent_once.repeated   = 1'b0;
    facts_sent_once.again      = 1'b0;
  endfunction

  // ---- one packet in the ring --------------------------------------------------------------------
  typedef struct packed {
    logic                   first;
    logic                   last;
    verb_e                  verb;
    logic                   with_imm;
    logic [PayloadLenW-1:0] len;
    logic [63:0]            va;
    logic [31:0]            dma_len;
    logic [31:0]            imm;
  } tx_meta_t;

  typedef struct packed {
    logic        last;
    logic [31:0] tag;
  } cpl_meta_t;

  // The requester's report to the segmenter, one cycle after an operation.
  typedef struct packed {
    logic loaded;    // answer to DoLoad
    logic again;     // answer to DoLoad: about to open, load again
    logic freed;     // tail of `qp` moved
    logic left_rts;  // `qp` no longer takes messages
    logic rts;       // it does
    qp_t  qp;
    psn_t tail;
    psn_t wr;
    mtu_e mtu;
  } ring_view_t;

  // The part of a row visible in registers.
  typedef struct packed {
    qp_state_e state;
    logic      drained;
    psn_t      una;
    psn_t      nxt;
    psn_t      wr;
  } ring_status_t;

  // Counts of a queue pair, in the kernel's names where it has one, in the order of their registers.
  typedef enum logic [3:0] {
    CountPacketsSent          = 4'd0,
    CountPacketsRetransmitted = 4'd1,
    CountPacketSeqErr         = 4'd2,
    CountRnrNak               = 4'd3,
    CountLocalAckTimeoutErr   = 4'd4,
    CountStaleAcks            = 4'd5,
    CountMessagesOk           = 4'd6,
    CountMessagesErr          = 4'd7,
    CountBytesAckedLo         = 4'd8,   // payload that was acknowledged
    CountBytesAckedHi         = 4'd9
  } qp_count_e;

  // ---- functions ---------------------------------------------------------------------------------
  function automatic logic [PayloadLenW-1:0] mtu_bytes(mtu_e mtu);
    return PayloadLenW'(128) << mtu;
  endfunction

  // A row of the table that holds no MTU code opens with the nearest one that exists.
  function automatic mtu_e valid_mtu(mtu_e mtu);
    if (mtu < Mtu256) return Mtu256;
    if (mtu > Mtu4096) return Mtu4096;
    return mtu;
  endfunction

  // Spreads queue pairs over the ECMP paths, in 0xC000 .. 0xFFFF: the local number XOR the peer's with
  // its halves exchanged, then the upper ten of the 24 bits folded onto the lower 14. Queue pairs that
  // differ in the low 12 bits of one of the two numbers alone have different ports.
  function automatic logic [15:0] hashed_port(logic [23:0] local_number, logic [23:0] remote_number);
    logic [23:0] mixed;
    mixed = local_number ^ {remote_number[11:0], remote_number[23:12]};
    return {2'b11, mixed[13:0] ^ {4'b0, mixed[23:14]}};
  endfunction

  // First PSN that may not be sent (yet).
  function automatic psn_t send_end(qp_row_t row);
    return row.poisoned ? row.poison : row.wr;
  endfunction

  // Messages and acknowledgements are taken.
  function automatic logic is_live(qp_state_e state);
    return state == QpRts || state == QpSqd;
  endfunction

  // A draining queue pair sends the messages that it has begun, and retransmits lost packets.
  function automatic logic can_send(qp_row_t row);
    return (row.state == QpRts || (row.state == QpSqd && (row.midway || row.nxt != row.sent_end)))
           && !row.rnr_wait && !row.credit_wait && row.nxt != send_end(row);
  endfunction

  function automatic logic is_drained(qp_row_t row);
    return row.state == QpSqd && !row.midway && row.una == row.sent_end;
  endfunction

  function automatic logic can_release(qp_row_t row);
    return row.tail != row.una || (!is_live(row.state) && row.tail != row.wr);
  endfunction

  // IBTA table 46, credit count of an acknowledgement; 31 is no count. More than a ring can hold is 1024.
  localparam logic [4:0] CreditsUnlimited = 5'd31;
  function automatic ssn_t credits(logic [4:0] code);
    if (code >= 5'd20) return 12'd1024;
    if (code < 5'd2) return 12'(code);
    return (12'd2 + 12'(code[0])) << (code[4:1] - 4'd1);
  endfunction

  // a is after b
  function automatic logic ssn_after(ssn_t a, ssn_t b);
    ssn_t distance;
    distance = a - b;
    return distance != '0 && !distance[$bits(ssn_t)-1];
  endfunction

  // IBTA table 45, RNR NAK timer field, in units of 10 us.
  function automatic logic [16:0] rnr_units(logic [4:0] code);
    unique case (code)
      5'd0: return 17'd65536;
      5'd1: return 17'd1;
      5'd2: return 17'd2;
      5'd3: return 17'd3;
      5'd4: return 17'd4;
      5'd5: return 17'd6;
      5'd6: return 17'd8;
      5'd7: return 17'd12;
      5'd8: return 17'd16;
      5'd9: return 17'd24;
      5'd10: return 17'd32;
      5'd11: return 17'd48;
      5'd12: return 17'd64;
      5'd13: return 17'd96;
      5'd14: return 17'd128;
      5'd15: return 17'd192;
      5'd16: return 17'd256;
      5'd17: return 17'd384;
      5'd18: return 17'd512;
      5'd19: return 17'd768;
      5'd20: return 17'd1024;
      5'd21: return 17'd1536;
      5'd22: return 17'd2048;
      5'd23: return 17'd3072;
      5'd24: return 17'd4096;
      5'd25: return 17'd6144;
      5'd26: return 17'd8192;
      5'd27: return 17'd12288;
      5'd28: return 17'd16384;
      5'd29: return 17'd24576;
      5'd30: return 17'd32768;
      5'd31: return 17'd49152;
    endcase
  endfunction

  // The same in ticks, rounded up (10 us = 625/64 ticks): a table, so that nothing multiplies.
  function automatic logic [31:0][19:0] rnr_ticks();
    for (int unsigned code = 0; code < 32; code++)
      rnr_ticks[code] = 20'((32'(rnr_units(5'(code))) * 625 + 63) >> 6);
  endfunction
  localparam logic [31:0][19:0] RnrTicks = rnr_ticks();

  // IBTA 9.7.6.1.3: 4.096 us * 2^code.
  function automatic tick_t ack_ticks(logic [4:0] code);
    return 36'd4 << code;
  endfunction
endpackage
