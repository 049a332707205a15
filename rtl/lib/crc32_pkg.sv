// SPDX-License-Identifier: SHL-2.1
// CRC-32 of Ethernet (IEEE 802.3 clause 3.2.9) with its state in reflected form: constants, and what zeros do to it.
// A user of a few of them leaves the other constants unused.
// verilator lint_off UNUSEDPARAM
package crc32_pkg;

  localparam logic [31:0] Polynomial = 32'hEDB8_8320;  // 0x04C11DB7, bits reversed
  // State behind any message that is followed by its own CRC.
  localparam logic [31:0] Residue = 32'hDEBB_20E3;

  function automatic logic [31:0] after_zeros(logic [31:0] state, int unsigned n_bytes);
    after_zeros = state;
    for (int unsigned i = 0; i < 8 * n_bytes; i++)
      after_zeros = (after_zeros >> 1) ^ (after_zeros[0] ? Polynomial : 32'h0);
  endfunction

endpackage
