// SPDX-License-Identifier: SHL-2.1
// Assumes of an input that what is offered stays until it is taken (AMBA AXI4-Stream 2.2.1). For properties only.
module keeps_offer #(
  parameter int unsigned W = 1
) (
  input logic         clk,
  input logic         rst,
  input logic         valid,
  input logic         ready,
  input logic [W-1:0] offer
);
  logic waits_q;
  logic [W-1:0] offer_q;
  always_ff @(posedge clk) begin
    waits_q <= valid && !ready && !rst;
    offer_q <= offer;
  end
  always_comb if (waits_q) assume (valid && offer == offer_q);
endmodule
