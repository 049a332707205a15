// SPDX-License-Identifier: SHL-2.1
// The ICRC of a datagram whose words pass one by one, numbered as in services_pkg: over the IP packet from its version
// on, with the fields that routers change as ones, after eight bytes of ones.
// Promise: a cycle after a word `state` is that of the CRC after it; crc32_pkg::Residue after a right ICRC
// (IBTA volume 1, 7.8.1; annex A17.3.3).
module icrc_words
  import services_pkg::*;
(
  input  logic        clk,
  input  logic        valid,
  input  word_index_t index,  // WordDst: another datagram
  input  logic [15:0] word,   // the first byte in [15:8]
  output logic [31:0] state
);
  function automatic logic [31:0] after_word(logic [31:0] from, logic [15:0] data);
    after_word = from ^ {16'h0, swap_bytes(data)};
    for (int i = 0; i < 16; i++) after_word = crc32_pkg::next_bit(after_word);
  endfunction

  function automatic logic [31:0] after_ones(int unsigned words);
    after_ones = '1;
    for (int unsigned i = 0; i < words; i++) after_ones = after_word(after_ones, '1);
  endfunction
  localparam logic [31:0] Initial = after_ones(4);

  logic [1:0]  payload_q;  // words of the payload before this one, up to 3
  logic [15:0] covered;

  always_comb begin
    covered = word;
    case (index)
      WordVersion:           covered[7:0] = '1;   // TOS
      WordProtocol:          covered[15:8] = '1;  // TTL
      WordIpSum, WordUdpSum: covered = '1;
      WordPayload:           if (payload_q == 2'd2) covered[15:8] = '1;  // FECN, BECN
      default: ;
    endcase
  end

  always_ff @(posedge clk) begin
    if (valid) begin
      if (index == WordDst) state <= Initial;
      else if (index >= WordVersion) state <= after_word(state, covered);
      if (index != WordPayload) payload_q <= '0;
      else if (payload_q != '1) payload_q <= payload_q + 1'b1;
    end
  end
endmodule
