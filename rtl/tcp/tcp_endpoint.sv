// SPDX-License-Identifier: SHL-2.1
// 1 to 64 TCP streams between messages and frames: rings on chip or in an AXI4 memory, the sender of the rules, the
// framer, the receive parser. A message goes into its stream's ring; the ring is the retransmission buffer (CMS-TCP
// section 3.1).
//
//   s_axis_msg -> tcp_ring_writer -> rings -> tcp_ring_reader -> tcp_framer -> m_axis
//                      |  ^ una                 ^ segments
//                      v  |                     |
//   commands -> guard -> tcp_sender ------------+
//                 |    ^
//   s_axis -> tcp_rx --+
//
// With STORE = 1 tcp_ring_writer_axi and tcp_ring_reader_axi take their places. tcp_ring_guard keeps connections of a
// stream apart that follow one another: their bytes, and their peers.
module tcp_endpoint
  import roce_tx_pkg::StoreOnChip, roce_tx_pkg::StoreAxi;
  import tcp_pkg::*;
#(
  parameter  int unsigned DATA_W     = 64,
  parameter  int unsigned N_STREAMS  = 4,
  parameter  int unsigned RING_BYTES = 65536,  // of each stream
  parameter  int unsigned CLK_KHZ    = 156_250,
  parameter  int unsigned STORE      = StoreOnChip,  // or StoreAxi: the rings are in the memory at m_axi
  parameter  int unsigned AXI_ADDR_W = 64,
  localparam int unsigned Bytes      = DATA_W / 8
) (
  input  logic clk,
  input  logic rst,

  // settings
  input  logic [47:0]  local_mac,
  input  logic [31:0]  local_ip,
  input  logic [7:0]   ttl,
  input  logic [7:0]   tos,
  input  logic [15:0]  port_base,  // the local port of stream 0; stream n has port_base + n
  input  tcp_params_t  params,
  input  logic         tx_paused,

  // software opens, and aborts meanwhile, too; the peer is taken with an opening
  input  tcp_peer_t    peer,
  input  tcp_opening_t open_command,
  input  logic         open_valid,
  output logic         open_ready,
  input  logic         moved,      // that stream is open, its peer is at another MAC address
  input  tcp_stream_t  abort_stream,
  input  logic         abort_valid,
  output logic         abort_ready,

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
  output logic           laid_valid,

  // the rings' memory from ring_base on, 4 KiB aligned (quiet when STORE is on chip)
  input  logic [AXI_ADDR_W-1:0] ring_base,
  output logic              ring_write_error,  // the memory refused a burst: its stream ends (TcpBadMemory)
  output logic              ring_read_error,   // a segment was not read: it is not sent, and its stream ends
  output axi_pkg::axi_req_t m_axi_req,
  output logic [DATA_W-1:0] m_axi_wdata,
  input  axi_pkg::axi_rsp_t m_axi_rsp,
  input  logic [DATA_W-1:0] m_axi_rdata
);
  localparam int unsigned StreamW = N_STREAMS > 1 ? $clog2(N_STREAMS) : 1;

  // ---- peers, one copy for each reader ------------------------------------------------------------------------------
  logic rx_peer_rd, tx_peer_rd;
  tcp_stream_t rx_peer_stream, tx_peer_stream;
  tcp_peer_t rx_peer, tx_peer;
  logic peer_wr, peer_epoch, rx_epoch;
  logic unused;  // no stream is beyond N_STREAMS
  assign unused = &{1'b0, rx_peer_stream, tx_peer_stream};
  ram_sdp #(.W($bits(tcp_peer_t) + 1), .DEPTH(N_STREAMS)) u_rx_peers (
    .clk, .wr_en(peer_wr), .wr_addr(StreamW'(open_command.stream)), .wr_data({peer_epoch, peer}),
    .rd_en(rx_peer_rd), .rd_addr(StreamW'(rx_peer_stream)), .rd_data({rx_epoch, rx_peer})
  );
  ram_sdp #(.W($bits(tcp_peer_t)), .DEPTH(N_STREAMS)) u_tx_peers (
    .clk, .wr_en(peer_wr || moved), .wr_addr(StreamW'(open_command.stream)), .wr_data(peer),
    .rd_en(tx_peer_rd), .rd_addr(StreamW'(tx_peer_stream)), .rd_data(tx_peer)
  );

  // ---- in -----------------------------------------------------------------------------------------------------------
  tcp_arrival_t arrival;
  logic arrival_valid, arrival_ready, stale;
  tcp_rx #(.DATA_W(DATA_W), .N_STREAMS(N_STREAMS)) u_rx (
    .clk, .rst, .local_mac, .local_ip, .port_base,
    .s_axis_tdata, .s_axis_tkeep, .s_axis_tvalid, .s_axis_tlast, .s_axis_tuser,
    .peer_rd    (rx_peer_rd),
    .peer_stream(rx_peer_stream),
    .peer       (rx_peer),
    .peer_epoch (rx_epoch),
    .arrival, .arrival_valid,
    .arrival_ready(arrival_ready || stale),
    .counts     (rx_counts)
  );

  // ---- the rules ----------------------------------------------------------------------------------------------------
  tcp_write_t write;
  logic write_valid, write_ready, send_room;
  tcp_command_t sender_command;
  logic sender_command_valid, sender_command_ready;
  tcp_done_t sender_done;
  tcp_sender #(.N_STREAMS(N_STREAMS), .CLK_KHZ(CLK_KHZ)) u_sender (
    .clk, .rst, .params, .busy, .tx_paused,
    .command      (sender_command),
    .command_valid(sender_command_valid),
    .command_ready(sender_command_ready),
    .write, .write_valid, .write_ready,
    .arrival, .arrival_ready,
    .arrival_valid(arrival_valid && !stale),
    .send_room,
    .done         (sender_done),
    .done_valid
  );

  // ---- rings: messages in, segments out -----------------------------------------------------------------------------
  tcp_tx_hdr_t hdr;
  logic hdr_valid, hdr_ready;
  logic [DATA_W-1:0] payload_tdata;
  logic [Bytes-1:0] payload_tkeep;
  logic payload_tvalid, payload_tready, payload_tlast;
  logic [DATA_W-1:0] queued_tdata;
  logic [Bytes-1:0] queued_tkeep;
  logic queued_tvalid, queued_tready, queued_tlast;
  // What the writer and the reader have under way in the rings (tcp_ring_guard).
  localparam int unsigned WritesW = STORE == StoreOnChip ? 1 : 8;
  localparam int unsigned ReadsW  = STORE == StoreOnChip ? 3 : 7;
  logic [WritesW-1:0] unconfirmed;
  logic [ReadsW-1:0] unread;
  logic confirmed, read, write_fault_valid, read_fault_valid;
  tcp_stream_t write_fault_stream, read_fault_stream;
  if (STORE == StoreOnChip) begin : gen_on_chip
    localparam int unsigned Beats = N_STREAMS * RING_BYTES / Bytes;
    localparam int unsigned AddrW = $clog2(Beats);
    logic wr_en, rd_en;
    logic [AddrW-1:0] wr_addr, rd_addr;
    logic [DATA_W-1:0] wr_data, rd_data;
    logic [15:0] wr_sum, rd_sum;  // of the stream's bytes before a beat
    // Apart, both widths are powers of two: narrow blocks of the full depth need no multiplexers.
    ram_sdp #(.W(DATA_W), .DEPTH(Beats), .BLOCK(1'b1)) u_rings (
      .clk, .wr_en, .wr_addr, .wr_data, .rd_en, .rd_addr, .rd_data
    );
    ram_sdp #(.W(16), .DEPTH(Beats), .BLOCK(1'b1)) u_sums (
      .clk, .wr_en, .wr_addr, .wr_data(wr_sum), .rd_en, .rd_addr, .rd_data(rd_sum)
    );

    tcp_ring_writer #(.DATA_W(DATA_W), .N_STREAMS(N_STREAMS), .RING_BYTES(RING_BYTES)) u_writer (
      .clk, .rst,
      .s_stream     (s_msg_stream),
      .s_axis_tdata (s_axis_msg_tdata),
      .s_axis_tkeep (s_axis_msg_tkeep),
      .s_axis_tvalid(s_axis_msg_tvalid),
      .s_axis_tready(s_axis_msg_tready),
      .s_axis_tlast (s_axis_msg_tlast),
      .wr_en, .wr_addr, .wr_data, .wr_sum,
      .write, .write_valid, .write_ready, .done, .done_valid, .laid, .laid_valid
    );

    tcp_ring_reader #(.DATA_W(DATA_W), .N_STREAMS(N_STREAMS), .RING_BYTES(RING_BYTES)) u_reader (
      .clk, .rst, .params, .port_base,
      .s_stream     (done.stream),
      .s_segment    (done.actions.send),
      .s_valid      (done_valid && done.actions.send.valid),
      .room         (send_room),
      .rd_en, .rd_addr, .rd_data, .rd_sum,
      .peer_rd      (tx_peer_rd),
      .peer_stream  (tx_peer_stream),
      .peer         (tx_peer),
      .unread, .read,
      .hdr, .hdr_valid, .hdr_ready,
      .m_axis_tdata (payload_tdata),
      .m_axis_tkeep (payload_tkeep),
      .m_axis_tvalid(payload_tvalid),
      .m_axis_tready(payload_tready),
      .m_axis_tlast (payload_tlast)
    );

    // A beat is in the memory three cycles later, long before the first one of another connection.
    assign {unconfirmed, confirmed} = '0;
    assign {write_fault_valid, write_fault_stream, read_fault_valid, read_fault_stream} = '0;
    assign {ring_write_error, ring_read_error, m_axi_req, m_axi_wdata} = '0;
    wire unused_axi = &{1'b0, ring_base, m_axi_rsp, m_axi_rdata};
  end else if (STORE == StoreAxi) begin : gen_axi
    tcp_ring_writer_axi #(
      .DATA_W(DATA_W), .N_STREAMS(N_STREAMS), .RING_BYTES(RING_BYTES), .ADDR_W(AXI_ADDR_W)
    ) u_writer (
      .clk, .rst,
      .base_addr    (ring_base),
      .s_stream     (s_msg_stream),
      .s_axis_tdata (s_axis_msg_tdata),
      .s_axis_tkeep (s_axis_msg_tkeep),
      .s_axis_tvalid(s_axis_msg_tvalid),
      .s_axis_tready(s_axis_msg_tready),
      .s_axis_tlast (s_axis_msg_tlast),
      .write, .write_valid, .write_ready, .done, .done_valid, .laid, .laid_valid,
      .unconfirmed, .confirmed,
      .fault_valid  (write_fault_valid),
      .fault_stream (write_fault_stream),
      .stat_error   (ring_write_error),
      .m_axi_req    (m_axi_req.wr),
      .m_axi_wdata,
      .m_axi_rsp    (m_axi_rsp.wr)
    );

    tcp_ring_reader_axi #(
      .DATA_W(DATA_W), .RING_BYTES(RING_BYTES), .ADDR_W(AXI_ADDR_W)
    ) u_reader (
      .clk, .rst, .params, .port_base,
      .base_addr    (ring_base),
      .s_stream     (done.stream),
      .s_segment    (done.actions.send),
      .s_valid      (done_valid && done.actions.send.valid),
      .room         (send_room),
      .peer_rd      (tx_peer_rd),
      .peer_stream  (tx_peer_stream),
      .peer         (tx_peer),
      .unread, .read,
      .fault_valid  (read_fault_valid),
      .fault_stream (read_fault_stream),
      .m_axi_req    (m_axi_req.rd),
      .m_axi_rsp    (m_axi_rsp.rd),
      .m_axi_rdata,
      .hdr, .hdr_valid, .hdr_ready,
      .m_axis_tdata (payload_tdata),
      .m_axis_tkeep (payload_tkeep),
      .m_axis_tvalid(payload_tvalid),
      .m_axis_tready(payload_tready),
      .m_axis_tlast (payload_tlast)
    );
    assign ring_read_error = read_fault_valid;
  end else begin : gen_bad_store
    $fatal(1, "%m: STORE is %0d; it must be 0 (on chip) or 1 (in AXI4 memory)", STORE);
  end

  tcp_ring_guard #(.N_STREAMS(N_STREAMS), .WRITES_W(WritesW), .READS_W(ReadsW)) u_guard (
    .clk, .rst,
    .s_open         (open_command),
    .s_open_valid   (open_valid),
    .s_open_ready   (open_ready),
    .s_abort_stream (abort_stream),
    .s_abort_valid  (abort_valid),
    .s_abort_ready  (abort_ready),
    .m_command      (sender_command),
    .m_command_valid(sender_command_valid),
    .m_command_ready(sender_command_ready),
    .peer_wr, .peer_epoch, .stale,
    .arrival_stream (arrival.stream),
    .arrival_epoch  (arrival.epoch),
    .s_done         (sender_done),
    .m_done         (done),
    .done_valid,
    .unconfirmed, .confirmed, .unread, .read,
    .wr_fault_valid (write_fault_valid),
    .wr_fault_stream(write_fault_stream),
    .rd_fault_valid (read_fault_valid),
    .rd_fault_stream(read_fault_stream)
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
