// SPDX-License-Identifier: SHL-2.1
// Promises of the store of payloads: a word that is here is not written over until its frame has left; a frame that is
// kept has all its beats from the one with the end of the BTH on, up to the longest packet, one after the other; frames
// leave in the order of their arrival, each with its words. One word, any one, is watched. Assumed: only frames that are
// here are taken (the memory keeps one arbitrary word).
module receive_store_props
  import penstock_pkg::*;
#(
  parameter  int unsigned DATA_W   = 64,
  parameter  int unsigned BYTES    = 16384,
  parameter  int unsigned FRAMES   = 16,
  localparam int unsigned Bytes    = DATA_W / 8,
  localparam int unsigned First    = (ip_pkg::EthBytes + 40) / Bytes,
  localparam int unsigned MaxWords = (54 + 20 + 4096 + Bytes - 1) / Bytes - First,
  localparam int unsigned Words    = BYTES / Bytes,
  localparam int unsigned PtrW     = $clog2(Words),
  localparam int unsigned WordW    = $clog2(MaxWords + 1),
  localparam int unsigned CountW   = $clog2(FRAMES) + 1
) (
  input logic              clk,
  input logic              rst,
  input logic              s_axis_tvalid,
  input logic              s_axis_tlast,
  input logic              kept,
  input logic              accepted,
  input logic              m_valid,
  input logic              m_taken,
  // inside
  input logic              begins, keeps, keeping_q, frame_ends,
  input logic [PtrW-1:0]   head_q, tail_q,
  input logic [PtrW:0]     used_q,
  input logic [CountW-1:0] frames_q,
  input logic [WordW-1:0]  words_q, m_words, words, line_words,
  input logic [7:0]        line_kept, counted
);
  logic started_q = 1'b0;
  always_ff @(posedge clk) started_q <= 1'b1;

  // ---- words of frames that have ended and not left; those of the frame that comes in ---------------------
  logic [PtrW:0] whole_q, begun_q;
  logic [7:0]    beat_q;  // of the frame
  logic          ended;
  assign ended = frame_ends && (begins || keeping_q);
  always_ff @(posedge clk) begin
    whole_q <= whole_q + (ended ? (PtrW + 1)'(words) : '0) - (m_taken ? (PtrW + 1)'(m_words) : '0);
    if (s_axis_tvalid) begun_q <= s_axis_tlast ? '0 : begun_q + (PtrW + 1)'(keeps);
    if (s_axis_tvalid) beat_q <= s_axis_tlast ? '0 : beat_q == '1 ? '1 : beat_q + 1'b1;
    if (rst) {whole_q, begun_q, beat_q} <= '0;
  end

  always_comb begin
    assume (rst == !started_q);
    if (m_taken) assume (m_valid && (PtrW + 1)'(m_words) <= whole_q && frames_q != '0);
    assume (!accepted || kept);
  end

  always_comb if (started_q && !rst) begin
    // Invariants for the induction.
    a_0_used : assert (used_q == whole_q + begun_q && 32'(used_q) <= Words);
    a_0_place : assert (PtrW'(head_q - tail_q) == PtrW'(used_q));
    if (keeping_q) a_0_words : assert (32'(words_q) <= MaxWords && (PtrW + 1)'(words_q) == begun_q);
    if (!keeping_q) a_0_none : assert (begun_q == '0);
    a_0_beat : assert (32'(counted) == (32'(beat_q) > First ? First + 1 : 32'(beat_q)));
    a_0_frames : assert (32'(frames_q) <= FRAMES);
    if (keeping_q) a_0_room : assert (32'(whole_q) <= Words - MaxWords && words_q != '0 && 32'(beat_q) > First);

    if (keeps) a_not_over : assert (32'(used_q) < Words);
    if (begins && s_axis_tvalid) a_first : assert (32'(beat_q) == First && 32'(used_q) + MaxWords <= Words);
    if (s_axis_tvalid && (begins || keeping_q)) a_all : assert (keeps || 32'(words_q) == MaxWords);
    if (s_axis_tvalid && !begins && !keeping_q) a_no_part : assert (!keeps);
    if (ended) a_words : assert (words != '0 && (PtrW + 1)'(words) == begun_q + (PtrW + 1)'(keeps));
    if (s_axis_tvalid && begins) a_frames : assert (32'(frames_q) < FRAMES);

    c_kept : cover (kept);
    c_two : cover (begins && s_axis_tvalid && frames_q == CountW'(1));
    c_leaves : cover (m_taken && m_words > 1);
  end
  wire unused = &{1'b0, line_words, line_kept};
endmodule

bind receive_store receive_store_props #(.DATA_W(DATA_W), .BYTES(BYTES), .FRAMES(FRAMES)) u_props (
  .counted   (8'(beat_q)),
  .line_words(line_q[8].words),
  .line_kept ({line_q[8].kept, line_q[7].kept, line_q[6].kept, line_q[5].kept, line_q[4].kept, line_q[3].kept,
               line_q[2].kept, line_q[1].kept}),
  .*
);
