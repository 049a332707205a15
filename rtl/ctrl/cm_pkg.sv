// SPDX-License-Identifier: SHL-2.1
// The connection manager's messages: one 64-byte UDP payload, big-endian, first byte in the highest bits.
// Layout of the FEROCE connection manager, so that its host software and firmware work with ours.
//
//    0            1  2..24          25  26..48            49..50  51        52..55  56..59  60..63
//   | ack/request | | sender's info |  | other side's info | port | transmit | length | count  | rate |
//
//    info:  qpn 0..2, -, psn 4..6, rkey 7..10, base address 11..18, IPv4 19..22
package cm_pkg;

  localparam logic [15:0] RequestPort = 16'h4321;
  localparam logic [15:0] ReplyPort   = 16'h4322;

  typedef enum logic [2:0] {
    ReqNone    = 3'd0,
    ReqOpen    = 3'd1,  // take a queue pair: RESET -> INIT
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
    logic [23:0] qpn;
    logic [7:0]  reserved;
    logic [23:0] psn;
    logic [31:0] rkey;
    logic [63:0] base;  // remote address of the ring
    logic [31:0] ip;
  } info_t;

  typedef struct packed {
    logic [3:0] reserved;
    logic       is_send;    // SEND, else WRITE
    logic       with_imm;
    logic       start;      // else stop
    logic       valid;
  } transmit_t;

  typedef struct packed {
    answer_e     answer;
    logic        answer_valid;
    request_e    request;
    logic        info_valid;
    logic [7:0]  reserved_1;
    info_t       sender;
    logic [7:0]  reserved_25;
    info_t       other;
    logic [15:0] port;      // where replies go; 0 = ReplyPort
    transmit_t   transmit;
    logic [31:0] length;    // bytes of a message
    logic [31:0] count;     // messages, 0 = forever
    logic [31:0] rate;      // messages a second, 0 = as fast as they go
  } message_t;  // 512 bits

  // ---- settings and status: regs/connection.rdl -------------------------------------------------
  typedef struct packed {
    logic        listen;       // serve requests
    logic        reopen;       // open again what we opened and lost
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
    StepInfo = 3'd2,   // SEND_QP_INFO
    StepRts  = 3'd3,   // MODIFY_QP_RTS
    StepDone = 3'd4,   // the queue pair is open
    StepShut = 3'd5    // CLOSE_QP
  } step_e;

  typedef enum logic [3:0] {
    FailNone    = 4'd0,
    FailSilent  = 4'd1,  // no answer, retries spent
    FailNoQp    = 4'd2,  // the server has none
    FailNak     = 4'd3,  // the server refused
    FailServer  = 4'd4,  // the server answered ERROR
    FailAddress = 4'd5,  // nobody answers ARP for the next hop
    FailState   = 4'd6   // our own queue pair did not follow
  } fail_e;

  typedef struct packed {
    logic       busy;
    step_e      step;   // the last one begun
    fail_e      fail;
    logic [7:0] qp;
  } cm_status_t;

  // ---- what is known of a queue pair, and what is to be done to it --------------------------------
  typedef enum logic [1:0] {
    PhClosed = 2'd0,
    PhInit   = 2'd1,
    PhRtr    = 2'd2,
    PhRts    = 2'd3
  } phase_e;

  // One queue pair. A closed one keeps its last peer, whose repeated CLOSE_QP gets the same answer.
  typedef struct packed {
    phase_e      phase;
    info_t       peer;
    logic [23:0] own_psn;
  } entry_t;

  // What becomes of an entry.
  typedef struct packed {
    phase_e phase;
    logic   claim;   // its peer is the sender of the message
    logic   open;    // its peer is the server, of whom only the address is known
    logic   fresh;   // a new first PSN of ours
  } change_t;

  // Programs still to be run, in this order.
  typedef struct packed {
    logic open;
    logic info;
    logic rts;
    logic close;
    logic error;
    logic start;
    logic stop;
  } todo_t;

  localparam todo_t JustClose = '{close: 1'b1, default: 1'b0};

  // What is being worked on; all but the first is the opening side's.
  typedef enum logic [2:0] {
    OnRequest,
    OnAnswer,
    OnOpen,     // software asks
    OnClose,
    OnReopen,   // a queue pair that we opened has failed
    OnResend,   // no answer in time
    OnGiveUp
  } occasion_e;

  // The answer to a request, and what it changes.
  typedef struct packed {
    answer_e answer;
    todo_t   todo;
    change_t change;
  } decision_t;

  // What the opening side does next.
  typedef struct packed {
    step_e  step;
    fail_e  fail;
    logic   waiting;  // for an answer, after this
    logic   send;
    todo_t  todo;
    change_t change;
  } move_t;

  // ---- what a program of register accesses does to a queue pair -------------------------------------
  typedef enum logic [2:0] {
    ProgOpen  = 3'd0,
    ProgInfo  = 3'd1,
    ProgRts   = 3'd2,
    ProgClose = 3'd3,
    ProgError = 3'd4,
    ProgStart = 3'd5,  // the message source begins
    ProgStop  = 3'd6
  } program_e;

endpackage
