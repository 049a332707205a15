// SPDX-License-Identifier: SHL-2.1
// PRBS-31 (ITU-T O.150 5.8: x^31 + x^28 + 1), DATA_W bits a cycle, one sequence over all messages.
// Bit i of the sequence is bit i of the stream: least significant bit of byte 0 first, as on the wire.
// If only n_bytes of a word are taken, the sequence advances by just these.
//
// b[n] = b[n-31] ^ b[n-28]: every bit is a sum of some of the 31 before the word. For 512 bits these are 15 at most, two
// levels of LUTs, where a chain of the steps would be six XORs deep.
module prbs31 #(
  parameter  int unsigned DATA_W = 64,
  localparam int unsigned CountW = $clog2(DATA_W / 8)
) (
  input  logic              clk,
  input  logic              load,
  input  logic [30:0]       seed,     // the 31 bits before the first, oldest in bit 0; 0 means all ones
  input  logic              take,
  input  logic [CountW-1:0] n_bytes,  // of the word that is taken; 0: all
  output logic [DATA_W-1:0] word
);
  if (DATA_W < 64 || DATA_W > 512) begin : gen_bad_width
    $fatal(1, "%m: DATA_W is %0d; it must be 64 to 512", DATA_W);
  end

  // For each of the 31 bits before the word and each bit of the word: the ones of the former that it is the sum of.
  function automatic logic [DATA_W+30:0][30:0] summands();
    for (int i = 0; i < int'(DATA_W + 31); i++)
      summands[i] = i < 31 ? 31'd1 << i : summands[i-31] ^ summands[i-28];
  endfunction
  localparam logic [DATA_W+30:0][30:0] Summands = summands();

  // The last 31 of the bits that are taken: one choice of as many as a word has bytes.
  function automatic logic [30:0] moved_on(logic [DATA_W+30:0] bits, logic [CountW-1:0] bytes);
    logic [DATA_W/8-1:0] choice;
    for (int b = 0; b < 31; b++) begin
      choice[0] = bits[DATA_W+b];  // all
      for (int i = 1; i < int'(DATA_W / 8); i++) choice[i] = bits[8*i+b];
      moved_on[b] = choice[bytes];
    end
  endfunction

  logic [30:0] state_q;  // the 31 bits before `word`

  for (genvar i = 0; i < int'(DATA_W); i++) begin : gen_bit
    assign word[i] = ^(state_q & Summands[i+31]);
  end

  always_ff @(posedge clk) begin
    if (load) state_q <= seed == '0 ? '1 : seed;
    else if (take) state_q <= moved_on({word, state_q}, n_bytes);
  end
endmodule
