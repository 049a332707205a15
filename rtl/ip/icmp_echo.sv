// SPDX-License-Identifier: SHL-2.1
// Answers ICMP echo requests (ping) with their own payload, up to the jumbo MTU.
// Promise: a request with right checksums comes back with identifier, sequence and TOS unchanged; one without
// room is dropped whole and counted (RFC 792; RFC 1122 3.2.2.6).
module icmp_echo
  import services_pkg::*;
#(
  parameter int unsigned STORE_BYTES = 16384  // of requests that wait: payload and 18 bytes each
) (
  input  logic clk,
  input  logic rst,

  input  logic        enable,
  input  parsed_t      parsed,

  // to service_framer
  output logic        req,
  input  logic        granted,
  input  word_index_t index,
  output sent_t       word,
  input  logic        take,

  output logic stat_replies,
  output logic stat_dropped
);
  // The fields of the request, and their places in the reply: in the same order.
  localparam words_t Kept = span(WordSrc, 3) | span(WordVersion, 1) | span(WordIpSrc, 2) | span(WordIcmpId, 2)
                          | span(WordPayload, 1);
  localparam words_t Replied = span(WordDst, 3) | span(WordVersion, 1) | span(WordIpDst, 2) | span(WordIcmpId, 2)
                          | span(WordPayload, 1);

  logic is_echo, lost;

  assign is_echo = parsed.done && parsed.kind == KindEcho && enable;

  record_store #(
    .KEEP (Kept),
    .DEPTH(STORE_BYTES / 2)
  ) u_store (
    .clk, .rst, .parsed,
    .accept(is_echo && !lost),
    .lost  (lost),
    .word  (word),
    .take  (take && Replied[index])
  );

  assign req = word.valid;

  always_ff @(posedge clk) begin
    stat_replies <= granted && !rst;
    stat_dropped <= is_echo && lost && !rst;
  end
endmodule
