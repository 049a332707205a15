// SPDX-License-Identifier: SHL-2.1
// Transport headers of RoCEv2 as sent on the wire, first octet in the most significant byte
// (IBTA volume 1, 9.2 BTH, 9.3.3 RETH, 9.3.5 AETH; annex A17 for the UDP port and the CNP).
// A module that uses only some fields leaves the other constants unused.
// verilator lint_off UNUSEDPARAM
package roce_pkg;

  import ip_pkg::*;

  localparam logic [15:0] UdpPort     = 16'd4791;
  localparam logic [15:0] DefaultPkey = 16'hFFFF;

  typedef struct packed {
    logic [7:0]  opcode;
    logic        solicited;
    logic        mig_req;
    logic [1:0]  pad_count;
    logic [3:0]  tver;
    logic [15:0] pkey;
    logic        fecn;
    logic        becn;
    logic [5:0]  reserved6;
    logic [23:0] dest_qpn;
    logic        ack_req;
    logic [6:0]  reserved7;
    logic [23:0] psn;
  } bth_t;

  typedef struct packed {
    logic [63:0] va;
    logic [31:0] rkey;
    logic [31:0] dma_len;
  } reth_t;

  typedef struct packed {
    logic [7:0]  syndrome;
    logic [23:0] msn;
  } aeth_t;

  // The headers before the extended transport headers, on every packet.
  typedef struct packed {
    eth_hdr_t  eth;
    ipv4_hdr_t ip;
    udp_hdr_t  udp;
    bth_t      bth;
  } roce_base_hdr_t;

  localparam int unsigned BthBytes  = $bits(bth_t) / 8;
  localparam int unsigned RethBytes = $bits(reth_t) / 8;
  localparam int unsigned AethBytes = $bits(aeth_t) / 8;
  localparam int unsigned ImmBytes  = 4;
  localparam int unsigned IcrcBytes = 4;
  localparam int unsigned CnpReservedBytes = 16;
  localparam int unsigned BaseHdrBytes = $bits(roce_base_hdr_t) / 8;  // 54

  // The parser's result for a frame.
  typedef enum logic [2:0] {
    VerdictBadFrame  = 3'd0,  // the MAC found it bad and has counted it
    VerdictMalformed = 3'd1,  // truncated, bad checksum or length, fragment, IP options
    VerdictNotForUs  = 3'd2,  // another's MAC or IP address
    VerdictOther     = 3'd3,  // not IPv4, not UDP, another port
    VerdictRoce      = 3'd4,
    VerdictBadPkey   = 3'd5   // RoCEv2 for us, of another partition
  } verdict_e;

endpackage
