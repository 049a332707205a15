// SPDX-License-Identifier: SHL-2.1
// Ethernet II, IPv4 and UDP headers as sent on the wire (RFC 894, RFC 791, RFC 768).
// Packer and parser share one table: the first octet on the wire is the struct's most
// significant byte, so a streaming operator `{<<8{header}}` turns a header into stream lanes.
// A module that uses only some fields leaves the other constants unused.
// verilator lint_off UNUSEDPARAM
package ip_pkg;

  localparam logic [15:0] EtherTypeIpv4 = 16'h0800;
  localparam logic [15:0] EtherTypeArp  = 16'h0806;
  localparam logic [7:0]  ProtocolIcmp  = 8'd1;
  localparam logic [7:0]  ProtocolTcp   = 8'd6;
  localparam logic [7:0]  ProtocolUdp   = 8'd17;
  localparam logic [15:0] Ipv4DontFragment = 16'h4000;

  typedef struct packed {
    logic [47:0] dst;
    logic [47:0] src;
    logic [15:0] ethertype;
  } eth_hdr_t;

  typedef struct packed {
    logic [3:0]  version;
    logic [3:0]  ihl;           // header length in words; 5 = no options
    logic [7:0]  tos;           // DSCP[7:2], ECN[1:0]
    logic [15:0] total_length;  // header and everything after it, bytes
    logic [15:0] id;
    logic [15:0] fragment;      // [14] do not fragment, [13] more follow, [12:0] offset
    logic [7:0]  ttl;
    logic [7:0]  protocol;
    logic [15:0] checksum;
    logic [31:0] src;
    logic [31:0] dst;
  } ipv4_hdr_t;

  typedef struct packed {
    logic [15:0] sport;
    logic [15:0] dport;
    logic [15:0] length;        // header and payload, bytes
    logic [15:0] checksum;      // 0 = not used
  } udp_hdr_t;

  localparam int unsigned EthBytes  = $bits(eth_hdr_t) / 8;
  localparam int unsigned Ipv4Bytes = $bits(ipv4_hdr_t) / 8;
  localparam int unsigned UdpBytes  = $bits(udp_hdr_t) / 8;

  // Sum of the ten 16-bit words of a header without options; ten words need four bits of carry.
  function automatic logic [19:0] ipv4_word_sum(ipv4_hdr_t hdr);
    ipv4_word_sum = '0;
    for (int i = 0; i < 10; i++) ipv4_word_sum += 20'(hdr[16*i+:16]);
  endfunction

  // The one's-complement sum of RFC 1071: the carries of a sum of words go back in, and then the one that this gives.
  function automatic logic [16:0] ones_complement_partial(logic [19:0] sum);
    return 17'(sum[15:0]) + 17'(sum[19:16]);
  endfunction

  function automatic logic [15:0] ones_complement_rest(logic [16:0] partial);
    return partial[15:0] + 16'(partial[16]);
  endfunction

  function automatic logic [15:0] ones_complement_fold(logic [19:0] sum);
    return ones_complement_rest(ones_complement_partial(sum));
  endfunction

endpackage
