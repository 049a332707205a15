// SPDX-License-Identifier: SHL-2.1
// Black box: reference clock of a SERDES (TN1261) of Lattice's ECP5. Ports only; Yosys and Diamond have the cell.
(* blackbox *)
  module EXTREFB #(
    parameter REFCK_PWDNB = "0b0",
    parameter REFCK_RTERM = "0b0"
  ) (
    input  logic REFCLKP,
    input  logic REFCLKN,
    output logic REFCLKO
  );
  endmodule
