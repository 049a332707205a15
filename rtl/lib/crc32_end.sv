// SPDX-License-Identifier: SHL-2.1
// The CRC state after a message, from the root of the state after the zeros that padded its last word: removes
// ALWAYS + steps * STEP bytes of zeros. Latency: one cycle (crc32_pkg, crc32_word).
module crc32_end #(
  parameter  int unsigned DATA_W = 64,
  parameter  int unsigned ALWAYS = 0,
  parameter  int unsigned STEP   = 1,
  parameter  int unsigned STEPS  = 8,  // 0 .. STEPS - 1; a power of two
  parameter  logic [31:0] POLYNOMIAL = crc32_pkg::Polynomial,
  parameter  bit          TABLES = 1'b1,  // see linear_tables
  localparam int unsigned StepW  = $clog2(STEPS)
) (
  input  logic             clk,
  input  logic [31:0]      root,
  input  logic [StepW-1:0] steps,
  output logic [31:0]      state
);
  function automatic logic [STEPS-1:0][31:0][31:0] columns();
    for (int unsigned i = 0; i < 32; i++) begin
      columns[0][i] = crc32_pkg::before_zeros(crc32_pkg::power(32'h1 << i, DATA_W, POLYNOMIAL), ALWAYS, POLYNOMIAL);
      for (int unsigned m = 1; m < STEPS; m++)
        columns[m][i] = crc32_pkg::before_zeros(columns[m-1][i], STEP, POLYNOMIAL);
    end
  endfunction

  linear_tables #(.IN_W(32), .MAPS(STEPS), .COLUMNS(columns()), .TABLES(TABLES)) u_tables (
    .clk,
    .data (root),
    .map  (steps),
    .value(state)
  );
endmodule
