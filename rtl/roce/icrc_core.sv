// SPDX-License-Identifier: SHL-2.1
// CRC state of a RoCEv2 frame's ICRC, beat by beat, from the frame as sent on the wire.
// Promise: `root` of the state follows its beat by 3 registers, one beat per cycle. Bytes outside `covered` count
// as zeros, so after the last beat the state also includes those zeros.
// Masks and start value: icrc_pkg; roots: crc32_pkg.
module icrc_core #(
  parameter int unsigned DATA_W = 64,
  localparam int unsigned Bytes = DATA_W / 8
) (
  input  logic              clk,
  input  logic              rst,
  input  logic              move,     // there is a beat
  input  logic              last,     // of the frame; the next beat begins a new one
  input  logic [DATA_W-1:0] data,
  input  logic [Bytes-1:0]  covered,  // bytes that the ICRC protects, or the Ethernet header
  output logic [31:0]       root
);
  import icrc_pkg::*;

  localparam int unsigned MaskedBeats = MaskedBytes / Bytes;

  // ---- 1: masks -------------------------------------------------------------------------------
  logic [3:0]        beat_q;  // stops at MaskedBeats
  logic [Bytes-1:0]  ones, zeros;
  logic [DATA_W-1:0] masked;

  always_comb begin
    ones  = '0;
    zeros = '0;
    if (beat_q < 4'(MaskedBeats)) begin
      ones  = Bytes'(OneBytes >> (beat_q * Bytes));
      zeros = Bytes'(ZeroBytes >> (beat_q * Bytes));
    end
    for (int i = 0; i < int'(Bytes); i++)
      masked[8*i+:8] = (data[8*i+:8] | {8{ones[i]}}) & {8{covered[i] && !zeros[i]}};
  end

  // ---- 1, 2: what the beat adds; 3: to the state moved on by one beat ---------------------------
  logic [2:1]  first_q, move_q;
  logic [31:0] added, added_q;

  crc32_word #(.DATA_W(DATA_W)) u_added (
    .clk,
    .data (masked),
    .added(added)
  );

  always_ff @(posedge clk) begin
    first_q[1] <= beat_q == 0;
    if (move) beat_q <= last ? '0 : beat_q + 4'(beat_q != 4'(MaskedBeats));
    added_q    <= added;
    first_q[2] <= first_q[1];
    move_q     <= {move_q[1], move};
    if (move_q[2]) root <= (first_q[2] ? 32'h0 : crc32_pkg::next_bit(root)) ^ added_q;
    if (rst) begin
      beat_q <= '0;
      move_q <= '0;
    end
  end
endmodule
