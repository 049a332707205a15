// SPDX-License-Identifier: SHL-2.1
// RAMB18E2 for simulations of netlists: the pins and parameters that Yosys' mapping connects, over `block_ram`.
module RAMB18E2 #(
  parameter logic [255:0] INIT_00 = 'x, INIT_01 = 'x, INIT_02 = 'x, INIT_03 = 'x,
  parameter logic [255:0] INIT_04 = 'x, INIT_05 = 'x, INIT_06 = 'x, INIT_07 = 'x,
  parameter logic [255:0] INIT_08 = 'x, INIT_09 = 'x, INIT_0A = 'x, INIT_0B = 'x,
  parameter logic [255:0] INIT_0C = 'x, INIT_0D = 'x, INIT_0E = 'x, INIT_0F = 'x,
  parameter logic [255:0] INIT_10 = 'x, INIT_11 = 'x, INIT_12 = 'x, INIT_13 = 'x,
  parameter logic [255:0] INIT_14 = 'x, INIT_15 = 'x, INIT_16 = 'x, INIT_17 = 'x,
  parameter logic [255:0] INIT_18 = 'x, INIT_19 = 'x, INIT_1A = 'x, INIT_1B = 'x,
  parameter logic [255:0] INIT_1C = 'x, INIT_1D = 'x, INIT_1E = 'x, INIT_1F = 'x,
  parameter logic [255:0] INIT_20 = 'x, INIT_21 = 'x, INIT_22 = 'x, INIT_23 = 'x,
  parameter logic [255:0] INIT_24 = 'x, INIT_25 = 'x, INIT_26 = 'x, INIT_27 = 'x,
  parameter logic [255:0] INIT_28 = 'x, INIT_29 = 'x, INIT_2A = 'x, INIT_2B = 'x,
  parameter logic [255:0] INIT_2C = 'x, INIT_2D = 'x, INIT_2E = 'x, INIT_2F = 'x,
  parameter logic [255:0] INIT_30 = 'x, INIT_31 = 'x, INIT_32 = 'x, INIT_33 = 'x,
  parameter logic [255:0] INIT_34 = 'x, INIT_35 = 'x, INIT_36 = 'x, INIT_37 = 'x,
  parameter logic [255:0] INIT_38 = 'x, INIT_39 = 'x, INIT_3A = 'x, INIT_3B = 'x,
  parameter logic [255:0] INIT_3C = 'x, INIT_3D = 'x, INIT_3E = 'x, INIT_3F = 'x,
  parameter logic [255:0] INITP_00 = 'x, INITP_01 = 'x, INITP_02 = 'x, INITP_03 = 'x,
  parameter logic [255:0] INITP_04 = 'x, INITP_05 = 'x, INITP_06 = 'x, INITP_07 = 'x,
  parameter WRITE_MODE_A = "NO_CHANGE",
  parameter WRITE_MODE_B = "NO_CHANGE",
  parameter integer READ_WIDTH_A = 0,
  parameter integer READ_WIDTH_B = 0,
  parameter integer WRITE_WIDTH_A = 0,
  parameter integer WRITE_WIDTH_B = 0,
  parameter integer DOA_REG = 1,
  parameter integer DOB_REG = 1,
  // The outputs after configuration and after a reset, which is not in this model; X instead.
  parameter logic [71:0] INIT_A = '0,
  parameter logic [71:0] INIT_B = '0,
  parameter logic [71:0] SRVAL_A = '0,
  parameter logic [71:0] SRVAL_B = '0
) (
  input  logic CLKARDCLK,
  input  logic ENARDEN,
  input  logic RSTRAMARSTRAM,
  input  logic RSTREGARSTREG,
  input  logic REGCEAREGCE,
  input  logic ADDRENA,
  input  logic [13:0] ADDRARDADDR,
  input  logic [1:0] WEA,
  input  logic [15:0] DINADIN,
  input  logic [1:0] DINPADINP,
  output logic [15:0] DOUTADOUT,
  output logic [1:0] DOUTPADOUTP,
  input  logic CLKBWRCLK,
  input  logic ENBWREN,
  input  logic RSTRAMB,
  input  logic RSTREGB,
  input  logic REGCEB,
  input  logic ADDRENB,
  input  logic [13:0] ADDRBWRADDR,
  input  logic [3:0] WEBWE,
  input  logic [15:0] DINBDIN,
  input  logic [1:0] DINPBDINP,
  output logic [15:0] DOUTBDOUT,
  output logic [1:0] DOUTPBDOUTP,
  input  logic SLEEP
);
  localparam integer Wide = 36;  // a word that takes the data pins of both ports
  localparam [0:0] ReadB = READ_WIDTH_B != 0;
  localparam [0:0] WriteA = WRITE_WIDTH_A != 0;

  logic [63:0] rd_data;
  logic [7:0] rd_parity;

  assign DOUTADOUT = rd_data[15:0];
  assign DOUTPADOUTP = rd_parity[1:0];
  assign DOUTBDOUT = READ_WIDTH_A == Wide ? rd_data[31:16] : rd_data[15:0];
  assign DOUTPBDOUTP = READ_WIDTH_A == Wide ? rd_parity[3:2] : rd_parity[1:0];

  initial begin
    if ((READ_WIDTH_A != 0 && ReadB) || (WRITE_WIDTH_B != 0 && WriteA))
      $fatal(1, "RAMB18E2: two ports that read or write are not in this model");
    if (DOA_REG != 0 || DOB_REG != 0) $fatal(1, "RAMB18E2: an output register is not in this model");
  end

  always @(posedge CLKARDCLK) begin
    if (RSTRAMARSTRAM || RSTRAMB || !ADDRENA || !ADDRENB || SLEEP)
      $fatal(1, "RAMB18E2: RSTRAM, ADDREN and SLEEP are not in this model");
  end

  block_ram #(
    .ROWS(256),
    .INIT({
      INIT_3F, INIT_3E, INIT_3D, INIT_3C, INIT_3B, INIT_3A, INIT_39, INIT_38,
      INIT_37, INIT_36, INIT_35, INIT_34, INIT_33, INIT_32, INIT_31, INIT_30,
      INIT_2F, INIT_2E, INIT_2D, INIT_2C, INIT_2B, INIT_2A, INIT_29, INIT_28,
      INIT_27, INIT_26, INIT_25, INIT_24, INIT_23, INIT_22, INIT_21, INIT_20,
      INIT_1F, INIT_1E, INIT_1D, INIT_1C, INIT_1B, INIT_1A, INIT_19, INIT_18,
      INIT_17, INIT_16, INIT_15, INIT_14, INIT_13, INIT_12, INIT_11, INIT_10,
      INIT_0F, INIT_0E, INIT_0D, INIT_0C, INIT_0B, INIT_0A, INIT_09, INIT_08,
      INIT_07, INIT_06, INIT_05, INIT_04, INIT_03, INIT_02, INIT_01, INIT_00
    }),
    .INITP({
      INITP_07, INITP_06, INITP_05, INITP_04, INITP_03, INITP_02, INITP_01, INITP_00
    }),
    .READ_WIDTH (ReadB ? READ_WIDTH_B : READ_WIDTH_A),
    .WRITE_WIDTH(WriteA ? WRITE_WIDTH_A : WRITE_WIDTH_B),
    .READ_FIRST (WriteA ? WRITE_MODE_A == "READ_FIRST" : WRITE_MODE_B == "READ_FIRST")
  ) u_ram (
    .rd_clk   (ReadB ? CLKBWRCLK : CLKARDCLK),
    .rd_en    (ReadB ? ENBWREN : ENARDEN),
    .rd_addr  (ReadB ? ADDRBWRADDR : ADDRARDADDR),
    .rd_data,
    .rd_parity,
    .wr_clk   (WriteA ? CLKARDCLK : CLKBWRCLK),
    .wr_en    (WriteA ? ENARDEN : ENBWREN),
    .wr_bytes (WriteA ? {6'b0, WEA} : {4'b0, WEBWE}),
    .wr_addr  (WriteA ? ADDRARDADDR : ADDRBWRADDR),
    .wr_data  (WRITE_WIDTH_B == Wide ? {32'b0, DINBDIN, DINADIN} : {48'b0, WriteA ? DINADIN : DINBDIN}),
    .wr_parity(WRITE_WIDTH_B == Wide ? {4'b0, DINPBDINP, DINPADINP} : {6'b0, WriteA ? DINPADINP : DINPBDINP})
  );
endmodule
