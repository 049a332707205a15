// SPDX-License-Identifier: SHL-2.1
// Reads the payload of packets from an AXI4 memory, from any byte on, and releases each one when it is complete: no
// frame waits for the memory.
// Promise: the bursts of a job are exactly the words that hold its bytes, none crosses 4 KiB; room is reserved before a
// request, so R is never stalled; payloads leave in the order of their jobs, first byte in the low lane. A packet with
// an error response is named (`packet_bad`) and its words are discarded.
//
//   jobs -> bursts -> m_axi -> words -> aligned payload
//     +-> shapes ----------------^
module read_fetch
  import penstock_pkg::*;
#(
  parameter  int unsigned DATA_W  = 64,
  parameter  int unsigned BYTES   = 16384,  // of packets that are fetched or wait
  parameter  int unsigned PACKETS = 16,     // of them at most
  localparam int unsigned Lanes   = DATA_W / 8
) (
  input  logic                   clk,
  input  logic                   rst,
  output logic                   job_room,   // for one packet of any length
  input  logic                   job_valid,
  input  logic [63:0]            job_addr,
  input  logic [PayloadLenW-1:0] job_len,    // bytes, 1 .. 4096
  // the oldest packet whose header waits
  output logic                   packet_valid,
  output logic                   packet_bad,
  input  logic                   packet_taken,
  output logic [DATA_W-1:0]      m_axis_tdata,
  output logic [Lanes-1:0]       m_axis_tkeep,
  output logic                   m_axis_tvalid,
  input  logic                   m_axis_tready,
  output logic                   m_axis_tlast,
  output logic                   m_axis_soon,  // its next packet begins within three cycles, or has begun
  output axi_pkg::axi_rd_req_t   m_axi_req,
  input  axi_pkg::axi_rd_rsp_t   m_axi_rsp,
  input  logic [DATA_W-1:0]      m_axi_rdata
);
  localparam int unsigned LaneW      = $clog2(Lanes);
  localparam int unsigned Words      = BYTES / Lanes;
  localparam int unsigned PtrW       = $clog2(Words);
  localparam int unsigned MaxWords   = 4096 / Lanes + 1;  // of a packet
  localparam int unsigned WordW      = $clog2(MaxWords + 1);
  localparam int unsigned BurstWords = 4096 / Lanes > 256 ? 256 : 4096 / Lanes;
  localparam int unsigned BurstW     = $clog2(BurstWords);
  localparam int unsigned CountW     = $clog2(PACKETS) + 1;

  if (BYTES < 8192 || Words != 2 ** PtrW) begin : gen_bad_bytes
    $fatal(1, "%m: BYTES %0d is not a power of two of at least two packets of 4096", BYTES);
  end

  typedef struct packed {
    logic [WordW-1:0] last_word;
    logic [WordW-1:0] last_beat;
    logic [LaneW-1:0] first_lane;
    logic [LaneW-1:0] last_lane;   // of the last beat
  } shape_t;

  typedef struct packed {
    logic   bad;
    shape_t shape;
  } packet_t;

  typedef struct packed {
    logic [63:LaneW]  word;
    logic [WordW-1:0] last_word;
  } request_t;

  // ---- jobs in ----------------------------------------------------------------------------------
  logic [PtrW:0]          reserved_q;  // words
  logic [CountW-1:0]      packets_q;
  logic [PayloadLenW-1:0] len_minus_1, last_byte;
  shape_t                 shape_in;
  logic                   packet_out;  // a packet has left, or was thrown away

  assign len_minus_1 = job_len - 1'b1;
  assign last_byte   = len_minus_1 + PayloadLenW'(job_addr[LaneW-1:0]);
  assign shape_in    = '{
    last_word: WordW'(last_byte >> LaneW), last_beat: WordW'(len_minus_1 >> LaneW),
    first_lane: job_addr[LaneW-1:0], last_lane: len_minus_1[LaneW-1:0]
  };
  assign job_room = reserved_q <= (PtrW + 1)'(Words - MaxWords) && packets_q != CountW'(PACKETS);

  // ---- addresses out: up to the next multiple of a whole burst -----------------------------------
  request_t request_in, request, loaded;
  logic     requests_room, request_valid, request_taken, request_valid_q, request_ends, last_burst, issues, arvalid_q;
  logic [63:LaneW]  request_at_q;
  logic [WordW-1:0] request_left_q, to_boundary, requested;  // words after the next one
  axi_pkg::axi_addr_t ar_q;
  logic [$clog2(PACKETS):0] unused_requests, unused_fetches, unused_packets, unused_headers;

  assign request_in = '{word: job_addr[63:LaneW], last_word: shape_in.last_word};
  sync_fifo #(.W($bits(request_t)), .DEPTH(PACKETS)) u_requests (
    .clk, .rst,
    .s_data (request_in),
    .s_valid(job_valid && !(request_taken && !request_valid)),
    .s_ready(requests_room),
    .m_data (request),
    .m_valid(request_valid),
    .m_ready(request_taken),
    .level  (unused_requests)
  );

  assign to_boundary   = WordW'(BurstW'(~request_at_q[LaneW+:BurstW]));
  assign last_burst    = request_left_q <= to_boundary;
  assign requested     = last_burst ? request_left_q : to_boundary;
  assign issues        = request_valid_q && (!arvalid_q || m_axi_rsp.arready);
  assign request_ends  = issues && last_burst;
  assign request_taken = (request_valid || job_valid) && (!request_valid_q || request_ends);
  assign loaded        = request_valid ? request : request_in;  // a job does not wait for none
  assign m_axi_req     = '{ar: ar_q, arvalid: arvalid_q, rready: 1'b1};

  always_ff @(posedge clk) begin
    if (issues) begin
      ar_q           <= axi_pkg::whole_words({request_at_q, LaneW'(0)}, 8'(requested), Lanes);
      arvalid_q      <= 1'b1;
      request_at_q   <= request_at_q + (64-LaneW)'(requested) + 1'b1;
      request_left_q <= request_left_q - requested - 1'b1;
    end else if (m_axi_rsp.arready) arvalid_q <= 1'b0;
    if (request_ends) request_valid_q <= 1'b0;
    if (request_taken) begin
      request_valid_q <= 1'b1;
      request_at_q    <= loaded.word;
      request_left_q  <= loaded.last_word;
    end
    if (rst) begin
      arvalid_q       <= 1'b0;
      request_valid_q <= 1'b0;
    end
  end

  // ---- words in ---------------------------------------------------------------------------------
  shape_t  fetching;
  packet_t packet_in, packet;
  logic whole, fetches_room, fetch_valid, arrived, bad_q, unused_packet_ready, unused_header_ready;
  logic [WordW-1:0] got_q;
  logic [PtrW-1:0]  head_q;

  sync_fifo #(.W($bits(shape_t)), .DEPTH(PACKETS)) u_fetches (
    .clk, .rst,
    .s_data (shape_in),
    .s_valid(job_valid),
    .s_ready(fetches_room),
    .m_data (fetching),
    .m_valid(fetch_valid),
    .m_ready(arrived),
    .level  (unused_fetches)
  );

  assign arrived   = m_axi_rsp.rvalid && got_q == fetching.last_word;
  assign packet_in = '{bad: bad_q || m_axi_rsp.rresp[1], shape: fetching};

  always_ff @(posedge clk) begin
    if (m_axi_rsp.rvalid) begin
      head_q <= head_q + 1'b1;
      got_q  <= arrived ? '0 : got_q + 1'b1;
      bad_q  <= packet_in.bad && !arrived;
    end
    if (rst) begin
      head_q <= '0;
      got_q  <= '0;
      bad_q  <= 1'b0;
    end
  end

  sync_fifo #(.W(1), .DEPTH(PACKETS)) u_headers (
    .clk, .rst,
    .s_data (packet_in.bad),
    .s_valid(arrived),
    .s_ready(unused_header_ready),
    .m_data (packet_bad),
    .m_valid(packet_valid),
    .m_ready(packet_taken),
    .level  (unused_headers)
  );

  sync_fifo #(.W($bits(packet_t)), .DEPTH(PACKETS)) u_packets (
    .clk, .rst,
    .s_data (packet_in),
    .s_valid(arrived),
    .s_ready(unused_packet_ready),
    .m_data (packet),
    .m_valid(whole),
    .m_ready(packet_out),
    .level  (unused_packets)
  );

  // ---- payload out: beat k has bytes of words k and k + 1 ----------------------------------------
  typedef enum logic [1:0] {
    StIdle,   // no packet
    StFirst,  // its first word is here
    StBeats   // and the next one
  } state_e;

  state_e state_q, state_d;
  logic drops, starts, advances, at_end, fetches;
  logic [WordW-1:0] beat_q;
  logic [PtrW-1:0]  tail_q;
  logic [DATA_W-1:0] word, word_q;

  assign drops      = state_q == StIdle && whole && packet.bad;
  assign starts     = state_q == StIdle && whole && !packet.bad;
  assign advances   = state_q == StBeats && (m_axis_tready || !m_axis_tvalid);
  assign at_end     = beat_q == packet.shape.last_beat;
  assign fetches    = starts || state_q == StFirst || (advances && !at_end);
  assign m_axis_soon = starts || state_q != StIdle || m_axis_tvalid;
  assign packet_out = drops || (advances && at_end);

  always_comb begin
    state_d = state_q;
    unique case (state_q)
      StIdle:  if (starts) state_d = StFirst;
      StFirst: state_d = StBeats;
      default: if (packet_out) state_d = StIdle;
    endcase
  end

  ram_sdp #(.W(DATA_W), .DEPTH(Words)) u_words (
    .clk,
    .wr_en  (m_axi_rsp.rvalid),
    .wr_addr(head_q),
    .wr_data(m_axi_rdata),
    .rd_en  (fetches),
    .rd_addr(tail_q),
    .rd_data(word)
  );

  always_ff @(posedge clk) begin
    state_q <= state_d;
    if (state_q == StFirst || advances) word_q <= word;
    if (starts) beat_q <= '0;
    // One word more than beats is read, which is not the packet's if it has as many words.
    if (drops) tail_q <= tail_q + PtrW'(packet.shape.last_word) + 1'b1;
    else if (fetches) tail_q <= tail_q + 1'b1;
    else if (packet_out && packet.shape.last_word == packet.shape.last_beat) tail_q <= tail_q - 1'b1;
    if (advances) begin
      beat_q       <= beat_q + 1'b1;
      m_axis_tdata <= DATA_W'({word, word_q} >> {packet.shape.first_lane, 3'b000});
      m_axis_tlast <= at_end;
      m_axis_tkeep <= '1;
      if (at_end) m_axis_tkeep <= {Lanes{1'b1}} >> (LaneW'(Lanes - 1) - packet.shape.last_lane);
    end
    if (advances) m_axis_tvalid <= 1'b1;
    else if (m_axis_tready) m_axis_tvalid <= 1'b0;
    // A packet's words are given back when it has left: one subtraction, and never too early.
    reserved_q <= reserved_q + (job_valid ? (PtrW + 1)'(shape_in.last_word) + 1'b1 : '0)
                  - (packet_out ? (PtrW + 1)'(packet.shape.last_word) + 1'b1 : '0);
    packets_q  <= packets_q + CountW'(job_valid) - CountW'(packet_out);
    if (rst) begin
      state_q       <= StIdle;
      tail_q        <= '0;
      m_axis_tvalid <= 1'b0;
      reserved_q    <= '0;
      packets_q     <= '0;
    end
  end

  wire unused = &{1'b0, m_axi_rsp.rid, m_axi_rsp.rresp[0], m_axi_rsp.rlast};

`ifndef SYNTHESIS
  a_job_taken : assert property (@(posedge clk) disable iff (rst)
    job_valid |-> job_room && requests_room && fetches_room && job_len != '0);
  a_expected : assert property (@(posedge clk) disable iff (rst) m_axi_rsp.rvalid |-> fetch_valid);
  a_4k : assert property (@(posedge clk) disable iff (rst)
    m_axi_req.arvalid |-> 13'(m_axi_req.ar.addr[11:0]) + ((13'(m_axi_req.ar.len) + 13'd1) << LaneW) <= 13'd4096);
  // A frame never waits for the memory.
  a_no_bubble : assert property (@(posedge clk) disable iff (rst)
    m_axis_tvalid && m_axis_tready && !m_axis_tlast |=> m_axis_tvalid);
  a_hold : assert property (@(posedge clk) disable iff (rst)
    m_axis_tvalid && !m_axis_tready |=> m_axis_tvalid && $stable(m_axis_tdata) && $stable(m_axis_tlast));
`endif
endmodule
