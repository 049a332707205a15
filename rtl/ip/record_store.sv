// SPDX-License-Identifier: SHL-2.1
// Stores the words that a service needs of each received frame that it accepts, in order.
// Promise: all words of a frame are passed on, or none; `lost` at its end means that there was no room for it.
module record_store
  import services_pkg::*;
#(
  parameter words_t      KEEP  = '1,   // words of the head, and that of the payload for all of it
  parameter int unsigned DEPTH = 1024  // words
) (
  input  logic        clk,
  input  logic        rst,

  // verilator lint_off UNUSEDSIGNAL
  input  parsed_t      parsed,
  // verilator lint_on UNUSEDSIGNAL
  input  logic        accept,  // with parsed.done
  output logic        lost,

  output sent_t       word,
  input  logic        take
);
  frame_store #(
    .W    (18),
    .DEPTH(DEPTH)
  ) u_store (
    .clk, .rst,
    .wr_data ({parsed.last, parsed.odd, parsed.data}),
    .wr_valid(parsed.valid && KEEP[parsed.index]),
    .commit  (parsed.done && accept),
    .drop    (parsed.done && !accept),
    .lost    (lost),
    .level   (),
    .rd_data ({word.last, word.odd, word.data}),
    .rd_valid(word.valid),
    .rd_ready(take)
  );
endmodule
