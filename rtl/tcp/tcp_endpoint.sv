// SPDX-License-Identifier: SHL-2.1
// 1 to 64 TCP streams between messages and frames: rings on chip, the sender of the rules, the framer, the receive
// parser. A message goes into its stream's ring; the ring is the retransmission buffer (CMS-TCP section 3.1).
//
//   s_axis_msg -> tcp_ring_writer -> rings -> tcp_ring_reader -> tcp_framer -> m_axis
//                      |  ^ una                 ^ segments
//                      v  |                     |
//   commands -------> tcp_sender ---------------+
//                      ^
//   s_axis -> tcp_rx --+
module tcp_endpoint
  import tcp_pkg::*;
#(
  parameter  int unsigned DATA_W     = 64,
  parameter  int unsigned N_STREAMS  = 4,
  parameter  int unsigned RING_BYTES = 65536,  // of each stream
  parameter  int unsigned CLK_KHZ    = 156_250,
  localparam int unsigned Bytes      = DATA_W / 8
) (
  input  logic clk,
  input  logic rst,

  // settings
  input  logic [47:0]  local_mac,
  input  logic [31:0]  local_ip,
  input  logic [7:0]   ttl,
  input  logic [7:0]   tos,
  input  logic [15:0]  port_base,    // the local port of stream 0; stream n has port_base + n
  input  tcp_params_t  params,
  input  tcp_stream_t  peer_stream,  // a peer is written before its stream is opened
  input  tcp_peer_t    peer,
  input  logic         peer_wr,
  input  logic         tx_paused,

  // software opens and aborts
  input  tcp_command_t command,
  input  logic         command_valid,
  output logic         command_ready,

  // messages
  input  tcp_stream_t       s_msg_stream,
  input  logic [DATA_W-1:0] s_axis_msg_tdata,
  input  logic [Bytes-1:0]  s_axis_msg_tkeep,
  input  logic              s_axis_msg_tvalid,
  output logic              s_axis_msg_tready,
  input  logic              s_axis_msg_tlast,

  // frames from and to the MAC
  input  logic [DATA_W-1:0] s_axis_tdata,
  input  logic [Bytes-1:0]  s_axis_tkeep,
  input  logic              s_axis_tvalid,
  input  logic              s_axis_tlast,
  input  logic              s_axis_tuser,
  output logic [DATA_W-1:0] m_axis_tdata,
  output logic [Bytes-1:0]  m_axis_tkeep,
  output logic              m_axis_tvalid,
  input  logic              m_axis_tready,
  output logic              m_axis_tlast,

  // what has happened
  output tcp_done_t      done,
  output logic           done_valid,
  output logic           busy,
  output tcp_rx_counts_t rx_counts,
  output tcp_laid_t      laid,         // a message is in its ring, or dropped: its stream is closed
  output logic           laid_valid
);
  localparam int unsigned StreamW = N_STREAMS > 1 ? $clog2(N_STREAMS) : 1;
  localparam int unsigned Beats   = N_STREAMS * RING_BYTES / Bytes;
  localparam int unsigned AddrW   = $clog2(Beats);

  // ---- peers, one copy for each reader
  // -------------------------------------------------------------------------------
  logic rx_peer_rd, tx_peer_rd;
  tcp_stream_t rx_peer_stream, tx_peer_stream;
  tcp_peer_t rx_peer, tx_peer;
  logic unused;  // no stream is beyond N_STREAMS
  assign unused = &{1'b0, peer_stream, rx_peer_stream, tx_peer_stream};
  ram_sdp #(.W($bits(tcp_peer_t)), .DEPTH(N_STREAMS)) u_rx_peers (
    .clk, .wr_en(peer_wr), .wr_addr(StreamW'(peer_stream)), .wr_data(peer),
    .rd_en(rx_peer_rd), .rd_addr(StreamW'(rx_peer_stream)), .rd_data(rx_peer)
  );
  ram_sdp #(.W($bits(tcp_peer_t)), .DEPTH(N_STREAMS)) u_tx_peers (
    .clk, .wr_en(peer_wr), .wr_addr(StreamW'(peer_stream)), .wr_data(peer),
    .rd_en(tx_peer_rd), .rd_addr(StreamW'(tx_peer_stream)), .rd_data(tx_peer)
  );

  // ---- in
  // ------------------------------------------------------------------------------------------------------------
  tcp_arrival_t arrival;
  logic arrival_valid, arrival_ready;
  tcp_rx #(.DATA_W(DATA_W), .N_STREAMS(N_STREAMS)) u_rx (
    .clk, .rst, .local_mac, .local_ip, .port_base,
    .s_axis_tdata, .s_axis_tkeep, .s_axis_tvalid, .s_axis_tlast, .s_axis_tuser,
    .peer_rd    (rx_peer_rd),
    .peer_stream(rx_peer_stream),
    .peer       (rx_peer),
    .arrival, .arrival_valid, .arrival_ready,
    .counts     (rx_counts)
  );

  // ---- the rules
  // -----------------------------------------------------------------------------------------------------
  tcp_write_t write;
  logic write_valid, write_ready, send_room;
  tcp_sender #(.N_STREAMS(N_STREAMS), .CLK_KHZ(CLK_KHZ)) u_sender (
    .clk, .rst, .params, .busy, .tx_paused,
    .command, .command_valid, .command_ready,
    .write, .write_valid, .write_ready,
    .arrival, .arrival_valid, .arrival_ready,
    .send_room,
    .done, .done_valid
  );

  // ---- rings
  // ---------------------------------------------------------------------------------------------------------
  typedef struct packed {
    logic [15:0]       sum;  // of the stream's bytes before this beat
    logic [DATA_W-1:0] data;
  } beat_t;
  beat_t wr_beat, rd_beat;
  logic wr_en, rd_en;
  logic [AddrW-1:0] wr_addr, rd_addr;
  ram_sdp #(.W($bits(beat_t)), .DEPTH(Beats), .BLOCK(1'b1)) u_rings (
    .clk, .wr_en, .wr_addr, .wr_data(wr_beat), .rd_en, .rd_addr, .rd_data(rd_beat)
  );

  tcp_ring_writer #(.DATA_W(DATA_W), .N_STREAMS(N_STREAMS), .RING_BYTES(RING_BYTES)) u_writer (
    .clk, .rst,
    .s_stream     (s_msg_stream),
    .s_axis_tdata (s_axis_msg_tdata),
    .s_axis_tkeep (s_axis_msg_tkeep),
    .s_axis_tvalid(s_axis_msg_tvalid),
    .s_axis_tready(s_axis_msg_tready),
    .s_axis_tlast (s_axis_msg_tlast),
    .wr_en, .wr_addr,
    .wr_data      (wr_beat.data),
    .wr_sum       (wr_beat.sum),
    .write, .write_valid, .write_ready, .done, .done_valid, .laid, .laid_valid
  );

  // ---- out
  // -----------------------------------------------------------------------------------------------------------
  tcp_tx_hdr_t hdr;
  logic hdr_valid, hdr_ready;
  logic [DATA_W-1:0] payload_tdata;
  logic [Bytes-1:0] payload_tkeep;
  logic payload_tvalid, payload_tready, payload_tlast;
  logic [DATA_W-1:0] queued_tdata;
  logic [Bytes-1:0] queued_tkeep;
  logic queued_tvalid, queued_tready, queued_tlast;
  tcp_ring_reader #(.DATA_W(DATA_W), .N_STREAMS(N_STREAMS), .RING_BYTES(RING_BYTES)) u_reader (
    .clk, .rst, .params, .port_base,
    .s_stream     (done.stream),
    .s_segment    (done.actions.send),
    .s_valid      (done_valid && done.actions.send.valid),
    .room         (send_room),
    .rd_en, .rd_addr,
    .rd_data      (rd_beat.data),
    .rd_sum       (rd_beat.sum),
    .peer_rd      (tx_peer_rd),
    .peer_stream  (tx_peer_stream),
    .peer         (tx_peer),
    .hdr, .hdr_valid, .hdr_ready,
    .m_axis_tdata (payload_tdata),
    .m_axis_tkeep (payload_tkeep),
    .m_axis_tvalid(payload_tvalid),
    .m_axis_tready(payload_tready),
    .m_axis_tlast (payload_tlast)
  );

  // The reader is ahead by the time that the next segment's sum and header take.
  sync_fifo #(.W(DATA_W + Bytes + 1), .DEPTH(16)) u_ahead (
    .clk, .rst,
    .s_data ({payload_tlast, payload_tkeep, payload_tdata}),
    .s_valid(payload_tvalid),
    .s_ready(payload_tready),
    .m_data ({queued_tlast, queued_tkeep, queued_tdata}),
    .m_valid(queued_tvalid),
    .m_ready(queued_tready),
    .level  ()
  );

  tcp_framer #(.DATA_W(DATA_W)) u_framer (
    .clk, .rst, .local_mac, .local_ip, .ttl, .tos,
    .hdr, .hdr_valid, .hdr_ready,
    .s_axis_tdata (queued_tdata),
    .s_axis_tkeep (queued_tkeep),
    .s_axis_tvalid(queued_tvalid),
    .s_axis_tready(queued_tready),
    .s_axis_tlast (queued_tlast),
    .m_axis_tdata, .m_axis_tkeep, .m_axis_tvalid, .m_axis_tready, .m_axis_tlast
  );
endmodule
