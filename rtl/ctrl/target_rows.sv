// SPDX-License-Identifier: SHL-2.1
// Divides a block of rows, one for each target, between two transports: rows below N_FIRST go to the first, the others
// to the second, numbered from 0 there.
module target_rows
  import ctrl_pkg::*;
#(
  parameter int unsigned N_FIRST    = 4,
  parameter int unsigned SHIFT      = 6,     // a row has 2^SHIFT bytes
  parameter int unsigned SHIFT_HIGH = SHIFT  // in the upper half of the block, from 0x8000 on
) (
  input  reg_req_t req,
  output reg_req_t first_req,
  output reg_req_t second_req
);
  logic [7:0] row;
  logic of_second;
  assign row       = req.addr[15] ? req.addr[SHIFT_HIGH+:8] : req.addr[SHIFT+:8];
  assign of_second = 32'(row) >= N_FIRST;
  always_comb begin
    first_req        = req;
    first_req.valid  = req.valid && !of_second;
    second_req       = req;
    second_req.valid = req.valid && of_second;
    if (req.addr[15]) second_req.addr[SHIFT_HIGH+:8] = row - 8'(N_FIRST);
    else second_req.addr[SHIFT+:8] = row - 8'(N_FIRST);
  end
endmodule
