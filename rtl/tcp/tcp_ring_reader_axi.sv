// SPDX-License-Identifier: SHL-2.1
// tcp_ring_reader for rings in an AXI4 memory (tcp_ring_writer_axi): prefetches the payload of each segment, sums its
// bytes as they arrive, and hands on header and payload when the segment is whole: no frame waits for the memory.
// Promise: segments leave in the order of their requests; room is reserved before a request, so R is never stalled;
// bursts stay within 4 KiB and 256 beats, at most 16 outstanding. A segment with an error response is dropped, and
// `fault` names its stream. A segment acknowledged meanwhile may carry other bytes, with their right sum: its receiver
// already has those that it was sent for.
//
//   jobs -> bursts -> m_axi -> words -----------> aligned payload
//     |                 |  masked bytes -> sum -> header
//     +-> segments in order -----------------------^
module tcp_ring_reader_axi
  import tcp_pkg::*;
#(
  parameter  int unsigned DATA_W     = 64,
  parameter  int unsigned RING_BYTES = 4194304,
  parameter  int unsigned ADDR_W     = 64,
  localparam int unsigned Bytes      = DATA_W / 8,
  localparam int unsigned Segments   = 32,  // that are fetched or wait
  localparam int unsigned UnreadW    = $clog2(Segments) + 2
) (
  input  logic clk,
  input  logic rst,
  input  logic [ADDR_W-1:0] base_addr,  // a multiple of 4096

  input  tcp_params_t  params,
  input  logic [15:0]  port_base,

  // segments to send; `room` when one more may come in addition to one on its way
  input  tcp_stream_t  s_stream,
  input  tcp_segment_t s_segment,
  input  logic         s_valid,
  output logic         room,

  // the table of peers: the answer comes a cycle later and stays
  output logic         peer_rd,
  output tcp_stream_t  peer_stream,
  input  tcp_peer_t    peer,

  // tcp_ring_guard: segments whose bytes and peer are still needed, those of one are there; some could not be read
  output logic [UnreadW-1:0] unread,
  output logic               read,
  output logic               fault_valid,
  output tcp_stream_t        fault_stream,

  output axi_pkg::axi_rd_req_t m_axi_req,
  input  axi_pkg::axi_rd_rsp_t m_axi_rsp,
  input  logic [DATA_W-1:0]    m_axi_rdata,

  // to tcp_framer
  output tcp_tx_hdr_t       hdr,
  output logic              hdr_valid,
  input  logic              hdr_ready,
  output logic [DATA_W-1:0] m_axis_tdata,
  output logic [Bytes-1:0]  m_axis_tkeep,
  output logic              m_axis_tvalid,
  input  logic              m_axis_tready,
  output logic              m_axis_tlast
);
  localparam int unsigned ByteW       = $clog2(Bytes);
  localparam int unsigned RingW       = $clog2(RING_BYTES);
  localparam int unsigned PlaceW      = RingW - ByteW;  // of a beat in its ring
  localparam int unsigned Groups      = Bytes / 8;      // of four words
  localparam int unsigned Depth       = 4;
  localparam int unsigned Words       = 32768 / Bytes;  // one BRAM is 512 words deep, the widest memory too
  localparam int unsigned PtrW        = $clog2(Words);
  localparam int unsigned MaxWords    = (32'(TcpMaxMss) + 2 * Bytes - 2) / Bytes;  // of a segment
  localparam int unsigned BeatW       = $clog2(MaxWords + 1);
  localparam int unsigned BurstWords  = 4096 / Bytes > 256 ? 256 : 4096 / Bytes;
  localparam int unsigned BurstW      = $clog2(BurstWords);
  localparam int unsigned Outstanding = 16;

  typedef logic [BeatW-1:0] beats_t;

  // ---- segments to send --------------------------------------------------------------------------------------------
  typedef struct packed {
    tcp_stream_t  stream;
    tcp_segment_t segment;
  } job_t;
  typedef struct packed {
    beats_t           last_beat;
    logic [ByteW-1:0] first_lane;
    logic [ByteW-1:0] last_lane;
  } shape_t;
  job_t job, out_job;
  logic job_valid, job_taken, job_has_payload, job_fetched, words_room, segments_room, fetches_room;
  logic [$clog2(Depth):0] level;
  shape_t job_shape;
  logic [14:0] job_last;  // byte of its first beat's address on
  sync_fifo #(.W($bits(job_t)), .DEPTH(Depth)) u_jobs (
    .clk, .rst,
    .s_data ({s_stream, s_segment}),
    .s_valid(s_valid),
    .s_ready(),
    .m_data (job),
    .m_valid(job_valid),
    .m_ready(job_taken),
    .level
  );
  assign room = level <= ($clog2(Depth) + 1)'(Depth - 2);

  assign job_has_payload = job.segment.len != '0;
  assign job_last        = 15'(job.segment.seq[ByteW-1:0]) + 15'(job.segment.len) - 15'd1;
  assign job_shape       = '{
    last_beat: beats_t'(job_last >> ByteW), first_lane: job.segment.seq[ByteW-1:0], last_lane: job_last[ByteW-1:0]
  };

  logic request_valid_q, request_ends, request_free, out_taken, out_valid;
  logic [$clog2(Segments):0] unused_segments, unused_fetches, unused_sums;
  assign request_free   = !request_valid_q || request_ends;
  assign job_taken   = job_valid && segments_room && (!job_has_payload || (request_free && words_room && fetches_room));
  assign job_fetched = job_taken && job_has_payload;
  sync_fifo #(.W($bits(job_t)), .DEPTH(Segments)) u_segments (
    .clk, .rst,
    .s_data (job),
    .s_valid(job_taken),
    .s_ready(segments_room),
    .m_data (out_job),
    .m_valid(out_valid),
    .m_ready(out_taken),
    .level  (unused_segments)
  );

  // ---- addresses out: whole bursts up to a multiple of their size, so that none crosses 4 KiB or the ring's end -----
  tcp_stream_t request_stream_q;
  logic [PlaceW-1:0] request_at_q;
  beats_t request_left_q, to_boundary, requested;  // beats after the next one
  logic issues, last_burst, arvalid_q, burst_done;
  logic [ADDR_W-1:0] request_addr;
  axi_pkg::axi_addr_t ar_q;
  logic [$clog2(Outstanding):0] in_flight_q;
  assign request_addr = {base_addr[ADDR_W-1:12], 12'b0} + (ADDR_W'(request_stream_q) << RingW)
                       + (ADDR_W'(request_at_q) << ByteW);
  assign to_boundary  = beats_t'(BurstW'(~request_at_q[BurstW-1:0]));
  assign last_burst   = request_left_q <= to_boundary;
  assign requested    = last_burst ? request_left_q : to_boundary;
  assign issues       = request_valid_q && (!arvalid_q || m_axi_rsp.arready)
                       && in_flight_q != ($clog2(Outstanding) + 1)'(Outstanding);
  assign request_ends = issues && last_burst;
  assign burst_done   = m_axi_rsp.rvalid && m_axi_rsp.rlast;
  assign m_axi_req    = '{ar: ar_q, arvalid: arvalid_q, rready: 1'b1};

  always_ff @(posedge clk) begin
    if (issues) begin
      ar_q           <= axi_pkg::whole_words(64'(request_addr), 8'(requested), Bytes);
      arvalid_q      <= 1'b1;
      request_at_q   <= request_at_q + PlaceW'(requested) + 1'b1;
      request_left_q <= request_left_q - requested - 1'b1;
    end else if (m_axi_rsp.arready) arvalid_q <= 1'b0;
    if (request_ends) request_valid_q <= 1'b0;
    if (job_fetched) begin
      request_valid_q  <= 1'b1;
      request_stream_q <= job.stream;
      request_at_q     <= job.segment.seq[RingW-1:ByteW];
      request_left_q   <= job_shape.last_beat;
    end
    in_flight_q <= in_flight_q + ($clog2(Outstanding) + 1)'(issues) - ($clog2(Outstanding) + 1)'(burst_done);
    if (rst) begin
      arvalid_q       <= 1'b0;
      request_valid_q <= 1'b0;
      in_flight_q <= '0;
    end
  end

  // ---- words in: those of a segment are counted, and their bytes that belong to it summed ---------------------------
  shape_t fetching;
  beats_t got_q;
  logic fetching_valid, arrives, is_first, is_last, bad_q, bad;
  logic [PtrW-1:0] head_q;
  logic [DATA_W-1:0] part;
  sync_fifo #(.W($bits(shape_t)), .DEPTH(Segments)) u_fetches (
    .clk, .rst,
    .s_data (job_shape),
    .s_valid(job_fetched),
    .s_ready(fetches_room),
    .m_data (fetching),
    .m_valid(fetching_valid),
    .m_ready(arrives),
    .level  (unused_fetches)
  );
  assign is_first = got_q == '0;
  assign is_last  = got_q == fetching.last_beat;
  assign arrives  = m_axi_rsp.rvalid && is_last;
  assign bad      = bad_q || m_axi_rsp.rresp[1];
  always_comb begin
    for (int unsigned i = 0; i < Bytes; i++)
      part[8*i+:8] = (is_first && ByteW'(i) < fetching.first_lane) || (is_last && ByteW'(i) > fetching.last_lane)
                     ? '0 : m_axi_rdata[8*i+:8];
  end

  always_ff @(posedge clk) begin
    if (m_axi_rsp.rvalid) begin
      head_q <= head_q + 1'b1;
      got_q  <= arrives ? '0 : got_q + 1'b1;
      bad_q  <= bad && !arrives;
    end
    if (rst) begin
      head_q <= '0;
      got_q  <= '0;
      bad_q  <= 1'b0;
    end
  end

  typedef struct packed {
    logic   valid;
    logic   first;
    logic   last;
    logic   bad;
    logic   odd;  // its first byte is at an odd place
    beats_t last_beat;
  } stage_t;
  typedef struct packed {
    logic        bad;
    beats_t      last_beat;
    logic [15:0] sum;
  } sum_t;
  stage_t [5:1] stage_q;
  logic [DATA_W-1:0] part_q;
  logic [Groups-1:0][17:0] four_q;
  logic [21:0] words, words_q;
  logic [31:0] total_q;
  logic [16:0] half_q;
  logic [15:0] folded;
  sum_t sum_in, sum;
  logic sum_valid, sum_taken, unused_sums_room;
  always_comb begin
    words = '0;
    for (int unsigned i = 0; i < Groups; i++) words += 22'(four_q[i]);
  end
  function automatic logic [15:0] word(logic [DATA_W-1:0] data, int unsigned number);
    return {data[16*number+:8], data[16*number+8+:8]};
  endfunction

  always_ff @(posedge clk) begin
    stage_q <= {
      stage_q[4:1],
      stage_t'{
        valid: m_axi_rsp.rvalid, first: is_first, last: is_last, bad: bad, odd: fetching.first_lane[0],
        last_beat: fetching.last_beat
      }
    };
    part_q  <= part;
    for (int unsigned i = 0; i < Groups; i++)
      four_q[i] <= 18'(word(part_q, 4 * i)) + 18'(word(part_q, 4 * i + 1)) + 18'(word(part_q, 4 * i + 2))
                   + 18'(word(part_q, 4 * i + 3));
    words_q <= words;
    if (stage_q[3].valid) total_q <= (stage_q[3].first ? '0 : total_q) + 32'(words_q);
    half_q <= 17'(total_q[15:0]) + 17'(total_q[31:16]);
    if (rst) for (int unsigned i = 1; i < 6; i++) stage_q[i].valid <= 1'b0;
  end

  // A first byte at an odd place is a lower one in the ring and an upper one in the segment (RFC 1071, section 2).
  assign folded = tcp_fold(24'(half_q));
  assign sum_in = '{
    bad: stage_q[5].bad, last_beat: stage_q[5].last_beat, sum: stage_q[5].odd ? {folded[7:0], folded[15:8]} : folded
  };
  sync_fifo #(.W($bits(sum_t)), .DEPTH(Segments)) u_sums (
    .clk, .rst,
    .s_data (sum_in),
    .s_valid(stage_q[5].valid && stage_q[5].last),
    .s_ready(unused_sums_room),
    .m_data (sum),
    .m_valid(sum_valid),
    .m_ready(sum_taken),
    .level  (unused_sums)
  );

  // ---- segments out: the oldest one, when it is whole --------------------------------------------------------------
  typedef enum logic [2:0] {StIdle, StFirst, StLoad, StSend, StHead} state_e;
  state_e state_q, state_d;
  job_t job_q;
  logic has_payload, whole, drops, out_free, moves, ends, frees, hdr_due_q, hdr_done_q, rd_en;
  logic [13:0] left_q;  // bytes that have not been handed on
  logic [PtrW-1:0] tail_q, at_q, rd_addr;
  logic [PtrW:0] reserved_q, claimed_q, freed_q;  // words; those of the last cycle are not in reserved_q yet
  beats_t last_beat_q;
  logic [15:0] sum_q;
  logic [DATA_W-1:0] prev_q, rd_data, shifted;
  assign has_payload = out_job.segment.len != '0;
  assign whole       = out_valid && (!has_payload || sum_valid);
  assign out_taken   = state_q == StIdle && whole;
  assign sum_taken   = out_taken && has_payload;
  assign drops       = sum_taken && sum.bad;
  assign out_free    = !m_axis_tvalid || m_axis_tready;
  assign moves       = state_q == StSend && out_free;
  assign ends        = moves && left_q <= 14'(Bytes);
  assign peer_rd     = out_taken;
  assign read        = out_taken;
  assign peer_stream = out_job.stream;
  assign frees       = drops || ends;
  assign words_room  = claimed_q == '0 && reserved_q <= (PtrW + 1)'(Words - MaxWords);

  always_comb begin
    state_d = state_q;
    unique case (state_q)
      StIdle: if (out_taken && !drops) state_d = has_payload ? StFirst : StHead;
      StFirst: state_d = StLoad;
      StLoad: state_d = StSend;
      StSend: if (ends) state_d = StHead;
      default: if (hdr_done_q || (hdr_valid && hdr_ready)) state_d = StIdle;  // StHead
    endcase
  end

  assign rd_addr = state_q == StFirst ? tail_q : at_q;
  assign rd_en   = state_q == StFirst || state_q == StLoad || moves;
  ram_sdp #(.W(DATA_W), .DEPTH(Words)) u_words (
    .clk, .wr_en(m_axi_rsp.rvalid), .wr_addr(head_q), .wr_data(m_axi_rdata), .rd_en, .rd_addr, .rd_data
  );

  // The payload's first byte comes into the low lane.
  assign shifted = DATA_W'({rd_data, prev_q} >> {job_q.segment.seq[ByteW-1:0], 3'b0});

  always_ff @(posedge clk) begin
    state_q <= state_d;
    if (out_taken) begin
      job_q       <= out_job;
      left_q      <= out_job.segment.len;
      last_beat_q <= sum.last_beat;
      sum_q       <= has_payload ? sum.sum : '0;
    end
    if (rd_en) at_q <= rd_addr + 1'b1;
    if (state_q == StLoad || moves) prev_q <= rd_data;
    if (moves) begin
      left_q       <= left_q - (left_q < 14'(Bytes) ? left_q : 14'(Bytes));
      m_axis_tdata <= shifted;
      m_axis_tkeep <= left_q >= 14'(Bytes) ? '1 : ~({Bytes{1'b1}} << left_q[ByteW-1:0]);
      m_axis_tlast <= left_q <= 14'(Bytes);
    end
    if (out_free) m_axis_tvalid <= moves;
    // A segment's words are given back when it has left: never too early.
    tail_q     <= tail_q + PtrW'(freed_q);
    unread     <= unread + UnreadW'(s_valid) - UnreadW'(read);
    claimed_q  <= job_fetched ? (PtrW + 1)'(job_shape.last_beat) + 1'b1 : '0;
    freed_q    <= frees ? (PtrW + 1)'(drops ? sum.last_beat : last_beat_q) + 1'b1 : '0;
    reserved_q <= reserved_q + claimed_q - freed_q;
    fault_valid  <= drops;
    fault_stream <= out_job.stream;

    if (out_taken) hdr_done_q <= 1'b0;
    if (out_taken && !drops) hdr_due_q <= 1'b1;
    else if (hdr_ready) hdr_due_q <= 1'b0;
    if (hdr_valid && hdr_ready) hdr_done_q <= 1'b1;
    if (rst) begin
      state_q       <= StIdle;
      m_axis_tvalid <= 1'b0;
      tail_q        <= '0;
      unread        <= '0;
      reserved_q    <= '0;
      claimed_q     <= '0;
      freed_q       <= '0;
      fault_valid   <= 1'b0;
      hdr_due_q     <= 1'b0;
    end
  end

  assign hdr_valid = hdr_due_q;
  assign hdr       = '{
    peer: peer, port: port_base + 16'(job_q.stream), window: job_q.segment.flags.rst ? '0 : params.receive_window,
    mss: params.mss, payload_sum: sum_q, segment: job_q.segment
  };

  wire unused = &{
    1'b0, params, base_addr[11:0], m_axi_rsp.rid, m_axi_rsp.rresp[0], fetching_valid, unused_sums_room,
    unused_segments, unused_fetches, unused_sums
  };

`ifndef SYNTHESIS
  a_room : assert property (@(posedge clk) disable iff (rst) s_valid |-> 32'(level) < Depth)
    else $error("%m: a segment for which there is no room");
  a_expected : assert property (@(posedge clk) disable iff (rst) m_axi_rsp.rvalid |-> fetching_valid);
  a_sums : assert property (@(posedge clk) disable iff (rst)
    stage_q[5].valid && stage_q[5].last |-> unused_sums_room);
  a_reserved : assert property (@(posedge clk) disable iff (rst) 32'(reserved_q) <= Words);
  a_4k : assert property (@(posedge clk) disable iff (rst)
    arvalid_q |-> 13'(ar_q.addr[11:0]) + ((13'(ar_q.len) + 13'd1) << ByteW) <= 13'd4096);
  a_ar_hold : assert property (@(posedge clk) disable iff (rst)
    m_axi_req.arvalid && !m_axi_rsp.arready |=> m_axi_req.arvalid && $stable(m_axi_req.ar));
  // A frame never waits for the memory.
  a_no_bubble : assert property (@(posedge clk) disable iff (rst)
    m_axis_tvalid && m_axis_tready && !m_axis_tlast |=> m_axis_tvalid);
  a_hold : assert property (@(posedge clk) disable iff (rst)
    m_axis_tvalid && !m_axis_tready |=> m_axis_tvalid && $stable(m_axis_tdata) && $stable(m_axis_tlast));
`endif
endmodule
