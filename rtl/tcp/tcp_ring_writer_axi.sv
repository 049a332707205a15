// SPDX-License-Identifier: SHL-2.1
// tcp_ring_writer for rings in an AXI4 memory: stream n's ring begins at `base_addr` + n * RING_BYTES, and the byte
// with sequence number s is in it at s modulo the ring. Beats are collected into runs; a run ends with its message, or
// before an address that is a multiple of RunBytes, and is one burst.
// Promise: as tcp_ring_writer; the sender is notified of bytes once the memory has confirmed them and all before them.
// After an error response the stream's bytes stay unsent until it is opened again, and `fault` names it. A message's
// last beat, if not full, is written again with the bytes that follow: one ID keeps both in order (AMBA AXI4, A5.3).
//
//   messages -> joined beats -> packet_store_axi_wr -> m_axi
//                    |  a report for each run | written
//                    +------> reports -------(+)---> write, laid, fault
module tcp_ring_writer_axi
  import tcp_pkg::*;
#(
  parameter  int unsigned DATA_W     = 64,
  parameter  int unsigned N_STREAMS  = 4,
  parameter  int unsigned RING_BYTES = 4194304,
  parameter  int unsigned ADDR_W     = 64,
  parameter  int unsigned REPORTS    = 64,  // more than the runs that packet_store_axi_wr holds, else they wait
  localparam int unsigned Bytes      = DATA_W / 8,
  localparam int unsigned LevelW     = $clog2(REPORTS) + 2
) (
  input  logic clk,
  input  logic rst,
  input  logic [ADDR_W-1:0] base_addr,  // a multiple of 4096

  // messages; `s_stream` stays as it is from a message's first beat to its last
  input  tcp_stream_t       s_stream,
  input  logic [DATA_W-1:0] s_axis_tdata,
  input  logic [Bytes-1:0]  s_axis_tkeep,  // all but in the last beat
  input  logic              s_axis_tvalid,
  output logic              s_axis_tready,
  input  logic              s_axis_tlast,

  // the sender
  output tcp_write_t        write,
  output logic              write_valid,
  input  logic              write_ready,
  input  tcp_done_t         done,
  input  logic              done_valid,
  output tcp_laid_t         laid,
  output logic              laid_valid,   // a message is in the ring, or dropped

  // tcp_ring_guard: runs on their way to the memory, one has been confirmed; a live stream's bytes were refused
  output logic [LevelW-1:0] unconfirmed,
  output logic              confirmed,
  output logic              fault_valid,
  output tcp_stream_t       fault_stream,

  output axi_pkg::axi_wr_req_t m_axi_req,
  output logic [DATA_W-1:0]    m_axi_wdata,
  input  axi_pkg::axi_wr_rsp_t m_axi_rsp,
  output logic                 stat_error  // a burst was answered with an error
);
  localparam int unsigned ByteW      = $clog2(Bytes);
  localparam int unsigned RingW      = $clog2(RING_BYTES);
  localparam int unsigned StreamW    = N_STREAMS > 1 ? $clog2(N_STREAMS) : 1;
  localparam int unsigned PlaceW     = RingW - ByteW;  // of a beat in its ring
  localparam int unsigned BurstBytes = 256 * Bytes > 4096 ? 4096 : 256 * Bytes;
  // Bytes between two words to the sender. A ring whose last run waits for room must still be sent: hence its quarter.
  localparam int unsigned Chunk      = RING_BYTES / 4 < 4096 ? RING_BYTES / 4 : 4096;
  localparam int unsigned RunBytes   = BurstBytes < Chunk ? BurstBytes : Chunk;
  localparam int unsigned RunW       = $clog2(RunBytes / Bytes);
  localparam int unsigned ChunkW     = $clog2(Chunk / Bytes);
  // One BRAM is 512 words deep: wide memories get more than they need.
  localparam int unsigned WaitBytes  = 512 * Bytes > 8192 ? 512 * Bytes : 8192;

  if (RING_BYTES != 2 ** RingW || RING_BYTES < 4096 || RingW > 30) begin : gen_bad_ring
    $fatal(1, "%m: RING_BYTES %0d, allowed in AXI4 memory are powers of two from 4096 to 2^30", RING_BYTES);
  end
  if (ADDR_W < RingW + $clog2(N_STREAMS) || ADDR_W > 64) begin : gen_bad_addr_w
    $fatal(1, "%m: AXI_ADDR_W is %0d; it must be %0d to 64 for %0d rings of %0d bytes", ADDR_W,
      RingW + $clog2(N_STREAMS), N_STREAMS, RING_BYTES);
  end

  typedef logic [StreamW-1:0] index_t;

  // ---- the sender's reports: open streams, their starts, acknowledged data -----------------------------------------
  logic [N_STREAMS-1:0] live_q, fresh_q;
  logic opened, ended, clears_fresh;
  tcp_stream_t stream_q;
  index_t done_at, at;
  assign at = index_t'(stream_q);

  typedef struct packed {
    tcp_seq_t          end_seq;  // after the last byte written
    logic [DATA_W-1:0] tail;     // the bytes of its beat that are there
  } place_t;

  logic reads, closes;
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
    .clk, .wr_en(closes), .wr_addr(at), .wr_data(place), .rd_en(reads), .rd_addr(read_at), .rd_data(place_kept)
  );

  // ---- one message -------------------------------------------------------------------------------------------------
  typedef enum logic [1:0] {StIdle, StLoad, StTake, StFlush} state_e;
  state_e state_q, state_d;
  tcp_seq_t end_q, una_q, reported_seq_q;
  logic [DATA_W-1:0] tail_q;
  // una_newer: una is newer than the kept one; dead: the message's connection has ended; reported: its last run is closed
  logic una_newer_q, dead_q, room_q, reported_q, fresh, concerns, take, beat_free;
  assign concerns = done_valid && done_at == at;
  assign take     = state_q == StTake && s_axis_tvalid && (dead_q || room_q) && beat_free;
  assign closes   = state_q == StFlush && (reported_q || beat_free);
  // A word that is being written would be read with its old value.
  assign read_at       = index_t'(s_stream);
  assign reads         = state_q == StIdle && s_axis_tvalid && !(opened && done_at == read_at);
  assign fresh         = fresh_q[at];
  assign clears_fresh  = state_q == StLoad && live_q[at] && !(concerns && (opened || ended));
  assign s_axis_tready = take;
  assign place         = '{end_seq: end_q, tail: tail_q};

  always_comb begin
    state_d = state_q;
    unique case (state_q)
      StIdle: if (reads) state_d = StLoad;
      StLoad: state_d = StTake;
      StTake: if (take && s_axis_tlast) state_d = StFlush;
      default: if (closes) state_d = StIdle;  // StFlush
    endcase
  end

  // ---- 0: the beat as it lies in the ring --------------------------------------------------------------------------
  logic [ByteW-1:0] lane;
  logic [ByteW:0] count, filled;
  logic [DATA_W-1:0] kept;
  logic [2*DATA_W-1:0] joined;
  logic fills, ends_exactly;
  assign lane         = end_q[ByteW-1:0];
  assign count        = (ByteW + 1)'(penstock_pkg::keep_bytes(64'(s_axis_tkeep)));
  assign filled       = (ByteW + 1)'(lane) + count;
  assign fills        = filled >= (ByteW + 1)'(Bytes);
  assign ends_exactly = s_axis_tlast && filled == (ByteW + 1)'(Bytes);
  always_comb begin
    for (int unsigned i = 0; i < Bytes; i++) kept[8*i+:8] = s_axis_tdata[8*i+:8] & {8{s_axis_tkeep[i]}};
    joined = ((2*DATA_W)'(kept) << {lane, 3'b0}) | (2*DATA_W)'(tail_q);
  end

  typedef struct packed {
    logic        dead;     // its connection had ended before
    tcp_stream_t stream;
    logic        is_reported;    // `bytes` are reported to the sender
    logic [12:0] bytes;    // since the last report
    logic        last;     // of its message
    tcp_seq_t    end_seq;  // of what is written with it
  } report_t;
  typedef struct packed {
    logic              word;  // else the end alone
    logic              ends;  // its run
    logic [PlaceW-1:0] run;   // first beat of it
    logic [DATA_W-1:0] data;
    report_t           report;
  } beat_t;

  logic [PlaceW-1:0] beat_at, run, run_q;
  logic run_open_q, at_run_end, at_chunk_end, flushes;
  tcp_seq_t beat_end, upto;
  beat_t beat, beat_q;
  logic beat_valid, beat_valid_q, moves, wr_ready, reports_room;
  assign beat_at      = end_q[RingW-1:ByteW];
  assign run          = run_open_q ? run_q : beat_at;
  assign at_run_end   = beat_at[RunW-1:0] == '1;
  assign at_chunk_end = beat_at[ChunkW-1:0] == '1;
  assign beat_end     = {end_q[31:ByteW] + (32 - ByteW)'(1), {ByteW{1'b0}}};
  assign flushes      = closes && !reported_q;
  assign upto         = state_q == StFlush ? end_q : beat_end;
  assign beat_valid   = flushes || (take && fills && !dead_q);
  always_comb begin
    beat.run  = run;
    beat.data = state_q == StFlush ? tail_q : joined[DATA_W-1:0];
    // The run of a connection that has ended is closed by a beat that is never sent: its burst needs one to end with.
    beat.word = state_q == StTake || !dead_q || run_open_q;
    beat.ends = state_q == StFlush || at_run_end || ends_exactly;
    beat.report = '{
      dead:    dead_q,
      stream:  stream_q,
      is_reported:   state_q == StFlush || at_chunk_end || ends_exactly,
      bytes:   13'(upto - reported_seq_q),
      last:    state_q == StFlush || ends_exactly,
      end_seq: upto
    };
  end

  always_ff @(posedge clk) begin
    state_q <= state_d;
    if (reads) begin
      stream_q <= s_stream;
      una_newer_q  <= done_valid && done_at == read_at;
    end else if (concerns) una_newer_q <= 1'b1;
    if (reads ? done_valid && done_at == read_at : concerns) una_q <= done.una;
    if (state_q == StLoad) begin
      end_q      <= fresh ? start_kept : place_kept.end_seq;
      reported_seq_q     <= fresh ? start_kept : place_kept.end_seq;
      tail_q     <= fresh ? '0 : place_kept.tail;
      dead_q     <= !live_q[at] || (concerns && (opened || ended));
      reported_q <= 1'b0;
      if (!una_newer_q && !concerns) una_q <= una_kept;
    end else if (concerns && (opened || ended)) dead_q <= 1'b1;
    if (take) begin
      end_q  <= end_q + 32'(count);
      tail_q <= fills ? joined[DATA_W+:DATA_W] : joined[DATA_W-1:0];
    end
    // Looks at the beats before this one: three more than are counted may be on their way.
    room_q <= state_q == StTake && end_q - una_q <= 32'(RING_BYTES - 4 * Bytes);

    if (beat_free) beat_valid_q <= beat_valid;
    if (beat_valid) begin
      beat_q     <= beat;
      run_q      <= run;
      run_open_q <= !beat.ends;
      if (beat.report.is_reported && beat.ends) reported_seq_q <= upto;
      if (beat.report.last && beat.ends) reported_q <= 1'b1;
    end
    if (rst) begin
      state_q      <= StIdle;
      room_q       <= 1'b0;
      beat_valid_q <= 1'b0;
      run_open_q   <= 1'b0;
    end
  end

  // ---- 1: into the bursts ------------------------------------------------------------------------------------------
  logic [ADDR_W-1:0] run_addr;
  logic written, written_bad;
  assign moves     = beat_valid_q && wr_ready && reports_room;
  assign beat_free = !beat_valid_q || moves;
  assign run_addr  = {base_addr[ADDR_W-1:12], 12'b0} + (ADDR_W'(beat_q.report.stream) << RingW)
                     + (ADDR_W'(beat_q.run) << ByteW);

  packet_store_axi_wr #(.DATA_W(DATA_W), .ADDR_W(ADDR_W), .BYTES(WaitBytes)) u_bursts (
    .clk, .rst,
    .wr_en  (moves && beat_q.word),
    .wr_end (moves && beat_q.ends),
    .wr_addr(run_addr),
    .wr_data(beat_q.data),
    .wr_ready,
    .written, .written_bad,
    .m_axi_req, .m_axi_wdata, .m_axi_rsp
  );

  report_t report;
  logic report_valid, answer_bad, answer_valid, unused_answers_room;
  logic [$clog2(REPORTS):0] level, unused_level;
  sync_fifo #(.W($bits(report_t)), .DEPTH(REPORTS)) u_reports (
    .clk, .rst,
    .s_data (beat_q.report),
    .s_valid(moves && beat_q.ends),
    .s_ready(reports_room),
    .m_data (report),
    .m_valid(report_valid),
    .m_ready(confirmed),
    .level
  );
  sync_fifo #(.W(1), .DEPTH(REPORTS)) u_answers (
    .clk, .rst,
    .s_data (written_bad),
    .s_valid(written),
    .s_ready(unused_answers_room),
    .m_data (answer_bad),
    .m_valid(answer_valid),
    .m_ready(confirmed),
    .level  (unused_level)
  );
  assign unconfirmed = LevelW'(level) + LevelW'(beat_valid_q && beat_q.ends);

  // ---- the memory has a run: it is reported to the sender unless its connection has ended. tcp_ring_guard lets no stream
  // open before the runs of its earlier connections are answered, so a live stream's run is of this connection --------
  logic [N_STREAMS-1:0] failed_q;  // bytes are missing in the ring
  index_t report_at;
  logic drops, fails;
  assign report_at = index_t'(report.stream);
  assign confirmed = answer_valid && !write_valid && !((opened || ended) && done_at == report_at);
  assign drops     = report.dead || !live_q[report_at];
  assign fails     = !drops && (answer_bad || failed_q[report_at]);

  always_ff @(posedge clk) begin
    if (write_ready || !live_q[index_t'(write.stream)]) write_valid <= 1'b0;
    if (confirmed && report.is_reported && !drops && !fails) begin
      write       <= '{stream: report.stream, bytes: 31'(report.bytes)};
      write_valid <= 1'b1;
    end
    laid         <= '{dropped: drops, end_seq: report.end_seq};
    laid_valid   <= confirmed && report.last;
    fault_valid  <= confirmed && answer_bad && !drops;
    fault_stream <= report.stream;
    stat_error   <= confirmed && answer_bad;
    if (opened) failed_q[done_at] <= 1'b0;
    if (confirmed && fails) failed_q[report_at] <= 1'b1;
    if (rst) begin
      write_valid <= 1'b0;
      laid_valid  <= 1'b0;
      fault_valid <= 1'b0;
      stat_error  <= 1'b0;
      failed_q    <= '0;
    end
  end

  wire unused = &{1'b0, done, base_addr[11:0], report_valid, unused_answers_room, unused_level};

`ifndef SYNTHESIS
  a_not_over : assert property (@(posedge clk) disable iff (rst)
    state_q == StTake && !dead_q |-> end_q - una_q <= 32'(RING_BYTES - Bytes))
    else $error("%m: %0d bytes in a ring of %0d", end_q - una_q, RING_BYTES);
  a_reported : assert property (@(posedge clk) disable iff (rst) answer_valid |-> report_valid);
  a_answers : assert property (@(posedge clk) disable iff (rst) written |-> unused_answers_room);
  a_whole_beats : assert property (@(posedge clk) disable iff (rst)
    s_axis_tvalid && !s_axis_tlast |-> &s_axis_tkeep);
`endif
endmodule
