// SPDX-License-Identifier: SHL-2.1
// Shows service_framer a payload stream and the addresses beside it as the words of a UDP datagram (RFC 768).
// Promise: a datagram is wanted as soon as its first word is there, and is taken whole; no logic but choosing.
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
  output logic        wanted,
  input  word_index_t index,
  output sent_t       word,
  input  logic        take
);
  assign wanted        = s_axis_tvalid;
  assign s_axis_tready = take && index == WordPayload;
  assign word.valid    = s_axis_tvalid;
  assign word.odd      = !s_axis_tkeep[1];
  assign word.last     = s_axis_tlast;

  always_comb begin
    case (index)
      WordDst:          word.data = peer.mac[47:32];
      WordDst + 5'd1:   word.data = peer.mac[31:16];
      WordDst + 5'd2:   word.data = peer.mac[15:0];
      WordVersion:      word.data = Ipv4Version;
      WordIpDst:        word.data = peer.ip[31:16];
      WordIpDst + 5'd1: word.data = peer.ip[15:0];
      WordSport:        word.data = sport;
      WordDport:        word.data = peer.port;
      WordPayload:      word.data = {s_axis_tdata[7:0], s_axis_tdata[15:8] & {8{s_axis_tkeep[1]}}};
      default:          word.data = '0;
    endcase
  end
endmodule
