// SPDX-License-Identifier: SHL-2.1
// Reads one frame after the other, a 16-bit word per cycle: compares, sums and counts while the words pass,
// then reports the kind of the frame. Promise: one `done` for each frame, after its words, with its kind. The words of
// a frame may precede a bad verdict, so a service commits or drops its stored words at `done` (RFC 791, RFC 1071,
// RFC 768, RFC 792, RFC 826; RFC 1122 3.3.6).
//
//   | Ethernet 14 | ARP 28               |          a head of 21 words, numbered in services_pkg
//   | Ethernet 14 | IPv4 20 | L4 head 8  | payload
module service_parser
  import services_pkg::*;
(
  input  logic clk,
  input  logic rst,

  input  logic [47:0] local_mac,
  input  logic [31:0] local_ip,

  input  logic [15:0] s_axis_tdata,
  // verilator lint_off UNUSEDSIGNAL
  input  logic [1:0]  s_axis_tkeep,   // [0] is always set
  // verilator lint_on UNUSEDSIGNAL
  input  logic        s_axis_tvalid,
  output logic        s_axis_tready,
  input  logic        s_axis_tlast,

  output parsed_t      parsed
);
  import ip_pkg::*;

  localparam logic [15:0] HeadLength  = 16'(Ipv4Bytes + UdpBytes);  // ICMP's head is as long as UDP's
  localparam logic [15:0] LengthAhead = 16'd4;  // `left_q` is that much above what is left at the payload

  typedef enum logic [1:0] {
    StFrame,  // takes words
    StFold,   // the sums' last carry
    StCheck,  // whether they are right
    StVerdict
  } state_e;

  state_e      state_q;
  word_index_t index_q;
  logic        take, twice_q;
  logic [15:0] word;

  parsed_t now;  // the value of `parsed` in the next cycle

  // ---- what passed -----------------------------------------------------------------------------------
  logic arp_q, ipv4_q, udp_q, icmp_q;
  logic mac_ours_q, group_source_q, arp_form_q, arp_whole_q;
  logic plain_q, length_ok_q, has_l4_q, fragment_q, host_source_q, local_source_q, ours_q;
  logic echo_q, udp_length_ok_q, unsummed_q;

  // UDP's length is taken twice: the sum needs it for the pseudo header too.
  assign s_axis_tready = state_q == StFrame && (index_q != WordUdpLength || !udp_q || twice_q);
  assign take          = s_axis_tvalid && s_axis_tready;

  always_ff @(posedge clk) begin
    case (state_q)
      StFrame: if (take && s_axis_tlast) state_q <= StFold;
      StFold:  state_q <= StCheck;
      StCheck: state_q <= StVerdict;
      default: state_q <= StFrame;
    endcase
    twice_q <= s_axis_tvalid && index_q == WordUdpLength && !take;
    if (take) index_q <= s_axis_tlast ? WordDst : index_q == WordPayload ? WordPayload : index_q + 1'b1;
    if (rst) begin
      state_q <= StFrame;
      index_q <= WordDst;
    end
  end

  // ---- the length in the IP header, and the rest ---------------------------------------------------------
  // Two less with each word after it: what UDP's length must be when that passes, and four more than the rest of
  // the payload when a word of that does.
  logic [15:0] left_q;
  logic        more, last, odd;

  assign more = left_q > LengthAhead;
  assign last = left_q <= LengthAhead + 16'd2;
  assign odd  = index_q == WordPayload && last && left_q[0];
  assign word = {s_axis_tdata[7:0], odd ? 8'h0 : s_axis_tdata[15:8]};

  always_ff @(posedge clk) begin
    if (take) begin
      if (index_q == WordLength) left_q <= word;
      else if (more && (s_axis_tkeep[1] || odd)) left_q <= left_q - 16'd2;
    end
  end

  // ---- compared with the expected value at this place ----------------------------------------------------------
  localparam logic [2:0] LocalMac = 3'd0;
  localparam logic [2:0] LocalIp  = 3'd3;
  localparam logic [2:0] Left     = 3'd5;
  localparam logic [2:0] ArpForm  = 3'd6;

  logic [7:0][15:0] expected;
  logic [2:0]       expected_at;
  logic [15:0]      arp_form;

  assign arp_form = index_q == WordHtype ? ArpHtype : index_q == WordPtype ? ArpPtype : ArpLengths;
  assign expected = {
    16'h0, arp_form, left_q,
    local_ip[15:0], local_ip[31:16], local_mac[15:0], local_mac[31:16], local_mac[47:32]
  };

  always_comb begin
    unique case (index_q)
      WordDst, WordSha:               expected_at = LocalMac;
      WordDst + 5'd1, WordSha + 5'd1: expected_at = LocalMac + 3'd1;
      WordDst + 5'd2:                 expected_at = LocalMac + 3'd2;
      WordIpSrc:                      expected_at = arp_q ? LocalMac + 3'd2 : LocalIp;
      WordIpSrc + 5'd1:               expected_at = arp_q ? LocalIp : LocalIp + 3'd1;
      WordIpDst:                      expected_at = arp_q ? LocalIp + 3'd1 : LocalIp;
      WordUdpLength:                  expected_at = arp_q ? LocalIp : Left;
      WordIpDst + 5'd1, WordTpa + 5'd1: expected_at = LocalIp + 3'd1;
      default:                        expected_at = ArpForm;
    endcase
  end

  assign now.valid   = take && (index_q != WordPayload || more);
  assign now.index   = index_q;
  assign now.data    = word;
  assign now.odd     = odd;
  assign now.last    = last;
  assign now.zero    = word == '0;
  assign now.differs = word ^ expected[expected_at];
  assign now.same    = now.differs == '0;

  // Not this network, not loopback, not multicast or reserved (RFC 1122 3.2.1.3).
  function automatic logic host_address(logic [7:0] first_octet);
    return first_octet != 8'd0 && first_octet != 8'd127 && first_octet < 8'hE0;
  endfunction

  always_ff @(posedge clk) begin
    if (take) begin
      unique case (index_q)
        WordDst: begin
          mac_ours_q <= now.same;
          {arp_q, ipv4_q, arp_whole_q, length_ok_q} <= '0;
        end
        WordDst + 5'd1, WordDst + 5'd2: mac_ours_q <= mac_ours_q && now.same;
        WordSrc: group_source_q <= word[8];
        WordEthertype: begin
          arp_q  <= word == EtherTypeArp;
          ipv4_q <= word == EtherTypeIpv4;
        end
        WordVersion: begin
          plain_q    <= word[15:8] == Ipv4Version[15:8];
          arp_form_q <= now.same;
        end
        WordLength: begin
          length_ok_q <= word >= 16'(Ipv4Bytes) && word <= 16'(JumboBytes - EthBytes);
          has_l4_q    <= word >= HeadLength;
          arp_form_q  <= arp_form_q && now.same;
        end
        WordLengths: arp_form_q <= arp_form_q && now.same;
        WordFragment: fragment_q <= word[13:0] != '0;
        WordProtocol: begin
          udp_q  <= word[7:0] == ProtocolUdp;
          icmp_q <= word[7:0] == ProtocolIcmp;
        end
        WordIpSrc: begin
          host_source_q  <= host_address(word[15:8]);
          local_source_q <= now.same;
        end
        WordIpSrc + 5'd1: local_source_q <= local_source_q && now.same;
        WordIpDst: ours_q <= now.same;
        WordIpDst + 5'd1: ours_q <= ours_q && now.same;
        WordIcmpKind: echo_q <= word == IcmpEchoRequest;
        WordUdpLength: udp_length_ok_q <= now.same;
        WordUdpSum: begin
          unsummed_q  <= now.zero;
          arp_whole_q <= s_axis_tkeep[1];
        end
        default: ;
      endcase
    end
    if (rst) udp_q <= 1'b0;
  end

  logic [15:0] ip_sum, l4_sum;
  logic        ip_sum_ok_q, l4_sum_ok_q;

  datagram_sums u_sums (
    .clk,
    .valid(s_axis_tvalid && state_q == StFrame && (index_q != WordPayload || more)),
    .index(index_q),
    .word, .udp(udp_q), .ip_sum, .l4_sum
  );

  always_ff @(posedge clk) begin
    ip_sum_ok_q <= ip_sum == '1;
    l4_sum_ok_q <= l4_sum == '1;
  end

  // ---- the verdict ------------------------------------------------------------------------------------
  // In this order: fields missing in a short frame are not evaluated.
  always_comb begin
    if (arp_q) now.kind = arp_form_q && arp_whole_q ? KindArp : KindMalformed;
    else if (!ipv4_q) now.kind = KindUnserved;
    else if (!length_ok_q || more || !plain_q) now.kind = KindMalformed;
    else if (!ip_sum_ok_q) now.kind = KindChecksum;
    else if (!ours_q || !mac_ours_q) now.kind = KindNotForUs;
    else if (!host_source_q || local_source_q || group_source_q) now.kind = KindMalformed;
    else if (fragment_q) now.kind = KindFragment;
    else if (!udp_q && !icmp_q) now.kind = KindUnserved;
    else if (!has_l4_q || (udp_q && !udp_length_ok_q)) now.kind = KindMalformed;
    else if (udp_q && unsummed_q) now.kind = KindUdp;
    else if (!l4_sum_ok_q) now.kind = KindChecksum;
    else if (udp_q) now.kind = KindUdp;
    else now.kind = echo_q ? KindEcho : KindUnserved;
  end

  assign now.done = state_q == StVerdict;

  always_ff @(posedge clk) begin
    parsed <= now;
    if (rst) {parsed.valid, parsed.done} <= '0;
  end
endmodule
