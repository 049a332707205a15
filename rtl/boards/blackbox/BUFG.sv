// SPDX-License-Identifier: SHL-2.1
// Black box: global clock buffer of AMD's UltraScale devices (UG974). Ports only; Vivado has the cell.
(* blackbox *)
  module BUFG (
    input  logic I,
    output logic O
  );
  endmodule
