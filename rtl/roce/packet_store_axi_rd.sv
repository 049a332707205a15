// SPDX-License-Identifier: SHL-2.1
// Read half of packet_store_axi: prefetches packets and releases each one when it is complete, so that
// no frame ever waits for the memory. Room for a packet is reserved before its request: R is never stalled.
// A packet with an error response is discarded here together with its header (`packet_bad`).
module packet_store_axi_rd
  import penstock_pkg::*;
#(
  parameter  int unsigned DATA_W  = 64,
  parameter  int unsigned ADDR_W  = 64,
  parameter  int unsigned BYTES   = 16384,  // of packets that are fetched or wait
  parameter  int unsigned PACKETS = 32,     // of them at most
  localparam int unsigned Lanes   = DATA_W / 8
) (
  input  logic                   clk,
  input  logic                   rst,
  output logic                   job_room,   // for one packet more
  input  logic                   job_valid,
  input  logic [ADDR_W-1:0]      job_addr,
  input  logic [PayloadLenW-1:0] job_len,    // bytes, 1 .. MTU
  output logic                   job_done,   // the oldest packet is here: its slot may be filled again
  // the oldest packet whose header still waits
  output logic                   packet_valid,
  output logic                   packet_bad,
  input  logic                   packet_taken,
  output logic [DATA_W-1:0]      m_axis_tdata,
  output logic [DATA_W/8-1:0]    m_axis_tkeep,
  output logic                   m_axis_tvalid,
  input  logic                   m_axis_tready,
  output logic                   m_axis_tlast,
  output axi_pkg::axi_rd_req_t   m_axi_req,
  input  axi_pkg::axi_rd_rsp_t   m_axi_rsp,
  input  logic [DATA_W-1:0]      m_axi_rdata
);
  localparam int unsigned LaneW = $clog2(Lanes);
  localparam int unsigned Words = BYTES / Lanes;
  localparam int unsigned PtrW = $clog2(Words);
  localparam int unsigned MtuWords = 4096 / Lanes;
  localparam int unsigned BeatW = $clog2(MtuWords);
  localparam int unsigned BurstWords = MtuWords > 256 ? 256 : MtuWords;
  localparam int unsigned Outstanding = 16;
  localparam int unsigned CountW = $clog2(PACKETS) + 1;

  if (BYTES < 8192 || Words != 2 ** PtrW) begin : gen_bad_bytes
    $fatal(1, "%m: BYTES %0d is not a power of two of at least two packets of 4096", BYTES);
  end

  typedef struct packed {
    logic [BeatW-1:0] last_beat;
    logic [LaneW-1:0] last_lane;
  } shape_t;

  typedef struct packed {
    logic   bad;
    shape_t shape;
  } packet_t;

  // ---- jobs in ---------------------------------------------------------------------------------------
  logic [PtrW:0] reserved_q;  // words
  logic [CountW-1:0] packets_q;
  logic [PayloadLenW-1:0] len_minus_1;
  shape_t shape_in;
  logic packet_out;           // a packet has left, or was thrown away

  assign len_minus_1        = job_len - 1'b1;
  assign shape_in.last_beat = BeatW'(len_minus_1 >> LaneW);
  assign shape_in.last_lane = LaneW'(len_minus_1);
  assign job_room = reserved_q <= (PtrW + 1)'(Words - MtuWords) && packets_q != CountW'(PACKETS);

  // ---- addresses out ---------------------------------------------------------------------------------
  logic request_valid, request_ready, request_taken, request_last, burst_done;
  logic [ADDR_W-1:0] request_addr, burst_addr;
  logic [7:0] burst_len;
  logic [BeatW-1:0] request_last_beat, requested_q;  // beats of the packet already requested
  logic [$clog2(PACKETS):0] unused_requests, unused_fetches, unused_packets, unused_headers;
  logic [4:0] in_flight_q;

  sync_fifo #(.W(ADDR_W + BeatW), .DEPTH(PACKETS)) u_requests (
    .clk, .rst,
    .s_data ({job_addr, shape_in.last_beat}),
    .s_valid(job_valid),
    .s_ready(request_ready),
    .m_data ({request_addr, request_last_beat}),
    .m_valid(request_valid),
    .m_ready(request_taken),
    .level  (unused_requests)
  );

  // Whole bursts until the rest fits in one: slots are aligned, so none crosses 4 KiB.
  assign request_last = 32'(BeatW'(request_last_beat - requested_q)) < BurstWords;
  assign burst_addr = request_addr + (ADDR_W'(requested_q) << LaneW);
  assign burst_len  = request_last ? 8'(request_last_beat - requested_q) : 8'(BurstWords - 1);

  assign m_axi_req.ar      = axi_pkg::whole_words(64'(burst_addr), burst_len, Lanes);
  assign m_axi_req.arvalid = request_valid && in_flight_q != 5'(Outstanding);

  assign request_taken  = m_axi_req.arvalid && m_axi_rsp.arready && request_last;
  assign burst_done = m_axi_rsp.rvalid && m_axi_rsp.rlast;

  always_ff @(posedge clk) begin
    if (m_axi_req.arvalid && m_axi_rsp.arready) requested_q <= request_last ? '0 : requested_q + BeatW'(BurstWords);
    in_flight_q <= in_flight_q + 5'(m_axi_req.arvalid && m_axi_rsp.arready) - 5'(burst_done);
    if (rst) begin
      requested_q     <= '0;
      in_flight_q <= '0;
    end
  end

  // ---- words in --------------------------------------------------------------------------------------
  logic fetch_ready, fetch_valid, arrived, bad_q, unused_packet_ready, unused_header_ready;
  logic [BeatW-1:0] got_q;
  logic [PtrW-1:0] head_q;
  shape_t fetching;
  packet_t packet_in, packet;

  sync_fifo #(.W($bits(shape_t)), .DEPTH(PACKETS)) u_fetches (
    .clk, .rst,
    .s_data (shape_in),
    .s_valid(job_valid),
    .s_ready(fetch_ready),
    .m_data (fetching),
    .m_valid(fetch_valid),
    .m_ready(arrived),
    .level  (unused_fetches)
  );

  assign m_axi_req.rready = 1'b1;
  assign arrived          = m_axi_rsp.rvalid && got_q == fetching.last_beat;
  assign job_done        = arrived;
  assign packet_in.bad   = bad_q || m_axi_rsp.rresp[1];
  assign packet_in.shape = fetching;

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

  // ---- packets out -----------------------------------------------------------------------------------
  logic whole, fetch, drop, at_end;
  logic [BeatW-1:0] beat_q;
  logic [PtrW-1:0] tail_q;

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

  assign drop       = whole && packet.bad;
  assign fetch      = whole && !packet.bad && (m_axis_tready || !m_axis_tvalid);
  assign at_end     = beat_q == packet.shape.last_beat;
  assign packet_out = drop || (fetch && at_end);

  ram_sdp #(.W(DATA_W), .DEPTH(Words)) u_words (
    .clk,
    .wr_en  (m_axi_rsp.rvalid),
    .wr_addr(head_q),
    .wr_data(m_axi_rdata),
    .rd_en  (fetch),
    .rd_addr(tail_q),
    .rd_data(m_axis_tdata)
  );

  always_ff @(posedge clk) begin
    if (drop) tail_q <= tail_q + PtrW'(packet.shape.last_beat) + 1'b1;
    if (fetch) begin
      tail_q       <= tail_q + 1'b1;
      beat_q       <= at_end ? '0 : beat_q + 1'b1;
      m_axis_tlast <= at_end;
      m_axis_tkeep <= '1;
      if (at_end) m_axis_tkeep <= {Lanes{1'b1}} >> (LaneW'(Lanes - 1) - packet.shape.last_lane);
    end
    if (fetch) m_axis_tvalid <= 1'b1;
    else if (m_axis_tready) m_axis_tvalid <= 1'b0;
    // A packet's words are given back when it has left: one subtraction, and never too early.
    reserved_q <= reserved_q + (job_valid ? (PtrW + 1)'(shape_in.last_beat) + 1'b1 : '0)
                  - (packet_out ? (PtrW + 1)'(packet.shape.last_beat) + 1'b1 : '0);
    packets_q  <= packets_q + CountW'(job_valid) - CountW'(packet_out);
    if (rst) begin
      tail_q        <= '0;
      beat_q        <= '0;
      m_axis_tvalid <= 1'b0;
      reserved_q    <= '0;
      packets_q     <= '0;
    end
  end

  wire unused = &{1'b0, m_axi_rsp.rid, m_axi_rsp.rresp[0]};

`ifndef SYNTHESIS
  a_job_taken : assert property (@(posedge clk) disable iff (rst)
    job_valid |-> job_room && request_ready && fetch_ready && job_len != '0);
  a_expected : assert property (@(posedge clk) disable iff (rst) m_axi_rsp.rvalid |-> fetch_valid);
  a_4k : assert property (@(posedge clk) disable iff (rst)
    m_axi_req.arvalid |-> 13'(m_axi_req.ar.addr[11:0]) + ((13'(m_axi_req.ar.len) + 13'd1) << LaneW) <= 13'd4096);
  a_ar_hold : assert property (@(posedge clk) disable iff (rst)
    m_axi_req.arvalid && !m_axi_rsp.arready |=> m_axi_req.arvalid && $stable(m_axi_req.ar));
  // A frame never waits for the memory.
  a_no_bubble : assert property (@(posedge clk) disable iff (rst)
    m_axis_tvalid && m_axis_tready && !m_axis_tlast |=> m_axis_tvalid);
  a_hold : assert property (@(posedge clk) disable iff (rst)
    m_axis_tvalid && !m_axis_tready |=> m_axis_tvalid && $stable(m_axis_tdata) && $stable(m_axis_tlast));
`endif
endmodule
