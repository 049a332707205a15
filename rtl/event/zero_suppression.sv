// SPDX-License-Identifier: SHL-2.1
// A stage between an input and the merger: subtracts pedestals from 16-bit samples and omits words of four samples that
// all stay below their thresholds. The example of user processing; equal to the bit to
// `suppress` of crates/wire/src/fragment/suppression.rs, which defines the output (docs/fragments.md).
//   - A sample's value is sample - pedestal, saturated to 16 bits signed. Its word is kept if value >= threshold for
//     one of the word's samples. Samples and values are little-endian; the unfilled part of the last word is ignored.
//   - Pedestals and thresholds have a row for each beat: row (beat / hold) modulo rows, and a column per sample.
//   - After each 64 words comes their mask, after the last mask the trailer.
// Promise: one beat per cycle, plus one cycle if all words of a block's last beat are kept, and one for each trailer.
//
//   beat, row of the table -> values, which are kept -> kept words, packed -> with mask or trailer -> word_packer
module zero_suppression
  import event_pkg::*;
  import stages_pkg::*;
  import ctrl_pkg::reg_req_t, ctrl_pkg::reg_rsp_t, ctrl_pkg::table_fill_t;
#(
  parameter  int unsigned DATA_W = 64,
  parameter  int unsigned ROWS   = 64,  // of the table
  localparam int unsigned Bytes  = DATA_W / 8
) (
  input  logic              clk,
  input  logic              rst,
  input  hook_cfg_t         cfg,           // changes only while no fragment is inside

  input  logic [DATA_W-1:0] s_axis_tdata,
  input  logic [Bytes-1:0]  s_axis_tkeep,  // all ones but in the last beat
  input  fragment_t         s_axis_tuser,  // in the first beat
  input  logic              s_axis_tvalid,
  output logic              s_axis_tready,
  input  logic              s_axis_tlast,

  output logic [DATA_W-1:0] m_axis_tdata,
  output logic [Bytes-1:0]  m_axis_tkeep,
  output fragment_t         m_axis_tuser,
  output logic              m_axis_tvalid,
  input  logic              m_axis_tready,
  output logic              m_axis_tlast,

  // The table: word row * (DATA_W / 16) + column, pedestal in 15:0, threshold in 31:16. An access holds the stream for
  // two cycles and is answered even while the stream is stopped. Peers fill DATA_W bits of it in a cycle, which holds
  // nothing but software's write.
  input  reg_req_t          req,
  output reg_rsp_t          rsp,
  input  table_fill_t       fill,
  input  logic [DATA_W-1:0] fill_data,

  output logic              stat_fragment,
  output logic [4:0]        stat_words,    // taken in this cycle
  output logic [4:0]        stat_kept      // of them
);
  localparam int unsigned Words   = DATA_W / 64;
  localparam int unsigned Lanes   = DATA_W / 16;
  localparam int unsigned CountW  = $clog2(Words + 1);
  localparam int unsigned RowW    = $clog2(ROWS);
  localparam int unsigned LaneW   = $clog2(Lanes);
  localparam int unsigned Beats   = 64 / Words;  // of a block
  localparam int unsigned BeatW   = $clog2(Beats);

  if (ROWS < 2 || ROWS * Lanes * 4 > 65536) begin : gen_bad_rows
    $fatal(1, "%m: ROWS is %0d; 2 to %0d rows are possible", ROWS, 16384 / Lanes);
  end

  typedef struct packed {
    logic [15:0] threshold;
    logic [15:0] pedestal;
  } entry_t;

  logic take, room1, room2, room3;  // room: the stage is empty, or its contents advance
  logic accessed;                   // by software: the first stage stalls
  logic valid1_q, valid2_q, valid3_q;

  // ---- 1: the beat and its row ------------------------------------------------------------------------
  logic [DATA_W-1:0] data1_q;
  logic [Bytes-1:0] keep1_q;
  logic last1_q, first_q, user_room;
  logic [RowW-1:0] row_q, row1_q;  // of the next beat; of the one in this stage
  logic [15:0] held_q;             // beats of this row
  entry_t [Lanes-1:0] entries;

  // ---- software: read the row; change its entry; read the row of the beat that waits again --------------------
  typedef enum logic [1:0] {StIdle, StRead, StAnswer} access_e;
  access_e access_q;
  logic [LaneW-1:0] column;
  logic [RowW-1:0] access_row;
  logic in_table, writes;
  logic [31:0] changed;
  assign column     = req.addr[LaneW+1:2];
  assign access_row = RowW'(req.addr >> (LaneW + 2));
  assign in_table   = 32'(req.addr) < ROWS * Lanes * 4;
  assign accessed   = access_q != StIdle;
  assign writes     = access_q == StAnswer && req.is_wr && in_table && !fill.valid;
  assign changed    = (entries[column] & ~req.wr_biten) | (req.wr_data & req.wr_biten);

  always_ff @(posedge clk) begin
    rsp <= '0;
    unique case (access_q)
      StIdle: if (req.valid) access_q <= StRead;
      StRead: access_q <= StAnswer;
      default:
        if (fill.valid && req.is_wr) access_q <= StRead;
        else begin
          access_q <= StIdle;
          rsp      <= '{rd_ack: !req.is_wr, wr_ack: req.is_wr, rd_data: req.is_wr || !in_table ? '0 : entries[column]};
        end
    endcase
    if (rst) begin
      access_q <= StIdle;
      rsp      <= '0;
    end
  end

  // A row is two words of peers.
  logic fill_half;
  logic [RowW-1:0] fill_row;
  assign fill_half = fill.addr[LaneW+1];
  assign fill_row  = RowW'(fill.addr >> (LaneW + 2));

  for (genvar i = 0; i < int'(Lanes); i++) begin : gen_table
    ram_sdp #(.W(32), .DEPTH(ROWS), .BLOCK(1'b1)) u_entries (
      .clk,
      .wr_en  (fill.valid ? fill_half == 1'(i / (Lanes / 2)) && fill.words[i%(Lanes/2)] : writes && column == LaneW'(i)),
      .wr_addr(fill.valid ? fill_row : access_row),
      .wr_data(fill.valid ? fill_data[32*(i%(Lanes/2))+:32] : changed),
      .rd_en  (take || accessed),
      .rd_addr(access_q == StRead ? access_row : access_q == StAnswer ? row1_q : row_q),
      .rd_data(entries[i])
    );
  end

  assign take = s_axis_tvalid && s_axis_tready && cfg.enable;

  always_ff @(posedge clk) begin
    if (take) begin
      valid1_q <= 1'b1;
      data1_q  <= s_axis_tdata;
      keep1_q  <= s_axis_tkeep;
      last1_q  <= s_axis_tlast;
      row1_q   <= row_q;
      first_q  <= s_axis_tlast;
      held_q   <= held_q + 16'd1;
      if (held_q + 16'd1 >= cfg.hold) begin
        held_q <= '0;
        row_q  <= 16'(row_q) + 16'd1 >= cfg.rows || row_q == RowW'(ROWS - 1) ? '0 : row_q + 1'b1;
      end
      if (s_axis_tlast) {held_q, row_q} <= '0;
    end else if (room2 && !accessed) valid1_q <= 1'b0;
    if (rst) begin
      valid1_q <= 1'b0;
      first_q  <= 1'b1;
      {held_q, row_q} <= '0;
    end
  end

  // ---- 2: values, and which words stay ----------------------------------------------------------------
  logic [DATA_W-1:0] values, data2_q;
  logic [Lanes-1:0] over;
  logic [Words-1:0] stays, stays2_q, filled, filled2_q;
  logic last2_q;
  logic [$clog2(Bytes):0] n_bytes, bytes2_q;

  for (genvar i = 0; i < int'(Lanes); i++) begin : gen_value
    logic signed [16:0] difference;
    logic signed [15:0] value;
    logic here;
    assign here       = &keep1_q[2*i+:2];
    assign difference = $signed({1'b0, data1_q[16*i+:16]}) - $signed({1'b0, entries[i].pedestal});
    assign value      = difference > 17'sd32767 ? 16'sh7FFF : difference < -17'sd32768 ? 16'sh8000 : difference[15:0];
    assign over[i]    = here && value >= $signed(entries[i].threshold);
    assign values[16*i+:16] = here ? value : '0;
  end
  for (genvar w = 0; w < int'(Words); w++) begin : gen_stays
    assign stays[w]  = |over[4*w+:4];
    assign filled[w] = keep1_q[8*w];
  end
  always_comb begin
    n_bytes = '0;
    for (int i = 0; i < int'(Bytes); i++) n_bytes += ($bits(n_bytes))'(keep1_q[i]);
  end

  always_ff @(posedge clk) begin
    if (room2) begin
      data2_q   <= values;
      stays2_q  <= stays;
      filled2_q <= filled;
      last2_q   <= last1_q;
      bytes2_q  <= n_bytes;
    end
    if (room2) valid2_q <= valid1_q && !accessed;
    if (rst) valid2_q <= 1'b0;
  end

  // ---- 3: words that stay close up --------------------------------------------------------------------
  logic [DATA_W-1:0] closed, data3_q;
  logic [CountW-1:0] kept, kept3_q;
  logic [Words-1:0] stays3_q;
  logic any3_q, last3_q;
  logic [$clog2(Bytes):0] bytes3_q;

  always_comb begin
    closed = '0;
    kept   = '0;
    for (int w = 0; w < int'(Words); w++) begin
      for (int to = 0; to <= w; to++)
        if (stays2_q[w] && kept == CountW'(to)) closed[64*to+:64] = data2_q[64*w+:64];
      kept += CountW'(stays2_q[w]);
    end
  end

  always_ff @(posedge clk) begin
    if (room3) begin
      data3_q  <= closed;
      kept3_q  <= kept;
      stays3_q <= stays2_q;
      any3_q   <= filled2_q[0];
      last3_q  <= last2_q;
      bytes3_q <= bytes2_q;
    end
    if (room3) valid3_q <= valid2_q;
    if (rst) valid3_q <= 1'b0;
  end

  // ---- what goes to the packer: words with the block's mask, a mask alone, or the trailer ----------------
  typedef enum logic [1:0] {StBeat, StMask, StTrailer} state_e;
  state_e state_q, state_d;
  logic [BeatW-1:0] beat_q;       // of the block
  logic [63:0] mask_q, mask;
  logic [31:0] total_q;           // bytes of the fragment before this beat
  logic ends_block, with_mask, piece_valid, piece_ready, piece_last, go;
  logic [DATA_W-1:0] piece;
  logic [CountW-1:0] count;

  assign mask       = mask_q | (64'(stays3_q) << (32'(beat_q) * Words));
  assign ends_block = (last3_q || beat_q == BeatW'(Beats - 1)) && (any3_q || beat_q != '0);
  assign with_mask  = ends_block && kept3_q != CountW'(Words);

  always_comb begin
    piece      = data3_q;
    count      = kept3_q;
    piece_last = 1'b0;
    unique case (state_q)
      StMask: begin
        piece = DATA_W'(mask_q);
        count = CountW'(1);
      end
      StTrailer: begin
        piece      = DATA_W'({SuppressedMagic, total_q});
        count      = CountW'(1);
        piece_last = 1'b1;
      end
      default: begin
        for (int w = 0; w < int'(Words); w++)
          if (with_mask && kept3_q == CountW'(w)) piece[64*w+:64] = mask;
        count = kept3_q + CountW'(with_mask);
      end
    endcase
  end
  assign piece_valid = valid3_q && count != '0;
  assign go          = valid3_q && (piece_ready || count == '0);

  always_comb begin
    state_d = state_q;
    room3   = !valid3_q;
    if (go) begin
      unique case (state_q)
        StBeat: state_d = ends_block && !with_mask ? StMask : last3_q ? StTrailer : StBeat;
        StMask: state_d = last3_q ? StTrailer : StBeat;
        default: state_d = StBeat;
      endcase
      room3 = state_d == StBeat;
    end
  end
  assign room2 = room3 || !valid2_q;
  assign room1 = (room2 || !valid1_q) && !accessed;

  always_ff @(posedge clk) begin
    state_q <= state_d;
    if (go && state_q == StBeat) begin
      total_q <= total_q + 32'(bytes3_q);
      mask_q  <= mask;
      beat_q  <= beat_q + 1'b1;
      if (ends_block && with_mask) mask_q <= '0;
      if (last3_q) beat_q <= '0;
    end
    if (go && state_q == StMask) mask_q <= '0;
    if (go && state_q == StTrailer) total_q <= '0;
    stat_fragment <= go && state_q == StTrailer && !rst;
    stat_words    <= go && state_q == StBeat ? 5'((32'(bytes3_q) + 7) >> 3) : '0;
    stat_kept     <= go && state_q == StBeat ? 5'(kept3_q) : '0;
    if (rst) begin
      state_q <= StBeat;
      beat_q  <= '0;
      mask_q  <= '0;
      total_q <= '0;
    end
  end

  logic [DATA_W-1:0] packed_data;
  logic [CountW-1:0] packed_count;
  logic packed_last, packed_valid, packed_ready;
  word_packer #(.DATA_W(DATA_W)) u_packer (
    .clk, .rst,
    .s_data (piece),
    .s_count(count),
    .s_last (piece_last),
    .s_valid(piece_valid),
    .s_ready(piece_ready),
    .m_data (packed_data),
    .m_count(packed_count),
    .m_last (packed_last),
    .m_valid(packed_valid),
    .m_ready(packed_ready)
  );

  // ---- number, time and type go around ------------------------------------------------------------------
  fragment_t about;
  logic unused_about;
  logic [3:0] unused_level;
  sync_fifo #(.W($bits(fragment_t)), .DEPTH(8)) u_about (
    .clk, .rst,
    .s_data (s_axis_tuser),
    .s_valid(take && first_q),
    .s_ready(user_room),
    .m_data (about),
    .m_valid(unused_about),
    .m_ready(packed_valid && packed_ready && packed_last),
    .level  (unused_level)
  );

  // ---- off: the stream passes ---------------------------------------------------------------------------
  assign packed_ready  = m_axis_tready && cfg.enable;
  assign s_axis_tready = cfg.enable ? room1 && (user_room || !first_q) : m_axis_tready;
  always_comb begin
    m_axis_tdata  = s_axis_tdata;
    m_axis_tkeep  = s_axis_tkeep;
    m_axis_tuser  = s_axis_tuser;
    m_axis_tvalid = s_axis_tvalid;
    m_axis_tlast  = s_axis_tlast;
    if (cfg.enable) begin
      m_axis_tdata  = packed_data;
      for (int i = 0; i < int'(Bytes); i++) m_axis_tkeep[i] = CountW'(i / 8) < packed_count;
      m_axis_tuser  = about;
      m_axis_tvalid = packed_valid;
      m_axis_tlast  = packed_last;
    end
  end

`ifndef SYNTHESIS
  a_full : assert property (@(posedge clk) disable iff (rst) s_axis_tvalid && !s_axis_tlast |-> &s_axis_tkeep)
    else $error("%m: tkeep = %h inside a fragment, must be all ones", s_axis_tkeep);
`endif
  wire unused = &{1'b0, req, fill, filled2_q};
endmodule
