// SPDX-License-Identifier: SHL-2.1
// Promises of the reader of READ responses: a job requests exactly the words that hold its bytes; the bursts of a request
// are exactly its words, one after the other, and none crosses 4 KiB; a word has its place before it is requested; payload
// has the length of its packet and no gap, first byte in the low lane; what the memory has failed is not handed on.
// Assumed: jobs have 1 to 4096 bytes and come while there is room; no more words are given back than were reserved, and a
// packet has as many beats as words or one less (the queues may hold anything here).
module read_fetch_props
  import penstock_pkg::*;
#(
  parameter  int unsigned DATA_W = 64,
  parameter  int unsigned BYTES  = 16384,
  localparam int unsigned Bytes  = DATA_W / 8,
  localparam int unsigned Words  = BYTES / Bytes
) (
  input logic                   clk,
  input logic                   rst,
  input logic                   job_room,
  input logic                   job_valid,
  input logic [63:0]            job_addr,
  input logic [PayloadLenW-1:0] job_len,
  input axi_pkg::axi_rd_req_t   m_axi_req,
  input axi_pkg::axi_rd_rsp_t   m_axi_rsp,
  input logic [Bytes-1:0]       m_axis_tkeep,
  input logic                   m_axis_tvalid,
  input logic                   m_axis_tready,
  input logic                   m_axis_tlast,
  // inside
  input logic [63:0]            word_in, word_out, request_at_q,  // addresses in words
  input logic [15:0]            last_in, last_out, request_left_q, requested, last_word, last_beat, last_lane, beat_q,
  input logic [15:0]            reserved_q, packets_q, beat_in, lane_in,
  input logic                   request_taken, request_valid_q, request_ends, issues, arvalid_q,
  input logic                   whole, bad, packet_out, drops, starts, advances,
  input logic [1:0]             state_q
);
  localparam logic [1:0] StIdle = 2'd0, StFirst = 2'd1, StBeats = 2'd2;
  localparam int unsigned MaxWords = 4096 / Bytes + 1;

  logic started_q = 1'b0;
  always_ff @(posedge clk) started_q <= 1'b1;
  always_comb begin
    assume (rst == !started_q);
    if (job_valid) assume (job_room && job_len != '0 && job_len <= PayloadLenW'(4096));
    if (request_taken) assume (32'(last_out) < MaxWords);
    if (whole) assume (last_word == last_beat || last_word == last_beat + 16'd1);
    if (whole) assume (32'(last_word) < MaxWords && 32'(last_beat) < 4096 / Bytes);
  end

  // ---- a packet that leaves stays the same until it has ----------------------------------------------
  logic whole_q, out_q;
  logic [48:0] packet_q;
  always_ff @(posedge clk) begin
    whole_q  <= whole && !rst;
    out_q    <= packet_out;
    packet_q <= {bad, last_word, last_beat, last_lane};
  end
  always_comb if (whole_q && !out_q) assume (whole && packet_q == {bad, last_word, last_beat, last_lane});

  // ---- the request: its next word, and words left ------------------------------------------------------
  logic [63:0] next_q, offered_q;
  logic [15:0] rest_q, offered_words_q;
  logic requesting_q;
  always_ff @(posedge clk) begin
    if (issues) begin
      next_q          <= next_q + 64'(requested) + 64'd1;
      rest_q          <= rest_q - requested - 16'd1;
      offered_q       <= next_q;
      offered_words_q <= requested + 16'd1;
    end
    if (request_ends) requesting_q <= 1'b0;
    if (request_taken) begin
      requesting_q <= 1'b1;
      next_q       <= word_out;
      rest_q       <= last_out + 16'd1;
    end
    if (rst) requesting_q <= 1'b0;
  end

  logic waits_q;
  axi_pkg::axi_addr_t waits_ar_q;
  always_ff @(posedge clk) begin
    waits_q    <= m_axi_req.arvalid && !m_axi_rsp.arready && !rst;
    waits_ar_q <= m_axi_req.ar;
  end

  // ---- words reserved, from a job to the cycle in which its packet has left ------------------------------
  logic [15:0] held_q;
  always_ff @(posedge clk) begin
    held_q <= held_q + (job_valid ? last_in + 16'd1 : '0) - (packet_out ? last_word + 16'd1 : '0);
    if (rst) held_q <= '0;
  end
  always_comb if (packet_out) assume (last_word < held_q && packets_q != '0);

  // ---- the packet that leaves: bytes that have not been taken ----------------------------------------------
  logic [15:0] length, bytes_q, taken;
  logic taking;
  assign length = last_beat * 16'(Bytes) + last_lane + 16'd1;
  assign taking = m_axis_tvalid && m_axis_tready;
  assign taken  = 16'($countones(m_axis_tkeep));
  always_ff @(posedge clk) begin
    if (advances && beat_q == '0) bytes_q <= length;
    else if (taking) bytes_q <= bytes_q - taken;
  end

  logic [63:0] first_byte, last_byte;
  assign first_byte = job_addr;
  assign last_byte  = job_addr + 64'(job_len) - 64'd1;

  always_comb if (started_q && !rst) begin
    // Invariants for the induction.
    a_0_requesting : assert (requesting_q == request_valid_q && m_axi_req.arvalid == arvalid_q);
    if (requesting_q) a_0_request : assert (next_q % (64'd1 << (64 - $clog2(Bytes))) == request_at_q
                                            && rest_q == request_left_q + 16'd1 && 32'(rest_q) <= MaxWords);
    a_0_state : assert (state_q <= StBeats && (state_q == StIdle || (whole && !bad)));
    if (state_q == StFirst) a_0_first : assert (beat_q == '0);
    if (state_q == StBeats) a_0_beats : assert (beat_q <= last_beat);
    if (state_q == StBeats && beat_q != '0)
      a_0_more : assert (m_axis_tvalid && !m_axis_tlast && &m_axis_tkeep
                         && bytes_q == length - (beat_q - 16'd1) * 16'(Bytes));
    else if (m_axis_tvalid) a_0_last : assert (m_axis_tlast && bytes_q == taken && taken != '0);
    a_0_held : assert (held_q == reserved_q && 32'(held_q) <= Words);

    // ---- words of a job
    if (job_valid && last_byte >= first_byte)
      a_words : assert (word_in == first_byte / Bytes && last_byte / Bytes == first_byte / Bytes + 64'(last_in));
    if (job_valid) a_shape : assert (32'(beat_in) * Bytes + 32'(lane_in) + 32'd1 == 32'(job_len));
    if (job_valid) a_one_more : assert (last_in == beat_in || last_in == beat_in + 16'd1);
    // ---- bursts
    if (issues) a_within : assert (requested < rest_q && requested < 16'd256
                                   && 32'(12'(request_at_q * Bytes)) + (32'(requested) + 32'd1) * Bytes <= 32'd4096);
    if (issues) a_all : assert (request_ends == (requested + 16'd1 == rest_q));
    if (m_axi_req.arvalid) a_address : assert (m_axi_req.ar.addr == offered_q * Bytes
                                               && 16'(m_axi_req.ar.len) + 16'd1 == offered_words_q);
    if (waits_q) a_hold : assert (m_axi_req.arvalid && m_axi_req.ar == waits_ar_q);
    if (request_taken) a_one : assert (!requesting_q || request_ends);
    // ---- room
    if (job_valid) a_room : assert (32'(held_q) + 32'(last_in) + 32'd1 <= Words);
    a_never_stalls : assert (m_axi_req.rready);
    // ---- payload
    if (m_axis_tvalid) a_length : assert (taken <= bytes_q && m_axis_tlast == (taken == bytes_q));
    if (m_axis_tvalid) a_lanes : assert ((m_axis_tkeep & (m_axis_tkeep + 1'b1)) == '0 && (m_axis_tlast || &m_axis_tkeep));
    if (starts) a_not_bad : assert (!bad);
    if (whole && bad && state_q == StIdle) a_dropped : assert (packet_out && drops);

    c_two_bursts : cover (issues && !request_ends);
    c_next : cover (request_taken && requesting_q);
    c_sends : cover (taking && m_axis_tlast && !(&m_axis_tkeep) && bytes_q < 16'd3);
    c_fails : cover (drops);
    c_full : cover (!job_room && 32'(packets_q) < 16);
  end
endmodule

bind read_fetch read_fetch_props #(.DATA_W(DATA_W), .BYTES(BYTES)) u_props (
  .word_in  (64'(request_in.word)),
  .word_out (64'(loaded.word)),
  .request_at_q(64'(request_at_q)),
  .last_in  (16'(shape_in.last_word)),
  .last_out (16'(loaded.last_word)),
  .request_left_q(16'(request_left_q)),
  .requested(16'(requested)),
  .last_word(16'(packet.shape.last_word)),
  .last_beat(16'(packet.shape.last_beat)),
  .last_lane(16'(packet.shape.last_lane)),
  .beat_in  (16'(shape_in.last_beat)),
  .lane_in  (16'(shape_in.last_lane)),
  .beat_q   (16'(beat_q)),
  .reserved_q(16'(reserved_q)),
  .packets_q(16'(packets_q)),
  .bad      (packet.bad),
  .state_q  (state_q),
  .*
);
