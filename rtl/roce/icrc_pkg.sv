// SPDX-License-Identifier: SHL-2.1
// What the invariant CRC of RoCEv2 covers, and the linear maps that move a CRC state over zeros
// (IBTA volume 1, 7.8.1 and annex A17.3.3; CRC-32 of IEEE 802.3, state reflected).
//
// Eight bytes of ones stand for the LRH, then come the IP header and everything behind it but the
// ICRC. Here the eight bytes take the place of the Ethernet header's last eight, so that nothing
// has to be shifted, and the CRC's start value (ones) is folded into the first four of them: ones
// XOR ones is zero, and zeros in front leave a zero state at zero.
//
//   frame byte   0 .. 5      6 .. 9      10 .. 13   14 ..
//   CRC sees     zeros       zeros       ones       IP header, with the mutable bytes as ones
// A user of a few fields leaves the other constants unused.
// verilator lint_off UNUSEDPARAM
package icrc_pkg;

  import crc32_pkg::*;

  // The mutable bytes all lie in the first 48 of the frame; 64 make whole beats.
  localparam int unsigned MaskedBytes = 64;
  typedef logic [MaskedBytes-1:0] byte_flags_t;

  localparam byte_flags_t ZeroBytes = byte_flags_t'(10'h3FF);
  localparam byte_flags_t OneBytes =
      byte_flags_t'(4'hF) << 10                            // the rest of the eight bytes of ones
    | byte_flags_t'(1)    << 15                            // IPv4 TOS
    | byte_flags_t'(1)    << 22                            // IPv4 TTL
    | byte_flags_t'(2'h3) << 24                            // IPv4 header checksum
    | byte_flags_t'(2'h3) << 40                            // UDP checksum
    | byte_flags_t'(1)    << 46;                           // BTH byte 4: FECN, BECN, reserved

  // Row i says which bits of the old state make bit i of the new one.
  typedef logic [31:0][31:0] matrix_t;

  // The state from which n_bytes zeros led to this one. The polynomial's top bit is one, so the
  // state's top bit tells whether it was applied.
  function automatic logic [31:0] before_zeros(logic [31:0] state, int unsigned n_bytes);
    before_zeros = state;
    for (int unsigned i = 0; i < 8 * n_bytes; i++)
      before_zeros = ((before_zeros ^ (before_zeros[31] ? Polynomial : 32'h0)) << 1)
                   | 32'(before_zeros[31]);
  endfunction

  function automatic matrix_t zeros_matrix(int unsigned n_bytes);
    logic [31:0] column;
    for (int i = 0; i < 32; i++) begin
      column = after_zeros(32'h1 << i, n_bytes);
      for (int row = 0; row < 32; row++) zeros_matrix[row][i] = column[row];
    end
  endfunction

  function automatic matrix_t undo_zeros_matrix(int unsigned n_bytes);
    logic [31:0] column;
    for (int i = 0; i < 32; i++) begin
      column = before_zeros(32'h1 << i, n_bytes);
      for (int row = 0; row < 32; row++) undo_zeros_matrix[row][i] = column[row];
    end
  endfunction

  function automatic logic [31:0] apply(matrix_t matrix, logic [31:0] state);
    for (int row = 0; row < 32; row++) apply[row] = ^(matrix[row] & state);
  endfunction

endpackage
