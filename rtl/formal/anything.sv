// SPDX-License-Identifier: SHL-2.1
// A value that is free in every cycle: the solver chooses it. For properties only.
module anything #(
  parameter int unsigned W = 1
) (
  output logic [W-1:0] value
);
endmodule
