// SPDX-License-Identifier: SHL-2.1
// Words of IPbus 2.0 (CERN, "The IPbus Protocol", version 2.0): packet and transaction headers.
package ipbus_pkg;

  localparam logic [3:0] Version = 4'd2;

  typedef enum logic [3:0] {
    PacketControl = 4'd0,
    PacketStatus  = 4'd1,
    PacketResend  = 4'd2
  } packet_e;

  typedef struct packed {
    logic [3:0]  version;
    logic [3:0]  reserved;
    logic [15:0] id;         // 0: unreliable
    logic [3:0]  order;      // F: these four bits identify the byte order
    logic [3:0]  kind;       // packet_e
  } packet_hdr_t;

  typedef enum logic [3:0] {
    TransRead      = 4'd0,
    TransWrite     = 4'd1,
    TransReadFifo  = 4'd2,   // every word at the same address
    TransWriteFifo = 4'd3,
    TransRmwBits   = 4'd4,   // (old & AND term) | OR term
    TransRmwSum    = 4'd5    // old + addend
  } trans_e;

  typedef enum logic [3:0] {
    InfoSuccess    = 4'h0,
    InfoBadHeader  = 4'h1,
    InfoReadError  = 4'h4,
    InfoWriteError = 4'h5,
    InfoRequest    = 4'hF
  } info_e;

  typedef struct packed {
    logic [3:0]  version;
    logic [11:0] id;
    logic [7:0]  words;
    logic [3:0]  kind;       // trans_e
    logic [3:0]  info;       // info_e
  } trans_hdr_t;

  // Events of the traffic history in a status packet, which holds the newest sixteen, one byte each.
  localparam logic [7:0] EventControl = 8'h02;
  localparam logic [7:0] EventStatus  = 8'h03;
  localparam logic [7:0] EventResend  = 8'h04;
  localparam logic [7:0] EventOther   = 8'h05;  // malformed, or a packet id that is not the next
  localparam logic [7:0] EventDropped = 8'h40;  // added where the packet requested what is not there

  // Counts: one pulse each.
  typedef struct packed {
    logic packets;        // control packets carried out
    logic malformed;      // packets dropped: header, length
    logic out_of_order;   // control packets dropped: not the next packet id
    logic resent;         // replies sent again
    logic bus_errors;     // transactions that the registers refused
    logic bad_headers;    // transactions that could not be read; the rest of their packet is dropped
  } ipbus_stat_t;

endpackage
