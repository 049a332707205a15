// SPDX-License-Identifier: SHL-2.1
// Black box: input DDR register (TN1265) of Lattice's ECP5. Ports only; Yosys and Diamond have the cell.
(* blackbox *)
  module IDDRX1F (
    input  logic D,
    input  logic SCLK,
    input  logic RST,
    output logic Q0,
    output logic Q1
  );
  endmodule
