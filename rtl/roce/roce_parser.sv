// SPDX-License-Identifier: SHL-2.1
// Parses the headers of each received frame and classifies it.
// Promise: one `done` for each tlast, 5 cycles after it, with the verdict and, for RoCEv2, the
// fields; the ICRC is not checked here. Frames may follow each other without a gap, or pause anywhere
// (RFC 791, RFC 1071; IBTA volume 1, 9.6 packet header validation, annex A17).
module roce_parser
  import penstock_pkg::*;
  import roce_pkg::*;
#(
  parameter int unsigned DATA_W = 64,
  localparam int unsigned Bytes = DATA_W / 8
) (
  input  logic clk,
  input  logic rst,

  input  logic [47:0] local_mac,
  input  logic [31:0] local_ip,

  input  logic [DATA_W-1:0] s_axis_tdata,
  input  logic [Bytes-1:0]  s_axis_tkeep,
  input  logic              s_axis_tvalid,
  input  logic              s_axis_tlast,
  input  logic              s_axis_tuser,  // at tlast: the MAC found the frame bad

  output logic     done,
  output verdict_e verdict,
  output rx_roce_t rx
);
  import ip_pkg::*;

  localparam int unsigned HeadBits  = 512;  // headers up to the AETH take 58 bytes
  localparam int unsigned HeadBeats = HeadBits / DATA_W;
  localparam int unsigned LengthW   = 16;

  // ---- 0: the frame's first 64 bytes and its length -----------------------------------------------
  // verilator lint_off UNUSEDSIGNAL
  logic [HeadBits-1:0] head_q;             // whole beats; the last six bytes are of no interest
  // verilator lint_on UNUSEDSIGNAL
  logic [LengthW-1:0]  whole_q, length_q;  // bytes before this beat; of the whole frame
  logic                end_q, error_q;

  always_ff @(posedge clk) begin
    if (s_axis_tvalid) begin
      for (int i = 0; i < int'(HeadBeats); i++)
        if (whole_q == LengthW'(i * int'(Bytes))) head_q[i*int'(DATA_W)+:DATA_W] <= s_axis_tdata;
      whole_q  <= s_axis_tlast ? '0 : whole_q + LengthW'(Bytes);
      length_q <= whole_q + LengthW'(keep_bytes(64'(s_axis_tkeep)));
      error_q  <= s_axis_tuser;
    end
    end_q <= s_axis_tvalid && s_axis_tlast;
    if (rst) begin
      whole_q <= '0;
      end_q   <= 1'b0;
    end
  end

  // ---- 1: every check by itself --------------------------------------------------------------------
  typedef struct packed {
    roce_base_hdr_t base;
    aeth_t          aeth;
  } head_t;

  typedef struct packed {
    logic        bad_fcs;
    logic        has_eth;
    logic        mac_ours;
    logic        mac_group;
    logic        ipv4;
    logic        ip_whole;      // all bytes that the IP header announces are there
    logic        version_4;
    logic        options;
    logic        udp;
    logic        fragment;
    logic        udp_whole;
    logic        roce_port;
    logic        ip_ours;
    logic        lengths_agree;
    logic        bth_whole;     // with the extended header that the opcode requires
    logic        tver_0;
    logic        pkey_ours;
    logic [19:0] checksum;      // sum of the header's words, carries not yet folded in
  } checks_t;

  localparam int unsigned RocePacketMin = Ipv4Bytes + UdpBytes + BthBytes + IcrcBytes;

  head_t    head;
  checks_t  checks_q;
  rx_roce_t rx_now;
  logic [3:1] end_at_q;

  // Byte by byte: a streaming operator of this width is simulated bit by bit, once for each field that is used.
  localparam int unsigned HeadOctets = $bits(head_t) / 8;
  logic [8*HeadOctets-1:0] head_bytes;
  for (genvar i = 0; i < HeadOctets; i++) begin : gen_head
    assign head_bytes[8*(HeadOctets-1-i)+:8] = head_q[8*i+:8];
  end
  assign head = head_bytes;

  function automatic logic [15:0] shortest_packet(logic [7:0] opcode);
    case (opcode)
      OpcodeAck: return 16'(RocePacketMin + AethBytes);
      OpcodeCnp: return 16'(RocePacketMin + CnpReservedBytes);
      default:   return 16'(RocePacketMin);
    endcase
  endfunction

  always_ff @(posedge clk) begin
    end_at_q <= {end_at_q[2:1], end_q};
    if (end_q) begin
      checks_q <= '{
        bad_fcs:       error_q,
        has_eth:       length_q >= LengthW'(EthBytes),
        mac_ours:      head.base.eth.dst == local_mac,
        mac_group:     head.base.eth.dst[40],
        ipv4:          head.base.eth.ethertype == EtherTypeIpv4,
        ip_whole:      length_q >= LengthW'(EthBytes + Ipv4Bytes)
                       && 17'(length_q) >= 17'(head.base.ip.total_length) + 17'(EthBytes)
                       && head.base.ip.total_length >= 16'(Ipv4Bytes),
        version_4:     head.base.ip.version == 4'd4,
        options:       head.base.ip.ihl != 4'd5,
        udp:           head.base.ip.protocol == ProtocolUdp,
        fragment:      head.base.ip.fragment[13:0] != '0,
        udp_whole:     head.base.ip.total_length >= 16'(Ipv4Bytes + UdpBytes),
        roce_port:     head.base.udp.dport == UdpPort,
        ip_ours:       head.base.ip.dst == local_ip,
        lengths_agree: head.base.udp.length == head.base.ip.total_length - 16'(Ipv4Bytes)
                       && head.base.ip.total_length[1:0] == '0,
        bth_whole:     head.base.ip.total_length >= shortest_packet(head.base.bth.opcode),
        tver_0:        head.base.bth.tver == '0,
        pkey_ours:     head.base.bth.pkey[14:0] == DefaultPkey[14:0],  // full and limited members
        checksum:      ipv4_word_sum(head.base.ip)
      };
    end
    if (rst) end_at_q <= '0;
  end

  assign rx_now = '{
    src_ip: head.base.ip.src, opcode: head.base.bth.opcode, becn: head.base.bth.becn,
    dest_qpn: head.base.bth.dest_qpn, psn: head.base.bth.psn,
    syndrome: head.aeth.syndrome, msn: head.aeth.msn
  };

  // A narrow frame that has all these headers takes longer than its verdict, so they need not be handed on.
  if (DATA_W == 64) begin : gen_fields
    always_ff @(posedge clk) if (end_q && length_q >= LengthW'(int'(EthBytes) + int'(RocePacketMin))) rx <= rx_now;
  end else begin : gen_fields
    rx_roce_t rx_q [1:3];
    always_ff @(posedge clk) begin
      if (end_q) rx_q[1] <= rx_now;
      if (end_at_q[1]) rx_q[2] <= rx_q[1];
      if (end_at_q[2]) rx_q[3] <= rx_q[2];
      if (end_at_q[3]) rx <= rx_q[3];
    end
  end

  // ---- 2: the verdict; 3, 4: in step with the ICRC -------------------------------------------------
  function automatic verdict_e verdict_of(checks_t c);
    if (c.bad_fcs) return VerdictBadFrame;
    if (!c.has_eth) return VerdictMalformed;
    if (!c.mac_ours && !c.mac_group) return VerdictNotForUs;
    if (!c.ipv4) return VerdictOther;
    if (!c.ip_whole || !c.version_4) return VerdictMalformed;
    if (c.options) return c.udp ? VerdictMalformed : VerdictOther;
    if (ones_complement_fold(c.checksum) != 16'hFFFF) return VerdictMalformed;
    if (!c.udp) return VerdictOther;
    if (c.fragment || !c.udp_whole) return VerdictMalformed;
    if (!c.roce_port) return VerdictOther;
    if (!c.ip_ours || !c.mac_ours) return VerdictNotForUs;
    if (!c.lengths_agree || !c.bth_whole || !c.tver_0) return VerdictMalformed;
    return c.pkey_ours ? VerdictRoce : VerdictBadPkey;
  endfunction

  verdict_e verdict_q [2:3];
  always_ff @(posedge clk) begin
    if (end_at_q[1]) verdict_q[2] <= verdict_of(checks_q);
    if (end_at_q[2]) verdict_q[3] <= verdict_q[2];
    done <= end_at_q[3];
    if (end_at_q[3]) verdict <= verdict_q[3];
    if (rst) done <= 1'b0;
  end
endmodule
