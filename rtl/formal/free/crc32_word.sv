// SPDX-License-Identifier: SHL-2.1
// Stands for crc32_word where a proof is about what the CRC covers, not about its arithmetic: any value at all.
// Properties that need it to be a function assume that equal words add the same.
module crc32_word #(
  parameter int unsigned DATA_W     = 64,
  parameter logic [31:0] POLYNOMIAL = crc32_pkg::Polynomial
) (
  input  logic              clk,
  input  logic [DATA_W-1:0] data,
  output logic [31:0]       added
);
  anything #(.W(32)) u_any (.value(added));
  wire unused = &{1'b0, clk, data, POLYNOMIAL};
endmodule
