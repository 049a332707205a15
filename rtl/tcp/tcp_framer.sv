// SPDX-License-Identifier: SHL-2.1
// Makes one frame of one tcp_tx_hdr_t and its payload stream: Ethernet, IPv4, TCP, the options of a SYN, payload.
// Promise: both checksums are right if `payload_sum` is; a frame starts once its payload is offered, no gap inside it
// while the payload has none; header taken -> first beat offered, 4 cycles. The MAC pads
// frames below 60 bytes. RFC 9293 sections 3.1, 3.2; RFC 7323 section 2.2 (a SYN offers scale 0, so that the peer may
// scale).
//
//   | Ethernet 14 | IPv4 20 | TCP 20 | payload            |
//   | Ethernet 14 | IPv4 20 | TCP 20 | MSS 4, NOP, scale 3 |   of a SYN
//
// The headers end at 54 bytes, so the payload is shifted by the same number of lanes in each frame.
module tcp_framer
  import tcp_pkg::*;
#(
  parameter  int unsigned DATA_W = 64,
  localparam int unsigned Bytes  = DATA_W / 8
) (
  input  logic clk,
  input  logic rst,

  input  logic [47:0] local_mac,
  input  logic [31:0] local_ip,
  input  logic [7:0]  ttl,
  input  logic [7:0]  tos,

  input  tcp_tx_hdr_t hdr,
  input  logic        hdr_valid,
  output logic        hdr_ready,

  input  logic [DATA_W-1:0] s_axis_tdata,
  input  logic [Bytes-1:0]  s_axis_tkeep,
  input  logic              s_axis_tvalid,
  output logic              s_axis_tready,
  input  logic              s_axis_tlast,

  output logic [DATA_W-1:0] m_axis_tdata,
  output logic [Bytes-1:0]  m_axis_tkeep,
  output logic              m_axis_tvalid,
  input  logic              m_axis_tready,
  output logic              m_axis_tlast
);
  import ip_pkg::*;

  localparam int unsigned SynBytes    = 8;  // options of a SYN
  localparam int unsigned HeadBytes   = EthBytes + Ipv4Bytes + TcpBytes;
  localparam int unsigned PrefixBytes = HeadBytes + SynBytes;
  localparam int unsigned ByteW       = $clog2(Bytes);
  localparam int unsigned LengthW     = 14;  // of a frame
  localparam int unsigned BeatW       = LengthW - ByteW;
  localparam int unsigned PrefixBeats = (PrefixBytes + Bytes - 1) / Bytes;
  localparam int unsigned IndexW      = PrefixBeats > 1 ? $clog2(PrefixBeats) : 1;
  localparam int unsigned Lane        = HeadBytes % Bytes;  // of the first byte of payload

  if (DATA_W != 64 && DATA_W != 512) begin : gen_bad_width
    $fatal(1, "%m: DATA_W = %0d, must be 64 or 512", DATA_W);
  end

  // ---- 0: the header is taken down; its words are summed in two cycles ---------------------------------------------
  tcp_tx_hdr_t hdr_q;
  logic hdr_valid_q, hdr_done, summed_q, ready_q;
  logic [15:0] tcp_bytes, offset_flags;
  assign hdr_ready    = !hdr_valid_q || hdr_done;
  assign tcp_bytes    = 16'(hdr_q.segment.len) + 16'(TcpBytes) + (hdr_q.segment.flags.syn ? 16'(SynBytes) : 16'd0);
  assign offset_flags = {hdr_q.segment.flags.syn ? 4'd7 : 4'd5, 4'd0, hdr_q.segment.flags};

  function automatic logic [18:0] sum4(logic [15:0] a, logic [15:0] b, logic [15:0] c, logic [15:0] d);
    return 19'(a) + 19'(b) + 19'(c) + 19'(d);
  endfunction

  logic [3:0][18:0] part_q;
  logic [18:0] ip_part_q;
  logic [19:0] tcp_sum, ip_sum;
  logic [16:0] tcp_partial_q, ip_partial_q;  // the last carry goes in where they are sent
  ipv4_hdr_t ip_plain;
  assign ip_plain = '{
    version: 4'd4, ihl: 4'd5, tos: tos, total_length: tcp_bytes + 16'(Ipv4Bytes), id: '0, fragment: Ipv4DontFragment,
    ttl: ttl, protocol: ProtocolTcp, checksum: '0, src: local_ip, dst: hdr_q.peer.ip
  };
  // The addresses are in both sums.
  assign ip_sum = 20'(part_q[0]) + 20'(ip_part_q);
  assign tcp_sum = 20'(part_q[0]) + 20'(part_q[1]) + 20'(part_q[2]) + 20'(part_q[3]);

  always_ff @(posedge clk) begin
    if (hdr_ready) hdr_valid_q <= hdr_valid;
    if (hdr_ready) hdr_q <= hdr;
    summed_q  <= hdr_valid_q && !hdr_ready;
    ready_q   <= summed_q && !hdr_ready;
    part_q[0] <= sum4(local_ip[31:16], local_ip[15:0], hdr_q.peer.ip[31:16], hdr_q.peer.ip[15:0]);
    part_q[1] <= sum4(16'(ProtocolTcp), tcp_bytes, hdr_q.port, hdr_q.peer.port);
    part_q[2] <= sum4(hdr_q.segment.seq[31:16], hdr_q.segment.seq[15:0], hdr_q.segment.ack[31:16],
                      hdr_q.segment.ack[15:0]);
    // A SYN has options instead of payload.
    part_q[3] <= sum4(offset_flags, hdr_q.window, hdr_q.segment.flags.syn ? 16'(hdr_q.mss) : hdr_q.payload_sum,
                      hdr_q.segment.flags.syn ? 16'h0204 + 16'h0103 + 16'h0300 : '0);
    ip_part_q <= sum4({4'd4, 4'd5, tos}, ip_plain.total_length, Ipv4DontFragment, {ttl, ProtocolTcp});
    tcp_partial_q <= ones_complement_partial(tcp_sum);
    ip_partial_q  <= ones_complement_partial(ip_sum);
    if (rst) begin
      hdr_valid_q <= 1'b0;
      summed_q    <= 1'b0;
      ready_q     <= 1'b0;
    end
  end

  // ---- headers -----------------------------------------------------------------------------------------------------
  eth_hdr_t eth;
  ipv4_hdr_t ip;
  tcp_hdr_t tcp;
  logic [8*SynBytes-1:0] options;
  always_comb begin
    eth         = '{dst: hdr_q.peer.mac, src: local_mac, ethertype: EtherTypeIpv4};
    ip          = ip_plain;
    ip.checksum = ~ones_complement_rest(ip_partial_q);
    tcp         = '{
      sport: hdr_q.port, dport: hdr_q.peer.port, seq: hdr_q.segment.seq, ack: hdr_q.segment.ack,
      offset: offset_flags[15:12], reserved: '0, flags: hdr_q.segment.flags, window: hdr_q.window,
      checksum: ~ones_complement_rest(tcp_partial_q), urgent: '0
    };
    options = hdr_q.segment.flags.syn ? {16'h0204, 16'(hdr_q.mss), 32'h0103_0300} : '0;
  end

  logic [8*PrefixBytes-1:0] prefix_fields, prefix;
  logic [PrefixBeats-1:0][DATA_W-1:0] beats;  // first byte on the wire in the low lane
  assign prefix_fields = {eth, ip, tcp, options};
  for (genvar i = 0; i < PrefixBytes; i++) begin : gen_prefix
    assign prefix[8*(PrefixBytes-1-i)+:8] = prefix_fields[8*i+:8];
  end
  assign beats = (PrefixBeats * DATA_W)'(prefix);

  // ---- lengths: the rest of a frame; before its first beat, all of it -----------------------------------------------
  typedef struct packed {
    logic [IndexW-1:0] prefix;   // beats made of prefix alone
    logic [BeatW-1:0]  payload;  // beats to be taken
    logic [BeatW-1:0]  frame;    // beats after this one
    logic [ByteW-1:0]  tail;     // bytes of the last beat, 0 = all
  } left_t;

  logic [LengthW-1:0] frame_bytes;
  left_t whole, whole_q, left, left_q;
  assign frame_bytes = LengthW'(tcp_bytes) + LengthW'(EthBytes + Ipv4Bytes);
  assign whole       = '{
    prefix: IndexW'((hdr_q.segment.flags.syn ? PrefixBytes : HeadBytes) / Bytes),
    payload: BeatW'((LengthW'(hdr_q.segment.len) + LengthW'(Bytes - 1)) >> ByteW),
    frame: BeatW'((frame_bytes - 1'b1) >> ByteW),
    tail: frame_bytes[ByteW-1:0]
  };
  always_ff @(posedge clk) whole_q <= whole;  // before `ready_q`

  // ---- the frame being sent -----------------------------------------------------------------------------------------
  logic busy_q, headed_q;      // its first beat has left; the next one holds prefix
  logic [IndexW-1:0] index_q;  // beat of the prefix
  logic [DATA_W-1:0] carry_q;  // upper payload bytes that wait for the next beat
  logic beat_free, headed, has_payload, needs_payload, step, last;
  assign left          = busy_q ? left_q : whole_q;
  assign headed        = busy_q ? headed_q : ready_q;
  assign beat_free     = m_axis_tready || !m_axis_tvalid;
  assign has_payload   = left.payload != '0;
  assign needs_payload = has_payload && left.prefix == '0;
  assign step          = (busy_q || ready_q) && beat_free
                         && (s_axis_tvalid || !(needs_payload || (has_payload && !busy_q)));
  assign last          = left.frame == '0;
  assign hdr_done      = step && headed && left.prefix == '0;
  assign s_axis_tready = (busy_q || ready_q) && beat_free && needs_payload;

  always_ff @(posedge clk) begin
    if (step) begin
      busy_q       <= !last;
      headed_q     <= left.prefix != '0;
      index_q      <= last ? '0 : index_q + 1'b1;
      left_q       <= left;
      left_q.frame <= left.frame - 1'b1;
      if (left.prefix != '0) left_q.prefix <= left.prefix - 1'b1;
      else if (needs_payload) left_q.payload <= left.payload - 1'b1;
    end
    if (rst) begin
      busy_q  <= 1'b0;
      index_q <= '0;
    end
  end

  // ---- the payload always moves up by the same lanes; the overflow is carried ---------------------------------------
  logic [DATA_W-1:0] payload;
  logic [2*DATA_W-1:0] moved;
  always_comb begin
    payload = '0;
    if (needs_payload)
      for (int unsigned i = 0; i < Bytes; i++) payload[8*i+:8] = s_axis_tdata[8*i+:8] & {8{s_axis_tkeep[i]}};
    moved = (2*DATA_W)'(payload) << (8 * Lane);
  end

  always_ff @(posedge clk) begin
    if (step) begin
      carry_q      <= last ? '0 : moved[DATA_W+:DATA_W];
      m_axis_tdata <= (headed ? beats[index_q] : '0) | carry_q | moved[DATA_W-1:0];
      m_axis_tkeep <= last && left.tail != '0 ? ~({Bytes{1'b1}} << left.tail) : '1;
      m_axis_tlast <= last;
    end
    if (beat_free) m_axis_tvalid <= step;
    if (rst) begin
      m_axis_tvalid <= 1'b0;
      carry_q       <= '0;
    end
  end

  logic unused;  // whether there is a segment is hdr_valid
  assign unused = &{1'b0, hdr_q};

`ifndef SYNTHESIS
  // A valid beat waits unchanged until it is taken (AMBA AXI-Stream 2.2.1).
  a_hold : assert property (@(posedge clk) disable iff (rst)
    m_axis_tvalid && !m_axis_tready
    |=> m_axis_tvalid && $stable({m_axis_tdata, m_axis_tkeep, m_axis_tlast}));
  a_payload_length : assert property (@(posedge clk) disable iff (rst)
    s_axis_tvalid && s_axis_tready |-> s_axis_tlast == (left.payload == 1))
    else $error("%m: payload stream and length disagree, %0d beats left", left.payload);
  a_syn_is_bare : assert property (@(posedge clk) disable iff (rst)
    hdr_valid |-> !(hdr.segment.flags.syn && hdr.segment.len != '0));
`endif
endmodule
