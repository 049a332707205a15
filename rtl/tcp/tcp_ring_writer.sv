// SPDX-License-Identifier: SHL-2.1
// Writes the messages of all streams into their rings, one message at a time, contiguously: the byte with sequence
// number s is at address s modulo the ring. Each beat is stored with the sum of all earlier bytes of its stream,
// so that the checksum of any part is a difference (RFC 1071, section 2: sums of parts add up).
// Promise: unacknowledged bytes are never overwritten (a stream without room waits, and later messages wait with
// it); the sender is notified of bytes once they are in the memory; from the last beat of a message to the first of the
// next one, 4 cycles. A message whose connection ends is drained and dropped.
// CMS-TCP section 3.1: the sender's buffer is the retransmission buffer.
module tcp_ring_writer
  import tcp_pkg::*;
#(
  parameter  int unsigned DATA_W     = 64,
  parameter  int unsigned N_STREAMS  = 4,
  parameter  int unsigned RING_BYTES = 65536,
  localparam int unsigned Bytes      = DATA_W / 8,
  localparam int unsigned AddrW      = $clog2(N_STREAMS * RING_BYTES / Bytes)
) (
  input  logic clk,
  input  logic rst,

  // messages; `s_stream` stays as it is from a message's first beat to its last
  input  tcp_stream_t       s_stream,
  input  logic [DATA_W-1:0] s_axis_tdata,
  input  logic [Bytes-1:0]  s_axis_tkeep,  // all but in the last beat
  input  logic              s_axis_tvalid,
  output logic              s_axis_tready,
  input  logic              s_axis_tlast,

  // the memory of all rings
  output logic              wr_en,
  output logic [AddrW-1:0]  wr_addr,
  output logic [DATA_W-1:0] wr_data,
  output logic [15:0]       wr_sum,    // of all bytes before this beat

  // the sender
  output tcp_write_t        write,
  output logic              write_valid,
  input  logic              write_ready,
  input  tcp_done_t         done,
  input  logic              done_valid,
  output tcp_laid_t         laid,
  output logic              laid_valid    // a message is in the ring, or dropped
);
  localparam int unsigned ByteW   = $clog2(Bytes);
  localparam int unsigned RingW   = $clog2(RING_BYTES);
  localparam int unsigned StreamW = N_STREAMS > 1 ? $clog2(N_STREAMS) : 1;
  localparam int unsigned Groups  = Bytes / 8;  // of four words
  localparam int unsigned Settle  = 3;          // cycles until the last beat of a message is in the memory
  localparam int unsigned Chunk   = RING_BYTES / 4 < 4096 ? RING_BYTES / 4 : 4096;  // bytes between two words to the sender

  if (RING_BYTES != 2 ** RingW || RING_BYTES < 16 * Bytes || RingW > 30) begin : gen_bad_ring
    $fatal(1, "%m: RING_BYTES %0d, allowed are powers of two from %0d to 2^30", RING_BYTES, 16 * Bytes);
  end

  typedef logic [StreamW-1:0] index_t;
  typedef logic [RingW:0] span_t;  // bytes of a stream that are in its ring

  // ---- the sender's reports: open streams, their starts, acknowledged data ------------------------------------------
  logic [N_STREAMS-1:0] live_q, fresh_q;
  logic opened, ended, clears_fresh;
  tcp_stream_t stream_q, close_stream_q;  // of the message, and of the one before it
  index_t done_at, at, close_at;
  assign at = index_t'(stream_q);

  typedef struct packed {
    tcp_seq_t          end_seq;  // after the last byte written
    logic [15:0]       sum;      // of all bytes before its beat
    logic [DATA_W-1:0] tail;     // the bytes of its beat that are there
  } place_t;

  logic reads, saves;
  index_t read_at;
  tcp_seq_t una_kept, start_kept;
  place_t place_kept, place;
  tcp_ring_streams #(.N_STREAMS(N_STREAMS)) u_streams (
    .clk, .rst, .done, .done_valid, .done_at, .opened, .ended,
    .live        (live_q),
    .fresh       (fresh_q),
    .clears_fresh,
    .clears_at   (at),
    .rd_en       (reads),
    .rd_stream   (read_at),
    .una         (una_kept),
    .start       (start_kept)
  );
  ram_sdp #(.W($bits(place_t)), .DEPTH(N_STREAMS)) u_places (
    .clk, .wr_en(saves), .wr_addr(close_at), .wr_data(place), .rd_en(reads), .rd_addr(read_at), .rd_data(place_kept)
  );

  // ---- one message; the next one begins while the last beats of this one settle (`close`) ---------------------------
  typedef enum logic [1:0] {StIdle, StLoad, StTake, StFlush} state_e;
  state_e state_q, state_d;
  tcp_seq_t end_q, una_q, reported_seq_q, whole;  // whole: up to the last full beat
  logic [DATA_W-1:0] tail_q;
  logic [15:0] sum_q, start_sum_q;
  logic close_valid_q, una_newer_q, dead_q, room_q, fresh, follows_q, first_q, concerns, take, chunk_due, closes;
  assign concerns  = done_valid && done_at == at;
  assign whole     = {end_q[31:ByteW], {ByteW{1'b0}}};
  // A word to the sender waits in `write` until it is taken; beats go on meanwhile.
  assign chunk_due = state_q == StTake && span_t'(end_q - reported_seq_q) >= span_t'(Chunk + Bytes) && !close_valid_q;
  assign take      = state_q == StTake && s_axis_tvalid && (dead_q || room_q);
  assign closes    = state_q == StFlush && !close_valid_q;
  // A word that is being written would be read with its old value.
  assign read_at       = index_t'(s_stream);
  assign reads         = state_q == StIdle && s_axis_tvalid && !(opened && done_at == read_at);
  assign fresh         = fresh_q[at];
  assign clears_fresh  = state_q == StLoad && live_q[at] && !(concerns && (opened || ended));
  assign s_axis_tready = take;

  always_comb begin
    state_d = state_q;
    unique case (state_q)
      StIdle: if (reads) state_d = StLoad;
      StLoad: state_d = StTake;
      StTake: if (take && s_axis_tlast) state_d = StFlush;
      default: if (closes) state_d = StIdle;  // StFlush
    endcase
  end

  // ---- the message before it: once all its beats are in the memory, they are reported to the sender and its place is kept
  logic close_dead_q, close_concerns, close_reports, all_reported, finishes;
  tcp_seq_t close_end_q, close_reported_q;
  logic [DATA_W-1:0] close_tail_q;
  logic [15:0] close_sum_q;
  logic [2:0] settle_q;
  assign close_at       = index_t'(close_stream_q);
  assign close_concerns = done_valid && done_at == close_at;
  assign close_reports    = close_valid_q && settle_q == '0 && close_end_q != close_reported_q && !close_dead_q && !write_valid;
  assign all_reported       = settle_q == '0 && close_end_q == close_reported_q && !write_valid;
  assign finishes       = close_valid_q && (close_dead_q || all_reported);
  assign saves          = finishes && !close_dead_q;
  assign place          = '{end_seq: close_end_q, sum: close_sum_q, tail: close_tail_q};

  always_ff @(posedge clk) begin
    if (closes) begin
      close_valid_q  <= 1'b1;
      close_stream_q <= stream_q;
      close_end_q    <= end_q;
      close_reported_q   <= reported_seq_q;
      close_tail_q   <= tail_q;
      close_dead_q   <= dead_q || (concerns && (opened || ended));
      settle_q       <= 3'(Settle);
    end else begin
      if (finishes) close_valid_q <= 1'b0;
      if (close_concerns && (opened || ended)) close_dead_q <= 1'b1;
      if (settle_q != '0) settle_q <= settle_q - 1'b1;
      if (close_reports) close_reported_q <= close_end_q;
    end
    // Its last full beat has been added, and the first one of the next message not yet.
    if (settle_q == 3'(Settle - 2)) close_sum_q <= sum_q;
    laid       <= '{dropped: close_dead_q, end_seq: close_end_q};
    laid_valid <= finishes;
    if (rst) begin
      close_valid_q <= 1'b0;
      settle_q      <= '0;
      laid_valid    <= 1'b0;
    end
  end

  // ---- 0: the beat as stored in the ring ----------------------------------------------------------------------------
  logic [ByteW-1:0] lane;
  logic [ByteW:0] count;
  logic [ByteW:0][DATA_W-1:0] turns;  // by each bit of `lane`
  logic [DATA_W-1:0] turned, joined;
  logic [Bytes-1:0] of_tail;
  logic fills;
  assign lane  = end_q[ByteW-1:0];
  assign count = (ByteW + 1)'(penstock_pkg::keep_bytes(64'(s_axis_tkeep)));
  assign fills = (ByteW + 1)'(lane) + count >= (ByteW + 1)'(Bytes);
  // The bytes turn to their lanes; those for which this beat has no place are in the lowest lanes then, where the next
  // beat takes them from `tail_q`. What is in its other lanes, or in those of a last beat after its bytes, is ignored.
  assign turns[0] = s_axis_tdata;
  for (genvar k = 0; k < ByteW; k++) begin : gen_turns
    localparam int unsigned By = 8 << k;
    assign turns[k+1] = lane[k] ? {turns[k][DATA_W-By-1:0], turns[k][DATA_W-1-:By]} : turns[k];
  end
  assign turned = turns[ByteW];
  always_comb begin
    of_tail = ~({Bytes{1'b1}} << lane);
    if (closes) of_tail = '1;
    for (int unsigned i = 0; i < Bytes; i++) joined[8*i+:8] = of_tail[i] ? tail_q[8*i+:8] : turned[8*i+:8];
  end

  typedef struct packed {
    logic              valid;
    logic              first;  // of a message: it begins with the sum that was kept
    logic              full;   // else bytes will be added to it
    logic [AddrW-1:0]  addr;
    logic [DATA_W-1:0] data;
  } beat_t;
  beat_t [3:1] beat_q;
  logic [AddrW-1:0] addr;
  if (N_STREAMS > 1) begin : gen_many
    assign addr = {index_t'(stream_q), end_q[RingW-1:ByteW]};
  end else begin : gen_one
    assign addr = end_q[RingW-1:ByteW];
  end

  always_ff @(posedge clk) begin
    state_q <= state_d;
    if (reads) begin
      stream_q  <= s_stream;
      follows_q <= close_valid_q && close_at == read_at;
      una_newer_q   <= done_valid && done_at == read_at;
    end else if (concerns) una_newer_q <= 1'b1;
    if (reads ? done_valid && done_at == read_at : concerns) una_q <= done.una;
    if (state_q == StLoad) begin
      // After a message of the same stream, whose place is not kept yet, end and tail are right as they are.
      if (fresh || !follows_q) begin
        end_q  <= fresh ? start_kept : place_kept.end_seq;
        tail_q <= fresh ? '0 : place_kept.tail;
      end
      reported_seq_q      <= fresh ? start_kept : follows_q ? end_q : place_kept.end_seq;
      first_q     <= fresh || !follows_q;
      start_sum_q <= fresh ? '0 : place_kept.sum;
      dead_q      <= !live_q[at] || (concerns && (opened || ended));
      if (!una_newer_q && !concerns) una_q <= una_kept;
    end else if (concerns && (opened || ended)) dead_q <= 1'b1;
    if (take) begin
      first_q <= 1'b0;
      end_q   <= end_q + 32'(count);
      tail_q  <= fills ? turned : joined;
    end
    if (write_ready || (close_valid_q ? close_dead_q : dead_q)) write_valid <= 1'b0;
    if (close_reports) begin
      write       <= '{stream: close_stream_q, bytes: 31'(span_t'(close_end_q - close_reported_q))};
      write_valid <= 1'b1;
    end else if (chunk_due && !dead_q && !write_valid) begin
      write       <= '{stream: stream_q, bytes: 31'(span_t'(whole - reported_seq_q))};
      write_valid <= 1'b1;
      reported_seq_q      <= whole;
    end
    // Looks at the beats before this one: three more than are counted may be on their way.
    room_q <= state_q == StTake && span_t'(end_q - una_q) <= span_t'(RING_BYTES - 4 * Bytes);

    beat_q[1] <= '{
      valid: !dead_q && (take || (closes && lane != '0)),
      first: take && first_q,
      full:  take && fills,
      addr:  addr,
      data:  joined
    };
    beat_q[3:2] <= beat_q[2:1];
    if (rst) begin
      state_q <= StIdle;
      room_q  <= 1'b0;
      write_valid <= 1'b0;
      beat_q[1].valid <= 1'b0;
      beat_q[2].valid <= 1'b0;
      beat_q[3].valid <= 1'b0;
    end
  end

  // ---- 1 to 3: its words are summed, and the sum of all earlier ones goes with it -----------------------------------
  logic [Groups-1:0][17:0] four_q;
  logic [21:0] words, words_q;
  logic [22:0] with_before;
  always_comb begin
    words = '0;
    for (int unsigned i = 0; i < Groups; i++) words += 22'(four_q[i]);
  end
  function automatic logic [15:0] word(logic [DATA_W-1:0] data, int unsigned number);
    return {data[16*number+:8], data[16*number+8+:8]};
  endfunction
  assign with_before = 23'(words_q) + 23'(sum_q);

  always_ff @(posedge clk) begin
    for (int unsigned i = 0; i < Groups; i++)
      four_q[i] <= 18'(word(beat_q[1].data, 4 * i)) + 18'(word(beat_q[1].data, 4 * i + 1))
                   + 18'(word(beat_q[1].data, 4 * i + 2)) + 18'(word(beat_q[1].data, 4 * i + 3));
    words_q <= words;
    // The last beat of the message before is three cycles ahead at least.
    if (beat_q[2].valid && beat_q[2].first) sum_q <= start_sum_q;
    else if (beat_q[3].valid && beat_q[3].full) sum_q <= tcp_fold(24'(with_before));
  end
  assign wr_en   = beat_q[3].valid;
  assign wr_addr = beat_q[3].addr;
  assign wr_data = beat_q[3].data;
  assign wr_sum  = sum_q;

`ifndef SYNTHESIS
  a_not_over : assert property (@(posedge clk) disable iff (rst)
    state_q == StTake && !dead_q |-> end_q - una_q <= 32'(RING_BYTES - Bytes))
    else $error("%m: %0d bytes in a ring of %0d", end_q - una_q, RING_BYTES);
  a_apart : assert property (@(posedge clk) disable iff (rst)
    beat_q[2].valid && beat_q[2].first |-> !beat_q[3].valid)
    else $error("%m: a message begins in the sum of the one before");
  a_whole_beats : assert property (@(posedge clk) disable iff (rst)
    s_axis_tvalid && !s_axis_tlast |-> &s_axis_tkeep);
`endif
endmodule
