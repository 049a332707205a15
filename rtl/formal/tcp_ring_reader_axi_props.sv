// SPDX-License-Identifier: SHL-2.1
// Promises of the reader of TCP rings in an AXI4 memory: the bursts of a segment are exactly its words, one after the
// other in its ring, and none crosses 4 KiB; no more than 16 are outstanding; a word has its place in the reader before
// it is requested; payload has the length of its segment, first byte in the low lane; what the memory has failed is not
// handed on, and named. Assumed: segments have at most TcpMaxMss bytes, each burst that the memory answers was
// requested, and no more words are given back than were reserved (the queues may hold anything here).
module tcp_ring_reader_axi_props
  import tcp_pkg::*;
#(
  parameter  int unsigned DATA_W     = 64,
  parameter  int unsigned RING_BYTES = 16384,
  parameter  int unsigned ADDR_W     = 32,
  localparam int unsigned Bytes      = DATA_W / 8,
  localparam int unsigned Words      = 32768 / Bytes
) (
  input logic                 clk,
  input logic                 rst,
  input logic [ADDR_W-1:0]    base_addr,
  input axi_pkg::axi_rd_req_t m_axi_req,
  input axi_pkg::axi_rd_rsp_t m_axi_rsp,
  input logic                 fault_valid,
  input tcp_stream_t          fault_stream,
  input logic                 hdr_valid,
  input logic [Bytes-1:0]     m_axis_tkeep,
  input logic                 m_axis_tvalid,
  input logic                 m_axis_tready,
  input logic                 m_axis_tlast,
  // inside: segments that are fetched, and that leave
  input logic                 job_valid, job_fetched, out_taken, drops, moves, frees, burst_done,
  input tcp_stream_t          job_stream, out_stream,
  input tcp_segment_t         job_segment, out_segment,
  input logic [2:0]           state_q,
  input logic                 request_valid_q, issues, request_ends, sum_bad,
  input logic [13:0]          request_left, requested, request_at,
  input tcp_stream_t          request_stream_q,
  input logic [4:0]           in_flight_q,
  input logic [13:0]          left_q, reserved_q, claimed_q, freed_q, last_beat_q, sum_last_beat
);
  localparam logic [2:0] StIdle = 3'd0, StFirst = 3'd1, StLoad = 3'd2, StSend = 3'd3;

  logic started_q = 1'b0;
  always_ff @(posedge clk) started_q <= 1'b1;
  always_comb begin
    assume (rst == !started_q);
    if (job_valid) assume (job_segment.len <= TcpMaxMss);
    if (in_flight_q == '0) assume (!burst_done);
  end

  // ---- the segment that is requested: its next byte's place in the ring, and bytes up to the end of its last word ----
  logic [31:0] place_q, rest_q, words, addr, beats;
  tcp_stream_t stream_q;
  logic requesting_q;
  assign words = (32'(job_segment.seq) % Bytes + 32'(job_segment.len) + 32'(Bytes) - 32'd1) / Bytes;
  assign beats = 32'(requested) + 32'd1;
  assign addr  = (base_addr & ~32'hFFF) + 32'(stream_q) * 32'(RING_BYTES) + place_q;

  // ---- the burst that is offered ------------------------------------------------------------------------------------
  logic [31:0] offered_addr_q, offered_beats_q;
  always_ff @(posedge clk) begin
    if (issues) begin
      place_q         <= (place_q + beats * Bytes) % RING_BYTES;
      rest_q          <= rest_q - beats;
      offered_addr_q  <= addr;
      offered_beats_q <= beats;
    end
    if (request_ends) requesting_q <= 1'b0;
    if (job_fetched) begin
      requesting_q <= 1'b1;
      stream_q     <= job_stream;
      place_q      <= (32'(job_segment.seq) & ~32'(Bytes - 1)) % RING_BYTES;
      rest_q       <= words;
    end
    if (rst) requesting_q <= 1'b0;
  end

  // ---- the segment that leaves: its length; bytes of payload, from its first beat on, that have not been taken -----
  logic [13:0] length_q, bytes_q, taken;
  logic first_q, taking, sends;
  assign taking = m_axis_tvalid && m_axis_tready;
  assign taken  = 14'($countones(m_axis_tkeep));
  assign sends  = state_q inside {StFirst, StLoad, StSend};
  always_ff @(posedge clk) begin
    if (moves && first_q) {first_q, bytes_q} <= {1'b0, length_q};
    else if (taking) bytes_q <= bytes_q - taken;
    if (out_taken && !drops) {first_q, length_q} <= {1'b1, out_segment.len};
  end

  // ---- words that are reserved: from the cycle of a fetch to that in which its segment leaves -----------------------
  logic [31:0] held_q, freed;
  assign freed = 32'(drops ? sum_last_beat : last_beat_q) + 32'd1;
  always_ff @(posedge clk) begin
    held_q <= held_q + (job_fetched ? words : '0) - (frees ? freed : '0);
    if (rst) held_q <= '0;
  end
  always_comb if (frees) assume (freed <= held_q);

  logic dropped_q, idle_q;
  tcp_stream_t dropped_stream_q;
  always_ff @(posedge clk) begin
    dropped_q        <= drops && !rst;
    dropped_stream_q <= out_stream;
    idle_q           <= !m_axis_tvalid && !hdr_valid;
  end

  logic waits_q;
  axi_pkg::axi_addr_t waits_ar_q;
  always_ff @(posedge clk) begin
    waits_q    <= m_axi_req.arvalid && !m_axi_rsp.arready && !rst;
    waits_ar_q <= m_axi_req.ar;
  end

  always_comb if (started_q && !rst) begin
    // Invariants for the induction.
    a_0_requesting : assert (requesting_q == request_valid_q);
    if (requesting_q) a_0_request : assert (stream_q == request_stream_q && place_q == 32'(request_at) * Bytes
                                    && rest_q == 32'(request_left) + 32'd1 && rest_q <= 32'd1121);
    if (m_axi_req.arvalid) a_0_offered : assert (offered_beats_q <= 32'd256 && offered_beats_q != '0);
    a_0_state : assert (state_q <= 3'd4);
    if (sends) a_0_left : assert (left_q != '0 && (state_q == StSend || first_q));
    if (sends && first_q) a_0_first : assert (left_q == length_q);
    if (sends && !first_q) a_0_more : assert (m_axis_tvalid && !m_axis_tlast && bytes_q == left_q + taken);
    else if (m_axis_tvalid) a_0_last : assert (m_axis_tlast && bytes_q == taken);
    if (m_axis_tvalid) a_0_beat : assert (taken != '0);
    a_0_flight : assert (in_flight_q <= 5'd16);
    a_0_held : assert (held_q + 32'(freed_q) == 32'(reserved_q) + 32'(claimed_q) && held_q <= 32'(Words)
                       && 32'(reserved_q) + 32'(claimed_q) <= 32'(Words));

    // ---- bursts
    if (issues) a_within : assert (beats <= rest_q && beats <= 32'd256 && 32'(addr[11:0]) + beats * Bytes <= 32'd4096);
    if (issues) a_all : assert (request_ends == (beats == rest_q));
    if (m_axi_req.arvalid)
      a_address : assert (32'(m_axi_req.ar.addr) == offered_addr_q && 32'(m_axi_req.ar.len) + 32'd1 == offered_beats_q);
    if (waits_q) a_hold : assert (m_axi_req.arvalid && m_axi_req.ar == waits_ar_q);
    if (job_fetched) a_one : assert (!requesting_q || request_ends);
    if (issues) a_outstanding : assert (in_flight_q < 5'd16);
    // ---- room
    if (job_fetched) a_room : assert (held_q + words <= 32'(Words));
    a_never_stalls : assert (m_axi_req.rready);
    // ---- payload
    if (m_axis_tvalid) a_length : assert (taken <= bytes_q && m_axis_tlast == (taken == bytes_q));
    if (m_axis_tvalid) a_lanes : assert ((m_axis_tkeep & (m_axis_tkeep + 1'b1)) == '0 && (m_axis_tlast || &m_axis_tkeep));
    // ---- failures
    a_named : assert (fault_valid == dropped_q && (!fault_valid || fault_stream == dropped_stream_q));
    if (out_taken && out_segment.len != '0) a_bad : assert (drops == sum_bad);
    if (dropped_q && idle_q) a_not_sent : assert (!m_axis_tvalid && !hdr_valid && state_q == StIdle);

    c_two_bursts : cover (issues && !request_ends);
    c_wraps : cover (issues && request_ends && place_q == '0 && 32'(job_stream) == 32'd1);
    c_full : cover (in_flight_q == 5'd3 && requesting_q && !issues);
    c_sends : cover (taking && m_axis_tlast && !(&m_axis_tkeep) && bytes_q < 14'd3);
    c_fails : cover (fault_valid);
    c_next : cover (job_fetched && requesting_q);
  end

  wire unused = &{1'b0, job_segment, out_segment};
endmodule

bind tcp_ring_reader_axi tcp_ring_reader_axi_props #(
  .DATA_W(DATA_W), .RING_BYTES(RING_BYTES), .ADDR_W(ADDR_W)
) u_props (
  .job_stream (job.stream),
  .job_segment(job.segment),
  .out_stream (out_job.stream),
  .out_segment(out_job.segment),
  .state_q    (state_q),
  .sum_bad    (sum.bad),
  .request_left   (14'(request_left_q)),
  .requested      (14'(requested)),
  .request_at     (14'(request_at_q)),
  .reserved_q (14'(reserved_q)),
  .claimed_q  (14'(claimed_q)),
  .freed_q    (14'(freed_q)),
  .last_beat_q(14'(last_beat_q)),
  .sum_last_beat(14'(sum.last_beat)),
  .*
);
