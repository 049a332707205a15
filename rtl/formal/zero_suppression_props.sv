// SPDX-License-Identifier: SHL-2.1
// Promises of zero suppression: each accepted beat passes once; its bytes are counted in exactly one trailer; a word
// leaves if and only if its bit in the mask of its block is set; each block has one mask, of 64 words or the rest of
// the fragment, before the trailer; each fragment has one trailer; switched off, the stream passes unchanged.
// Proved at 64 bits, a word per beat. The proof of word_packer covers the order of words after the pieces; the bench
// compares the values (sample minus pedestal) with the model.
// Assumed: `enable` is constant; all beats except a fragment's last are full, and bytes are contiguous.
module zero_suppression_props
  import event_pkg::*;
  import stages_pkg::*;
#(
  parameter int unsigned DATA_W = 64
) (
  input logic                clk,
  input logic                rst,
  input hook_cfg_t           cfg,
  input logic [DATA_W-1:0]   s_axis_tdata,
  input logic [DATA_W/8-1:0] s_axis_tkeep,
  input fragment_t           s_axis_tuser,
  input logic                s_axis_tvalid,
  input logic                s_axis_tready,
  input logic                s_axis_tlast,
  input logic [DATA_W-1:0]   m_axis_tdata,
  input logic [DATA_W/8-1:0] m_axis_tkeep,
  input fragment_t           m_axis_tuser,
  input logic                m_axis_tvalid,
  input logic                m_axis_tready,
  input logic                m_axis_tlast,
  input logic                take,
  input logic                go,
  input logic                room3,
  input logic [1:0]          state_q,
  input logic                valid1_q,
  input logic                last1_q,
  input logic [7:0]          keep1_q,
  input logic                valid2_q,
  input logic                last2_q,
  input logic                filled2_q,
  input logic                stays2_q,
  input logic [3:0]          bytes2_q,
  input logic                valid3_q,
  input logic                last3_q,
  input logic                any3_q,
  input logic [3:0]          bytes3_q,
  input logic                stays3_q,
  input logic                kept3_q,
  input logic [5:0]          beat_q,
  input logic [63:0]         mask_q,
  input logic [31:0]         total_q,
  input logic                with_mask,
  input logic                count,
  input logic [DATA_W-1:0]   piece,
  input logic [DATA_W-1:0]   data3_q,
  input logic                piece_valid,
  input logic                piece_last
);
  localparam logic [1:0] StBeat = 2'd0, StMask = 2'd1, StTrailer = 2'd2;

  logic started_q = 1'b0;
  always_ff @(posedge clk) started_q <= 1'b1;
  always_comb if (!started_q) assume (rst);

  function automatic logic [3:0] bytes_of(logic [7:0] keep);
    bytes_of = '0;
    for (int i = 0; i < 8; i++) bytes_of += 4'(keep[i]);
  endfunction

  logic enable_q;
  always_ff @(posedge clk) enable_q <= cfg.enable;
  always_comb begin
    if (started_q) assume (cfg.enable == enable_q);
    assume ((s_axis_tkeep & (s_axis_tkeep + 8'd1)) == '0);
    if (!s_axis_tlast) assume (s_axis_tkeep == '1);
  end

  // ---- the proof's accounts ------------------------------------------------------------------------------
  logic passes, masks, ends, in_beat;
  logic [31:0] taken_q, reported_q;       // bytes taken; those that trailers have reported
  logic [31:0] beats_in_q, beats_out_q;
  logic [31:0] lasts_q, trailers_q;
  logic [6:0] block_q;                    // words since the last mask
  assign in_beat = state_q == StBeat;
  assign passes  = go && in_beat;
  assign masks   = go && (state_q == StMask || (in_beat && with_mask));
  assign ends    = go && state_q == StTrailer;

  // One place in a block, any: was its word sent since the last mask?
  logic [5:0] place, place_q;
  logic sent_q;
  anything #(.W(6)) u_place (.value(place));
  always_ff @(posedge clk) place_q <= place;
  always_comb if (started_q) assume (place == place_q);

  always_ff @(posedge clk) begin
    if (take) begin
      taken_q    <= taken_q + 32'(bytes_of(s_axis_tkeep));
      beats_in_q <= beats_in_q + 32'd1;
      lasts_q    <= lasts_q + 32'(s_axis_tlast);
    end
    if (passes) begin
      beats_out_q <= beats_out_q + 32'd1;
      block_q     <= block_q + 7'(any3_q);
      if (beat_q == place) sent_q <= piece_valid && count && !with_mask;
    end
    if (masks) begin
      block_q <= '0;
      sent_q  <= 1'b0;
    end
    if (ends) begin
      reported_q <= reported_q + piece[31:0];
      trailers_q <= trailers_q + 32'd1;
    end
    if (rst) begin
      {taken_q, reported_q, beats_in_q, beats_out_q, lasts_q, trailers_q} <= '0;
      block_q <= '0;
      sent_q  <= 1'b0;
    end
  end

  always_comb if (started_q && !rst && cfg.enable) begin
    // stages
    if (valid1_q) a_0_one : assert ((keep1_q & (keep1_q + 8'd1)) == '0 && (last1_q || keep1_q == '1));
    if (valid2_q) a_0_two : assert (last2_q || (filled2_q && bytes2_q == 4'd8));
    if (valid2_q) a_0_filled : assert (filled2_q == (bytes2_q != '0) && bytes2_q <= 4'd8);
    if (valid3_q) a_0_three : assert ((last3_q || any3_q) && any3_q == (bytes3_q != '0) && bytes3_q <= 4'd8);
    if (valid3_q) a_0_kept : assert (kept3_q == stays3_q && (!kept3_q || any3_q));
    if (valid2_q) a_0_stays : assert (!stays2_q || filled2_q);
    a_0_state : assert (in_beat || valid3_q);
    a_0_trailer : assert (state_q != 2'd3 && (state_q != StTrailer || last3_q));
    a_0_above : assert (!in_beat || mask_q >> beat_q == '0);
    a_0_block : assert (in_beat ? block_q == 7'(beat_q) : state_q == StMask || block_q == '0);
    a_0_full : assert (state_q != StMask || last3_q || block_q == 7'd64);
    a_0_bound : assert (block_q <= 7'd64);
    a_0_mask : assert (state_q != StTrailer || mask_q == '0);
    a_0_begins : assert (in_beat || beat_q == '0);
    a_0_place : assert (mask_q[place] == sent_q);

    a_beats : assert (beats_in_q == beats_out_q + 32'(valid1_q) + 32'(valid2_q) + 32'(valid3_q && in_beat));
    a_bytes : assert (taken_q == reported_q + total_q + (valid1_q ? 32'(bytes_of(keep1_q)) : '0)
                                 + (valid2_q ? 32'(bytes2_q) : '0) + (valid3_q && in_beat ? 32'(bytes3_q) : '0));
    a_trailers : assert (lasts_q == trailers_q + 32'(valid1_q && last1_q) + 32'(valid2_q && last2_q)
                                    + 32'(valid3_q && last3_q));
    // A last beat moves on with its trailer alone.
    if (valid3_q && last3_q && room3) a_last : assert (ends);
    if (ends) a_trailer : assert (piece_valid && piece_last && piece[63:32] == SuppressedMagic && piece[31:0] == total_q);
    if (ends) a_masked : assert (block_q == '0);
    if (go && !ends) a_inside : assert (!piece_last);
    // What leaves: a word with its bit, or the mask.
    if (masks) a_mask : assert (piece_valid && count && piece[place]
                                == (sent_q || (in_beat && beat_q == place && kept3_q)));
    if (masks) a_whole : assert (last3_q || block_q + 7'(in_beat && any3_q) == 7'd64);
    if (passes && kept3_q) a_word : assert (piece_valid && count && piece == data3_q);
    c_total : cover (ends && total_q > 32'd8);
    c_kept : cover (state_q == StMask && go);
    c_left_out : cover (passes && !kept3_q && any3_q && !with_mask);
    c_masked : cover (passes && with_mask);
    c_empty : cover (ends && total_q == '0);
  end
  always_comb if (started_q && !rst && !cfg.enable) begin
    a_pass : assert ({m_axis_tdata, m_axis_tkeep, m_axis_tuser, m_axis_tvalid, m_axis_tlast, s_axis_tready}
                     == {s_axis_tdata, s_axis_tkeep, s_axis_tuser, s_axis_tvalid, s_axis_tlast, m_axis_tready});
    c_pass : cover (m_axis_tvalid && m_axis_tready);
  end
endmodule

bind zero_suppression zero_suppression_props #(.DATA_W(DATA_W)) u_props (.state_q(2'(state_q)), .*);
