// SPDX-License-Identifier: SHL-2.1
// Makes the frames of the services, one at a time, in turn: head, payload, zeros up to the Ethernet minimum, and
// then the fields that depend on the whole frame. Promise: a frame's bytes are those of its sender; every length and
// checksum is right, since it is computed from the words that were sent (RFC 894, RFC 791, RFC 768, RFC 792; IEEE 802.3
// 3.2.8 padding).
//
//   head: 21 words, without lengths and checksums -> payload, padding -> seal: lengths, sums, the end
//
// A sender shows the word at `index`, see services_pkg; this module adds our addresses and the fields common to all
// frames.
module service_framer
  import services_pkg::*;
(
  input  logic clk,
  input  logic rst,

  input  logic [47:0] local_mac,
  input  logic [31:0] local_ip,
  input  logic [7:0]  ttl,

  // senders, numbered as sender_e
  input  logic  [Senders-1:0] req,      // a frame is to be sent
  output logic  [Senders-1:0] granted,  // it is begun, a pulse
  output logic  [Senders-1:0] sent,     // and done, a pulse
  output word_index_t         index,
  input  sent_t [Senders-1:0] word,
  output logic  [Senders-1:0] take,     // the sender's word is taken if it is valid

  // to service_tx
  input  logic        room,
  output logic        wr_valid,
  output logic [12:0] wr_index,
  output logic [15:0] wr_data,
  output logic        wr_body,
  output logic        wr_last,
  output logic        wr_odd,
  output logic        wr_commit,

  output logic stat_frame
);
  import ip_pkg::*;

  localparam logic [12:0] LastOfMinimum = 13'd29;  // of 60 bytes

  typedef enum logic [1:0] {
    StIdle,
    StHead,
    StBody,
    StSeal
  } state_e;

  // Data written after the payload, in this order.
  typedef enum logic [2:0] {
    SealUdpLength,
    SealPseudoLength,  // for the sum only
    SealLength,
    SealSum,           // takes it in
    SealCarry,         // the sums' last
    SealIpSum,
    SealL4Sum,
    SealCommit
  } seal_e;

  state_e      state_q;
  seal_e       seal_q;
  sender_e     sender_q;
  logic [12:0] index_q;    // of the word; in the end of the last one
  logic [13:0] length_q;   // of the bytes after the IP header, then of the datagram
  logic        more_q;     // of the payload
  logic        any, step, udp, is_arp;
  logic        free;       // a frame may begin
  logic        ends, commit;
  sent_t       shown;
  // verilator lint_off UNUSEDSIGNAL
  logic [7:0]  choice;
  // verilator lint_on UNUSEDSIGNAL

  arbiter_rr #(.N(Senders)) u_arbiter (
    .clk, .rst,
    .req  (req),
    .take (state_q == StIdle && free),
    .valid(any),
    .index(choice)
  );

  assign free   = room && !wr_commit;  // which `room` does not count yet
  assign is_arp = sender_q == SendArp;
  assign udp    = sender_q == SendIpbus || sender_q == SendCm;
  assign shown  = word[sender_q];
  assign step   = state_q == StHead || (state_q == StBody && (!more_q || shown.valid));

  always_comb begin
    {granted, take, sent} = '0;
    if (state_q == StIdle && free && any) granted[choice[1:0]] = 1'b1;
    if (state_q == StHead || (state_q == StBody && more_q)) take[sender_q] = 1'b1;
    if (commit) sent[sender_q] = 1'b1;
  end

  // ---- the words ------------------------------------------------------------------------------------------
  logic [15:0] head, value, ip_sum, l4_sum;
  logic [12:0] value_at;
  logic        writes, sums;

  // Own addresses lie at one place of an IPv4 head and at another of ARP.
  typedef enum logic [1:0] {
    FromSender,
    FromLocal,
    FromHere
  } from_e;

  localparam logic [2:0] LocalMac = 3'd0;
  localparam logic [2:0] LocalIp  = 3'd3;

  logic [7:0][15:0] local_words;
  logic [2:0]       local_at;
  from_e            from;
  logic [15:0]      here;

  assign local_words = {48'h0, local_ip[15:0], local_ip[31:16], local_mac[15:0], local_mac[31:16], local_mac[47:32]};
  assign head        = from == FromSender ? shown.data : from == FromLocal ? local_words[local_at] : here;

  always_comb begin
    from     = FromSender;
    local_at = LocalMac;
    here     = '0;
    unique case (index)
      WordSrc:          from = FromLocal;
      WordSrc + 5'd1:   {from, local_at} = {FromLocal, LocalMac + 3'd1};
      WordSrc + 5'd2:   {from, local_at} = {FromLocal, LocalMac + 3'd2};
      WordEthertype:    {from, here} = {FromHere, is_arp ? EtherTypeArp : EtherTypeIpv4};
      WordVersion:      {from, here} = {udp || is_arp ? FromHere : FromSender, is_arp ? ArpHtype : Ipv4Version};
      WordLength:       {from, here} = {FromHere, is_arp ? ArpPtype : 16'h0};
      WordLengths:      {from, here} = {FromHere, is_arp ? ArpLengths : 16'h0};
      WordFragment:     {from, here} = {is_arp ? FromSender : FromHere, Ipv4DontFragment};
      WordProtocol:     {from, here} = {is_arp ? FromLocal : FromHere, ttl, udp ? ProtocolUdp : ProtocolIcmp};
      WordIpSum:        {from, local_at} = {is_arp ? FromLocal : FromHere, LocalMac + 3'd1};
      WordIpSrc:        {from, local_at} = {FromLocal, is_arp ? LocalMac + 3'd2 : LocalIp};
      WordIpSrc + 5'd1: {from, local_at} = {FromLocal, is_arp ? LocalIp : LocalIp + 3'd1};
      WordIpDst:        {from, local_at} = {is_arp ? FromLocal : FromSender, LocalIp + 3'd1};
      WordIcmpKind, WordIcmpSum: if (!udp && !is_arp) from = FromHere;
      WordUdpLength, WordUdpSum: if (udp) from = FromHere;
      default: ;
    endcase
  end

  always_comb begin
    value    = head;
    writes   = step;
    value_at = index_q;
    if (state_q == StBody && !more_q) value = '0;
    if (state_q == StSeal) begin
      value = 16'(length_q);
      case (seal_q)
        SealUdpLength, SealPseudoLength: value_at = 13'(WordUdpLength);
        SealLength:                      value_at = 13'(WordLength);
        SealIpSum: begin
          value_at = 13'(WordIpSum);
          value    = ~ip_sum;
        end
        SealL4Sum: begin
          value_at = udp ? 13'(WordUdpSum) : 13'(WordIcmpSum);
          value    = l4_sum == '1 ? l4_sum : ~l4_sum;  // 0 would mean that UDP has none
        end
        default: ;
      endcase
      writes = !is_arp && seal_q != SealSum && seal_q != SealCarry && seal_q != SealCommit
            && (udp || (seal_q != SealUdpLength && seal_q != SealPseudoLength));
    end
  end

  assign ends   = state_q == StBody && index_q >= LastOfMinimum && (!more_q || shown.last);
  assign commit = state_q == StSeal && seal_q == SealCommit;

  always_ff @(posedge clk) begin
    wr_valid  <= writes && !rst;
    wr_index  <= value_at;
    wr_data   <= swap_bytes(value);
    wr_body   <= state_q == StBody;
    wr_last   <= ends;
    wr_odd    <= more_q && shown.odd && index_q != LastOfMinimum;  // an odd payload that is padded
    wr_commit <= commit && !rst;
    sums      <= writes && (state_q != StSeal || (seal_q != SealIpSum && seal_q != SealL4Sum));
  end

  datagram_sums u_sums (
    .clk,
    .valid(sums),
    .index(wr_body ? WordPayload : wr_index[4:0]),
    .word (swap_bytes(wr_data)),
    .udp, .ip_sum, .l4_sum
  );

  // ---- the frame's way --------------------------------------------------------------------------------------
  logic [13:0] added;  // to the length

  always_comb begin
    added = '0;
    if (state_q == StBody && more_q && shown.valid) added = shown.odd ? 14'd1 : 14'd2;
    if (state_q == StSeal && seal_q == SealPseudoLength) added = 14'(Ipv4Bytes);
  end

  always_ff @(posedge clk) begin
    length_q <= length_q + added;
    case (state_q)
      StIdle: begin
        sender_q <= sender_e'(choice[1:0]);
        index_q  <= '0;
        index    <= '0;
        length_q <= 14'(UdpBytes);
        seal_q   <= SealUdpLength;
        if (any && free) state_q <= StHead;
      end
      StHead: begin
        index_q <= index_q + 1'b1;
        index   <= index + 1'b1;  // up to WordPayload
        more_q  <= udp || (!is_arp && !shown.last);
        if (index_q[4:0] == WordPayload - 5'd1) state_q <= StBody;
      end
      StBody:
        if (step) begin
          if (shown.last) more_q <= 1'b0;
          if (ends) state_q <= StSeal;
          else index_q <= index_q + 1'b1;
        end
      default: begin
        seal_q <= seal_e'(seal_q + 1'b1);
        if (commit) state_q <= StIdle;
      end
    endcase
    stat_frame <= commit && !rst;
    if (rst) state_q <= StIdle;
  end
endmodule
