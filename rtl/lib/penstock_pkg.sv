// SPDX-License-Identifier: SHL-2.1
// Types shared by all parts of the gateware: the information that modules exchange in addition to payload.
// Field names are those of the IBTA specification (volume 1, chapter 9) and of the verbs.
package penstock_pkg;

  // A clock at which a row may come from block RAM, a nanosecond later in its cycle than from LUT RAM.
  localparam int unsigned BlockRowKhz = 200_000;
  // A clock at which LUTs make a CRC in time: small devices with slow lines have few block RAMs for its tables.
  localparam int unsigned LutCrcKhz = 50_000;

  // ---- queue pairs --------------------------------------------------------------------------
  // A queue-pair index is always 8 bits wide on the inside; a build with N_QP queue pairs uses
  // the low $clog2(N_QP) bits of it.
  typedef logic [7:0] qp_t;
  typedef logic [23:0] psn_t;

  // IBTA 11.2.5 path MTU codes: payload bytes = 128 << code.
  typedef enum logic [2:0] {
    Mtu256  = 3'd1,
    Mtu512  = 3'd2,
    Mtu1024 = 3'd3,
    Mtu2048 = 3'd4,
    Mtu4096 = 3'd5
  } mtu_e;

  // Numbered as enum ibv_qp_state. What is posted outside QpRts and QpSqd is flushed at once: the
  // "immediate error" of IBTA 10.3.1 for the send queue of a queue pair that is not ready to send.
  typedef enum logic [2:0] {
    QpReset = 3'd0,
    QpInit  = 3'd1,
    QpRtr   = 3'd2,
    QpRts   = 3'd3,  // ready to send
    QpSqd   = 3'd4,  // drains: messages that have begun finish, later ones wait
    QpErr   = 3'd6   // flushed: every message completes with an error until the QP is reset
  } qp_state_e;

  // Software's settings of one queue pair (one row of the queue-pair table).
  typedef struct packed {
    logic [47:0] dst_mac;      // next hop, first octet on the wire in [47:40]
    logic [31:0] dst_ip;       // peer, first octet in [31:24]
    logic [15:0] udp_sport;    // source port: the flow's ECMP label; 0 = a hash of the queue pairs
    logic [7:0]  tos;          // DSCP[7:2], ECN[1:0]
    logic [23:0] dest_qpn;     // peer's queue pair
    logic [31:0] rkey;         // peer's memory key
    mtu_e        mtu;
    logic [4:0]  ack_timeout;  // IBTA 9.7.6.1.3: 4.096 us * 2^code, 0 = never
    logic [2:0]  retry_cnt;    // retransmissions before RetryExcErr
    logic [2:0]  rnr_retry;    // RNR retries, 7 = without end
    psn_t        init_psn;     // first PSN after the QP enters QpRts
  } qp_cfg_t;

  // ---- messages -----------------------------------------------------------------------------
  typedef enum logic {
    OpWrite = 1'b0,
    OpSend  = 1'b1
  } verb_e;

  // One work request; s_axis_desc_tdata carries it, qp in the lowest bits.
  typedef struct packed {
    logic [31:0] tag;       // returned with the completion
    logic [31:0] imm;       // immediate data, when with_imm
    logic [63:0] raddr;     // remote address of the first byte (WRITE)
    logic [31:0] length;    // message bytes, 1 .. 2^31
    logic [2:0]  reserved;
    logic        series;    // the queue pair's meters restart with it
    logic        by_event;  // the destination table chooses qp, by the event number in raddr
    logic        in_ring;   // raddr and imm come from the queue pair's ring; with_imm is implied
    logic        with_imm;
    verb_e       verb;
    qp_t         qp;
  } desc_t;  // 176 bits

  // Completion status, numbered as enum ibv_wc_status of the verbs API.
  typedef enum logic [7:0] {
    WcSuccess     = 8'd0,
    WcLocLenErr   = 8'd1,   // descriptor and stream disagree, or length is 0
    WcFlushErr    = 8'd5,   // message after one that failed, or QP not ready
    WcRemInvReq   = 8'd9,   // NAK 1
    WcRemAccess   = 8'd10,  // NAK 2
    WcRemOp       = 8'd11,  // NAK 3
    WcRetryExc    = 8'd12,  // retry_cnt spent without an answer
    WcRnrRetryExc = 8'd13,  // rnr_retry spent
    WcRemAbort    = 8'd16   // TCP: the receiver has refused, reset or closed the stream
  } wc_status_e;

  typedef struct packed {
    logic [31:0] tag;
    logic [15:0] reserved;
    wc_status_e  status;
    qp_t         qp;
  } cpl_t;  // 64 bits, m_axis_cpl_tdata

  localparam logic [15:0] EtherTypeCnTag = 16'h22E9;  // IEEE 802.1Qau clause 33.2

  // ---- requester -> framer: everything before one packet's payload ----------------------------
  localparam int unsigned PayloadLenW = 13;  // 0 .. 4096

  typedef struct packed {
    logic [47:0]            dst_mac;
    logic [31:0]            dst_ip;
    logic [15:0]            udp_sport;
    logic [7:0]             tos;
    logic [7:0]             opcode;       // RC opcodes, IBTA table 38
    logic [23:0]            dest_qpn;
    psn_t                   psn;
    logic                   ack_req;
    logic                   solicited;
    logic                   has_reth;
    logic [63:0]            va;
    logic [31:0]            rkey;
    logic [31:0]            dma_len;
    logic                   has_imm;
    logic [31:0]            imm;
    logic [PayloadLenW-1:0] payload_len;  // bytes without padding
  } tx_hdr_t;

  // ---- receive side: one validated RoCEv2 packet (FCS, IP checksum and ICRC are right) ---------
  typedef struct packed {
    logic [31:0] src_ip;
    logic [7:0]  opcode;
    logic        becn;
    logic [23:0] dest_qpn;
    psn_t        psn;
    logic [7:0]  syndrome;  // AETH, valid for acknowledgements
    logic [23:0] msn;
  } rx_roce_t;

  localparam logic [7:0] OpcodeAck = 8'h11;
  localparam logic [7:0] OpcodeCnp = 8'h81;

  typedef enum logic [2:0] {
    AckOk     = 3'd0,  // positive acknowledgement up to and including psn
    AckNakSeq = 3'd1,  // NAK 0: expected psn
    AckRnr    = 3'd2,  // receiver not ready for psn
    AckInvReq = 3'd3,  // NAK 1
    AckAccess = 3'd4,  // NAK 2
    AckRemOp  = 3'd5   // NAK 3
  } ack_kind_e;

  // acknowledgement receiver -> requester, after the queue-pair table agreed to the peer
  typedef struct packed {
    qp_t         qp;
    ack_kind_e   kind;
    psn_t        psn;
    logic [4:0]  value;  // credits (AckOk) or RNR timer code (AckRnr)
    logic [23:0] msn;    // messages the peer has completed
  } ack_event_t;

  // ---- congestion control ---------------------------------------------------------------------
  typedef logic [31:0] rate_t;   // Q8.24 bytes per clock cycle
  localparam int unsigned AlphaOne = 65536;

  localparam int unsigned CcGroups = 4;  // sets of parameters; each queue pair belongs to one

  typedef enum logic [1:0] {
    LawOff   = 2'd0,
    LawDcqcn = 2'd1,
    LawQcn   = 2'd2
  } law_e;

  // A word of one group's parameters, as software writes it; all are written after reset.
  typedef struct packed {
    logic                        valid;
    logic                        qcn;    // of QCN's set, else of DCQCN's
    logic [$clog2(CcGroups)-1:0] group;
    logic [5:0]                  addr;   // byte address in the set
    logic [31:0]                 word;
  } cc_write_t;

  // The congestion-control settings of a queue pair.
  typedef enum logic [1:0] {
    ChooseGroup = 2'd0,  // the law of its group
    ChooseDcqcn = 2'd1,
    ChooseQcn   = 2'd2,
    ChooseOff   = 2'd3
  } law_choice_e;

  typedef struct packed {
    logic [$clog2(CcGroups)-1:0] group;
    law_choice_e                 law;
  } cc_choice_t;

  typedef logic [5:0] feedback_t;  // |F_b| of QCN; 0 = none

  // One sample of a queue pair's reaction point.
  typedef struct packed {
    rate_t       rate_current;   // R_C
    rate_t       rate_target;    // R_T
    logic [16:0] alpha;          // 65536 = 1; 0 under QCN
    logic [7:0]  stage_timer;
    logic [7:0]  stage_bytes;
    logic        limited;        // the limiter is at work
    cc_choice_t  choice;
    logic [31:0] cnp_handled;    // rp_cnp_handled
  } cc_status_t;

  // m_axis_sample_tdata: a queue pair's rates at one moment, 128 bits.
  typedef struct packed {
    logic [31:0] cycle;          // since reset, modulo 2^32
    logic [6:0]  reserved;
    qp_t         qp;
    logic [16:0] alpha;
    rate_t       rate_target;
    rate_t       rate_current;
  } cc_sample_t;

  typedef struct packed {
    logic [31:0] interval;       // cycles from one sample of a queue pair to the next; 0 = none
    qp_t         first;          // queue pairs that are sampled
    qp_t         last;
  } cc_sampling_t;

  // Bytes of a beat of up to 64, from a `keep` without holes: bit n of the number is the parity of every 2^n-th bit,
  // which takes fewer levels than a sum.
  function automatic logic [6:0] keep_bytes(logic [63:0] keep);
    keep_bytes = '0;
    for (int unsigned n = 0; n < 7; n++)
      for (int unsigned i = 2 ** n - 1; i < 64; i += 2 ** n) keep_bytes[n] ^= keep[i];
  endfunction
endpackage
