// SPDX-License-Identifier: SHL-2.1
// CRC state of a RoCEv2 frame's ICRC, beat by beat, from the frame as it lies on the wire.
// Promise: `crc` stands 3 registers behind its beat, one beat a cycle. Bytes outside `covered` count
// as zeros, so behind the last beat the state has also run over those zeros.
// Masks and start value: icrc_pkg.
module icrc_core #(
  parameter int unsigned DATA_W = 64,
  localparam int unsigned Bytes = DATA_W / 8
) (
  input  logic              clk,
  input  logic              rst,
  input  logic [3:1]        move,     // a beat moves into register i
  input  logic              last,     // of the frame; the next beat begins a new one
  input  logic [DATA_W-1:0] data,
  input  logic [Bytes-1:0]  covered,  // bytes that the ICRC protects, or the Ethernet header
  output logic [31:0]       crc
);
  import icrc_pkg::*;

  localparam int unsigned CountW      = $clog2(Bytes) + 1;
  localparam int unsigned MaskedBeats = MaskedBytes / Bytes;
  localparam matrix_t     OneBeat     = zeros_matrix(Bytes);

  // ---- 1: masks -------------------------------------------------------------------------------
  logic [3:0]        beat_q;  // stops at MaskedBeats
  logic [Bytes-1:0]  ones, zeros;
  logic [DATA_W-1:0] masked, masked_q;

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

  // ---- 2: the beat's own contribution; 3: added to the state moved on by one beat --------------
  logic [2:1]  first_q;
  logic [31:0] beat_crc, beat_crc_q;

  crc32_word #(.DATA_W(DATA_W)) u_beat_crc (
    .crc_in  (32'h0),
    .data    (masked_q),
    .n_bytes (CountW'(Bytes)),
    .crc_out (beat_crc)
  );

  always_ff @(posedge clk) begin
    if (move[1]) begin
      masked_q   <= masked;
      first_q[1] <= beat_q == 0;
      beat_q     <= last ? '0 : beat_q + 4'(beat_q != 4'(MaskedBeats));
    end
    if (move[2]) begin
      beat_crc_q <= beat_crc;
      first_q[2] <= first_q[1];
    end
    if (move[3]) crc <= (first_q[2] ? 32'h0 : apply(OneBeat, crc)) ^ beat_crc_q;
    if (rst) beat_q <= '0;
  end
endmodule
