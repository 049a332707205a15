// SPDX-License-Identifier: SHL-2.1
// Promises of the mover of payloads: the beats of a placement have exactly its bytes, from the lane of its address on, and
// each byte of any word of its frame is in the lane where it belongs; the notice of a WRITE follows its beats; a beat stays
// until it is taken; a frame that is not accepted, or has no place, leaves no beat.
// Assumed: frames, placements and words of a frame keep what they offer; one of `places` and `streams` at most, and only
// payload of 1 to 4096 bytes is placed.
module receive_mover_props
  import penstock_pkg::*;
  import roce_read_pkg::*;
#(
  parameter  int unsigned DATA_W = 64,
  parameter  int unsigned WORD_W = 11,
  localparam int unsigned Bytes  = DATA_W / 8,
  localparam int unsigned LaneW  = $clog2(Bytes),
  localparam int unsigned BeatW  = 13 - LaneW
) (
  input logic              clk,
  input logic              rst,
  input logic              frame_valid, frame_accepted, frame_taken,
  input logic              rd_en,
  input logic [WORD_W-1:0] rd_word,
  input logic [DATA_W-1:0] rd_data,
  input placement_t        placement,
  input logic              placement_valid, placement_taken,
  input logic              job_valid,
  input placement_t        job,
  input logic [BeatW-1:0]  job_last,
  input logic [DATA_W-1:0] m_data,
  input logic [LaneW-1:0]  m_first, m_last,
  input logic              m_empty, m_ends, m_streams, m_notice, m_valid, m_ready,
  // inside
  input logic [2:0]        state_q,
  input logic              starts, advances, has_payload, discards,
  input logic [LaneW-1:0]  shift, shift_q, target_q, last_lane_q, source, target,
  input logic [BeatW-1:0]  beat_q, last_beat_q, last_beat,
  input logic [WORD_W-1:0] word_q, first_word,
  input logic [DATA_W-1:0] before_q
);
  localparam int unsigned Headers = 54 - (ip_pkg::EthBytes + 40) / Bytes * Bytes;  // of the bytes that are kept
  localparam logic [2:0] StIdle = 3'd0, StFirst = 3'd1, StBeats = 3'd2, StEnd = 3'd3, StStart = 3'd4, StNotice = 3'd5;

  logic started_q = 1'b0;
  always_ff @(posedge clk) started_q <= 1'b1;

  // ---- one word of the frame, any one -----------------------------------------------------------------
  logic [WORD_W-1:0] any_place, place_q, read_q, before_word_q;
  logic [DATA_W-1:0] any_word, watched_q;
  anything #(.W(WORD_W)) u_place (.value(any_place));
  anything #(.W(DATA_W)) u_word (.value(any_word));
  logic waits_q, frame_waits_q, frame_accepted_q;
  placement_t placement_s;
  always_ff @(posedge clk) begin
    if (!started_q) {place_q, watched_q} <= {any_place, any_word};
    if (rd_en) read_q <= rd_word;
    if (state_q == StFirst || (state_q == StBeats && advances)) before_word_q <= read_q;
    waits_q     <= placement_valid && !placement_taken && !rst;
    placement_s <= placement;
    frame_waits_q    <= frame_valid && !frame_taken && !rst;
    frame_accepted_q <= frame_accepted;
  end
  always_comb begin
    assume (rst == !started_q);
    if (started_q && read_q == place_q) assume (rd_data == watched_q);
    if (waits_q) assume (placement_valid && placement == placement_s);
    if (frame_waits_q) assume (frame_valid && frame_accepted == frame_accepted_q);
    assume (!(placement.places && placement.streams) && !(placement.notifies && placement.streams));
    assume (placement.len <= 13'd4096 && !(placement.places && placement.len == '0));
  end

  // ---- the job: bytes that have not been taken; the first source byte ------------------------------------
  logic [15:0] bytes_q, at_q;       // at_q: bytes of the job before the beat that is made next
  logic [15:0] count;
  logic [LaneW-1:0] source_q;
  logic [WORD_W-1:0] first_word_q;
  logic        payload_beat, taking, quiet_q, waiting_q;
  logic [DATA_W-1:0] data_s;
  logic [2*LaneW+2:0] side_s;
  assign count        = m_empty ? '0 : 16'(m_last) - 16'(m_first) + 16'd1;
  assign taking       = m_valid && m_ready;
  assign payload_beat = m_valid && !m_notice && !m_empty;
  always_ff @(posedge clk) begin
    if (starts) begin
      bytes_q      <= has_payload ? 16'(placement.len) : '0;
      at_q         <= '0;
      source_q     <= source;
      first_word_q <= first_word;
      quiet_q      <= discards;
    end else begin
      if (taking && payload_beat) bytes_q <= bytes_q - count;
      if (state_q == StBeats && advances)
        at_q <= at_q + (beat_q == '0 ? 16'(Bytes) - 16'(target_q) : 16'(Bytes));
    end
    waiting_q <= m_valid && !m_ready && !rst;
    data_s    <= m_data;
    side_s    <= {m_first, m_last, m_ends, m_streams, m_notice};
  end

  // Source byte of lane 0 of the beat that is made next, as a place in the frame: word and lane.
  logic [15:0] len;
  assign len = 16'(job.len);
  logic in_payload;
  assign in_payload = state_q inside {StFirst, StBeats};

  // ---- the beat in the register: of which word each lane was -----------------------------------------------
  logic [WORD_W-1:0] low_q, high_q;
  logic [LaneW-1:0]  made_shift_q;
  logic              made_q;
  always_ff @(posedge clk)
    if (state_q == StBeats && advances) begin
      {low_q, high_q} <= {before_word_q, read_q};
      made_shift_q    <= shift_q;
      made_q          <= 1'b1;
    end else if (advances) made_q <= 1'b0;

  logic [DATA_W-1:0] lanes_low, lanes_high;  // lanes of the watched word, if it was the low or the high one
  logic [DATA_W-1:0] of_low;                 // lanes that are the low one's
  always_comb begin
    of_low     = {DATA_W{1'b1}} >> {made_shift_q, 3'b000};
    lanes_low  = DATA_W'({DATA_W'(0), watched_q} >> {made_shift_q, 3'b000});
    lanes_high = DATA_W'({watched_q, DATA_W'(0)} >> {made_shift_q, 3'b000});
  end

  always_comb if (started_q && !rst) begin
    // Invariants for the induction.
    a_0_state : assert (state_q <= StNotice);
    if (state_q == StFirst) a_0_first : assert (beat_q == '0 && at_q == '0 && word_q == WORD_W'(first_word_q + 1'b1)
                                                && read_q == first_word_q && !m_valid);
    if (state_q == StBeats) begin
      a_0_words : assert (read_q == WORD_W'(first_word_q + WORD_W'(beat_q) + 1'b1)
                          && before_word_q == WORD_W'(first_word_q + WORD_W'(beat_q))
                          && word_q == WORD_W'(read_q + 1'b1));
      a_0_beats : assert (beat_q <= last_beat_q
                          && at_q == (beat_q == '0 ? '0 : 16'(beat_q) * 16'(Bytes) - 16'(target_q)));
      if (before_word_q == place_q) a_0_held : assert (before_q == watched_q);
    end
    if (in_payload) begin
      a_0_shape : assert (16'(last_beat_q) * 16'(Bytes) + 16'(last_lane_q) + 16'd1 == 16'(target_q) + len && len != '0
                          && len <= 16'd4096 && (job.places || job.streams));
      a_0_shift : assert (shift_q == LaneW'(source_q - target_q)
                          && target_q == (job.places ? job.va[LaneW-1:0] : '0));
      a_0_bytes : assert (bytes_q == len - at_q + (payload_beat ? count : '0));
    end else if (payload_beat) a_0_last : assert (bytes_q == count && m_ends);
    if (m_valid && m_notice) a_0_notice : assert (state_q inside {StIdle, StNotice} && job.notifies);
    if (state_q == StNotice) a_0_notices : assert (beat_q <= last_beat_q && (job.notifies || job.streams)
      && (job.notifies ? 32'(last_beat_q) == (12 + Bytes - 1) / Bytes - 1 : last_beat_q == '0));
    if (quiet_q) a_0_idle : assert (state_q == StIdle);
    if (state_q inside {StEnd, StStart}) a_0_end : assert (job.notifies);
    a_0_exclusive : assert (!(job.places && job.streams) && !(job.notifies && job.streams) || (state_q == StIdle && !m_valid));
    if (made_q && m_valid && !m_notice && !m_empty) a_0_made : assert (high_q == WORD_W'(low_q + 1'b1));
    if (payload_beat) a_0_whose : assert (made_q && m_streams == job.streams);
    if (m_valid && m_empty) a_0_empty : assert (m_ends && m_streams && job.streams && state_q == StIdle && !m_notice);

    // ---- bytes
    if (payload_beat) a_bytes : assert (m_first <= m_last && count <= bytes_q && m_ends == (count == bytes_q));
    if (payload_beat && bytes_q == len) a_start : assert (m_first == (job.places ? job.va[LaneW-1:0] : '0));
    if (payload_beat && bytes_q != len) a_full : assert (m_first == '0);
    if (payload_beat && !m_ends) a_to_the_end : assert (m_last == '1);
    if (payload_beat && low_q == place_q) a_low : assert (((m_data ^ lanes_low) & of_low) == '0);
    if (payload_beat && high_q == place_q) a_high : assert (((m_data ^ lanes_high) & ~of_low) == '0);
    if (starts && has_payload)  // lane `target` of the first beat gets the payload's first byte
      a_place : assert ((WORD_W + LaneW)'({rd_word, shift}) + (WORD_W + LaneW)'(target)
                        == (WORD_W + LaneW)'(Headers + 16 * 32'(placement.has_reth) + 4 * 32'(placement.has_imm)));
    if (state_q == StBeats && advances && beat_q == '0) a_first : assert (before_word_q == first_word_q);
    // ---- jobs
    if (job_valid) a_job : assert (placement.places && 32'(job_last) == (32'(placement.va[LaneW-1:0]) + 32'(placement.len)
                                                                        - 1) / Bytes);
    if (starts) a_after : assert (!m_valid || m_ready);
    if (m_valid) a_quiet : assert (!quiet_q);
    if (waiting_q)
      a_hold : assert (m_valid && m_data == data_s && {m_first, m_last, m_ends, m_streams, m_notice} == side_s);

    c_moves : cover (taking && m_ends && !m_streams && m_first == '0 && shift_q != '0 && count < 16'd3);
    c_streams : cover (taking && m_ends && m_streams && !m_notice && !m_empty);
    c_notice : cover (taking && m_notice && m_ends);
    c_empty : cover (taking && m_empty);
    c_discards : cover (starts && discards);
    c_skips : cover (frame_taken && !frame_accepted);
  end
  wire unused = &{1'b0, last_beat, any_place, any_word, source_q};
endmodule

bind receive_mover receive_mover_props #(.DATA_W(DATA_W), .WORD_W(WORD_W)) u_props (.state_q(state_q), .*);
