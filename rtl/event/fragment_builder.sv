// SPDX-License-Identifier: SHL-2.1
// Makes a version 2 message from each fragment: header, payload, table of parts, trailer with length and CRC-32C.
// Promise: the fragment's length need not be known: its first byte leaves while the rest arrives. One beat per cycle;
// if the output is free, only header, table and trailer cost extra cycles. A fragment longer than `limit` ends there,
// is marked as cut, and its rest is dropped; one without bytes makes a message without payload. Both are counted.
// Layout: event_pkg, crates/wire/src/fragment.
//
//   fragment -> axis_register -> pieces: header, payload, table, trailer -> word_packer -> message_crc -> message
module fragment_builder
  import event_pkg::*;
#(
  parameter  int unsigned DATA_W = 64,
  parameter  bit          TABLE  = 1'b0,  // a table of parts follows each payload
  localparam int unsigned Bytes  = DATA_W / 8
) (
  input  logic              clk,
  input  logic              rst,
  input  logic [15:0]       source_id,
  input  logic [31:0]       limit,        // bytes of a payload, a multiple of Bytes; more are cut

  // The fragment; tuser holds in its first beat. A beat that is not full, or empty, is its last one; or, with TABLE,
  // the last one of a part: zeros fill it up to a multiple of 8 bytes.
  input  logic [DATA_W-1:0] s_axis_tdata,
  input  logic [Bytes-1:0]  s_axis_tkeep,
  input  fragment_t         s_axis_tuser,
  input  logic              s_axis_tvalid,
  output logic              s_axis_tready,
  input  logic              s_axis_tlast,

  // The table of the payload that has ended, an entry a beat; idle without TABLE.
  input  part_t             s_axis_part_tdata,
  input  logic              s_axis_part_tvalid,
  output logic              s_axis_part_tready,
  input  logic              s_axis_part_tlast,

  output logic [DATA_W-1:0] m_axis_tdata,
  output logic [Bytes-1:0]  m_axis_tkeep,
  output logic              m_axis_tvalid,
  input  logic              m_axis_tready,
  output logic              m_axis_tlast,
  output logic [31:0]       length,        // bytes of the message, and its event, with its last beat
  output logic [63:0]       event_number,

  output logic              stat_message,  // one has been made
  output logic              stat_cut,
  output logic              stat_empty     // a fragment without bytes
);
  localparam int unsigned Words   = DATA_W / 64;
  localparam int unsigned CountW  = $clog2(Words + 1);
  localparam int unsigned LaneW   = $clog2(Bytes);
  localparam int unsigned HeaderW = DATA_W < $bits(header_t) ? DATA_W : $bits(header_t);
  localparam int unsigned RecordW = DATA_W < $bits(trailer_t) ? DATA_W : $bits(trailer_t);
  localparam int unsigned HeaderBeats = $bits(header_t) / HeaderW;
  localparam int unsigned RecordBeats = $bits(trailer_t) / RecordW;
  localparam int unsigned BeatW = $clog2(HeaderBeats + 1);

  typedef enum logic [1:0] {StHeader, StPayload, StTable, StTrailer} state_e;

  state_e state_q, state_d;
  logic [BeatW-1:0] beat_q;      // of the header or record at hand
  logic [31:0] filled_q;         // bytes so far, with the zeros between parts
  logic [31:0] payload_q;        // without those after the last part
  logic [63:0] event_q;
  logic [7:0]  parts_q;
  part_flags_t flags_q;
  logic drops_q;                 // the rest of a fragment that was cut, up to its end

  // ---- this beat, without the bytes that it has not, and their number: counted in front of a register -------
  typedef struct packed {
    logic              last;
    fragment_t         about;
    logic [LaneW:0]    n_bytes;
    logic [DATA_W-1:0] data;
  } beat_t;

  beat_t s_beat, beat;
  logic [LaneW:0] n_up;
  logic beat_valid, beat_ready, at_limit, ends, take;

  // A beat has no gap, so the place of its last byte gives their number.
  logic [Bytes-1:0] last_byte;
  assign last_byte = s_axis_tkeep & ~(s_axis_tkeep >> 1);

  always_comb begin
    s_beat = '{last: s_axis_tlast, about: s_axis_tuser, n_bytes: '0, data: '0};
    for (int i = 0; i < int'(Bytes); i++) begin
      if (last_byte[i]) s_beat.n_bytes |= (LaneW + 1)'(i + 1);
      if (s_axis_tkeep[i]) s_beat.data[8*i+:8] = s_axis_tdata[8*i+:8];
    end
  end
  axis_register #(.W($bits(beat_t))) u_beat (
    .clk, .rst,
    .s_axis_tdata (s_beat),
    .s_axis_tvalid,
    .s_axis_tready,
    .m_axis_tdata (beat),
    .m_axis_tvalid(beat_valid),
    .m_axis_tready(beat_ready)
  );
  assign at_limit = filled_q + 32'(Bytes) >= limit;
  assign ends     = beat.last || at_limit;
  assign n_up     = beat.n_bytes + (LaneW + 1)'(7);

  // ---- pieces -----------------------------------------------------------------------------------------
  header_t header;
  trailer_t trailer;
  logic [DATA_W-1:0] piece;
  logic [CountW-1:0] count;
  logic piece_last, piece_valid, piece_ready, go, record_ends, header_ends;

  assign header = '{
    magic: HeaderMagic, version: Version, source_id: source_id, fragment: beat.about, reserved: '0
  };
  assign trailer = '{
    payload_length: payload_q, parts: parts_q, flags: flags_q, magic: TrailerMagic,
    reserved: '0, reserved_flags: '0, crc: '0
  };
  assign header_ends = beat_q == BeatW'(HeaderBeats - 1);
  assign record_ends = beat_q == BeatW'(RecordBeats - 1);
  assign go          = piece_valid && piece_ready;

  always_comb begin
    piece_last  = 1'b0;
    unique case (state_q)
      StHeader: begin
        piece       = DATA_W'(header >> (32'(beat_q) * HeaderW));
        count       = CountW'(HeaderW / 64);
        piece_valid = beat_valid && !drops_q;
      end
      StPayload: begin
        piece       = beat.data;
        count       = CountW'(n_up >> 3);
        piece_valid = beat_valid && beat.n_bytes != '0;
      end
      StTable: begin
        piece       = DATA_W'(s_axis_part_tdata >> (32'(beat_q) * RecordW));
        count       = CountW'(RecordW / 64);
        piece_valid = s_axis_part_tvalid;
      end
      default: begin
        piece       = DATA_W'(trailer >> (32'(beat_q) * RecordW));
        count       = CountW'(RecordW / 64);
        piece_valid = 1'b1;
        piece_last  = record_ends;
      end
    endcase
  end

  assign take               = state_q == StPayload && beat_valid && beat_ready;
  assign beat_ready         = drops_q || (state_q == StPayload && (piece_ready || beat.n_bytes == '0));
  assign s_axis_part_tready = state_q == StTable && piece_ready && record_ends;

  always_comb begin
    state_d = state_q;
    unique case (state_q)
      StHeader: if (go && header_ends) state_d = StPayload;
      StPayload: if (take && ends) state_d = TABLE ? StTable : StTrailer;
      StTable: if (go && record_ends && s_axis_part_tlast) state_d = StTrailer;
      default: if (go && record_ends) state_d = StHeader;
    endcase
  end

  always_ff @(posedge clk) begin
    state_q <= state_d;
    if (go && state_q != StPayload)
      beat_q <= (state_q == StHeader ? header_ends : record_ends) ? '0 : beat_q + 1'b1;
    if (state_q == StHeader) begin
      filled_q  <= '0;
      payload_q <= '0;
      parts_q   <= '0;
      flags_q   <= '0;
      event_q   <= beat.about.event_number;
    end
    if (take) begin
      filled_q <= filled_q + 32'({n_up[LaneW:3], 3'd0});
      if (beat.n_bytes != '0) payload_q <= filled_q + 32'(beat.n_bytes);
      if (at_limit && !beat.last) begin
        flags_q.cut <= 1'b1;
        drops_q     <= 1'b1;
      end
    end
    if (drops_q && beat_valid && beat.last) drops_q <= 1'b0;
    if (s_axis_part_tvalid && s_axis_part_tready) begin
      parts_q <= parts_q + 8'd1;
      flags_q <= flags_q | s_axis_part_tdata.flags;
    end
    stat_message <= go && piece_last;
    stat_cut     <= take && at_limit && !beat.last;
    stat_empty   <= take && beat.last && payload_q == '0 && beat.n_bytes == '0;
    if (rst) begin
      state_q <= StHeader;
      beat_q  <= '0;
      drops_q <= 1'b0;
    end
  end

  // ---- words without gaps, and the CRC ----------------------------------------------------------------
  logic [DATA_W-1:0] packed_data;
  logic [CountW-1:0] packed_count;
  logic packed_last, packed_valid, packed_ready;
  logic [95:0] about_q;  // the message that has left the builder; its end is in the packer

  always_ff @(posedge clk)
    if (go && piece_last)
      about_q <= {event_q, filled_q + 32'(parts_q) * 32'(PartBytes)
                           + 32'(HeaderBytes + TrailerBytes)};

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

  message_crc #(.DATA_W(DATA_W)) u_crc (
    .clk, .rst,
    .s_data        (packed_data),
    .s_count       (packed_count),
    .s_last        (packed_last),
    .s_length      (about_q[31:0]),
    .s_event_number(about_q[95:32]),
    .s_valid       (packed_valid),
    .s_ready       (packed_ready),
    .m_axis_tdata,
    .m_axis_tkeep,
    .m_axis_tlast,
    .length,
    .event_number,
    .m_axis_tvalid,
    .m_axis_tready
  );

  wire unused = &{1'b0, n_up[2:0]};

`ifndef SYNTHESIS
  a_full : assert property (@(posedge clk) disable iff (rst)
    s_axis_tvalid && !s_axis_tlast && !TABLE && s_axis_tready |-> &s_axis_tkeep)
    else $error("%m: tkeep = %h inside a fragment, must be all ones", s_axis_tkeep);
  a_no_gap : assert property (@(posedge clk) disable iff (rst)
    s_axis_tvalid |-> (s_axis_tkeep & (s_axis_tkeep + 1'b1)) == '0)
    else $error("%m: tkeep = %h, must have no gap", s_axis_tkeep);
  a_limit : assert property (@(posedge clk) disable iff (rst) s_axis_tvalid |-> limit % Bytes == 0 && limit != '0);
`endif
endmodule
