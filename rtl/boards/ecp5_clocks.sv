// SPDX-License-Identifier: SHL-2.1
// Clocks of a board with a Lattice ECP5 and a 100 MHz oscillator: 125 MHz for the line and 62.5 MHz for the core from one
// PLL, and a reset until it is locked. Source: Lattice TN1263 (sysCLOCK): VCO 625 MHz, phase detector at 25 MHz.
module ecp5_clocks (
  input  logic clk_100mhz,
  output logic clk_125mhz,
  output logic clk,         // 62.5 MHz
  output logic rst          // of clk
);
  logic locked;

  EHXPLLL #(
    .CLKI_DIV     (4),
    .CLKFB_DIV    (5),
    .CLKOP_DIV    (5),
    .CLKOP_CPHASE (4),
    .CLKOS_ENABLE ("ENABLED"),
    .CLKOS_DIV    (10),
    .CLKOS_CPHASE (4),
    .FEEDBK_PATH  ("CLKOP"),
    .INT_LOCK_STICKY("DISABLED")
  ) u_pll (
    .CLKI(clk_100mhz),
    .CLKFB(clk_125mhz),
    .CLKOP(clk_125mhz),
    .CLKOS(clk),
    .CLKOS2(),
    .CLKOS3(),
    .RST(1'b0),
    .STDBY(1'b0),
    .PHASESEL0(1'b0),
    .PHASESEL1(1'b0),
    .PHASEDIR(1'b0),
    .PHASESTEP(1'b0),
    .PHASELOADREG(1'b0),
    .PLLWAKESYNC(1'b0),
    .ENCLKOP(1'b0),
    .ENCLKOS(1'b0),
    .ENCLKOS2(1'b0),
    .ENCLKOS3(1'b0),
    .LOCK(locked)
  );

  reset_sync #(.STAGES(4)) u_rst (
    .clk,
    .d(!locked),
    .q(rst)
  );
endmodule
