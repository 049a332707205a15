// SPDX-License-Identifier: SHL-2.1
// Simple dual-port RAM: one write port, one read port, read data one cycle after `rd_en`.
// `rd_data` keeps its value while `rd_en` is low, so it serves as the output register of a stream.
// A read of the address being written returns the old word. Contents are not reset.
// BLOCK: block RAM for any number of words, for tables without tight timing; a front end has more spare block RAM
// than LUTs. More than 256 words are always block RAM: by default Yosys would infer LUT RAM if both ports
// share an address, of a depth that does not exist.
module ram_sdp #(
  parameter  int unsigned W     = 64,
  parameter  int unsigned DEPTH = 512,
  // verilator lint_off UNUSEDPARAM
  parameter  bit          BLOCK = 1'b0,  // in an attribute, which Verilator does not look at
  // verilator lint_on UNUSEDPARAM
  localparam int unsigned AddrW = DEPTH > 1 ? $clog2(DEPTH) : 1
) (
  input  logic             clk,
  input  logic             wr_en,
  input  logic [AddrW-1:0] wr_addr,
  input  logic [W-1:0]     wr_data,
  input  logic             rd_en,
  input  logic [AddrW-1:0] rd_addr,
  output logic [W-1:0]     rd_data
);
(* ram_style = BLOCK || DEPTH > 256 ? "block" : "auto" *) logic [W-1:0] mem[DEPTH];

  always_ff @(posedge clk) begin
    if (wr_en) mem[wr_addr] <= wr_data;
    if (rd_en) rd_data <= mem[rd_addr];
  end

`ifndef SYNTHESIS
  a_wr_range : assert property (@(posedge clk) wr_en |-> 32'(wr_addr) < DEPTH);
  a_rd_range : assert property (@(posedge clk) rd_en |-> 32'(rd_addr) < DEPTH);
`endif
endmodule
