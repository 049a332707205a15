// SPDX-License-Identifier: SHL-2.1
// The contribution of one word to a CRC-32 (crc32_pkg: Ethernet's or Castagnoli's): with the root of the state before
// it, crc32_pkg::next_bit(root) ^ added is the root of the state after it. Latency: one cycle after `data`.
// A word shorter than DATA_W is padded with zeros, which crc32_end removes.
module crc32_word #(
  parameter int unsigned DATA_W     = 64,
  parameter logic [31:0] POLYNOMIAL = crc32_pkg::Polynomial,
  parameter bit          TABLES     = 1'b1  // see linear_tables
) (
  input  logic              clk,
  input  logic [DATA_W-1:0] data,
  output logic [31:0]       added
);
  if (DATA_W < 32 || (DATA_W & (DATA_W - 1)) != 0) begin : gen_bad_width
    $fatal(1, "%m: DATA_W is %0d; it must be a power of two, 32 or more", DATA_W);
  end

  import crc32_pkg::*;

  // A one at bit j passes the feedback once and then shifts with the DATA_W-1-j bits after it.
  function automatic logic [DATA_W-1:0][31:0] columns();
    logic [31:0] moved;
    logic [31:0][31:0] roots;  // of single bits: a root costs a reader of constant functions many steps
    for (int r = 0; r < 32; r++) roots[r] = root(32'h1 << r, DATA_W, POLYNOMIAL);
    moved = POLYNOMIAL;
    for (int j = DATA_W - 1; j >= 0; j--) begin
      columns[j] = '0;
      for (int r = 0; r < 32; r++) if (moved[r]) columns[j] ^= roots[r];
      moved = next_bit(moved, POLYNOMIAL);
    end
  endfunction

  linear_tables #(.IN_W(DATA_W), .COLUMNS(columns()), .TABLES(TABLES)) u_tables (
    .clk,
    .data,
    .map  (1'b0),
    .value(added)
  );
endmodule
