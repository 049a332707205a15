// SPDX-License-Identifier: SHL-2.1
// Transmit MAC for 64-bit XGMII: preamble, padding to 60 octets, FCS and a gap of 12 octets on average.
// The stream must not bubble inside a frame: an underrun ends the frame with /E/ and drops its rest.
// During a link fault, frames are accepted and dropped: the MAC sends remote fault on a local fault, idle on a remote
// one.
// Source: IEEE 802.3 clauses 3 (frame), 46.3.1 (XGMII), 46.3.1.4 (deficit idle count), 46.3.4 (faults).
//
//   s_axis --> StGap/StData/.. --> a: word, n --> b: word, FCS, /T/ --> lane rotator --> xgmii
//                                     +-- CRC --------^
//
// All logic before the rotator works as if each frame started in lane 0. The rotator delays the
// upper half of every word by one cycle while a frame that starts in lane 4 passes.
module mac_tx_xgmii
  import xgmii_pkg::*;
#(
  parameter bit CRC_TABLES = 1'b1
) (
  input  logic        clk,
  input  logic        rst,
  input  logic [63:0] s_axis_tdata,  // frames from destination MAC to the last octet before the FCS
  input  logic [7:0]  s_axis_tkeep,
  input  logic        s_axis_tvalid,
  output logic        s_axis_tready,
  input  logic        s_axis_tlast,
  output logic [63:0] xgmii_txd,
  output logic [7:0]  xgmii_txc,
  input  logic        local_fault,
  input  logic        remote_fault,
  output logic        stat_frame,     // pulse: a frame ended with a good FCS
  output logic [15:0] stat_bytes,     // its octets with padding and FCS, valid with stat_frame
  output logic        stat_underrun,  // pulse: a frame ended with /E/
  output logic        stat_dropped    // pulse: a frame that a link fault swallowed
);
  localparam logic [63:0] IdleWord     = {8{XgmiiIdle}};
  localparam logic [63:0] PreambleWord = {OctetSfd, {6{OctetPreamble}}, XgmiiStart};
  localparam logic [63:0] ErrorWord    = {XgmiiTerm, {7{XgmiiError}}};
  localparam logic [63:0] FaultWord    = {2{8'h02, 16'h0, XgmiiSequence}};
  localparam logic [31:0] StartRoot    = crc32_pkg::root('1, 64);  // of the CRC's start value
  localparam logic [12:0] LastMinWord  = 13'd7;  // 60 octets are 7 words and 4 octets
  localparam logic [3:0]  LastMinCount = 4'd4;

  typedef enum logic [1:0] {
    StGap,   // idle columns, then waiting for a frame
    StData,  // one word of the frame a cycle
    StPad,   // zeros up to 60 octets
    StDrop   // the rest of a frame that ran dry or met a link fault
  } state_e;

  typedef enum logic [2:0] {
    KindIdle,
    KindPreamble,
    KindData,
    KindLast,   // the word's first n octets end the frame
    KindError
  } kind_e;

  // ---- framing ------------------------------------------------------------------------------
  state_e      state_d, state_q;
  kind_e       kind_d, a_kind_q, b_kind_q;
  logic [63:0] word_d, a_word_q, b_word_q;
  logic [3:0]  count_d, a_count_q, b_count_q;  // octets of the word that belong to the frame
  logic [12:0] index_d, index_q;               // word of the frame
  logic        frame_end, down, dropped;
  logic [1:0]  gap_d, gap_q;                   // cycles until the next preamble may follow
  logic [63:0] keep_mask;

  for (genvar i = 0; i < 8; i++) begin : gen_mask
    assign keep_mask[8*i+:8] = {8{s_axis_tkeep[i]}};
  end

  assign s_axis_tready = state_q == StData || state_q == StDrop;
  assign down          = local_fault || remote_fault;

  always_comb begin
    state_d = state_q;
    kind_d  = KindIdle;
    word_d  = s_axis_tdata;
    count_d = 4'd8;
    index_d = index_q + 13'd1;
    dropped = 1'b0;
    unique case (state_q)
      StGap: begin
        index_d = '0;
        if (gap_q == '0 && s_axis_tvalid) begin
          kind_d  = down ? KindIdle : KindPreamble;
          state_d = down ? StDrop : StData;
          dropped = down;
        end
      end

      StData: begin
        kind_d = KindData;
        if (down) begin
          kind_d  = KindIdle;
          state_d = s_axis_tvalid && s_axis_tlast ? StGap : StDrop;
          dropped = 1'b1;
        end else if (!s_axis_tvalid) begin
          kind_d  = KindError;
          state_d = StDrop;
        end else if (s_axis_tlast) begin
          word_d = s_axis_tdata & keep_mask;  // padding is zeros
          if (index_q < LastMinWord) begin
            state_d = StPad;
          end else begin
            kind_d  = KindLast;
            count_d = 4'(penstock_pkg::keep_bytes(64'(s_axis_tkeep)));
            if (index_q == LastMinWord && count_d < LastMinCount) count_d = LastMinCount;
            state_d = StGap;
          end
        end
      end

      StPad: begin
        kind_d = KindData;
        word_d = '0;
        if (down) begin
          kind_d  = KindIdle;
          state_d = StGap;
          dropped = 1'b1;
        end else if (index_q == LastMinWord) begin
          kind_d  = KindLast;
          count_d = LastMinCount;
          state_d = StGap;
        end
      end

      StDrop: if (s_axis_tvalid && s_axis_tlast) state_d = StGap;
    endcase
  end

  assign frame_end = kind_d == KindLast || kind_d == KindError;

  // ---- gap ----------------------------------------------------------------------------------
  // Frames start in whole columns of four octets. A frame that ends r octets into a column is
  // followed by the rest of that column and two idle columns: 12-r octets. The missing octets add
  // up in the deficit; when they make a column, a third idle column pays them back.
  logic       lane4_d, lane4_q;      // the next (or present) frame starts in lane 4
  logic [1:0] deficit_d, deficit_q;
  logic       extra_column;
  logic [3:0] end_count;
  logic [2:0] columns;               // from the first word after /T/ to the next start

  always_comb begin
    lane4_d   = lane4_q;
    deficit_d = deficit_q;
    gap_d     = gap_q;
    // /T/ is in lane count+4; the error word ends as a frame with 3 octets does, in lane 7.
    end_count    = kind_d == KindError ? 4'd3 : count_d;
    extra_column = 1'b0;
    columns      = '0;
    if (frame_end) begin
      {extra_column, deficit_d} = 3'(deficit_q) + 3'(end_count[1:0]);
      // With 4 to 7 octets /T/ spills into the lower half of the next word, whose upper half is
      // the first idle column.
      unique case ({extra_column, lane4_q, end_count[2]})
        3'b001:                 columns = 3'd1;
        3'b000, 3'b011, 3'b101: columns = 3'd2;
        3'b010, 3'b100, 3'b111: columns = 3'd3;
        3'b110:                 columns = 3'd4;
      endcase
      gap_d   = columns[2:1] + 2'(end_count >= 4'd4);
      lane4_d = columns[0];
    end else if (state_q == StGap && gap_q != '0) begin
      gap_d = gap_q - 2'd1;
    end else if (state_q == StGap && kind_d == KindIdle) begin
      lane4_d   = 1'b0;  // nothing to send in time: the gap has grown, no debt is left
      deficit_d = '0;
    end
  end

  // ---- FCS and end of frame -------------------------------------------------------------------
  logic [31:0]  added, root_d, root_q;  // of the CRC: the contribution of a_word_q, after it, before it
  logic [31:0]  crc;                    // after b_word_q
  logic         a_lane4_q, b_lane4_q;
  logic [127:0] tail;
  logic [15:0]  tail_c;
  logic [63:0]  line, spill_q;
  logic [7:0]   line_c, spill_c_q;

  crc32_word #(.DATA_W(64), .TABLES(CRC_TABLES)) u_crc (
    .clk,
    .data (word_d),
    .added(added)
  );

  // Unused octets of the last word are zeros.
  assign root_d = crc32_pkg::next_bit(root_q) ^ added;
  crc32_end #(.DATA_W(64), .TABLES(CRC_TABLES)) u_end (
    .clk,
    .root (root_d),
    .steps(3'd0 - a_count_q[2:0]),
    .state(crc)
  );

  // The last word, the FCS after its octets, /T/ and idle; the upper half is sent a cycle later.
  assign tail   = 128'({{11{XgmiiIdle}}, XgmiiTerm, ~crc}) << {b_count_q, 3'b000};
  assign tail_c = 16'hFFF0 << b_count_q;

  always_comb begin
    line   = spill_q;
    line_c = spill_c_q;
    unique case (b_kind_q)
      KindPreamble: {line_c, line} = {8'h01, PreambleWord};
      KindData:     {line_c, line} = {8'h00, b_word_q};
      KindLast:     {line_c, line} = {tail_c[7:0], tail[63:0] | b_word_q};
      KindError:    {line_c, line} = {8'hFF, ErrorWord};
      default: ;
    endcase
  end

  logic [31:0] upper_q;
  logic [3:0]  upper_c_q;

  always_ff @(posedge clk) begin
    state_q   <= state_d;
    index_q   <= index_d;
    lane4_q   <= lane4_d;
    deficit_q <= deficit_d;
    gap_q     <= gap_d;

    a_kind_q  <= kind_d;
    a_word_q  <= word_d;
    a_count_q <= count_d;
    if (kind_d == KindPreamble) a_lane4_q <= lane4_q;

    b_kind_q  <= a_kind_q;
    b_word_q  <= a_word_q;
    b_count_q <= a_count_q;
    b_lane4_q <= a_lane4_q;
    root_q    <= a_kind_q == KindPreamble ? StartRoot : root_d;

    spill_q   <= b_kind_q == KindLast ? tail[127:64] : IdleWord;
    spill_c_q <= b_kind_q == KindLast ? tail_c[15:8] : 8'hFF;

    {upper_c_q, upper_q} <= {line_c[7:4], line[63:32]};
    xgmii_txd <= b_lane4_q ? {line[31:0], upper_q} : line;
    xgmii_txc <= b_lane4_q ? {line_c[3:0], upper_c_q} : line_c;
    if (local_fault) {xgmii_txc, xgmii_txd} <= {8'h11, FaultWord};
    else if (remote_fault) {xgmii_txc, xgmii_txd} <= {8'hFF, IdleWord};

    stat_frame    <= kind_d == KindLast;
    stat_bytes    <= {index_q, 3'b000} + 16'(count_d) + 16'd4;
    stat_underrun <= kind_d == KindError;
    stat_dropped  <= dropped;

    if (rst) begin
      state_q       <= StGap;
      gap_q         <= '0;
      deficit_q     <= '0;
      lane4_q       <= 1'b0;
      a_lane4_q     <= 1'b0;
      b_lane4_q     <= 1'b0;
      a_kind_q      <= KindIdle;
      b_kind_q      <= KindIdle;
      spill_q       <= IdleWord;
      spill_c_q     <= '1;
      xgmii_txd     <= IdleWord;
      xgmii_txc     <= '1;
      stat_frame    <= 1'b0;
      stat_underrun <= 1'b0;
      stat_dropped  <= 1'b0;
    end
  end

`ifndef SYNTHESIS
  a_keep_full : assert property (@(posedge clk) disable iff (rst)
    s_axis_tvalid && s_axis_tready && !s_axis_tlast |-> s_axis_tkeep == '1);
  a_keep_contiguous : assert property (@(posedge clk) disable iff (rst)
    s_axis_tvalid && s_axis_tready |-> s_axis_tkeep[0] && (s_axis_tkeep & (s_axis_tkeep + 8'd1)) == '0);
  a_down : assert property (@(posedge clk) disable iff (rst)
    down |-> kind_d == KindIdle);
  // A frame in lane 0 overwrites what the rotator still holds: that must be idle by then.
  a_rotator_empty : assert property (@(posedge clk) disable iff (rst)
    b_kind_q == KindPreamble |-> upper_q == {4{XgmiiIdle}} && upper_c_q == '1);
`endif
endmodule
