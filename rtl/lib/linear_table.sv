// SPDX-License-Identifier: SHL-2.1
// One table of linear_tables: 512 words in block RAM. The address is a map and WIDTH bits; the word there is the XOR of
// the map's columns of all set bits; `value` belongs to the address of the previous cycle.
module linear_table #(
  parameter int unsigned MAPS  = 1,
  parameter int unsigned WIDTH = 9,
  parameter logic [MAPS-1:0][WIDTH-1:0][31:0] COLUMNS = '0
) (
  input  logic        clk,
  input  logic [8:0]  place,
  output logic [31:0] value
);
  function automatic logic [31:0] column(int unsigned at, int unsigned b);
    return b < WIDTH && 1'(at >> b) ? COLUMNS[at >> WIDTH][b] : '0;
  endfunction

(* ram_style = "block" *) logic [31:0] words[512];
  initial begin
    for (int unsigned i = 0; i < 512; i++)
      words[i] = column(i, 0) ^ column(i, 1) ^ column(i, 2) ^ column(i, 3) ^ column(i, 4)
               ^ column(i, 5) ^ column(i, 6) ^ column(i, 7) ^ column(i, 8);
  end

  always_ff @(posedge clk) value <= words[place];
endmodule
