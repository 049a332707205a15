// SPDX-License-Identifier: SHL-2.1
// Black box: output DDR register (TN1265) of Lattice's ECP5. Ports only; Yosys and Diamond have the cell.
(* blackbox *)
  module ODDRX1F (
    input  logic SCLK,
    input  logic RST,
    input  logic D0,
    input  logic D1,
    output logic Q
  );
  endmodule
