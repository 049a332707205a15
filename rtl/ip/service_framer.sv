// SPDX-License-Identifier: SHL-2.1
// Makes the frames of N services one stream: in turn, each whole, padded to the Ethernet minimum.
// Promise: a frame's bytes are its request's head and then its own payload stream; requests of one
// service keep their order (RFC 894; RFC 791 and RFC 768 checksums; IEEE 802.3 3.2.8 padding).
//
//   | head 42 bytes: five words and two lanes | payload from lane 2 on | zeros up to 60 bytes |
//
// Checksums are added up one 16-bit word a cycle before the head goes, so that they need one adder each.
module service_framer
  import services_pkg::*;
#(
  parameter int unsigned N = 4
) (
  input  logic clk,
  input  logic rst,

  input  logic [47:0] local_mac,
  input  logic [31:0] local_ip,
  input  logic [7:0]  ttl,

  input  tx_req_t [N-1:0]      req,
  input  logic   [N-1:0]       req_valid,
  output logic   [N-1:0]       req_ready,
  input  logic   [N-1:0][63:0] s_axis_tdata,
  input  logic   [N-1:0][7:0]  s_axis_tkeep,
  input  logic   [N-1:0]       s_axis_tvalid,
  output logic   [N-1:0]       s_axis_tready,
  input  logic   [N-1:0]       s_axis_tlast,

  output logic [63:0] m_axis_tdata,
  output logic [7:0]  m_axis_tkeep,
  output logic        m_axis_tvalid,
  input  logic        m_axis_tready,
  output logic        m_axis_tlast,

  output logic stat_frame
);
  import ip_pkg::*;

  localparam int unsigned MinFrame  = 60;
  localparam int unsigned HeadWords = HeadBytes / 8;  // whole ones
  localparam int unsigned IndexW    = N > 1 ? $clog2(N) : 1;

  typedef enum logic [1:0] {
    StIdle,
    StSum,
    StHead,
    StBody
  } state_e;

  state_e            state_q;
  logic [3:0]        step_q;  // of the sum; of the head
  logic [IndexW-1:0] chosen_q;
  tx_req_t           req_q;
  logic              any, beat;
  // verilator lint_off UNUSEDSIGNAL
  logic [7:0]        choice;
  // verilator lint_on UNUSEDSIGNAL

  arbiter_rr #(.N(N)) u_arbiter (
    .clk, .rst,
    .req  (req_valid),
    .take (state_q == StIdle),
    .valid(any),
    .index(choice)
  );

  // ---- sums: of the IPv4 header, and of UDP with its pseudo header over that of its payload -------------
  localparam logic [3:0] LastStep = 4'd12;  // the last carry

  // verilator lint_off UNUSEDSIGNAL
  udp_l4_t     ports;
  // verilator lint_on UNUSEDSIGNAL
  logic [15:0] l4_length, addend, ip_checksum, udp_checksum;
  logic [16:0] ip_sum_q, udp_sum_q;  // the carry comes back in with the next word
  logic        of_ip, of_udp;
  logic [7:0]  protocol;

  assign ports     = req_q.l4;
  assign protocol  = req_q.kind == SendUdp ? ProtocolUdp : ProtocolIcmp;
  assign l4_length = 16'(req_q.payload_bytes) + 16'(UdpBytes);

  always_comb begin
    unique case (step_q)
      4'd0:         {of_ip, of_udp, addend} = {2'b11, local_ip[31:16]};
      4'd1:         {of_ip, of_udp, addend} = {2'b11, local_ip[15:0]};
      4'd2:         {of_ip, of_udp, addend} = {2'b11, req_q.ip[31:16]};
      4'd3:         {of_ip, of_udp, addend} = {2'b11, req_q.ip[15:0]};
      4'd4:         {of_ip, of_udp, addend} = {2'b10, ttl, protocol};
      4'd5:         {of_ip, of_udp, addend} = {2'b10, 8'h45, req_q.tos};
      4'd6:         {of_ip, of_udp, addend} = {2'b10, l4_length + 16'(Ipv4Bytes)};
      4'd7:         {of_ip, of_udp, addend} = {2'b01, 16'(ProtocolUdp)};
      4'd8:         {of_ip, of_udp, addend} = {2'b01, ports.sport};
      4'd9:         {of_ip, of_udp, addend} = {2'b01, ports.dport};
      4'd10, 4'd11: {of_ip, of_udp, addend} = {2'b01, l4_length};  // of the pseudo header, of the header
      default:      {of_ip, of_udp, addend} = {2'b11, 16'h0};
    endcase
  end

  // One adder: the carry of the word before goes in where a carry goes in.
  function automatic logic [16:0] with_carry(logic [16:0] sum, logic [15:0] word);
    return 17'(({1'b0, sum[15:0], sum[16]} + {1'b0, word, sum[16]}) >> 1);
  endfunction

  assign ip_checksum  = ~ip_sum_q[15:0];
  assign udp_checksum = udp_sum_q[15:0] == '1 ? 16'hFFFF : ~udp_sum_q[15:0];  // 0 would mean that there is none

  always_ff @(posedge clk) begin
    if (state_q == StIdle) begin
      ip_sum_q  <= 17'(Ipv4DontFragment);
      udp_sum_q <= 17'(req[choice[IndexW-1:0]].l4[15:0]);
    end else if (state_q == StSum) begin
      if (of_ip) ip_sum_q <= with_carry(ip_sum_q, addend);
      if (of_udp) udp_sum_q <= with_carry(udp_sum_q, addend);
    end
  end

  // ---- the head -------------------------------------------------------------------------------------------
  eth_hdr_t     eth;
  ipv4_hdr_t    ip;
  arp_t         arp;
  udp_hdr_t     udp;
  arp_l4_t      asked;
  logic [8*HeadBytes-1:0] head_fields, head;
  logic [63:0]  head_word;
  logic [13:0]  payload_left_q;  // bytes of it still to be taken
  logic [13:0]  left_q;          // bytes of the frame from this beat on, behind the head's whole words
  logic [15:0]  carry_q;         // of the word before, for the first two lanes

  assign asked = req_q.l4;
  assign eth   = '{dst: req_q.dst_mac, src: local_mac, ethertype: req_q.kind == SendArp ? EtherTypeArp : EtherTypeIpv4};
  assign ip    = '{version: 4'd4, ihl: 4'd5, tos: req_q.tos, total_length: l4_length + 16'(Ipv4Bytes), id: '0,
                   fragment: Ipv4DontFragment, ttl: ttl, protocol: protocol, checksum: ip_checksum,
                   src: local_ip, dst: req_q.ip};
  assign udp   = '{sport: ports.sport, dport: ports.dport, length: l4_length, checksum: udp_checksum};

  always_comb begin
    arp = '{oper: asked.oper, sha: local_mac, spa: local_ip, tha: asked.tha, tpa: req_q.ip, default: '0};
    {arp.htype, arp.ptype, arp.hlen, arp.plen} = ArpRequest[63:16];
  end

  always_comb begin
    if (req_q.kind == SendArp) head_fields = {eth, arp};
    else head_fields = {eth, ip, req_q.kind == SendUdp ? udp : req_q.l4};
  end

  // Byte by byte: a streaming operator of this width is simulated bit by bit, once for each field that is used.
  for (genvar i = 0; i < HeadBytes; i++) begin : g_head
    assign head[8*(HeadBytes-1-i)+:8] = head_fields[8*i+:8];
  end

  always_comb begin
    head_word = '0;
    for (int unsigned i = 0; i < HeadWords; i++) if (step_q == 4'(i)) head_word = head[64*i+:64];
  end

  // ---- the payload, moved up by two lanes -----------------------------------------------------------------
  logic [63:0] payload;
  logic [7:0]  payload_tkeep;
  logic        has_payload;

  assign has_payload   = payload_left_q != '0;
  assign payload_tkeep = s_axis_tkeep[chosen_q];

  always_comb begin
    payload = '0;
    for (int i = 0; i < 8; i++)
      if (has_payload && payload_tkeep[i]) payload[8*i+:8] = s_axis_tdata[chosen_q][8*i+:8];
  end

  assign m_axis_tvalid = state_q == StHead || (state_q == StBody && (!has_payload || s_axis_tvalid[chosen_q]));
  assign m_axis_tdata  = state_q == StHead ? head_word : {payload[47:0], carry_q};
  assign m_axis_tlast  = state_q == StBody && left_q <= 14'd8;
  assign m_axis_tkeep  = m_axis_tlast ? lanes(left_q[2:0]) : '1;
  assign beat          = m_axis_tvalid && m_axis_tready;

  always_comb begin
    req_ready     = '0;
    s_axis_tready = '0;
    if (state_q == StIdle && any) req_ready[choice[IndexW-1:0]] = 1'b1;
    if (state_q == StBody && has_payload) s_axis_tready[chosen_q] = m_axis_tready;
  end

  always_ff @(posedge clk) begin
    case (state_q)
      StIdle: begin
        step_q   <= '0;
        chosen_q <= choice[IndexW-1:0];
        req_q    <= req[choice[IndexW-1:0]];
        if (any) state_q <= StSum;
      end
      StSum: begin
        step_q <= step_q + 1'b1;
        if (step_q == LastStep) begin
          step_q  <= '0;
          state_q <= StHead;
        end
        payload_left_q <= req_q.payload_bytes;
        left_q <= req_q.payload_bytes < 14'(MinFrame - HeadBytes) ? 14'(MinFrame - 8 * HeadWords)
                  : req_q.payload_bytes + 14'(HeadBytes - 8 * HeadWords);
      end
      StHead:
        if (beat) begin
          step_q  <= step_q + 1'b1;
          carry_q <= head[64*HeadWords+:16];
          if (step_q == 4'(HeadWords - 1)) state_q <= StBody;
        end
      default:
        if (beat) begin
          carry_q        <= payload[63:48];
          payload_left_q <= payload_left_q <= 14'd8 ? '0 : payload_left_q - 14'd8;
          left_q         <= left_q - 14'd8;
          if (m_axis_tlast) state_q <= StIdle;
        end
    endcase
    stat_frame <= beat && m_axis_tlast && !rst;
    if (rst) state_q <= StIdle;
  end

`ifndef SYNTHESIS
  a_payload_length : assert property (@(posedge clk) disable iff (rst)
    |(s_axis_tvalid & s_axis_tready) |-> s_axis_tlast[chosen_q] == (payload_left_q <= 14'd8))
    else $error("%m: payload stream and payload_bytes disagree, %0d bytes left", payload_left_q);
  a_hold : assert property (@(posedge clk) disable iff (rst)
    m_axis_tvalid && !m_axis_tready
    |=> m_axis_tvalid && $stable({m_axis_tdata, m_axis_tkeep, m_axis_tlast}));
`endif

  wire unused = &{1'b0, s_axis_tlast};
endmodule
