// SPDX-License-Identifier: SHL-2.1
// PRBS-31 (ITU-T O.150 5.8: x^31 + x^28 + 1), DATA_W bits a cycle, one sequence over all messages.
// Bit i of the sequence is bit i of the stream: least significant bit of byte 0 first, as on the wire.
// If only n_bytes of a word are taken, the sequence advances by just these.
//
// b[n] = b[n-31] ^ b[n-28], and as squaring is linear in GF(2), also b[n] = b[n-31f] ^ b[n-28f] for
// every power of two f. So each step makes 28f bits from the existing ones, and 512 bits are six XORs deep.
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

  // The bits that follow 31 others; as many as a narrow word needs, or all.
  function automatic logic [671:0] following(logic [30:0] state);
    logic [702:0] b;
    b         = '0;
    b[30:0]   = state;
    b[58:31]  = b[27:0] ^ b[30:3];      // f = 1
    b[86:59]  = b[55:28] ^ b[58:31];
    b[142:87] = b[80:25] ^ b[86:31];    // f = 2
    if (DATA_W > 64) begin
      b[254:143] = b[130:19] ^ b[142:31];   // f = 4
      b[478:255] = b[230:7] ^ b[254:31];    // f = 8
      b[702:479] = b[454:231] ^ b[478:255];
    end
    return b[702:31];
  endfunction

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
  logic [30:0] next;

  always_comb begin
    if (load) next = seed == '0 ? '1 : seed;
    else next = moved_on({word, state_q}, n_bytes);
  end

  always_ff @(posedge clk) if (load || take) state_q <= next;

  // A word of 64 bits is two XORs after the state; a longer one has its own registers.
  if (DATA_W == 64) begin : gen_short
    assign word = DATA_W'(following(state_q));
  end else begin : gen_long
    always_ff @(posedge clk) if (load || take) word <= DATA_W'(following(next));
  end
endmodule
