// SPDX-License-Identifier: SHL-2.1
// Shares the lookup of `arp` between two clients that need the MAC address of a next hop: one at a time, the first with
// priority. Promise: each client gets the answer to its own request only.
module lookup_mux (
  input  logic clk,
  input  logic rst,

  input  logic [1:0]       req_valid,
  output logic [1:0]       req_ready,
  input  logic [1:0][31:0] req_ip,
  input  logic [1:0]       req_fresh,
  output logic [1:0]       found_valid,

  output logic        lookup_valid,
  input  logic        lookup_ready,
  output logic [31:0] lookup_ip,
  output logic        lookup_fresh,
  input  logic        answered         // a pulse: found or not
);
  logic busy_q, whose_q, whose;
  assign whose        = !req_valid[0];
  assign lookup_valid = |req_valid && !busy_q;
  assign lookup_ip    = req_ip[whose];
  assign lookup_fresh = req_fresh[whose];
  assign req_ready    = {whose, !whose} & {2{lookup_ready && !busy_q}};
  assign found_valid  = {whose_q, !whose_q} & {2{answered && busy_q}};

  always_ff @(posedge clk) begin
    if (lookup_valid && lookup_ready) begin
      busy_q  <= 1'b1;
      whose_q <= whose;
    end else if (answered) busy_q <= 1'b0;
    if (rst) busy_q <= 1'b0;
  end
endmodule
