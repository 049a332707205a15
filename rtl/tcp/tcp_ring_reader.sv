// SPDX-License-Identifier: SHL-2.1
// Fetches the payload of each segment from its stream's ring, from any byte to any byte, and makes its header with the
// payload's sum: the sum before its end less the sum before its start, both stored by tcp_ring_writer.
// Promise: segments leave in the order of their requests; the payload starts in the low lane and has no
// gap while it is taken; it is `read` when nothing more of it is needed from the ring and from the table of peers. A
// segment acknowledged meanwhile may carry other bytes: its receiver already has them.
module tcp_ring_reader
  import tcp_pkg::*;
#(
  parameter  int unsigned DATA_W     = 64,
  parameter  int unsigned N_STREAMS  = 4,
  parameter  int unsigned RING_BYTES = 65536,
  localparam int unsigned Bytes      = DATA_W / 8,
  localparam int unsigned AddrW      = $clog2(N_STREAMS * RING_BYTES / Bytes),
  localparam int unsigned Depth      = 4,
  localparam int unsigned UnreadW    = $clog2(Depth + 2)  // those that wait, and the one that is being read
) (
  input  logic clk,
  input  logic rst,

  input  tcp_params_t  params,
  input  logic [15:0]  port_base,

  // segments to send; `room` when one more may come in addition to one on its way
  input  tcp_stream_t  s_stream,
  input  tcp_segment_t s_segment,
  input  logic         s_valid,
  output logic         room,

  // the memory of all rings and the table of peers: the answer comes a cycle later and stays
  output logic              rd_en,
  output logic [AddrW-1:0]  rd_addr,
  input  logic [DATA_W-1:0] rd_data,
  input  logic [15:0]       rd_sum,
  output logic              peer_rd,
  output tcp_stream_t       peer_stream,
  input  tcp_peer_t         peer,

  // tcp_ring_guard: segments that are not read, one is read
  output logic [UnreadW-1:0] unread,
  output logic               read,

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
  localparam int unsigned ByteW   = $clog2(Bytes);
  localparam int unsigned RingW   = $clog2(RING_BYTES);
  localparam int unsigned StreamW = N_STREAMS > 1 ? $clog2(N_STREAMS) : 1;
  localparam int unsigned Groups  = Bytes / 8;  // of four words

  typedef struct packed {
    tcp_stream_t  stream;
    tcp_segment_t segment;
  } job_t;
  job_t job, job_q;
  logic job_valid, job_taken;
  logic [$clog2(Depth):0] level;
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

  // ---- one segment: its last beat is read for the sum alone, then all from the first on -----------------------------
  typedef enum logic [2:0] {StIdle, StLast, StFirst, StLoad, StSend, StHead} state_e;
  state_e state_q, state_d;
  logic [RingW-1:0] at_q;      // place of the next beat to read
  logic [13:0] left_q;         // bytes that have not been handed on
  logic [DATA_W-1:0] prev_q;
  logic out_free, moves, ends, has_payload, hdr_done_q;
  logic [ByteW-1:0] first_lane, last_lane;
  tcp_seq_t last_seq;
  assign last_seq    = job_q.segment.seq + 32'(job_q.segment.len) - 32'd1;
  assign first_lane  = job_q.segment.seq[ByteW-1:0];
  assign last_lane   = last_seq[ByteW-1:0];
  assign has_payload = job.segment.len != '0;
  assign out_free    = !m_axis_tvalid || m_axis_tready;
  assign moves       = state_q == StSend && out_free;
  assign ends        = moves && left_q <= 14'(Bytes);
  assign read        = ends || (job_taken && !has_payload);
  assign job_taken   = state_q == StIdle && job_valid;
  assign peer_rd     = job_taken;
  assign peer_stream = job.stream;

  always_comb begin
    state_d = state_q;
    unique case (state_q)
      StIdle: if (job_valid) state_d = has_payload ? StLast : StHead;
      StLast: state_d = StFirst;
      StFirst: state_d = StLoad;
      StLoad: state_d = StSend;
      StSend: if (ends) state_d = StHead;
      default: if (hdr_done_q || (hdr_valid && hdr_ready)) state_d = StIdle;  // StHead
    endcase
  end

  logic [RingW-1:0] place;
  assign place = state_q == StLast ? last_seq[RingW-1:0] : state_q == StFirst ? job_q.segment.seq[RingW-1:0] : at_q;
  assign rd_en = state_q == StLast || state_q == StFirst || state_q == StLoad || moves;
  if (N_STREAMS > 1) begin : gen_many
    assign rd_addr = {StreamW'(job_q.stream), place[RingW-1:ByteW]};
  end else begin : gen_one
    assign rd_addr = place[RingW-1:ByteW];
  end

  always_ff @(posedge clk) begin
    state_q <= state_d;
    if (job_taken) job_q <= job;
    if (state_q == StIdle) left_q <= job.segment.len;
    if (state_q == StFirst || state_q == StLoad || moves) at_q <= place + RingW'(Bytes);
    if (state_q == StLoad || moves) prev_q <= rd_data;
    if (moves) left_q <= left_q - (left_q < 14'(Bytes) ? left_q : 14'(Bytes));
    unread <= unread + UnreadW'(s_valid) - UnreadW'(read);
    if (rst) begin
      state_q <= StIdle;
      unread  <= '0;
    end
  end

  // ---- the payload, its first byte in the low lane ------------------------------------------------------------------
  logic [DATA_W-1:0] shifted;
  assign shifted = DATA_W'({rd_data, prev_q} >> {first_lane, 3'b0});
  always_ff @(posedge clk) begin
    if (moves) begin
      m_axis_tdata <= shifted;
      m_axis_tkeep <= left_q >= 14'(Bytes) ? '1 : ~({Bytes{1'b1}} << left_q[ByteW-1:0]);
      m_axis_tlast <= left_q <= 14'(Bytes);
    end
    if (out_free) m_axis_tvalid <= moves;
    if (rst) m_axis_tvalid <= 1'b0;
  end

  // ---- the sum: of the stream's bytes up to the end, then of those before the start ---------------------------------
  logic [DATA_W-1:0] part, part_q;
  logic [3:1] valid_q, end_q;  // `end_q`: this is the sum up to the end
  logic [15:0] before1_q, before2_q, upto, upto_q, difference;
  logic [Groups-1:0][17:0] four_q;
  logic [21:0] words;
  always_comb begin
    for (int unsigned i = 0; i < Bytes; i++)
      part[8*i+:8] = (state_q == StFirst ? ByteW'(i) <= last_lane : ByteW'(i) < first_lane) ? rd_data[8*i+:8] : '0;
    words = '0;
    for (int unsigned i = 0; i < Groups; i++) words += 22'(four_q[i]);
  end
  function automatic logic [15:0] word(logic [DATA_W-1:0] data, int unsigned number);
    return {data[16*number+:8], data[16*number+8+:8]};
  endfunction
  assign difference = tcp_fold(24'(upto_q) + 24'(16'(~upto)));

  logic [15:0] sum_q;
  always_ff @(posedge clk) begin
    part_q    <= part;
    before1_q <= rd_sum;
    before2_q <= before1_q;
    for (int unsigned i = 0; i < Groups; i++)
      four_q[i] <= 18'(word(part_q, 4 * i)) + 18'(word(part_q, 4 * i + 1)) + 18'(word(part_q, 4 * i + 2))
                   + 18'(word(part_q, 4 * i + 3));
    upto      <= tcp_fold(24'(words) + 24'(before2_q));
    upto_q    <= upto;
    valid_q   <= {valid_q[2:1], state_q == StFirst || state_q == StLoad};
    end_q     <= {end_q[2:1], state_q == StFirst};
    // A first byte at an odd place is a lower one in the ring and an upper one in the segment (RFC 1071, section 2).
    if (valid_q[3] && !end_q[3]) sum_q <= job_q.segment.seq[0] ? {difference[7:0], difference[15:8]} : difference;
    if (job_taken) sum_q <= '0;
    if (rst) valid_q <= '0;
  end

  // ---- the header ---------------------------------------------------------------------------------------------------
  logic hdr_due_q;
  always_comb begin
    hdr = '{
      peer: peer, port: port_base + 16'(job_q.stream), window: job_q.segment.flags.rst ? '0 : params.receive_window,
      mss: params.mss, payload_sum: sum_q, segment: job_q.segment
    };
  end
  assign hdr_valid = hdr_due_q;
  always_ff @(posedge clk) begin
    if (job_taken) hdr_done_q <= 1'b0;
    if ((valid_q[3] && !end_q[3]) || (job_taken && !has_payload)) hdr_due_q <= 1'b1;
    else if (hdr_ready) hdr_due_q <= 1'b0;
    if (hdr_valid && hdr_ready) hdr_done_q <= 1'b1;
    if (rst) hdr_due_q <= 1'b0;
  end

  logic unused;
  assign unused = &{1'b0, params, last_seq};

`ifndef SYNTHESIS
  a_room : assert property (@(posedge clk) disable iff (rst) s_valid |-> 32'(level) < Depth)
    else $error("%m: a segment for which there is no room");
`endif
endmodule
