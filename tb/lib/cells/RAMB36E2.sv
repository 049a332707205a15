// SPDX-License-Identifier: SHL-2.1
// RAMB36E2 for simulations of netlists: the pins and parameters that Yosys' mapping connects, over `block_ram`.
module RAMB36E2 #(
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
  parameter logic [255:0] INIT_40 = 'x, INIT_41 = 'x, INIT_42 = 'x, INIT_43 = 'x,
  parameter logic [255:0] INIT_44 = 'x, INIT_45 = 'x, INIT_46 = 'x, INIT_47 = 'x,
  parameter logic [255:0] INIT_48 = 'x, INIT_49 = 'x, INIT_4A = 'x, INIT_4B = 'x,
  parameter logic [255:0] INIT_4C = 'x, INIT_4D = 'x, INIT_4E = 'x, INIT_4F = 'x,
  parameter logic [255:0] INIT_50 = 'x, INIT_51 = 'x, INIT_52 = 'x, INIT_53 = 'x,
  parameter logic [255:0] INIT_54 = 'x, INIT_55 = 'x, INIT_56 = 'x, INIT_57 = 'x,
  parameter logic [255:0] INIT_58 = 'x, INIT_59 = 'x, INIT_5A = 'x, INIT_5B = 'x,
  parameter logic [255:0] INIT_5C = 'x, INIT_5D = 'x, INIT_5E = 'x, INIT_5F = 'x,
  parameter logic [255:0] INIT_60 = 'x, INIT_61 = 'x, INIT_62 = 'x, INIT_63 = 'x,
  parameter logic [255:0] INIT_64 = 'x, INIT_65 = 'x, INIT_66 = 'x, INIT_67 = 'x,
  parameter logic [255:0] INIT_68 = 'x, INIT_69 = 'x, INIT_6A = 'x, INIT_6B = 'x,
  parameter logic [255:0] INIT_6C = 'x, INIT_6D = 'x, INIT_6E = 'x, INIT_6F = 'x,
  parameter logic [255:0] INIT_70 = 'x, INIT_71 = 'x, INIT_72 = 'x, INIT_73 = 'x,
  parameter logic [255:0] INIT_74 = 'x, INIT_75 = 'x, INIT_76 = 'x, INIT_77 = 'x,
  parameter logic [255:0] INIT_78 = 'x, INIT_79 = 'x, INIT_7A = 'x, INIT_7B = 'x,
  parameter logic [255:0] INIT_7C = 'x, INIT_7D = 'x, INIT_7E = 'x, INIT_7F = 'x,
  parameter logic [255:0] INITP_00 = 'x, INITP_01 = 'x, INITP_02 = 'x, INITP_03 = 'x,
  parameter logic [255:0] INITP_04 = 'x, INITP_05 = 'x, INITP_06 = 'x, INITP_07 = 'x,
  parameter logic [255:0] INITP_08 = 'x, INITP_09 = 'x, INITP_0A = 'x, INITP_0B = 'x,
  parameter logic [255:0] INITP_0C = 'x, INITP_0D = 'x, INITP_0E = 'x, INITP_0F = 'x,
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
  input  logic [14:0] ADDRARDADDR,
  input  logic [3:0] WEA,
  input  logic [31:0] DINADIN,
  input  logic [3:0] DINPADINP,
  output logic [31:0] DOUTADOUT,
  output logic [3:0] DOUTPADOUTP,
  input  logic CLKBWRCLK,
  input  logic ENBWREN,
  input  logic RSTRAMB,
  input  logic RSTREGB,
  input  logic REGCEB,
  input  logic ADDRENB,
  input  logic [14:0] ADDRBWRADDR,
  input  logic [7:0] WEBWE,
  input  logic [31:0] DINBDIN,
  input  logic [3:0] DINPBDINP,
  output logic [31:0] DOUTBDOUT,
  output logic [3:0] DOUTPBDOUTP,
  input  logic SLEEP
);
  localparam integer Wide = 72;  // a word that takes the data pins of both ports
  localparam [0:0] ReadB = READ_WIDTH_B != 0;
  localparam [0:0] WriteA = WRITE_WIDTH_A != 0;

  logic [63:0] rd_data;
  logic [7:0] rd_parity;

  assign DOUTADOUT = rd_data[31:0];
  assign DOUTPADOUTP = rd_parity[3:0];
  assign DOUTBDOUT = READ_WIDTH_A == Wide ? rd_data[63:32] : rd_data[31:0];
  assign DOUTPBDOUTP = READ_WIDTH_A == Wide ? rd_parity[7:4] : rd_parity[3:0];

  initial begin
    if ((READ_WIDTH_A != 0 && ReadB) || (WRITE_WIDTH_B != 0 && WriteA))
      $fatal(1, "RAMB36E2: two ports that read or write are not in this model");
    if (DOA_REG != 0 || DOB_REG != 0) $fatal(1, "RAMB36E2: an output register is not in this model");
  end

  always @(posedge CLKARDCLK) begin
    if (RSTRAMARSTRAM || RSTRAMB || !ADDRENA || !ADDRENB || SLEEP)
      $fatal(1, "RAMB36E2: RSTRAM, ADDREN and SLEEP are not in this model");
  end

  block_ram #(
    .ROWS(512),
    .INIT({
      INIT_7F, INIT_7E, INIT_7D, INIT_7C, INIT_7B, INIT_7A, INIT_79, INIT_78,
      INIT_77, INIT_76, INIT_75, INIT_74, INIT_73, INIT_72, INIT_71, INIT_70,
      INIT_6F, INIT_6E, INIT_6D, INIT_6C, INIT_6B, INIT_6A, INIT_69, INIT_68,
      INIT_67, INIT_66, INIT_65, INIT_64, INIT_63, INIT_62, INIT_61, INIT_60,
      INIT_5F, INIT_5E, INIT_5D, INIT_5C, INIT_5B, INIT_5A, INIT_59, INIT_58,
      INIT_57, INIT_56, INIT_55, INIT_54, INIT_53, INIT_52, INIT_51, INIT_50,
      INIT_4F, INIT_4E, INIT_4D, INIT_4C, INIT_4B, INIT_4A, INIT_49, INIT_48,
      INIT_47, INIT_46, INIT_45, INIT_44, INIT_43, INIT_42, INIT_41, INIT_40,
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
      INITP_0F, INITP_0E, INITP_0D, INITP_0C, INITP_0B, INITP_0A, INITP_09, INITP_08,
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
    .wr_bytes (WriteA ? {4'b0, WEA} : WEBWE),
    .wr_addr  (WriteA ? ADDRARDADDR : ADDRBWRADDR),
    .wr_data  (WRITE_WIDTH_B == Wide ? {DINBDIN, DINADIN} : {32'b0, WriteA ? DINADIN : DINBDIN}),
    .wr_parity(WRITE_WIDTH_B == Wide ? {DINPBDINP, DINPADINP} : {4'b0, WriteA ? DINPADINP : DINPBDINP})
  );
endmodule
