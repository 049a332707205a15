// SPDX-License-Identifier: SHL-2.1
// Writes the messages of all streams into their rings, one message at a time, contiguously: the byte with sequence
// number s is at address s modulo the ring. Each beat is stored with the sum of all earlier bytes of its stream,
// so that the checksum of any part is a difference (RFC 1071, section 2: sums of parts add up).
// Promise: unacknowledged bytes are never overwritten (a stream without room waits, and later messages wait with
// it); the sender is notified of bytes once they are in the memory. A message whose connection ends is drained
// and dropped. CMS-TCP section 3.1: the sender's buffer is the retransmission buffer.
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
  localparam int unsigned Chunk   = RING_BYTES / 4 < 4096 ? RING_BYTES / 4 : 4096;  // bytes between two words to the sender

  if (RING_BYTES != 2 ** RingW || RING_BYTES < 16 * Bytes || RingW > 30) begin : gen_bad_ring
    $fatal(1, "%m: RING_BYTES %0d, allowed are powers of two from %0d to 2^30", RING_BYTES, 16 * Bytes);
  end

  typedef logic [StreamW-1:0] index_t;

  // ---- the sender's reports: open streams, their starts, acknowledged data
  // --------------------------
  logic [N_STREAMS-1:0] live_q, fresh_q;
  logic opened, ended, clears_fresh, unused;
  assign unused = &{1'b0, done};
  tcp_stream_t stream_q;  // of the message, also once its last beat is gone
  index_t done_at, at;
  assign done_at = index_t'(done.stream);
  assign at      = index_t'(stream_q);
  assign opened  = done_valid && done.kind == TcpOpen && !done.actions.counts.ignored;
  assign ended   = done_valid && done.actions.ended != TcpNotEnded;
  always_ff @(posedge clk) begin
    if (clears_fresh) fresh_q[at] <= 1'b0;
    if (ended) live_q[done_at] <= 1'b0;
    if (opened) begin
      live_q[done_at]  <= 1'b1;
      fresh_q[done_at] <= 1'b1;
    end
    if (rst) begin
      live_q  <= '0;
      fresh_q <= '0;
    end
  end

  typedef struct packed {
    tcp_seq_t          end_seq;  // after the last byte written
    logic [15:0]       sum;      // of all bytes before its beat
    logic [DATA_W-1:0] tail;     // the bytes of its beat that are there
  } place_t;

  logic reads, saves;
  tcp_seq_t una_kept, start_kept;
  place_t place_kept, place;
  ram_sdp #(.W(32), .DEPTH(N_STREAMS)) u_una (
    .clk, .wr_en(done_valid), .wr_addr(done_at), .wr_data(done.una), .rd_en(reads), .rd_addr(at), .rd_data(una_kept)
  );
  ram_sdp #(.W(32), .DEPTH(N_STREAMS)) u_start (
    .clk, .wr_en(opened), .wr_addr(done_at), .wr_data(done.written), .rd_en(reads), .rd_addr(at), .rd_data(start_kept)
  );
  ram_sdp #(.W($bits(place_t)), .DEPTH(N_STREAMS)) u_places (
    .clk, .wr_en(saves), .wr_addr(at), .wr_data(place), .rd_en(reads), .rd_addr(at), .rd_data(place_kept)
  );

  // ---- one message
  // ---------------------------------------------------------------------------------------------------
  typedef enum logic [2:0] {StIdle, StRead, StLoad, StTake, StFlush, StSettle, StTell} state_e;
  state_e state_q, state_d;
  tcp_seq_t end_q, una_q, told_q, whole;  // whole: up to the last full beat
  logic [DATA_W-1:0] tail_q;
  logic [15:0] sum_q;
  logic heard_q, dead_q, room_q, concerns, take, chunk_due, tells, all_told;
  logic [2:0] settle_q;
  assign concerns  = done_valid && done_at == at;
  assign whole     = {end_q[31:ByteW], {ByteW{1'b0}}};
  // A word to the sender waits in `write` until it is taken; beats go on meanwhile.
  assign chunk_due = state_q == StTake && end_q - told_q >= 32'(Chunk + Bytes);
  assign all_told  = end_q == told_q && !write_valid;
  assign tells     = (chunk_due || (state_q == StTell && end_q != told_q)) && !dead_q && !write_valid;
  assign take      = state_q == StTake && s_axis_tvalid && (dead_q || room_q);
  assign reads         = state_q == StRead;
  assign saves         = state_q == StTell && all_told && !dead_q;
  assign clears_fresh  = state_q == StLoad && live_q[at] && !(concerns && (opened || ended));
  assign place         = '{end_seq: end_q, sum: sum_q, tail: tail_q};
  assign s_axis_tready = take;

  always_comb begin
    state_d = state_q;
    unique case (state_q)
      StIdle: if (s_axis_tvalid) state_d = StRead;
      StRead: if (!(concerns && opened)) state_d = StLoad;  // a word being written now would be read with its old value
      StLoad: state_d = StTake;
      StTake: if (take && s_axis_tlast) state_d = StFlush;
      StFlush: state_d = StSettle;
      StSettle: if (settle_q == '0) state_d = StTell;
      default: if (dead_q || all_told) state_d = StIdle;  // StTell
    endcase
  end

  // ---- 0: the beat as stored in the ring
  // ------------------------------------------------------------------------------
  logic [ByteW-1:0] lane;
  logic [ByteW:0] count;
  logic [DATA_W-1:0] kept;
  logic [2*DATA_W-1:0] joined;
  logic fills;
  assign lane  = end_q[ByteW-1:0];
  assign count = (ByteW + 1)'($countones(s_axis_tkeep));
  assign fills = (ByteW + 1)'(lane) + count >= (ByteW + 1)'(Bytes);
  always_comb begin
    for (int unsigned i = 0; i < Bytes; i++) kept[8*i+:8] = s_axis_tdata[8*i+:8] & {8{s_axis_tkeep[i]}};
    joined = ((2*DATA_W)'(kept) << {lane, 3'b0}) | (2*DATA_W)'(tail_q);
  end

  typedef struct packed {
    logic              valid;
    logic              full;  // else bytes will be added to it
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
    if (state_q == StIdle) stream_q <= s_stream;
    if (state_q == StRead) heard_q <= 1'b0;
    if (concerns) begin
      una_q   <= done.una;
      heard_q <= 1'b1;
    end
    if (state_q == StLoad) begin
      end_q  <= fresh_q[at] ? start_kept : place_kept.end_seq;
      told_q <= fresh_q[at] ? start_kept : place_kept.end_seq;
      tail_q <= fresh_q[at] ? '0 : place_kept.tail;
      dead_q <= !live_q[at] || (concerns && (opened || ended));
      if (!heard_q && !concerns) una_q <= una_kept;
    end else if (concerns && (opened || ended)) dead_q <= 1'b1;
    if (take) begin
      end_q  <= end_q + 32'(count);
      tail_q <= fills ? joined[DATA_W+:DATA_W] : joined[DATA_W-1:0];
    end
    if (write_ready || dead_q) write_valid <= 1'b0;
    if (tells) begin
      write       <= '{stream: stream_q, bytes: 31'((chunk_due ? whole : end_q) - told_q)};
      write_valid <= 1'b1;
      told_q      <= chunk_due ? whole : end_q;
    end
    settle_q <= state_q == StFlush ? 3'd5 : settle_q - 3'(settle_q != '0);
    // Looks at the beats before this one: three more than are counted may be on their way.
    room_q <= state_q == StTake && end_q - una_q <= 32'(RING_BYTES - 4 * Bytes);

    beat_q[1] <= '{
      valid: !dead_q && (take || (state_q == StFlush && lane != '0)),
      full:  take && fills,
      addr:  addr,
      data:  state_q == StFlush ? tail_q : joined[DATA_W-1:0]
    };
    beat_q[3:2]  <= beat_q[2:1];
    laid       <= '{dropped: dead_q, end_seq: end_q};
    laid_valid <= state_q == StTell && (dead_q || all_told);
    if (rst) begin
      state_q <= StIdle;
      room_q  <= 1'b0;
      write_valid <= 1'b0;
      beat_q[1].valid <= 1'b0;
      beat_q[2].valid <= 1'b0;
      beat_q[3].valid <= 1'b0;
      laid_valid      <= 1'b0;
    end
  end

  // ---- 1 to 3: its words are summed, and the sum of all earlier ones goes with it
  // -------------------------------------
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
    if (state_q == StLoad) sum_q <= fresh_q[at] ? '0 : place_kept.sum;
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
  a_whole_beats : assert property (@(posedge clk) disable iff (rst)
    s_axis_tvalid && !s_axis_tlast |-> &s_axis_tkeep);
`endif
endmodule
