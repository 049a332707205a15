// SPDX-License-Identifier: SHL-2.1
// Replaces crc32_end in proofs about the coverage of the CRC, not about its arithmetic: the output is any value.
// Properties that need a function assume that equal inputs give equal outputs.
module crc32_end #(
  parameter  int unsigned DATA_W = 64,
  parameter  int unsigned ALWAYS = 0,
  parameter  int unsigned STEP   = 1,
  parameter  int unsigned STEPS  = 8,
  parameter  logic [31:0] POLYNOMIAL = crc32_pkg::Polynomial,
  parameter  bit          TABLES = 1'b1,  // see linear_tables
  localparam int unsigned StepW  = $clog2(STEPS)
) (
  input  logic             clk,
  input  logic [31:0]      root,
  input  logic [StepW-1:0] steps,
  output logic [31:0]      state
);
  anything #(.W(32)) u_any (.value(state));
  wire unused = &{1'b0, clk, root, steps, POLYNOMIAL, TABLES};
endmodule
