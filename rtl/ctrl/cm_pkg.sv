// SPDX-License-Identifier: SHL-2.1
// The connection manager's messages: one 64-byte UDP payload, big-endian; and the types of the manager.
// The layout is that of the FEROCE connection manager, for compatibility with its host software and firmware.
//
//    0            1  2..24          25  26..48            49..50  51        52..55  56..59  60..63
//   | ack/request | | sender's info |  | other side's info | port | transmit | length | count  | interval |
//
//    info:  qpn 0..2, -, psn 4..6, rkey 7..10, base address 11..18, IPv4 19..22
//
// OPEN_QP with the info bit opens a queue pair completely. Without the bit it only reserves one, and SEND_QP_INFO and
// MODIFY_QP_RTS do the rest: an extension, which FEROCE's programs do not answer.
package cm_pkg;

  localparam logic [15:0] RequestPort = 16'h4321;
  localparam logic [15:0] ReplyPort   = 16'h4322;

  typedef enum logic [2:0] {
    ReqNone    = 3'd0,
    ReqOpen    = 3'd1,  // with info: RESET -> INIT -> RTR -> RTS; without: RESET -> INIT
    ReqInfo    = 3'd2,  // here is the peer: INIT -> RTR
    ReqRts     = 3'd3,  // RTR -> RTS
    ReqClose   = 3'd4,  // -> RESET, free for another
    ReqError   = 3'd7   // the peer has failed: -> ERR
  } request_e;

  typedef enum logic [2:0] {
    AckNone  = 3'd0,
    AckAck   = 3'd1,
    AckNoQp  = 3'd2,  // none is free, or no such
    AckNak   = 3'd3,  // not yours, or not now
    AckError = 3'd7   // the request means nothing, or a step of it failed
  } answer_e;

  typedef struct packed {
    logic [3:0] reserved;
    logic       is_write;   // WRITE, else SEND
    logic       with_imm;
    logic       start;      // else stop
    logic       valid;
  } transmit_t;

  // The fields of a received message that the rules use; all others stay in the message's memory.
  typedef struct packed {
    answer_e     answer;
    logic        answer_valid;
    request_e    request;
    logic        info_valid;
    transmit_t   transmit;
    logic [23:0] qpn;       // ours, which the sender calls the remote one
    logic [15:0] port;      // where replies go; 0 = ReplyPort
    logic [31:0] ip;        // UDP source address
  } fields_t;

  // ---- settings and status: regs/connection.rdl -------------------------------------------------
  typedef struct packed {
    logic        listen;       // serve requests
    logic        reopen;       // open again what we opened and lost
    logic        engaged;      // no queue pair for a new OPEN_QP
    logic        keep_peer;    // a queue pair that was closed or has failed is for its last peer alone
    logic [7:0]  per_address;  // queue pairs that one address may hold; 0 = all
    logic [7:0]  offered;      // number of queue pairs, from the first on, that OPEN_QP may take; 0 = all
    logic [31:0] server_ip;
    logic [15:0] server_port;
    logic [15:0] timeout_ms;   // for one answer
    logic [3:0]  retries;
    logic [31:0] flow;         // word qp.flow of queue pairs that are opened
    logic [31:0] transport;    // word qp.transport
    logic        open;         // pulse: open queue pair `qp`
    logic        close;
    logic [7:0]  qp;
  } cm_cfg_t;

  typedef enum logic [2:0] {
    StepNone = 3'd0,
    StepOpen = 3'd1,   // OPEN_QP sent
    StepDone = 3'd4,   // the queue pair is open
    StepShut = 3'd5    // CLOSE_QP
  } step_e;

  typedef enum logic [3:0] {
    FailNone    = 4'd0,
    FailSilent  = 4'd1,  // no answer, retries spent
    FailNoQp    = 4'd2,  // the server has none
    FailNak     = 4'd3,  // the server refused
    FailServer  = 4'd4,  // the server answered ERROR
    FailAddress = 4'd5,  // no host answers ARP for the next hop
    FailState   = 4'd6   // our own queue pair did not follow
  } fail_e;

  typedef struct packed {
    logic       probe;  // the peers of idle queue pairs must be probed
    logic       busy;
    step_e      step;   // the last one begun
    fail_e      fail;
    logic [7:0] qp;
  } cm_status_t;

  // ---- the state of a queue pair, and the operations on it ----------------------------------------
  // Its entry has 32 bytes. A closed one keeps its last peer, whose repeated CLOSE_QP gets the same answer.
  //
  //    0       1, 5                2..4, 6..24                      25..28                        29..31
  //   | phase | the peer's CM port | the peer as a message names it | address of the peer's CM | our first PSN |
  //
  // Data go to the address that the peer names; only the address that its messages come from may change the entry.
  typedef enum logic [1:0] {
    PhClosed = 2'd0,
    PhInit   = 2'd1,
    PhRtr    = 2'd2,
    PhRts    = 2'd3
  } phase_e;

  // What OPEN_QP may take, the best last: queue pairs that have had no peer, where all others are kept for theirs; of
  // those in use half-open ones, and those that have failed.
  typedef enum logic [2:0] {
    TakeNone,
    TakeNew,
    TakeHalf,
    TakeDead,
    TakeFree
  } take_e;

  // Where the entry agrees with the message at hand.
  typedef struct packed {
    logic ip;      // the peer's messages come from the sender's address
    logic no_peer; // it has had no peer yet
    logic qpn;
    logic rest;    // PSN, key, base address, address for data
  } match_t;

  // Scripts still to be run, in this order; script_e has them at ScrForget and following.
  typedef struct packed {
    logic forget;  // the peer is not set yet
    logic claim;   // store the peer of the message
    logic server;  // the peer's CM is at the address and port that are set
    logic owner;   // the peer's CM is at the sender's address and at the port that the message names
    logic fresh;   // a new first PSN of ours
    logic aim;     // messages go to the peer's CM
    logic open;
    logic info;
    logic rts;
    logic close;
    logic error;
    logic start;
    logic stop;
  } todo_t;

  localparam todo_t JustClose = '{close: 1'b1, default: 1'b0};

  // What the standard connection manager adds to its request in the name of a peer.
  typedef struct packed {
    logic        valid;      // the message at hand is such a request
    logic [7:0]  qp;         // the one that OPEN_QP may take, which is in reset
    logic [23:0] psn;        // our first
    logic [31:0] transport;  // word qp.transport
  } proxied_t;

  // The present task; all but the first belong to the opening side.
  typedef enum logic [2:0] {
    OnRequest,
    OnAnswer,
    OnOpen,     // software requests it
    OnClose,
    OnReopen,   // a queue pair that we opened has failed
    OnResend,   // no answer in time
    OnGiveUp
  } occasion_e;

  // The answer to a request, and what it changes.
  typedef struct packed {
    answer_e answer;
    phase_e  phase;
    logic    probe;  // no answer: the peer is probed
    todo_t   todo;
  } decision_t;

  // The next action of the opening side.
  typedef struct packed {
    step_e  step;
    fail_e  fail;
    logic   waiting;  // for an answer, after this
    logic   send;
    phase_e phase;
    todo_t  todo;
  } move_t;

  // ---- scripts: the operations of cm_engine ----------------------------------------------------------
  typedef enum logic [4:0] {
    ScrReceive,
    ScrFields,     // into fields_t
    ScrMatch,     // compares an entry with the sender; ends with the phase
    ScrFetch,     // the same, all of it
    ScrClear,     // a closed queue pair that has had no peer
    ScrPhase,     // keeps the phase
    ScrAccept,    // messages
    ScrRefuse,
    ScrFull,      // a refusal that names a queue pair and the address that holds it
    ScrRequest,
    ScrForget = 5'd16,  // as in todo_t; the last are steps in the life of a queue pair
    ScrClaim,
    ScrServer,
    ScrOwner,
    ScrFresh,
    ScrAim,
    ScrOpen,
    ScrInfo,
    ScrRts,
    ScrClose,
    ScrError,
    ScrStart,     // the message source begins
    ScrStop
  } script_e;

  typedef enum logic [3:0] {
    DoNothing,
    DoReceive,      // a byte of the stream into the message
    DoEmit,         // a byte to the stream
    DoSet,          // the word is the byte
    DoWord,         // the byte comes into the word from below
    DoTake,         // and into fields_t
    DoStore,        // into the entry
    DoMatchIp,      // the byte against that of the entry
    DoMatchQpn,
    DoMatchRest,
    DoWrite,        // the word into a register
    DoAwait,        // until a register's low three bits are those of the word
    DoLookup        // the MAC address of the word
  } kind_e;

  // Where a byte comes from. Of words those at 1, 2, 3, 4 modulo 4 are the highest to the lowest, as in messages.
  typedef enum logic [4:0] {
    SrcZero,
    SrcConst,       // `addr` itself
    SrcMessage,
    SrcEntry,
    SrcFromIp,
    SrcPeerIp,      // of the message; the sender's if it has none
    SrcLocalIp,
    SrcServerIp,
    SrcServerPort,
    SrcQpn,         // our number of the queue pair
    SrcQp,          // its index
    SrcFlow,
    SrcTransport,
    SrcMac,         // the last that was found
    SrcMacHigh,
    SrcWord,        // its lowest byte
    SrcVerb,        // of byte 51, as in source.control: running_sum, with_imm, verb
    SrcHead,        // first byte of a message of ours
    SrcPhase,
    SrcRandom
  } source_e;

  // The registers that an operation writes: in the place of its source.
  typedef enum logic [1:0] {
    GroupQp,
    GroupRing,
    GroupSource,
    GroupSourceVerb  // of the message source, bits 15:8 alone
  } group_e;

  typedef struct packed {
    logic       last;
    kind_e      kind;
    source_e    source;
    logic [6:0] addr;   // of a byte of message, entry or word; of a register, in words
  } op_t;

endpackage
