// SPDX-License-Identifier: SHL-2.1
// Black box: fixed delay at a pin (TN1265) of Lattice's ECP5. Ports only; Yosys and Diamond have the cell.
(* blackbox *)
  module DELAYG #(
    parameter DEL_MODE  = "USER_DEFINED",
    parameter DEL_VALUE = 0
  ) (
    input  logic A,
    output logic Z
  );
  endmodule
