// SPDX-License-Identifier: SHL-2.1
// A linear map of IN_W bits to 32 (XORs of columns), one of MAPS selected every cycle, from tables in block RAM of 512
// words each: `value` belongs to the inputs of the previous cycle. It costs half a block RAM per 9 - $clog2(MAPS) bits,
// and XORs as wide as the number of tables. With TABLES 0 it is LUTs alone, some 12 of four inputs for each output and
// 32 bits of `data`, and several levels of them.
module linear_tables #(
  parameter  int unsigned IN_W    = 64,
  parameter  int unsigned MAPS    = 1,   // a power of two up to 32
  parameter  logic [MAPS-1:0][IN_W-1:0][31:0] COLUMNS = '0,
  parameter  bit          TABLES  = 1'b1,
  localparam int unsigned SelectW = MAPS > 1 ? $clog2(MAPS) : 1
) (
  input  logic               clk,
  input  logic [IN_W-1:0]    data,
  input  logic [SelectW-1:0] map,
  output logic [31:0]        value
);
  localparam int unsigned TableW = 9 - $clog2(MAPS);  // bits of `data` that one table looks at
  localparam int unsigned Tables = (IN_W + TableW - 1) / TableW;

  if (MAPS > 32 || MAPS != 2 ** $clog2(MAPS)) begin : gen_bad_maps
    $fatal(1, "%m: MAPS %0d is not a power of two up to 32", MAPS);
  end

  // The columns of table t: zeros where there is no bit.
  function automatic logic [MAPS-1:0][TableW-1:0][31:0] part(int unsigned t);
    part = '0;
    for (int unsigned m = 0; m < MAPS; m++)
      for (int unsigned b = 0; b < TableW; b++)
        if (t * TableW + b < IN_W) part[m][b] = COLUMNS[m][t*TableW+b];
  endfunction

  if (TABLES) begin : gen_tables
    logic [Tables-1:0][31:0] found;
    wire [Tables*TableW-1:0] filled = (Tables * TableW)'(data);

    for (genvar t = 0; t < Tables; t++) begin : gen_table
      logic [8:0] at;
      if (MAPS > 1) begin : gen_chosen
        assign at = {map, filled[t*TableW+:TableW]};
      end else begin : gen_only
        assign at = filled[t*TableW+:TableW];
      end
      linear_table #(.MAPS(MAPS), .WIDTH(TableW), .COLUMNS(part(t))) u_table (
        .clk,
        .place(at),
        .value(found[t])
      );
    end

    always_comb begin
      value = '0;
      for (int t = 0; t < int'(Tables); t++) value ^= found[t];
    end
  end else begin : gen_luts
    logic [IN_W-1:0]    data_q;
    logic [SelectW-1:0] map_q;

    always_ff @(posedge clk) begin
      data_q <= data;
      map_q  <= map;
    end

    always_comb begin
      value = '0;
      for (int b = 0; b < int'(IN_W); b++) if (data_q[b]) value ^= COLUMNS[map_q][b];
    end
  end

  wire unused = &{1'b0, map};
endmodule
