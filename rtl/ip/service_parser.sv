// SPDX-License-Identifier: SHL-2.1
// Reads one frame after the other: says what it is, verifies every checksum, hands on its payload.
// Promise: one `done` for each frame, behind its payload, with kind and head; payload bytes start in
// lane 0 and number what the IP header says. Words may come of a frame whose kind turns out bad, so a
// service settles what it stored at `done` (RFC 791, RFC 1071, RFC 768, RFC 792, RFC 826; RFC 1122 3.3.6).
//
//   | Ethernet 14 | ARP 28               |          payload k is bytes 42 + 8k: the last six lanes
//   | Ethernet 14 | IPv4 20 | L4 head 8  | payload  of one beat and the first two of the next
module service_parser
  import services_pkg::*;
(
  input  logic clk,
  input  logic rst,

  input  logic [47:0] local_mac,
  input  logic [31:0] local_ip,

  input  logic [63:0] s_axis_tdata,
  input  logic [7:0]  s_axis_tkeep,
  input  logic        s_axis_tvalid,
  output logic        s_axis_tready,
  input  logic        s_axis_tlast,

  output logic [63:0] payload_data,
  output logic        payload_valid,
  output logic        payload_last,
  output logic [2:0]  payload_tail,   // bytes of the last word, 0 = all

  output logic        done,
  output kind_e       kind,
  output ip_head_t    head,           // stable while `done`
  output logic [13:0] payload_bytes
);
  import ip_pkg::*;

  localparam int unsigned HeadBeats = (HeadBytes + 7) / 8;
  localparam int unsigned L4Offset  = EthBytes + Ipv4Bytes;

  typedef enum logic [1:0] {
    StFrame,  // takes beats
    StFlush,  // what the last beat left of the payload
    StJudge
  } state_e;

  state_e state_q;
  logic   take, flush;
  assign s_axis_tready = state_q == StFrame;
  assign take          = s_axis_tvalid && s_axis_tready;
  assign flush         = state_q == StFlush;

  // ---- the head, and the length of the frame ------------------------------------------------------
  // verilator lint_off UNUSEDSIGNAL
  logic [64*HeadBeats-1:0] head_q;
  // verilator lint_on UNUSEDSIGNAL
  logic [13:0] offset_q;  // bytes in front of this beat; held at its maximum
  logic [13:0] length_q;  // of the frame

  // Byte by byte: a streaming operator of this width is simulated bit by bit, once for each field that is used.
  logic [8*HeadBytes-1:0] head_bytes;
  for (genvar i = 0; i < HeadBytes; i++) begin : g_head
    assign head_bytes[8*(HeadBytes-1-i)+:8] = head_q[8*i+:8];
  end
  assign head = head_bytes;

  always_ff @(posedge clk) begin
    if (take) begin
      for (int i = 0; i < int'(HeadBeats); i++)
        if (offset_q == 14'(8 * i)) head_q[64*i+:64] <= s_axis_tdata;
      length_q <= offset_q + 14'($countones(s_axis_tkeep));
      if (s_axis_tlast) offset_q <= '0;
      else if (offset_q < 14'h3FF0) offset_q <= offset_q + 14'd8;
    end
    case (state_q)
      StFrame: if (take && s_axis_tlast) state_q <= StFlush;
      StFlush: state_q <= StJudge;
      default: state_q <= StFrame;
    endcase
    if (rst) begin
      state_q  <= StFrame;
      offset_q <= '0;
    end
  end

  // ---- the payload ----------------------------------------------------------------------------------
  // Lengths of an ARP packet or of a header that lies come out as nonsense; the verdict takes care of it.
  logic [15:0] ip_length;
  logic [13:0] left_q;      // payload bytes not yet handed on
  logic [47:0] carry_q;     // the upper lanes of the beat before
  logic        at_payload;

  assign ip_length  = head.ip.total_length;
  assign at_payload = take ? offset_q >= 14'(8 * HeadBeats) : flush && length_q > 14'(HeadBytes);

  always_ff @(posedge clk) begin
    if (take) carry_q <= s_axis_tdata[63:16];
    if (take && offset_q == 14'(8 * (HeadBeats - 1))) begin
      left_q        <= ip_length >= 16'(Ipv4Bytes + UdpBytes) ? 14'(ip_length - 16'(Ipv4Bytes + UdpBytes)) : '0;
      payload_bytes <= ip_length >= 16'(Ipv4Bytes + UdpBytes) ? 14'(ip_length - 16'(Ipv4Bytes + UdpBytes)) : '0;
    end else if (payload_valid) begin
      left_q <= payload_last ? '0 : left_q - 14'd8;
    end
    if (rst) left_q <= '0;
  end

  assign payload_data  = {flush ? 16'h0 : s_axis_tdata[15:0], carry_q};
  assign payload_valid = at_payload && left_q != '0;
  assign payload_last  = left_q <= 14'd8;
  assign payload_tail  = left_q[2:0];

  // ---- the sum over everything behind the IP header -----------------------------------------------
  logic [13:0] datagram_end;   // behind the last byte of the IP datagram
  logic [13:0] here;           // bytes of the datagram in this beat and behind
  logic [63:0] summed;
  logic [17:0] beat_total;
  logic [31:0] sum_q;
  logic [19:0] ip_sum_q;       // of the IP header, which is in beats 1 to 4

  assign datagram_end = 14'(ip_length) + 14'(EthBytes);
  assign here         = offset_q < datagram_end ? datagram_end - offset_q : '0;

  always_comb begin
    summed = '0;
    for (int i = 0; i < 8; i++)
      if (offset_q == 14'd8 ? i >= 6 : offset_q < 14'(L4Offset - 2) || (14'(i) < here
          && (offset_q != 14'(L4Offset - 2) || i >= 2))) summed[8*i+:8] = s_axis_tdata[8*i+:8];
    beat_total = beat_sum(summed);
  end

  always_ff @(posedge clk) begin
    if (take) begin
      if (offset_q == '0) {sum_q, ip_sum_q} <= '0;
      else if (offset_q < 14'(L4Offset - 2)) ip_sum_q <= ip_sum_q + 20'(beat_total);
      else sum_q <= sum_q + 32'(beat_total);
      if (offset_q == 14'(L4Offset - 2)) ip_sum_q <= ip_sum_q + 20'({s_axis_tdata[7:0], s_axis_tdata[15:8]});
    end
  end

  // ---- 1: every check by itself ---------------------------------------------------------------------
  typedef struct packed {
    logic        arp;
    logic        arp_ok;
    logic        ipv4;
    logic        plain;        // version 4, no options
    logic        whole;        // all that the IP header announces is there
    logic [19:0] ip_sum;
    logic        fragment;
    logic        ours;
    logic        source_ok;    // an address that a host can have
    logic        has_l4;
    logic        udp;
    logic        udp_lengths;
    logic        udp_unsummed;
    logic        icmp;
    logic        echo;
    logic [15:0] l4_sum;
    logic [31:0] udp_sum;      // with the pseudo header, carries not yet folded in
  } checks_t;

  checks_t checks_q;
  // verilator lint_off UNUSEDSIGNAL
  udp_hdr_t     udp;  // of each view of the head a few fields are looked at
  icmp_t        icmp;
  arp_t         arp;
  logic [335:0] head_bits;
  // verilator lint_on UNUSEDSIGNAL
  assign udp       = head.l4;
  assign icmp      = head.l4;
  assign head_bits = head;
  assign arp       = head_bits[223:0];

  logic [18:0] pseudo_sum;  // of the pseudo header
  assign pseudo_sum = 19'(head.ip.src[31:16]) + 19'(head.ip.src[15:0]) + 19'(head.ip.dst[31:16])
                    + 19'(head.ip.dst[15:0]) + 19'(udp.length) + 19'(ProtocolUdp);

  // Not this network, not loopback, not multicast or reserved (RFC 1122 3.2.1.3).
  function automatic logic host_address(logic [7:0] first_octet);
    return first_octet != 8'd0 && first_octet != 8'd127 && first_octet < 8'hE0;
  endfunction

  always_ff @(posedge clk) begin
    if (flush) begin
      checks_q <= '{
        arp:          head.eth.ethertype == EtherTypeArp,
        arp_ok:       length_q >= 14'(HeadBytes)
                      && {arp.htype, arp.ptype, arp.hlen, arp.plen} == ArpRequest[63:16],
        ipv4:         head.eth.ethertype == EtherTypeIpv4,
        plain:        head.ip.version == 4'd4 && head.ip.ihl == 4'd5,
        whole:        ip_length >= 16'(Ipv4Bytes) && ip_length <= 16'(JumboBytes - EthBytes)
                      && length_q >= datagram_end,
        ip_sum:       ip_sum_q,
        fragment:     head.ip.fragment[13:0] != '0,
        ours:         head.ip.dst == local_ip && head.eth.dst == local_mac,
        source_ok:    host_address(head.ip.src[31:24]) && head.ip.src != local_ip && !head.eth.src[40],
        has_l4:       ip_length >= 16'(Ipv4Bytes + UdpBytes),
        udp:          head.ip.protocol == ProtocolUdp,
        udp_lengths:  udp.length == ip_length - 16'(Ipv4Bytes),
        udp_unsummed: udp.checksum == '0,
        icmp:         head.ip.protocol == ProtocolIcmp,
        echo:         icmp.kind == IcmpEchoRequest && icmp.code == '0,
        l4_sum:       fold32(sum_q),
        udp_sum:      sum_q + 32'(pseudo_sum)
      };
    end
  end

  // ---- 2: the verdict ---------------------------------------------------------------------------------
  function automatic kind_e judge(checks_t c);
    if (c.arp) return c.arp_ok ? KindArp : KindMalformed;
    if (!c.ipv4) return KindUnserved;
    if (!c.plain || !c.whole) return KindMalformed;
    if (ones_complement_fold(c.ip_sum) != 16'hFFFF) return KindChecksum;
    if (!c.ours) return KindNotForUs;
    if (!c.source_ok) return KindMalformed;
    if (c.fragment) return KindFragment;
    if (!c.udp && !c.icmp) return KindUnserved;
    if (!c.has_l4 || (c.udp && !c.udp_lengths)) return KindMalformed;
    if (c.udp) return c.udp_unsummed || fold32(c.udp_sum) == 16'hFFFF ? KindUdp : KindChecksum;
    if (c.l4_sum != 16'hFFFF) return KindChecksum;
    return c.echo ? KindEcho : KindUnserved;
  endfunction

  assign done = state_q == StJudge;
  assign kind = judge(checks_q);
endmodule
