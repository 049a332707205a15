// SPDX-License-Identifier: SHL-2.1
// Replaces crc32_word in proofs about the coverage of the CRC, not about its arithmetic: the output is any value.
// Properties that need a function assume that equal words give equal contributions.
module crc32_word #(
  parameter int unsigned DATA_W     = 64,
  parameter logic [31:0] POLYNOMIAL = crc32_pkg::Polynomial,
  parameter bit          TABLES     = 1'b1  // see linear_tables
) (
  input  logic              clk,
  input  logic [DATA_W-1:0] data,
  output logic [31:0]       added
);
  anything #(.W(32)) u_any (.value(added));
  wire unused = &{1'b0, clk, data, POLYNOMIAL, TABLES};
endmodule
