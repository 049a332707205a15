// SPDX-License-Identifier: SHL-2.1
// Replaces a register block that a build does not contain: reads give 0, writes have no effect.
module absent_block
  import ctrl_pkg::*;
(
  input  logic     clk,
  input  logic     rst,
  // verilator lint_off UNUSEDSIGNAL
  input  reg_req_t req,
  // verilator lint_on UNUSEDSIGNAL
  output reg_rsp_t rsp
);
  always_ff @(posedge clk)
    rsp <= '{rd_ack: req.valid && !req.is_wr && !rst, wr_ack: req.valid && req.is_wr && !rst, rd_data: '0};
endmodule
