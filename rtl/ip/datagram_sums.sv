// SPDX-License-Identifier: SHL-2.1
// The two one's-complement sums of an IPv4 datagram, computed from its words as they pass: of the IP header, and of
// the rest, for UDP with the pseudo header (RFC 1071, RFC 791, RFC 768, RFC 792).
// Promise: both are valid two cycles after the last word, and FFFF if all words including the checksums were seen. A
// new frame restarts them. UDP's length must pass twice: once as a field, once for the pseudo header.
module datagram_sums
  import services_pkg::*;
(
  input  logic        clk,
  input  logic        valid,
  input  word_index_t index,
  input  logic [15:0] word,
  input  logic        udp,       // known after the protocol field

  output logic [15:0] ip_sum,
  output logic [15:0] l4_sum
);
  import ip_pkg::ProtocolUdp;

  logic [16:0] ip_sum_q, l4_sum_q;  // the carry comes back in a cycle later
  logic        of_ip, of_l4;

  // One adder: the carry of the word before goes in where a carry goes in.
  function automatic logic [16:0] with_carry(logic [16:0] sum, logic [15:0] addend);
    return 17'(({1'b0, sum[15:0], sum[16]} + {1'b0, addend, sum[16]}) >> 1);
  endfunction

  assign of_ip  = valid && index >= WordVersion && index < WordSport;
  assign of_l4  = valid && (index >= WordSport || (udp && index >= WordIpSrc));
  assign ip_sum = ip_sum_q[15:0];
  assign l4_sum = l4_sum_q[15:0];

  always_ff @(posedge clk) begin
    ip_sum_q <= with_carry(ip_sum_q, word & {16{of_ip}});
    l4_sum_q <= with_carry(l4_sum_q, word & {16{of_l4}});
    if (valid && index == WordEthertype) ip_sum_q <= '0;
    if (valid && index == WordIpSum) l4_sum_q <= udp ? 17'(ProtocolUdp) : '0;
  end
endmodule
