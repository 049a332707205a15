// SPDX-License-Identifier: SHL-2.1
// Black box: differential input buffer of AMD's UltraScale devices (UG974). Ports only; Vivado has the cell.
(* blackbox *)
  module IBUFDS (
    input  logic I,
    input  logic IB,
    output logic O
  );
  endmodule
