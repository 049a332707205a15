// SPDX-License-Identifier: SHL-2.1
// Turns payload streams into UDP datagrams with their checksum, which stands in front of the payload:
// so a datagram is stored whole while it is summed, and leaves when its header can be written.
// Promise: order is kept, nothing is lost; a sum of 0 is sent as FFFF (RFC 768).
module udp_tx
  import services_pkg::*;
#(
  parameter int unsigned STORE_BYTES = 4096,  // more than the longest payload
  parameter int unsigned DATAGRAMS   = 4      // that wait
) (
  input  logic clk,
  input  logic rst,

  input  logic [31:0] local_ip,
  input  logic [7:0]  ttl,

  input  udp_peer_t   peer,        // with every beat of the datagram
  input  logic [15:0] sport,
  input  logic [63:0] s_axis_tdata,
  input  logic [7:0]  s_axis_tkeep,
  input  logic        s_axis_tvalid,
  output logic        s_axis_tready,
  input  logic        s_axis_tlast,

  // to service_framer
  output tx_req_t     req,
  output logic        req_valid,
  input  logic        req_ready,
  output logic [63:0] m_axis_tdata,
  output logic [7:0]  m_axis_tkeep,
  output logic        m_axis_tvalid,
  input  logic        m_axis_tready,
  output logic        m_axis_tlast
);
  import ip_pkg::*;

  typedef struct packed {
    udp_peer_t   peer;
    logic [15:0] sport;
    logic [13:0] payload_bytes;
  } datagram_t;

  typedef struct packed {
    logic        last;
    logic [2:0]  tail;
    logic [63:0] data;
  } word_t;

  // ---- store and sum ----------------------------------------------------------------------------------
  logic      full, take, ended_q, room, dgram_valid, dgram_ready;
  word_t     wr_word, rd_word;
  datagram_t wr_dgram_q, dgram;
  logic [31:0] wr_sum_q, dgram_sum;  // of the payload
  logic [63:0] summed;
  logic        first_q;

  assign s_axis_tready = !full && !ended_q && room;
  assign take          = s_axis_tvalid && s_axis_tready;
  assign wr_word       = '{last: s_axis_tlast, tail: 3'($countones(s_axis_tkeep)), data: s_axis_tdata};

  always_comb begin
    for (int i = 0; i < 8; i++) summed[8*i+:8] = s_axis_tdata[8*i+:8] & {8{s_axis_tkeep[i]}};
  end

  always_ff @(posedge clk) begin
    if (take) begin
      wr_dgram_q.peer          <= peer;
      wr_dgram_q.sport         <= sport;
      wr_dgram_q.payload_bytes <= (first_q ? '0 : wr_dgram_q.payload_bytes) + 14'($countones(s_axis_tkeep));
      wr_sum_q                 <= (first_q ? '0 : wr_sum_q) + 32'(beat_sum(summed));
      first_q                  <= s_axis_tlast;
    end
    ended_q <= take && s_axis_tlast;
    if (rst) begin
      first_q <= 1'b1;
      ended_q <= 1'b0;
    end
  end

  frame_store #(
    .W    ($bits(word_t)),
    .DEPTH(STORE_BYTES / 8)
  ) u_store (
    .clk, .rst,
    .wr_data (wr_word),
    .wr_valid(take),
    .commit  (ended_q),
    .drop    (1'b0),
    .full    (full),
    .lost    (),
    .level   (),
    .rd_data (rd_word),
    .rd_valid(m_axis_tvalid),
    .rd_ready(m_axis_tready)
  );

  sync_fifo #(
    .W    ($bits(datagram_t) + 32),
    .DEPTH(DATAGRAMS)
  ) u_datagrams (
    .clk, .rst,
    .s_data ({wr_dgram_q, wr_sum_q}),
    .s_valid(ended_q),
    .s_ready(room),
    .m_data ({dgram, dgram_sum}),
    .m_valid(dgram_valid),
    .m_ready(dgram_ready),
    .level  ()
  );

  // ---- headers: the sum in one step, everything else in the next ----------------------------------------
  datagram_t   dgram_q;
  logic        dgram_valid_q, step;
  logic [15:0] length, checksum;
  logic [31:0] sum_q;
  udp_hdr_t    udp;

  assign step         = req_ready || !req_valid;
  assign dgram_ready  = step || !dgram_valid_q;
  assign length       = 16'(dgram.payload_bytes) + 16'(UdpBytes);
  assign checksum     = ~fold32(sum_q);
  assign udp          = '{
    sport: dgram_q.sport, dport: dgram_q.peer.port, length: 16'(dgram_q.payload_bytes) + 16'(UdpBytes),
    checksum: checksum == '0 ? 16'hFFFF : checksum
  };
  assign m_axis_tdata = rd_word.data;
  assign m_axis_tlast = rd_word.last;
  assign m_axis_tkeep = rd_word.last ? lanes(rd_word.tail) : '1;

  always_ff @(posedge clk) begin
    if (dgram_ready) begin
      dgram_valid_q <= dgram_valid;
      dgram_q       <= dgram;
      // pseudo header and UDP header; the length stands in both
      sum_q <= dgram_sum + 32'(local_ip[31:16]) + 32'(local_ip[15:0]) + 32'(dgram.peer.ip[31:16])
             + 32'(dgram.peer.ip[15:0]) + 32'(ProtocolUdp) + 32'(length) + 32'(length)
             + 32'(dgram.sport) + 32'(dgram.peer.port);
    end
    if (step) begin
      req_valid <= dgram_valid_q;
      req <= '{
        dst_mac: dgram_q.peer.mac, ethertype: EtherTypeIpv4, payload_bytes: dgram_q.payload_bytes,
        body: ipv4_body(local_ip, dgram_q.peer.ip, ttl, 8'h00, ProtocolUdp, 16'(dgram_q.payload_bytes), udp)
      };
    end
    if (rst) {dgram_valid_q, req_valid} <= '0;
  end

`ifndef SYNTHESIS
  a_fits : assert property (@(posedge clk) disable iff (rst)
    s_axis_tvalid |-> 32'(wr_dgram_q.payload_bytes) < STORE_BYTES)
    else $error("%m: a payload of %0d bytes does not fit the store", wr_dgram_q.payload_bytes);
`endif
endmodule
