// SPDX-License-Identifier: SHL-2.1
// Brings the state of a link, which changes seldom, to `clk`: bit by bit, so that nothing but flip-flops is in front of
// the synchronisers. Bits that change together may come a cycle apart.
module link_sync
  import gmii_pkg::link_t;
(
  input  logic  clk,
  input  link_t link,  // of another clock
  output link_t here
);
  for (genvar i = 0; i < $bits(link_t); i++) begin : gen_bit
    reset_sync u_bit (
      .clk,
      .d(link[i]),
      .q(here[i])
    );
  end
endmodule
