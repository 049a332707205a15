// SPDX-License-Identifier: SHL-2.1
// Presents a payload stream and its addresses to service_framer as the words of a UDP datagram (RFC 768).
// Promise: a datagram is requested as soon as its first word is available, and is taken whole; only multiplexers.
module udp_send
  import services_pkg::*;
(
  input  udp_peer_t   peer,            // with every word of the datagram
  input  logic [15:0] sport,
  input  logic [15:0] s_axis_tdata,
  // verilator lint_off UNUSEDSIGNAL
  input  logic [1:0]  s_axis_tkeep,   // [0] is always set
  // verilator lint_on UNUSEDSIGNAL
  input  logic        s_axis_tvalid,
  output logic        s_axis_tready,
  input  logic        s_axis_tlast,

  // to service_framer
  output logic        req,
  input  word_index_t index,
  output sent_t       word,
  input  logic        take
);
  assign req           = s_axis_tvalid;
  assign s_axis_tready = take && index == WordPayload;
  assign word.valid    = s_axis_tvalid;
  assign word.odd      = !s_axis_tkeep[1];
  assign word.last     = s_axis_tlast;

  // Words of the head that are not here are the framer's.
  logic [7:0][15:0] words;
  logic [2:0]       place;

  assign words = {
    s_axis_tdata[7:0], s_axis_tdata[15:8] & {8{s_axis_tkeep[1]}},
    peer.port, sport, peer.ip[15:0], peer.ip[31:16], peer.mac[15:0], peer.mac[31:16], peer.mac[47:32]
  };
  assign word.data = words[place];

  always_comb begin
    case (index)
      WordDst:          place = 3'd0;
      WordDst + 5'd1:   place = 3'd1;
      WordDst + 5'd2:   place = 3'd2;
      WordIpDst:        place = 3'd3;
      WordIpDst + 5'd1: place = 3'd4;
      WordSport:        place = 3'd5;
      WordDport:        place = 3'd6;
      default:          place = 3'd7;
    endcase
  end
endmodule
