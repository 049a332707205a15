// SPDX-License-Identifier: SHL-2.1
// crc32_word and crc32_end with the register that holds the root between words, as in the modules that use them.
module crc32_bench #(
  parameter  int unsigned DATA_W = 64,
  parameter  int unsigned STEP   = 1,  // bytes of a short word are its multiples
  parameter  bit          CASTAGNOLI = 1'b0,
  parameter  bit          TABLES = 1'b1,
  localparam logic [31:0] Polynomial = CASTAGNOLI ? crc32_pkg::Castagnoli : crc32_pkg::Polynomial,
  localparam int unsigned Steps  = DATA_W / 8 / STEP,
  localparam int unsigned StepW  = $clog2(Steps)
) (
  input  logic              clk,
  input  logic              start,
  input  logic              move,
  input  logic [DATA_W-1:0] data,
  input  logic [StepW-1:0]  spare,  // steps of zeros after the last word's bytes
  output logic [31:0]       state
);
  logic [31:0] added, root_q;
  logic move_q;

  crc32_word #(.DATA_W(DATA_W), .POLYNOMIAL(Polynomial), .TABLES(TABLES)) u_word (.clk, .data, .added);
  crc32_end #(.DATA_W(DATA_W), .STEP(STEP), .STEPS(Steps), .POLYNOMIAL(Polynomial), .TABLES(TABLES)) u_end (
    .clk,
    .root (root_q),
    .steps(spare),
    .state(state)
  );

  always_ff @(posedge clk) begin
    move_q <= move;
    if (start) root_q <= crc32_pkg::root('1, DATA_W, Polynomial);
    else if (move_q) root_q <= crc32_pkg::next_bit(root_q, Polynomial) ^ added;
  end
endmodule
