// SPDX-License-Identifier: SHL-2.1
// Checks whether the sender of a datagram may use IPbus and the connection manager, by its IPv4 source address.
// Promise: `listed` is valid from the cycle after the address until the next frame's address.
// Addresses can be forged: the list protects against mistakes and unrelated tools; docs/security.md lists its limits.
module access_list
  import services_pkg::*;
(
  input  logic         clk,
  input  access_list_t list,
  // verilator lint_off UNUSEDSIGNAL
  input  parsed_t       parsed,
  // verilator lint_on UNUSEDSIGNAL
  output logic         listed
);
  logic [AccessEntries-1:0] upper, lower, upper_q, differs_q;

  for (genvar i = 0; i < AccessEntries; i++) begin : gen_entry
    assign upper[i] = ((parsed.data ^ list.ip[i][31:16]) & list.netmask[i][31:16]) != '0;
    assign lower[i] = ((parsed.data ^ list.ip[i][15:0]) & list.netmask[i][15:0]) != '0;
  end

  always_ff @(posedge clk) begin
    if (parsed.valid && parsed.index == WordIpSrc) upper_q <= upper;
    if (parsed.valid && parsed.index == WordIpSrc + 5'd1) differs_q <= upper_q | lower;
  end

  assign listed = !list.enable || !(&differs_q);
endmodule
