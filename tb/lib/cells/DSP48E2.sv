// SPDX-License-Identifier: SHL-2.1
// DSP48E2 for simulations of netlists, which Yosys ships as a black box. It has what Yosys' mapping
// makes of it: the multiplier of 27 by 18 bits without registers, OPMODE 5 (X and Y the product, Z and W 0). So used
// it gave the products of the vendor's simulation model (unisims 2020.1), for random and for the largest factors.
module DSP48E2 #(
  parameter integer ACASCREG = 1,
  parameter integer ADREG = 1,
  parameter integer ALUMODEREG = 1,
  parameter integer AREG = 1,
  parameter integer BCASCREG = 1,
  parameter integer BREG = 1,
  parameter integer CARRYINREG = 1,
  parameter integer CARRYINSELREG = 1,
  parameter integer CREG = 1,
  parameter integer DREG = 1,
  parameter integer INMODEREG = 1,
  parameter integer MREG = 1,
  parameter integer OPMODEREG = 1,
  parameter integer PREG = 1,
  parameter A_INPUT = "DIRECT",
  parameter B_INPUT = "DIRECT",
  parameter AMULTSEL = "A",
  parameter BMULTSEL = "B",
  parameter USE_MULT = "MULTIPLY",
  parameter USE_SIMD = "ONE48"
) (
  input  logic [29:0] A,
  input  logic [17:0] B,
  input  logic [47:0] C,
  input  logic [26:0] D,
  input  logic [4:0]  INMODE,
  input  logic [3:0]  ALUMODE,
  input  logic [8:0]  OPMODE,
  input  logic [2:0]  CARRYINSEL,
  input  logic [29:0] ACIN,
  input  logic [17:0] BCIN,
  input  logic [47:0] PCIN,
  input  logic        CARRYIN,
  output logic [47:0] P
);
  initial begin
    if (ACASCREG + ADREG + ALUMODEREG + AREG + BCASCREG + BREG + CARRYINREG + CARRYINSELREG + CREG + DREG + INMODEREG
        + MREG + OPMODEREG + PREG != 0) $fatal(1, "DSP48E2: registers are not in this model");
    if (A_INPUT != "DIRECT" || B_INPUT != "DIRECT" || AMULTSEL != "A" || BMULTSEL != "B")
      $fatal(1, "DSP48E2: inputs from other cells are not in this model");
    if (USE_MULT != "MULTIPLY" || USE_SIMD != "ONE48") $fatal(1, "DSP48E2: only the multiplier is in this model");
    if ({INMODE, ALUMODE, OPMODE, CARRYINSEL, CARRYIN} != {5'd0, 4'd0, 9'd5, 3'd0, 1'd0})
      $fatal(1, "DSP48E2: only the product is in this model");
  end

  logic signed [47:0] a, b;

  assign a = {{21{A[26]}}, A[26:0]};
  assign b = {{30{B[17]}}, B};
  assign P = a * b;
endmodule
