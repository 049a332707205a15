// SPDX-License-Identifier: SHL-2.1
// The messages of the standard connection manager: management datagrams (MADs) between the queue pairs 1 of two hosts;
// and the types of rdma_cm. Words of 16 bits, the first byte uppermost.
//
//    0..5                              6..9                      10..21       22..137     138, 139
//   | BTH, opcode 0x64, queue pair 1 | Q_Key, source queue pair | MAD header | message   | ICRC |
//    MAD header: base version, class | class version, method | -, - | transaction (four) | attribute | -, -, -
//
// IBTA volume 1, 9.8.3 (DETH), 12.6 to 12.11 (messages), 13.4.3 (MAD header); annex A11 (addresses).
package rdma_cm_pkg;

  localparam logic [7:0]  UdSendOnly  = 8'h64;
  localparam logic [31:0] GsiQkey     = 32'h8001_0000;  // of queue pair 1 (10.2.5)
  localparam logic [15:0] ClassWord   = 16'h0107;       // base version 1, communication management
  localparam logic [15:0] MethodWord  = 16'h0203;       // version 2 of the class, ComMgtSend
  localparam logic [15:0] TcpSpace    = 16'h0106;       // service identifiers of TCP's ports, as RDMA_PS_TCP
  localparam logic [11:0] Attribute   = 12'h001;        // of all messages, above the low four bits
  localparam logic [15:0] SourcePort  = 16'hC000;       // of UDP

  localparam int unsigned PayloadWords = services_pkg::MadBytes / 2;
  localparam int unsigned MessageAt    = 22;            // first word of the message
  typedef logic [7:0] at_t;                             // of a word

  // The word with byte `offset` of the message.
  function automatic at_t at_message(int unsigned offset);
    return at_t'(MessageAt + offset / 2);
  endfunction

  typedef enum logic [2:0] {
    KindReq  = 3'd0,
    KindMra  = 3'd1,
    KindRej  = 3'd2,
    KindRep  = 3'd3,
    KindRtu  = 3'd4,
    KindDreq = 3'd5,
    KindDrep = 3'd6
  } kind_e;

  // What the rules need of a received message.
  typedef struct packed {
    logic [31:0] ip;               // source address
    kind_e       kind;
    logic [63:0] transaction;
    logic [31:0] local_id;         // of the sender
    logic [31:0] remote_id;        // ours, as the sender has it
    logic [63:0] guid;             // of the sender's channel adapter: REQ; REJ for a timeout
    logic [23:0] qpn;              // REQ: the sender's; DREQ: ours
    // REQ
    logic        is_service;       // the port at which we listen
    logic        is_rc;
    logic        has_addresses;    // IPv4, in the private data
    logic        has_our_addresses;
    logic        is_partition;
    logic [23:0] psn;              // our first
    logic [7:0]  initiator_depth;
    logic [4:0]  local_timeout;    // code of the time for the sender's answers
    logic [2:0]  retry_count;
    logic [2:0]  rnr_retry;
    logic [3:0]  cm_retries;
    logic [3:0]  mtu;
    logic [4:0]  ack_timeout;
    // MRA, REJ
    logic [1:0]  answered;         // the message it answers: 0 REQ, 1 REP
    logic [4:0]  service_timeout;
    logic        is_timeout;       // reason 4, with a GUID
  } message_t;

  typedef enum logic [7:0] {
    RejNone             = 8'd0,
    RejNoQp             = 8'd1,
    RejNoResources      = 8'd3,
    RejTimeout          = 8'd4,
    RejUnsupported      = 8'd5,
    RejInvalidCommId    = 8'd6,
    RejInvalidServiceId = 8'd8,
    RejInvalidTransport = 8'd9,
    RejStaleConn        = 8'd10,
    RejInvalidGid       = 8'd12,
    RejInvalidMtu       = 8'd26,
    RejDuplicateCommId  = 8'd30
  } reason_e;

  // ---- the connection of a queue pair: a row of 16 words; one row more is for answers without a connection -------------
  typedef enum logic [2:0] {
    LinkFree     = 3'd0,
    LinkRepSent  = 3'd1,
    LinkOpen     = 3'd2,
    LinkDreqSent = 3'd3,
    LinkTimeWait = 3'd4
  } link_e;

  typedef struct packed {
    logic [15:0] ticks;   // until the message is sent again, or TimeWait ends
    logic [3:0]  unused;
    logic [4:0]  wait_code;
    logic [3:0]  left;    // repetitions
    link_e       state;
  } head_t;

  typedef enum logic [3:0] {
    RowHead          = 4'd0,
    RowIp            = 4'd1,
    RowLocalId       = 4'd2,   // ours
    RowRemoteId      = 4'd3,
    RowGuidHigh      = 4'd4,
    RowGuidLow       = 4'd5,
    RowQpn           = 4'd6,   // the peer's, in [31:8]
    RowPsn           = 4'd7,   // our first in [31:8]; READs that the peer may have outstanding
    RowPeerPsn       = 4'd8,   // the peer's first in [31:8]
    RowTransaction   = 4'd9,   // two
    RowBaseHigh      = 4'd11,  // the window
    RowBaseLow       = 4'd12,
    RowRkey          = 4'd13,
    RowBytes         = 4'd14
  } row_e;

  // ---- messages that are sent -----------------------------------------------------------------------------------------
  typedef enum logic [2:0] {
    SendRep,
    SendRej,
    SendDreq,
    SendDrep,
    SendOpen,   // OPEN_QP and CLOSE_QP, to connection_manager
    SendClose
  } send_e;

  typedef struct packed {
    send_e      what;
    reason_e    reason;
    logic [1:0] answers;  // the message that is rejected
  } answer_t;

  // ---- what follows from a message or a timer, in the order of its steps ------------------------------------------------
  typedef enum logic [2:0] {
    StoreNone,
    StoreLink,         // a connection
    StoreTransaction,  // the message's
    StoreFresh,        // a transaction of ours
    StoreStranger      // what an answer without a connection needs
  } store_e;

  typedef struct packed {
    logic    pick;     // find a queue pair for the message
    store_e  store;
    logic    mark;     // write the row's head
    head_t   head;
    logic    open;     // the queue pair
    logic    send;
    answer_t answer;
    logic    close;    // the queue pair
    reason_e reject;   // the message, after all of these
  } action_t;

  localparam action_t Nothing = '{
    pick: 1'b0, store: StoreNone, mark: 1'b0, head: '0, open: 1'b0, send: 1'b0,
    answer: '{what: SendDrep, reason: RejNone, answers: 2'd0}, close: 1'b0, reject: RejNone
  };

  // Counts, one pulse each.
  typedef struct packed {
    logic request;       // a REQ that was agreed to, so far
    logic refused;       // REJ sent
    logic repeated;      // a repeated message got its answer again
    logic unknown;       // a message for no connection
    logic ignored;       // a message that does not fit the state of its connection
    logic established;
    logic disconnected;  // with or without RTU
    logic silent;        // given up without RTU
    logic malformed;     // no message, or one that is not supported
  } rdma_cm_stat_t;

  // Ticks of 2^8 * 4.096 us.
  localparam int unsigned TickLog2    = 8;
  localparam logic [15:0] LongestWait = 16'd4768;  // 5 s
  localparam logic [15:0] TimeWait    = 16'd954;   // 1 s
  localparam logic [4:0]  ResponseTimeout = 5'd16; // of the peer's answers to DREQ: 268 ms
  localparam logic [3:0]  Retries     = 4'd15;

  // Head of a connection that we end.
  localparam head_t DreqHead = '{
    ticks: 16'd1 << (ResponseTimeout - 5'(TickLog2)), unused: '0, wait_code: ResponseTimeout, left: Retries,
    state: LinkDreqSent
  };

  function automatic logic [15:0] ticks_of(logic [4:0] code, logic [15:0] longest);
    if (code < 5'(TickLog2)) return 16'd1;
    if (code > 5'(TickLog2 + 15)) return longest;
    ticks_of = 16'd1 << (code - 5'(TickLog2));
    if (ticks_of > longest) ticks_of = longest;
  endfunction

endpackage
