// SPDX-License-Identifier: SHL-2.1
// What RAMB18E2 and RAMB36E2 have in common, for simulations of netlists; for Yosys ships these cells as
// black boxes. It has what Yosys' mapping uses: one port reads, without an output register, and one writes.
// Anything else ends the simulation. This is SystemVerilog that Icarus 11 reads.
//
// Words of any width are in rows of 64 bits and 8 of parity, the lowest address lowest. A read of a word that is being
// written gives the old one if the memory is READ_FIRST, X otherwise. An unknown write enable or address leaves X in
// the memory. So used the cells gave the reads of the vendor's simulation models (unisims 2020.1), for all write modes
// and words of 1 to 72 bits, equal or not; but where another word of the same row is written, those read a known value,
// and X is given here. Contents whose INIT is X stay uninitialised: a simulator of two states gives them random values.
module block_ram #(
  parameter integer            ROWS        = 512,
  parameter [ROWS*64-1:0]      INIT        = 'x,
  parameter [ROWS*8-1:0]       INITP       = 'x,
  parameter integer            READ_WIDTH  = 0,  // with parity; 0: the port is not used
  parameter integer            WRITE_WIDTH = 0,
  parameter [0:0]              READ_FIRST  = 1'b0
) (
  input  logic                    rd_clk,
  input  logic                    rd_en,
  input  logic [$clog2(ROWS)+5:0] rd_addr,
  output logic [63:0]             rd_data,
  output logic [7:0]              rd_parity,
  input  logic                    wr_clk,
  input  logic                    wr_en,
  input  logic [7:0]              wr_bytes,
  input  logic [$clog2(ROWS)+5:0] wr_addr,
  input  logic [63:0]             wr_data,
  input  logic [7:0]              wr_parity
);
  localparam integer RowW = $clog2(ROWS);
  // Bits of data in a word, without the ninth of each byte.
  localparam integer ReadBits = READ_WIDTH < 9 ? READ_WIDTH : READ_WIDTH / 9 * 8;
  localparam integer WriteBits = WRITE_WIDTH < 9 ? WRITE_WIDTH : WRITE_WIDTH / 9 * 8;
  localparam [63:0] WriteMask = WriteBits == 0 ? 64'b0 : {64{1'b1}} >> (64 - WriteBits);

  logic [63:0] rows[0:ROWS-1];
  logic [7:0] parities[0:ROWS-1];

  logic [RowW-1:0] rd_row, wr_row;
  logic [5:0] rd_at, wr_at;  // first bit of the word in its row
  logic [63:0] mask;
  logic [7:0] mask_parity;

  assign rd_row = rd_addr[RowW+5:6];
  assign wr_row = wr_addr[RowW+5:6];
  assign rd_at = rd_addr[5:0] & ~(ReadBits - 6'd1);
  assign wr_at = wr_addr[5:0] & ~(WriteBits - 6'd1);
  assign mask = (WriteMask & {64{wr_en}} & {
    {8{wr_bytes[7]}}, {8{wr_bytes[6]}}, {8{wr_bytes[5]}}, {8{wr_bytes[4]}},
    {8{wr_bytes[3]}}, {8{wr_bytes[2]}}, {8{wr_bytes[1]}}, {8{wr_bytes[0]}}
  }) << wr_at;
  assign mask_parity = {mask[56], mask[48], mask[40], mask[32], mask[24], mask[16], mask[8], mask[0]};

  initial begin
    if (ReadBits > 64 || (ReadBits & (ReadBits - 1)) != 0) $fatal(1, "a port reads words of %0d bits", READ_WIDTH);
    if (WriteBits > 64 || (WriteBits & (WriteBits - 1)) != 0) $fatal(1, "a port writes words of %0d bits", WRITE_WIDTH);
  end

  if (INIT !== {ROWS*64{1'bx}} || INITP !== {ROWS*8{1'bx}}) begin : gen_initialised
    integer i;
    initial begin
      for (i = 0; i < ROWS; i = i + 1) begin
        rows[i] = INIT[64*i+:64];
        parities[i] = INITP[8*i+:8];
      end
    end
  end

  if (READ_WIDTH != 0) begin : gen_read
    always @(posedge rd_clk) begin
      if (rd_en !== 1'b0) begin
        rd_data <= rows[rd_row] >> rd_at;
        rd_parity <= parities[rd_row] >> rd_at[5:3];
        if (rd_en === 1'bx || (!READ_FIRST && WRITE_WIDTH != 0 && mask != 64'b0 && rd_row == wr_row)) begin
          rd_data <= 'x;
          rd_parity <= 'x;
        end
      end
    end
  end

  if (WRITE_WIDTH != 0) begin : gen_write
    integer i;
    always @(posedge wr_clk) begin
      if (mask !== 64'b0 && ^wr_row !== 1'bx) begin
        rows[wr_row] <= (rows[wr_row] & ~mask) | ((wr_data << wr_at) & mask);
        parities[wr_row] <= (parities[wr_row] & ~mask_parity) | ((wr_parity << wr_at[5:3]) & mask_parity);
      end else if (mask !== 64'b0) begin
        for (i = 0; i < ROWS; i = i + 1) begin
          rows[i] <= 'x;
          parities[i] <= 'x;
        end
      end
    end
  end
endmodule
