// SPDX-License-Identifier: SHL-2.1
// Makes one RoCEv2 frame of one tx_hdr_t and its payload stream: Ethernet, IPv4, UDP, BTH, RETH and
// immediate, payload, padding to four bytes, and four zero bytes where icrc_append puts the ICRC.
// Promise: a frame starts once its payload is offered, no gap inside it while the payload has none, frames back
// to back; header taken -> first beat offered, 2 cycles (IBTA volume 1, 9.2; annex A17.3).
//
//   | Ethernet 14 | IPv4, UDP, BTH, RETH, immediate: fours | payload | padding, room for the ICRC |
//
// The header is stored once and read beat by beat. It ends at 2 modulo 4, so the payload's shifter has
// DATA_W/32 positions instead of DATA_W/8.
module roce_framer
  import penstock_pkg::*;
#(
  parameter int unsigned DATA_W = 64
) (
  input  logic clk,
  input  logic rst,

  input  logic [47:0] local_mac,
  input  logic [31:0] local_ip,
  input  logic [7:0]  ttl,

  input  tx_hdr_t hdr,
  input  logic    hdr_valid,
  output logic    hdr_ready,

  input  logic [DATA_W-1:0]   s_axis_tdata,
  input  logic [DATA_W/8-1:0] s_axis_tkeep,
  input  logic                s_axis_tvalid,
  output logic                s_axis_tready,
  input  logic                s_axis_tlast,

  output logic [DATA_W-1:0]   m_axis_tdata,
  output logic [DATA_W/8-1:0] m_axis_tkeep,
  output logic                m_axis_tvalid,
  input  logic                m_axis_tready,
  output logic                m_axis_tlast
);
  import ip_pkg::*;
  import roce_pkg::*;

  localparam int unsigned LengthW     = PayloadLenW + 1;                       // of a frame
  localparam int unsigned ExtBytes    = RethBytes + ImmBytes;
  localparam int unsigned PrefixBytes = BaseHdrBytes + ExtBytes;
  localparam int unsigned Bytes       = DATA_W / 8;
  localparam int unsigned ByteW       = $clog2(Bytes);
  localparam int unsigned BeatW       = LengthW - ByteW;
  localparam int unsigned PrefixBeats = (PrefixBytes + Bytes - 1) / Bytes;
  localparam int unsigned IndexW      = $clog2(PrefixBeats);

  if (DATA_W != 64 && DATA_W != 512) begin : gen_bad_width
    $fatal(1, "%m: DATA_W = %0d, must be 64 or 512", DATA_W);
  end

  // ---- lengths, taken down with the header ----------------------------------------------------
  // The rest of a frame: before its first beat, all of it.
  typedef struct packed {
    logic [IndexW-1:0] prefix;   // beats made of prefix alone
    logic [BeatW-1:0]  payload;  // beats to be taken
    logic [BeatW-1:0]  frame;    // beats after this one
    logic [ByteW-1:0]  tail;     // bytes of the last beat, 0 = all
    logic [ByteW-3:0]  shift;    // payload starts in lane 2 + 4 * shift
  } left_t;

  logic [1:0]         pad_count;
  logic [5:0]         prefix_words;  // after the Ethernet header
  logic [8:0]         prefix_bytes;
  logic [LengthW-1:0] ip_length, frame_bytes;
  left_t              whole;

  assign pad_count    = 2'd0 - hdr.payload_len[1:0];
  assign prefix_words = 6'((BaseHdrBytes - EthBytes) / 4)
                      + (hdr.has_reth ? 6'(RethBytes / 4) : 6'd0)
                      + (hdr.has_imm ? 6'(ImmBytes / 4) : 6'd0);
  assign prefix_bytes = 9'd14 + {1'b0, prefix_words, 2'b00};
  assign ip_length    = LengthW'({prefix_words, 2'b00}) + LengthW'(hdr.payload_len)
                      + LengthW'(pad_count) + LengthW'(IcrcBytes);
  assign frame_bytes  = ip_length + LengthW'(EthBytes);
  assign whole        = '{
    prefix: IndexW'(prefix_bytes >> ByteW),
    payload: BeatW'((LengthW'(hdr.payload_len) + LengthW'(Bytes - 1)) >> ByteW),
    frame: BeatW'((frame_bytes - 1'b1) >> ByteW),
    tail: frame_bytes[ByteW-1:0],
    shift: prefix_bytes[ByteW-1:2]
  };

  tx_hdr_t            hdr_q;
  logic               hdr_valid_q, hdr_done;
  logic [1:0]         pad_count_q;
  logic [LengthW-1:0] ip_length_q;
  logic [19:0]        ip_sum_q;   // of the IP header but its length
  left_t              whole_q;

  assign hdr_ready = !hdr_valid_q || hdr_done;

  always_ff @(posedge clk) begin
    if (hdr_ready) hdr_valid_q <= hdr_valid;
    if (hdr_ready && hdr_valid) begin
      hdr_q       <= hdr;
      pad_count_q <= pad_count;
      ip_length_q <= ip_length;
      ip_sum_q    <= ipv4_word_sum(ip_header(hdr.tos, '0, hdr.dst_ip, '0));
      whole_q     <= whole;
    end
    if (rst) hdr_valid_q <= 1'b0;
  end

  // ---- headers --------------------------------------------------------------------------------
  function automatic ipv4_hdr_t ip_header(logic [7:0] tos, logic [15:0] length, logic [31:0] dst, logic [15:0] checksum);
    return '{
      version: 4'd4, ihl: 4'd5, tos: tos, total_length: length, id: '0, fragment: Ipv4DontFragment, ttl: ttl,
      protocol: ProtocolUdp, checksum: checksum, src: local_ip, dst: dst
    };
  endfunction

  // A narrow frame reaches its checksum some beats after its first.
  logic [15:0] checksum, checksum_now;
  assign checksum_now = ~ones_complement_fold(ip_sum_q + 20'(ip_length_q));
  if (DATA_W == 64) begin : gen_later
    always_ff @(posedge clk) checksum <= checksum_now;
  end else begin : gen_now
    assign checksum = checksum_now;
  end

  roce_base_hdr_t base;
  always_comb begin
    base.eth = '{dst: hdr_q.dst_mac, src: local_mac, ethertype: EtherTypeIpv4};
    base.ip  = ip_header(hdr_q.tos, 16'(ip_length_q), hdr_q.dst_ip, checksum);
    base.udp = '{
      sport: hdr_q.udp_sport, dport: UdpPort, length: 16'(ip_length_q) - 16'(Ipv4Bytes), checksum: '0
    };
    base.bth = '{
      opcode: hdr_q.opcode, solicited: hdr_q.solicited, mig_req: 1'b0, pad_count: pad_count_q,
      tver: '0, pkey: DefaultPkey, fecn: 1'b0, becn: 1'b0, reserved6: '0, dest_qpn: hdr_q.dest_qpn,
      ack_req: hdr_q.ack_req, reserved7: '0, psn: hdr_q.psn
    };
  end

  // The extended headers close up: the immediate follows the RETH or, without one, the BTH.
  reth_t                 reth;
  logic [31:0]           imm;
  logic [8*ExtBytes-1:0] extended;
  assign reth     = '{va: hdr_q.va, rkey: hdr_q.rkey, dma_len: hdr_q.dma_len};
  assign imm      = hdr_q.has_imm ? hdr_q.imm : '0;
  assign extended = hdr_q.has_reth ? {reth, imm} : {imm, {8*RethBytes{1'b0}}};

  logic [8*PrefixBytes-1:0]             prefix;
  logic [PrefixBeats-1:0][DATA_W-1:0]   beats;  // first byte on the wire in the low lane
  // Byte by byte: a streaming operator of this width is simulated bit by bit, once for each field that is used.
  logic [8*PrefixBytes-1:0] prefix_fields;
  assign prefix_fields = {base, extended};
  for (genvar i = 0; i < PrefixBytes; i++) begin : gen_prefix
    assign prefix[8*(PrefixBytes-1-i)+:8] = prefix_fields[8*i+:8];
  end
  assign beats  = (PrefixBeats * DATA_W)'(prefix);

  // ---- the frame being sent -------------------------------------------------------------------
  logic              busy_q;           // its first beat has left
  logic              headed_q;         // and the next one holds prefix
  logic [IndexW-1:0] index_q;          // beat of the prefix
  left_t             left_q, left;
  logic [DATA_W-1:0] carry_q;          // upper payload bytes that wait for the next beat

  logic beat_free, headed, has_payload, needs_payload, step, last;
  assign left          = busy_q ? left_q : whole_q;
  assign headed        = busy_q ? headed_q : hdr_valid_q;
  assign beat_free     = m_axis_tready || !m_axis_tvalid;
  assign has_payload   = left.payload != 0;
  assign needs_payload = has_payload && left.prefix == 0;
  assign step          = (busy_q || hdr_valid_q) && beat_free
                      && (s_axis_tvalid || !(needs_payload || (has_payload && !busy_q)));
  assign last          = left.frame == 0;
  assign hdr_done      = step && headed && left.prefix == 0;
  assign s_axis_tready = (busy_q || hdr_valid_q) && beat_free && needs_payload;

  always_ff @(posedge clk) begin
    if (step) begin
      busy_q       <= !last;
      headed_q     <= left.prefix != 0;
      index_q      <= last ? '0 : index_q + 1'b1;
      left_q       <= left;
      left_q.frame <= left.frame - 1'b1;
      if (left.prefix != 0) left_q.prefix <= left.prefix - 1'b1;
      else if (needs_payload) left_q.payload <= left.payload - 1'b1;
    end
    if (rst) begin
      busy_q  <= 1'b0;
      index_q <= '0;
    end
  end

  // ---- the payload moves up by 2 + 4 * shift lanes; the overflow is carried --------------------
  logic [DATA_W-1:0]   payload;
  logic [2*DATA_W-1:0] moved;
  always_comb begin
    payload = '0;
    if (needs_payload) begin
      for (int i = 0; i < int'(Bytes); i++) payload[8*i+:8] = s_axis_tdata[8*i+:8] & {8{s_axis_tkeep[i]}};
    end
    moved = (2*DATA_W)'({payload, 16'h0}) << {left.shift, 5'b0};
  end

  always_ff @(posedge clk) begin
    if (step) carry_q <= last ? '0 : moved[DATA_W+:DATA_W];
    if (rst) carry_q <= '0;
  end

  // ---- the beat offered -----------------------------------------------------------------------
  always_ff @(posedge clk) begin
    if (step) begin
      m_axis_tdata <= (headed ? beats[index_q] : '0) | carry_q | moved[DATA_W-1:0];
      m_axis_tkeep <= last && left.tail != 0 ? ~({Bytes{1'b1}} << left.tail) : {Bytes{1'b1}};
      m_axis_tlast <= last;
    end
    if (beat_free) m_axis_tvalid <= step;
    if (rst) m_axis_tvalid <= 1'b0;
  end

  wire unused = &{1'b0, hdr_q.payload_len};  // its lengths are in whole_q

`ifndef SYNTHESIS
  // A valid beat waits unchanged until it is taken (AMBA AXI-Stream 2.2.1).
  a_hold : assert property (@(posedge clk) disable iff (rst)
    m_axis_tvalid && !m_axis_tready
    |=> m_axis_tvalid && $stable({m_axis_tdata, m_axis_tkeep, m_axis_tlast}));
  // payload_len determines the end of the stream.
  a_payload_length : assert property (@(posedge clk) disable iff (rst)
    s_axis_tvalid && s_axis_tready |-> s_axis_tlast == (left.payload == 1))
    else $error("%m: payload stream and payload_len disagree, %0d beats left", left.payload);
  a_payload_fits : assert property (@(posedge clk) disable iff (rst)
    hdr_valid |-> hdr.payload_len <= PayloadLenW'(4096))
    else $error("%m: payload_len = %0d, the largest MTU is 4096", hdr.payload_len);
`endif
endmodule
