// SPDX-License-Identifier: SHL-2.1
// Receives frames from the MAC, keeps the TCP segments of our streams' peers and the ICMP errors of routers
// about ours that were too long, and counts the rest.
// Promise: each frame without a MAC error (tuser at tlast) makes one pulse of `counts`; segments wait for their turn
// in a queue, and one for which there is no room counts as dropped, as if the network had lost it: never any
// backpressure. Options are read of SYNs alone; they wait for that in a queue of their own with a place for every
// stream, so all streams may be opened at once. An ICMP error counts only if it quotes the head of
// a segment of one of our streams; tcp_step checks that this segment is outstanding (RFC 5927 section 4.1). It counts as
// `other`, like all ICMP, and one that finds no room is forgotten: the next segment that is too long brings another.
// RFC 9293 sections 3.1 (header, checksum), 3.2 (options); RFC 791; RFC 1122 section 4.2.2.7 (checksum is checked);
// RFC 1191 section 4 (fragmentation needed, with the MTU of the next hop).
module tcp_rx
  import tcp_pkg::*;
#(
  parameter  int unsigned DATA_W    = 64,
  parameter  int unsigned N_STREAMS = 4,
  parameter  int unsigned DEPTH     = 16,  // segments that wait
  localparam int unsigned Bytes     = DATA_W / 8
) (
  input  logic clk,
  input  logic rst,

  input  logic [47:0] local_mac,
  input  logic [31:0] local_ip,
  input  logic [15:0] port_base,  // the local port of stream 0

  input  logic [DATA_W-1:0] s_axis_tdata,
  input  logic [Bytes-1:0]  s_axis_tkeep,
  input  logic              s_axis_tvalid,
  input  logic              s_axis_tlast,
  input  logic              s_axis_tuser,  // at tlast: the MAC found the frame bad

  // where the streams' peers are; the answer comes a cycle later
  output logic        peer_rd,
  output tcp_stream_t peer_stream,
  input  tcp_peer_t   peer,
  input  logic        peer_epoch,  // goes with what its peer sends

  output tcp_arrival_t   arrival,
  output logic           arrival_valid,
  input  logic           arrival_ready,
  output tcp_rx_counts_t counts
);
  import ip_pkg::*;

  localparam int unsigned HeadBytes = EthBytes + Ipv4Bytes + TcpBytes;
  localparam int unsigned HeadBeats = (HeadBytes + TcpOptionBytes + Bytes - 1) / Bytes;
  localparam int unsigned HeadLanes = HeadBeats * Bytes;
  localparam logic [15:0] IcmpTooLong = 16'h0304;  // destination unreachable, fragmentation needed
  localparam int unsigned Syns = N_STREAMS > 16 ? 2 ** $clog2(N_STREAMS) : 16;

  if (DATA_W != 64 && DATA_W != 512) begin : gen_bad_width
    $fatal(1, "%m: DATA_W = %0d, must be 64 or 512", DATA_W);
  end

  // ---- 0: the frame's first bytes and its length --------------------------------------------------------------------
  // verilator lint_off UNUSEDSIGNAL
  logic [HeadLanes-1:0][7:0] head_q;  // whole beats; bytes after the options are ignored
  // verilator lint_on UNUSEDSIGNAL
  logic [15:0] whole_q, length_q;
  logic end_q, error_q;
  always_ff @(posedge clk) begin
    if (s_axis_tvalid) begin
      for (int unsigned i = 0; i < HeadBeats; i++)
        if (whole_q == 16'(i * Bytes)) head_q[i*Bytes+:Bytes] <= s_axis_tdata;
      whole_q  <= s_axis_tlast ? '0 : whole_q + 16'(Bytes);
      length_q <= whole_q + 16'(penstock_pkg::keep_bytes(64'(s_axis_tkeep)));
      error_q  <= s_axis_tuser;
    end
    end_q <= s_axis_tvalid && s_axis_tlast;
    if (rst) begin
      whole_q <= '0;
      end_q   <= 1'b0;
    end
  end

  typedef struct packed {
    eth_hdr_t  eth;
    ipv4_hdr_t ip;
    tcp_hdr_t  tcp;
  } head_t;
  head_t head;
  logic [8*HeadBytes-1:0] head_bits;
  for (genvar i = 0; i < HeadBytes; i++) begin : gen_head
    assign head_bits[8*(HeadBytes-1-i)+:8] = head_q[i];
  end
  assign head = head_bits;

  // After the IP header: ICMP with the head of the datagram that was too long (RFC 1191 section 4).
  typedef struct packed {
    logic [15:0] kind;  // and code
    logic [15:0] checksum;
    logic [15:0] unused;
    logic [15:0] mtu;
    ipv4_hdr_t   ip;
    logic [15:0] sport;
    logic [15:0] dport;
    tcp_seq_t    seq;
  } returned_t;
  localparam int unsigned ReturnedBytes = $bits(returned_t) / 8;
  returned_t returned;
  logic [8*ReturnedBytes-1:0] returned_bits;
  for (genvar i = 0; i < ReturnedBytes; i++) begin : gen_returned
    assign returned_bits[8*(ReturnedBytes-1-i)+:8] = head_q[EthBytes+Ipv4Bytes+i];
  end
  assign returned = returned_bits;

  logic sum_done;
  logic [31:0] sum;
  tcp_sum #(.DATA_W(DATA_W)) u_sum (
    .clk, .rst, .s_axis_tdata, .s_axis_tvalid, .s_axis_tlast,
    .datagram_end(16'(EthBytes) + head.ip.total_length),
    .done        (sum_done),
    .sum
  );

  // ---- 1: every check by itself -------------------------------------------------------------------------------------
  typedef struct packed {
    logic        error;
    logic        has_eth;
    logic        mac_ours;
    logic        ipv4;
    logic        ip_whole;       // all bytes that the IP header announces are there
    logic        plain_ip;       // version 4, no options, no fragment
    logic        tcp;
    logic        ip_ours;
    logic        tcp_whole;      // its header, options included
    logic        has_port;       // of a stream
    logic        syn;
    logic        walks;          // it waits until its options are read
    logic        too_long;       // an ICMP error about a segment of ours
    logic [19:0] ip_sum;
    tcp_stream_t stream;
    logic [31:0] src_ip;
    logic [15:0] src_port;
    logic [17:0] beside;         // what goes into the checksum besides the words from the addresses on
  } parsed_t;

  // Fields that no check reads.
  typedef struct packed {
    logic [15:0] mss;            // of a router's word
    tcp_seq_t    seq;
    tcp_seq_t    ack;
    tcp_flags_t  flags;
    logic [15:0] window;
    logic [15:0] payload;
  } content_t;

  logic [15:0] tcp_bytes, tcp_header, port;
  logic [17:0] addresses;  // the sum of their words
  ipv4_hdr_t ip_rest;
  logic icmp;
  parsed_t parsed;
  content_t content;
  logic tcp_whole, has_syn, syn_room;
  assign tcp_bytes   = head.ip.total_length - 16'(Ipv4Bytes);
  assign tcp_header  = {10'd0, head.tcp.offset, 2'd0};
  assign icmp        = head.ip.protocol == ProtocolIcmp;
  assign port        = (icmp ? returned.sport : head.tcp.dport) - port_base;
  assign addresses   = 18'(head.ip.src[31:16]) + 18'(head.ip.src[15:0]) + 18'(head.ip.dst[31:16])
                       + 18'(head.ip.dst[15:0]);
  always_comb begin
    ip_rest     = head.ip;
    ip_rest.src = '0;
    ip_rest.dst = '0;
  end
  assign tcp_whole   = head.ip.total_length >= 16'(Ipv4Bytes + TcpBytes) && head.tcp.offset >= 4'd5
                       && tcp_bytes >= tcp_header;
  assign has_syn     = end_q && !error_q && tcp_whole && head.ip.protocol == ProtocolTcp && head.tcp.flags.syn;

  always_comb begin
    parsed = '{
      error:     error_q,
      has_eth:   length_q >= 16'(EthBytes),
      mac_ours:  head.eth.dst == local_mac,
      ipv4:      head.eth.ethertype == EtherTypeIpv4,
      ip_whole:  length_q >= 16'(EthBytes + Ipv4Bytes) && head.ip.total_length >= 16'(Ipv4Bytes)
                 && 17'(length_q) >= 17'(head.ip.total_length) + 17'(EthBytes),
      plain_ip:  head.ip.version == 4'd4 && head.ip.ihl == 4'd5 && head.ip.fragment[13:0] == '0,
      tcp:       head.ip.protocol == ProtocolTcp,
      ip_ours:   head.ip.dst == local_ip,
      tcp_whole: tcp_whole,
      has_port:  port < 16'(N_STREAMS),
      syn:       head.tcp.flags.syn,
      walks:     has_syn && syn_room,
      too_long:  icmp && returned.kind == IcmpTooLong && head.ip.total_length >= 16'(Ipv4Bytes + ReturnedBytes)
                 && returned.ip.version == 4'd4 && returned.ip.ihl == 4'd5 && returned.ip.protocol == ProtocolTcp
                 && returned.ip.src == local_ip,
      ip_sum:    ipv4_word_sum(ip_rest) + 20'(addresses),
      stream:    tcp_stream_t'(port),
      src_ip:    icmp ? returned.ip.dst : head.ip.src,
      src_port:  icmp ? returned.dport : head.tcp.sport,
      // ICMP has no pseudo header: the complements of the four words take them out of the sum again.
      beside:    icmp ? 18'h3FFFC - addresses : 18'(ProtocolTcp) + 18'(tcp_bytes)
    };
    content = '{
      mss:       returned.mtu < 16'(Ipv4Bytes + TcpBytes) ? '0 : returned.mtu - 16'(Ipv4Bytes + TcpBytes),
      seq:       head.tcp.seq,
      ack:       icmp ? returned.seq : head.tcp.ack,
      flags:     head.tcp.flags,
      window:    head.tcp.window,
      payload:   tcp_bytes - tcp_header
    };
  end

  // ---- 2 to 5: the stream's peer, while the sum is made -------------------------------------------------------------
  parsed_t [5:2] parsed_q;
  logic [5:2] end_at_q;
  logic peer_ours_q, ip_sum_right_q, peer_ours5_q, ip_sum_right5_q, epoch_q, epoch5_q;
  logic [15:0] beside_q, rest5_q, rest_less_one5_q;  // rest: what the words have to sum up to
  assign peer_rd     = end_at_q[2];
  assign peer_stream = parsed_q[2].has_port ? parsed_q[2].stream : '0;
  always_ff @(posedge clk) begin
    parsed_q         <= {parsed_q[4:2], parsed};  // what is not of a frame's end has no verdict either
    end_at_q         <= {end_at_q[4:2], end_q};
    peer_ours_q      <= parsed_q[3].has_port && peer.ip == parsed_q[3].src_ip && peer.port == parsed_q[3].src_port;
    ip_sum_right_q   <= ones_complement_fold(parsed_q[3].ip_sum) == 16'hffff;
    peer_ours5_q     <= peer_ours_q;
    epoch_q          <= peer_epoch;
    epoch5_q         <= epoch_q;
    ip_sum_right5_q  <= ip_sum_right_q;
    beside_q         <= ones_complement_fold(20'(parsed_q[3].beside));
    rest5_q          <= ~beside_q;
    rest_less_one5_q <= ~beside_q - 1'b1;
    if (rst) end_at_q <= '0;
  end

  // Contents pass the same time in a block of RAM.
  content_t last_content;
  logic [1:0] cycle_q;
  always_ff @(posedge clk) cycle_q <= rst ? '0 : cycle_q + 2'd1;
  ram_sdp #(.W($bits(content_t)), .DEPTH(4), .BLOCK(1'b1)) u_contents (
    .clk, .wr_en(1'b1), .wr_addr(cycle_q), .wr_data(content),
    .rd_en(1'b1), .rd_addr(cycle_q + 2'd1), .rd_data(last_content)  // written three cycles ago
  );

  // ---- 5: the verdict ----------------------------------------------------------------------------------------------
  // The pseudo header's addresses are in the sum; its protocol and length are not. The words are 0xffff together if one
  // part is the other's complement, or each is 0xffff, which counts as zero. A carry of the words' halves is not added,
  // which would be one more chain: they are compared with one less then.
  parsed_t last;
  logic [16:0] words;
  logic words_right, words_ones, sum_right, is_tcp, for_us, well_formed, good, is_icmp_error;
  tcp_arrival_t plain, syn;
  logic plain_valid, syn_valid, syn_ready, push, room;
  logic unused;
  assign unused      = &{1'b0, head, returned, last, peer};
  assign last        = parsed_q[5];
  assign words       = 17'(sum[15:0]) + 17'(sum[31:16]);
  assign words_right = words[16] ? words[15:0] == rest_less_one5_q : words[15:0] == rest5_q;
  assign words_ones  = words[16] ? words[15:0] == 16'hfffe : words[15:0] == 16'hffff;
  assign sum_right   = words_right || (words_ones && rest5_q == '0);
  assign is_tcp      = last.ipv4 && last.has_eth && last.ip_whole && last.tcp;
  assign for_us      = last.mac_ours && last.ip_ours;
  assign well_formed = last.plain_ip && ip_sum_right5_q && last.tcp_whole;
  assign good        = sum_done && !last.error && is_tcp && for_us && well_formed && sum_right && peer_ours5_q;
  assign is_icmp_error        = sum_done && !last.error && last.ipv4 && last.has_eth && last.ip_whole && for_us && last.plain_ip
                       && ip_sum_right5_q && last.too_long && sum_right && peer_ours5_q;
  assign plain_valid = (good && !last.syn) || is_icmp_error;

  always_comb begin
    plain = '0;
    plain.stream      = last.stream;
    plain.epoch       = epoch5_q;
    plain.what.kind   = is_icmp_error ? TcpPathMtu : TcpSegment;
    plain.what.seq    = last_content.seq;
    plain.what.ack    = last_content.ack;
    plain.what.flags  = last_content.flags;
    plain.what.window = last_content.window;
    plain.what.len    = last_content.payload;
    if (is_icmp_error) plain.what.options.mss = last_content.mss;
  end

  // ---- SYNs, which wait until their options are read ----------------------------------------------------------------
  tcp_syn_queue #(.DEPTH(Syns)) u_syns (
    .clk, .rst,
    .push         (has_syn),
    .bytes        (head_q[HeadBytes+:TcpOptionBytes]),
    .count        (6'(tcp_header - 16'(TcpBytes))),
    .room         (syn_room),
    .checked      (sum_done && last.walks),
    .good,
    .syn          (plain),
    .arrival      (syn),
    .arrival_valid(syn_valid),
    .arrival_ready(syn_ready)
  );

  // ---- the queue ----------------------------------------------------------------------------------------------------
  // A SYN takes a cycle that has no verdict on another frame.
  assign syn_ready = room && !sum_done;
  assign push      = plain_valid || (syn_valid && syn_ready);
  block_fifo #(.W($bits(tcp_arrival_t)), .DEPTH(DEPTH)) u_queue (
    .clk, .rst,
    .s_data (plain_valid ? plain : syn),
    .s_valid(push),
    .s_ready(room),
    .m_data (arrival),
    .m_valid(arrival_valid),
    .m_ready(arrival_ready),
    .level  ()
  );

  logic seen;
  assign seen = sum_done && !last.error;
  always_ff @(posedge clk) begin
    counts <= '{
      segment:      push && room && !is_icmp_error,
      dropped:      (push && !room && !is_icmp_error) || (good && last.syn && !last.walks),
      bad_checksum: seen && is_tcp && for_us && well_formed && !sum_right,
      unknown:      seen && is_tcp && for_us && well_formed && sum_right && !peer_ours5_q,
      malformed:    seen && last.ipv4 && last.has_eth && last.mac_ours
                    && (!last.ip_whole || (last.tcp && last.ip_ours && !well_formed)),
      not_for_us:   seen && (last.ipv4 && last.has_eth)
                    && (!last.mac_ours || (last.ip_whole && last.tcp && !last.ip_ours)),
      other:        seen && (!last.has_eth || !last.ipv4 || (last.mac_ours && last.ip_whole && !last.tcp))
    };
    if (rst) counts <= '0;
  end

`ifndef SYNTHESIS
  a_in_step : assert property (@(posedge clk) disable iff (rst) sum_done == end_at_q[5])
    else $error("%m: parser and sum are out of step");
`endif
endmodule
