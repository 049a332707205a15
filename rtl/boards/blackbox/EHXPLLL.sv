// SPDX-License-Identifier: SHL-2.1
// Black box: PLL (TN1263) of Lattice's ECP5. Ports only; Yosys and Diamond have the cell.
(* blackbox *)
  module EHXPLLL #(
    parameter CLKI_DIV        = 1,
    parameter CLKFB_DIV       = 1,
    parameter CLKOP_DIV       = 8,
    parameter CLKOP_CPHASE    = 0,
    parameter CLKOS_ENABLE    = "DISABLED",
    parameter CLKOS_DIV       = 8,
    parameter CLKOS_CPHASE    = 0,
    parameter FEEDBK_PATH     = "CLKOP",
    parameter INT_LOCK_STICKY = "ENABLED"
  ) (
    input  logic CLKI,
    input  logic CLKFB,
    input  logic PHASESEL1,
    input  logic PHASESEL0,
    input  logic PHASEDIR,
    input  logic PHASESTEP,
    input  logic PHASELOADREG,
    input  logic STDBY,
    input  logic PLLWAKESYNC,
    input  logic RST,
    input  logic ENCLKOP,
    input  logic ENCLKOS,
    input  logic ENCLKOS2,
    input  logic ENCLKOS3,
    output logic CLKOP,
    output logic CLKOS,
    output logic CLKOS2,
    output logic CLKOS3,
    output logic LOCK
  );
  endmodule
