// SPDX-License-Identifier: SHL-2.1
// Types shared by the parts of the responder: requests, windows, and the state of a queue pair as a responder.
// IBTA volume 1, 9.7 (reliable service), 9.4 (SEND, RDMA WRITE, RDMA READ); the rules are those of crates/transport
// (responder.rs).
package roce_read_pkg;
  import penstock_pkg::*;
  import roce_pkg::reth_t;

  // READs of a queue pair that are remembered: the most responder resources that a peer may be given.
  localparam int unsigned Entries = 16;
  typedef logic [$clog2(Entries)-1:0] entry_t;

  localparam logic [7:0] OpcodeReadRequest = 8'h0C;
  localparam logic [7:0] OpcodeReadFirst   = 8'h0D;
  localparam logic [7:0] OpcodeReadMiddle  = 8'h0E;
  localparam logic [7:0] OpcodeReadLast    = 8'h0F;
  localparam logic [7:0] OpcodeReadOnly    = 8'h10;

  // AETH syndromes, IBTA table 44. The responder has no receive queue: its credits are not valid.
  localparam logic [7:0] SyndromeAck             = 8'h1F;
  localparam logic [7:0] SyndromeNakSequence     = 8'h60;
  localparam logic [7:0] SyndromeNakInvalid      = 8'h61;
  localparam logic [7:0] SyndromeNakAccess       = 8'h62;
  localparam logic [7:0] SyndromeNakOperational  = 8'h63;

  localparam logic [2:0] SyndromeRnr             = 3'b001;  // [7:5]; below it the timer

  // What a request has after its BTH, as if it had a RETH, and flags of its BTH.
  typedef struct packed {
    logic        ack_req;
    logic [1:0]  pad_count;
    logic [31:0] imm;        // after the RETH
    logic [15:0] length;     // of the IP packet
    reth_t       reth;
  } request_hdr_t;

  // A packet of a SEND or a WRITE; `valid` only in builds that receive.
  typedef struct packed {
    logic        valid;
    logic        is_send;
    logic        starts;     // the first packet of its message
    logic        ends;       // the last
    logic        has_imm;
    logic        ack_req;
    logic [15:0] len;        // bytes of payload
    logic [31:0] imm;
  } receive_t;

  // A request packet of the peer of a ready queue pair.
  typedef struct packed {
    receive_t receive;
    qp_t      qp;
    logic     is_read;
    logic     is_whole;      // a RETH and nothing more
    psn_t     psn;
    reth_t    reth;
  } read_request_t;

  // Settings of a queue pair: its window, and what it answers. An address in the window is that of the memory's port.
  typedef struct packed {
    logic        write;      // the peer may WRITE
    logic [4:0]  rnr_timer;  // code of the time after which a peer without a buffer may try again (IBTA table 45)
    logic [4:0]  resources;  // READs that may be outstanding, 0 to 16; 0: none is served
    psn_t        psn;        // of the peer's first request
    logic [31:0] rkey;
    logic [63:0] base;       // multiples of 64 bytes
    logic [63:0] length;
  } read_cfg_t;

  // A READ that was executed.
  typedef struct packed {
    psn_t        first;
    logic [23:0] packets;    // of its answer
    reth_t       reth;
  } executed_t;

  // What is left of its answer.
  typedef struct packed {
    psn_t        psn;
    logic [63:0] va;
    logic [31:0] left;       // bytes
    logic        begun;      // a packet of it was sent
    logic [23:0] msn;
  } answer_t;

  // A NAK that waits. It precedes the answers to READs in `later`, and follows all others.
  typedef struct packed {
    logic               valid;
    logic [7:0]         syndrome;
    psn_t               psn;
    logic [23:0]        msn;
    logic [Entries-1:0] later;
  } nak_t;

  // A message of which not all has come. A WRITE has `rest`: where its next byte goes.
  typedef struct packed {
    logic        begun;
    logic        is_send;
    reth_t       rest;
    logic [31:0] length;     // of all of it
  } message_t;

  // An ACK that waits, up to the latest packet. It precedes the answers to READs in `later`, and follows all others.
  typedef struct packed {
    logic               valid;
    psn_t               psn;
    logic [23:0]        msn;
    logic [Entries-1:0] later;
  } ack_t;

  // The state of builds that receive. A NAK includes the ACK of all before it, so one that waits with an ACK is older.
  typedef struct packed {
    message_t message;
    ack_t     ack;
  } receive_row_t;

  typedef struct packed {
    psn_t               expected;  // of the next request in order
    logic [23:0]        msn;       // requests executed
    logic               refused;   // a sequence NAK is out for `expected`
    logic               failed;    // a fatal NAK waits or is out: requests are dropped
    entry_t             next;      // entry of the next READ
    logic [4:0]         count;     // READs that are remembered: the entries before `next`
    logic [Entries-1:0] pending;   // their answers are not complete
    logic [Entries-1:0] repeated;  // ... and were requested again
    nak_t               nak;
  } read_row_t;

  // Numbers of WRITEs' packets, in the order in which they were accepted.
  typedef logic [7:0] fence_t;

  // What becomes of a packet's payload. With none of the first three it is discarded.
  typedef struct packed {
    logic                   places;    // in the memory, from `va` on
    logic                   streams;   // to the stream of SENDs
    logic                   notifies;  // a WRITE with immediate has ended: a notice goes to that stream
    logic                   has_reth;  // before the payload
    logic                   has_imm;
    logic                   starts;
    logic                   ends;
    qp_t                    qp;
    psn_t                   psn;
    logic [31:0]            imm;
    logic [PayloadLenW-1:0] len;
    logic [63:0]            va;
    logic [31:0]            length;    // of the message of a notice
    fence_t                 fence;     // with this packet, or the last one before it
  } placement_t;

  // The side band of the stream of SENDs (m_axis_receive_tuser).
  typedef struct packed {
    logic        starts;     // the first packet of a message: one of its queue pair before it has not ended
    logic        is_write;   // a notice: address (8 bytes) and length (4) of a WRITE with immediate
    logic        has_imm;    // valid at the message's end
    logic [31:0] imm;
    qp_t         qp;
  } receive_user_t;

  // A packet to send, its payload being fetched.
  typedef struct packed {
    qp_t                    qp;
    logic                   is_fatal;  // a NAK that ends the queue pair
    logic [47:0]            dst_mac;
    logic [31:0]            dst_ip;
    logic [15:0]            udp_sport;
    logic [7:0]             tos;
    logic [23:0]            dest_qpn;
    logic [7:0]             opcode;
    psn_t                   psn;
    logic                   has_aeth;
    logic [7:0]             syndrome;
    logic [23:0]            msn;
    logic [PayloadLenW-1:0] len;
  } read_reply_t;

  // Counters of the responder, one pulse each.
  typedef struct packed {
    logic write;        // WRITEs whose last packet was accepted
    logic send;         // SENDs, likewise
    logic out_of_buffer;  // RNR NAKs
    logic read;         // READs accepted
    logic repeated;     // ... again
    logic dropped;      // requests without an answer
    logic nak_sequence; // NAKs, by their syndromes
    logic nak_invalid;
    logic nak_access;
    logic nak_operational;
  } read_stat_t;

  function automatic logic is_fatal(logic [7:0] syndrome);
    return syndrome[7:5] != SyndromeRnr && syndrome != SyndromeNakSequence;
  endfunction

  // Requests of a reliable connection, whether they are served or not (IBTA table 38).
  function automatic logic is_rc_request(logic [7:0] opcode);
    return opcode[7:5] == '0 && (opcode < 8'h0D || opcode > 8'h12);
  endfunction

  // Packets of an answer; one of no bytes has one packet.
  function automatic logic [23:0] packets(logic [31:0] len, mtu_e mtu);
    logic [31:0] len_minus_1;
    len_minus_1 = len - 1'b1;
    return len == '0 ? 24'd1 : 24'(len_minus_1 >> (4'd7 + 4'(mtu))) + 1'b1;
  endfunction
endpackage
