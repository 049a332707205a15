// SPDX-License-Identifier: SHL-2.1
// CRC-32 of Ethernet (IEEE 802.3 clause 3.2.9), or Castagnoli's CRC-32C (RFC 3720 section 12.1) where `polynomial` selects
// so, with its state in reflected form: constants, and the effect of zeros on it. A state is a polynomial modulo the
// CRC's and a zero bit multiplies it by x, so w zero bits multiply it by x^w. Where w is a power of two, raising to the
// w-th power is linear, and maps x to x^w: for the w-th root of a state (`root`) a whole word of w bits is one
// multiplication by x (`next_bit`), one XOR. Modules that process whole words store roots.
// A module that uses only some constants leaves the others unused.
// verilator lint_off UNUSEDPARAM
package crc32_pkg;

  localparam logic [31:0] Polynomial = 32'hEDB8_8320;  // 0x04C11DB7, bits reversed
  localparam logic [31:0] Castagnoli = 32'h82F6_3B78;  // 0x1EDC6F41, bits reversed
  // State after any message that is followed by its own CRC.
  localparam logic [31:0] Residue = 32'hDEBB_20E3;

  function automatic logic [31:0] next_bit(logic [31:0] state, logic [31:0] polynomial = Polynomial);
    return (state >> 1) ^ (state[0] ? polynomial : 32'h0);
  endfunction

  function automatic logic [31:0] after_zeros(
    logic [31:0] state, int unsigned n_bytes, logic [31:0] polynomial = Polynomial
  );
    after_zeros = state;
    for (int unsigned i = 0; i < 8 * n_bytes; i++) after_zeros = next_bit(after_zeros, polynomial);
  endfunction

  // The state from which n_bytes zeros led to this one. The polynomial's top bit is one, so the
  // state's top bit shows whether it was applied.
  function automatic logic [31:0] before_zeros(
    logic [31:0] state, int unsigned n_bytes, logic [31:0] polynomial = Polynomial
  );
    before_zeros = state;
    for (int unsigned i = 0; i < 8 * n_bytes; i++)
      before_zeros = ((before_zeros ^ (before_zeros[31] ? polynomial : 32'h0)) << 1)
                   | 32'(before_zeros[31]);
  endfunction

  // Bit 31 is the coefficient of 1, bit 0 that of x^31.
  function automatic logic [31:0] squared(logic [31:0] state, logic [31:0] polynomial = Polynomial);
    squared = '0;
    for (int i = 0; i < 32; i++) begin
      squared = next_bit(next_bit(squared, polynomial), polynomial);
      if (state[i]) squared[31] = !squared[31];
    end
  endfunction

  // The word_bits-th power and root of a state. Squaring 32 times gives the state back: Ethernet's polynomial is
  // irreducible. Castagnoli's is x + 1 times one of degree 31: there it takes 31 times.
  function automatic logic [31:0] power(
    logic [31:0] state, int unsigned word_bits, logic [31:0] polynomial = Polynomial
  );
    power = state;
    for (int unsigned i = 0; i < $clog2(word_bits); i++) power = squared(power, polynomial);
  endfunction

  function automatic logic [31:0] root(
    logic [31:0] state, int unsigned word_bits, logic [31:0] polynomial = Polynomial
  );
    root = state;
    for (int unsigned i = $clog2(word_bits); i < (polynomial == Castagnoli ? 31 : 32); i++)
      root = squared(root, polynomial);
  endfunction

endpackage
