// SPDX-License-Identifier: SHL-2.1
// Takes payloads out of the store in their order and hands each on, moved to its place in a word: a WRITE's to the lanes
// of its address, a SEND's to lane 0. The notice of a WRITE with immediate, address and length, follows its payload.
// Promise: each placement takes one accepted frame; its beats have no gap but those of the sink, and no byte that is not
// its payload or notice is between `first` and `last`. What has no place is discarded.
module receive_mover
  import penstock_pkg::*;
  import roce_read_pkg::*;
#(
  parameter  int unsigned DATA_W = 64,
  parameter  int unsigned WORD_W = 11,  // bits of a word's place, modulo the store's words
  localparam int unsigned Bytes  = DATA_W / 8,
  localparam int unsigned LaneW  = $clog2(Bytes),
  localparam int unsigned BeatW  = 13 - LaneW  // beats of a packet
) (
  input  logic              clk,
  input  logic              rst,

  // frames (receive_store), and what becomes of those that were accepted
  input  logic              frame_valid,
  input  logic              frame_accepted,
  output logic              frame_taken,
  output logic              rd_en,
  output logic [WORD_W-1:0] rd_word,
  input  logic [DATA_W-1:0] rd_data,
  input  placement_t        placement,
  input  logic              placement_valid,
  output logic              placement_taken,

  // a WRITE's packet begins, that of `placement`, and all beats before it have been taken
  output logic              job_valid,
  output logic [BeatW-1:0]  job_last,    // beats but one
  output placement_t        job,         // of the beats that leave

  output logic [DATA_W-1:0] m_data,
  output logic [LaneW-1:0]  m_first,     // lanes
  output logic [LaneW-1:0]  m_last,
  output logic              m_empty,     // no lane at all
  output logic              m_ends,      // of the packet or notice
  output logic              m_streams,   // to the stream, else to the memory
  output logic              m_notice,
  output logic              m_valid,
  input  logic              m_ready
);
  localparam int unsigned NoticeBytes = 12;
  localparam int unsigned NoticeBeats = (NoticeBytes + Bytes - 1) / Bytes;
  localparam int unsigned Kept = (ip_pkg::EthBytes + 40) / Bytes * Bytes;  // the first byte of a frame that is kept
  localparam int unsigned Headers = 54 - Kept;

  typedef enum logic [2:0] {
    StIdle,
    StFirst,   // the first word is here
    StBeats,   // and the next one
    StEnd,     // of a WRITE with immediate: address of its end,
    StStart,   // of its start
    StNotice
  } state_e;

  state_e state_q, state_d;

  // ---- where the payload is ------------------------------------------------------------------------------
  // Its first byte is in lane `source` of word `source_word`, and goes to lane `target`.
  logic [6:0]       at;
  logic [LaneW-1:0] source, target, shift, shift_q;
  logic [BeatW-1:0] last_beat;
  logic [LaneW-1:0] last_lane, last_lane_q, target_q;
  logic [PayloadLenW-1:0] last_byte;
  logic [BeatW-1:0] beat_q, last_beat_q;
  logic [WORD_W-1:0] word_q, first_word;
  placement_t job_q;
  assign at         = 7'(Headers) + (placement.has_reth ? 7'd16 : 7'd0) + (placement.has_imm ? 7'd4 : 7'd0);
  assign source     = at[LaneW-1:0];
  assign target     = placement.places ? placement.va[LaneW-1:0] : '0;
  assign shift      = source - target;
  assign first_word = WORD_W'(at >> LaneW) - WORD_W'(source < target);  // beat k has bytes of words k and k + 1
  assign last_byte  = PayloadLenW'(target) + placement.len - 1'b1;
  assign last_lane  = last_byte[LaneW-1:0];
  assign last_beat  = last_byte[PayloadLenW-1:LaneW];

  // ---- one placement after the other ----------------------------------------------------------------------
  logic ready_now, starts, has_payload, skips, discards, advances, at_end, ends_job;
  assign ready_now   = !m_valid || m_ready;
  assign skips       = frame_valid && !frame_accepted;
  assign starts      = state_q == StIdle && frame_valid && frame_accepted && placement_valid && ready_now;
  assign has_payload = (placement.places || placement.streams) && placement.len != '0;
  assign discards    = !placement.places && !placement.streams && !placement.notifies;
  assign advances    = ready_now && (state_q == StBeats || state_q == StNotice);
  assign at_end      = beat_q == last_beat_q;
  assign ends_job    = advances && at_end && (state_q == StNotice || !job_q.notifies);

  assign rd_en   = starts || state_q == StFirst || (state_q == StBeats && ready_now);
  assign rd_word = starts ? first_word : word_q;

  // The frame stays until its words have been read, a placement that has nothing to read goes at once.
  assign frame_taken     = (state_q == StIdle && skips) || (starts && !has_payload)
                         || (state_q == StBeats && advances && at_end);
  assign placement_taken = starts;
  assign job_valid       = starts && placement.places;
  assign job             = job_q;
  assign job_last        = last_beat;

  always_comb begin
    state_d = state_q;
    unique case (state_q)
      StIdle: if (starts) begin
        if (has_payload) state_d = StFirst;
        else if (placement.streams) state_d = StNotice;  // a SEND of no bytes: one beat without any
        else if (!discards) state_d = StEnd;
      end
      StFirst: state_d = StBeats;
      StBeats: if (advances && at_end) state_d = job_q.notifies ? StEnd : StIdle;
      StEnd:   state_d = StStart;
      StStart: state_d = StNotice;
      default: if (ends_job) state_d = StIdle;
    endcase
  end

  // ---- beats out --------------------------------------------------------------------------------------------
  logic [DATA_W-1:0]       before_q;
  logic [63:0]             va_q;
  logic [8*NoticeBytes-1:0] notice;
  logic [NoticeBeats-1:0][DATA_W-1:0] notice_beats;
  assign notice       = {job_q.length, va_q};
  assign notice_beats = (NoticeBeats * DATA_W)'(notice);

  always_ff @(posedge clk) begin
    state_q <= state_d;
    if (starts) begin
      job_q       <= placement;
      shift_q     <= shift;
      target_q    <= target;
      last_lane_q <= last_lane;
      last_beat_q <= has_payload ? last_beat : '0;
      beat_q      <= '0;
    end
    if (rd_en) word_q <= rd_word + 1'b1;
    if (state_q == StFirst || (state_q == StBeats && advances)) before_q <= rd_data;
    if (state_q == StEnd) va_q <= job_q.va + 64'(job_q.len);
    if (state_q == StStart) begin
      va_q        <= va_q - 64'(job_q.length);
      beat_q      <= '0;
      last_beat_q <= BeatW'(NoticeBeats - 1);
    end
    if (advances) begin
      beat_q    <= beat_q + 1'b1;
      m_ends    <= at_end;
      m_notice  <= job_q.notifies && state_q == StNotice;
      m_streams <= job_q.streams || state_q == StNotice;
      m_empty   <= state_q == StNotice && !job_q.notifies;
      if (state_q == StNotice) begin
        m_data  <= notice_beats[NoticeBeats == 1 ? 0 : 32'(beat_q)];
        m_first <= '0;
        m_last  <= at_end ? LaneW'(NoticeBytes - 1) : '1;
      end else begin
        m_data  <= DATA_W'({rd_data, before_q} >> {shift_q, 3'b000});
        m_first <= beat_q == '0 ? target_q : '0;
        m_last  <= at_end ? last_lane_q : '1;
      end
    end
    if (advances) m_valid <= 1'b1;
    else if (m_ready) m_valid <= 1'b0;
    if (rst) begin
      state_q <= StIdle;
      m_valid <= 1'b0;
    end
  end

`ifndef SYNTHESIS
  a_hold : assert property (@(posedge clk) disable iff (rst)
    m_valid && !m_ready |=> m_valid && $stable({m_data, m_first, m_last, m_ends, m_streams}));
`endif
endmodule
