// SPDX-License-Identifier: SHL-2.1
// Times of a series of messages on each TCP stream, in cycles, and the latency histogram of its segments; the
// counterpart of transfer_meter, which counts packets where this counts bytes: latency of the first and of the last
// segment, time from the first byte sent to the last acknowledgement, bytes acknowledged, segments sent for the first
// time, sum of the latencies of all bytes.
// Sources: CEPC 2025 (latency_first_packet, latency_last_packet, transfer_time_tot), FEROCE 2025 (mean latency,
// throughput from the first packet sent to the last acknowledgement); Karn and Partridge, SIGCOMM 1987.
//
// A series begins with the first byte that is sent after `arm`, after a clear, or after its stream was opened; bytes
// that were sent before are not part of it. The time of a byte starts when it is first sent, also if it is sent again.
// The sum of latencies is the integral of the bytes outstanding (Little, Operations Research 9, 1961).
//
//   0: event, read track  1: step, write track; series_rows has the rest  2: histogram
module tcp_meter
  import penstock_pkg::*;
  import roce_tx_pkg::*;
  import tcp_pkg::*;
  import ctrl_pkg::*;
#(
  parameter int unsigned N_STREAMS  = 4,
  parameter int unsigned RING_BYTES = 65536
) (
  input  logic        clk,
  input  logic        rst,
  input  logic        clear,      // all streams
  input  logic        arm_valid,  // a message that begins a series is on its way to this one
  input  qp_t         arm_qp,
  // events of the sender, those of one stream never in two successive cycles (tcp_sender)
  input  logic        done_valid,
  // verilator lint_off UNUSEDSIGNAL
  input  tcp_done_t   done,
  // verilator lint_on UNUSEDSIGNAL
  // software
  input  reg_req_t    req,
  output reg_rsp_t    rsp,
  input  reg_req_t    latency_req,
  output reg_rsp_t    latency_rsp
);
  localparam int unsigned StreamW  = N_STREAMS > 1 ? $clog2(N_STREAMS) : 1;
  localparam int unsigned BytesW   = $clog2(RING_BYTES) + 1;
  localparam int unsigned WaitW    = 16;  // cycles between two events of a stream: its clock comes far more often

  typedef logic [StreamW-1:0] index_t;
  typedef logic [63:0] cycles_t;
  typedef logic [BytesW-1:0] bytes_t;

  typedef struct packed {
    logic             running;
    logic             first_open;  // the first segment is not acknowledged
    logic             resent;      // bytes of the series were sent again
    tcp_seq_t         first_end;   // after the first segment
    tcp_seq_t         una;         // first unacknowledged byte, not before the series
    logic [WaitW-1:0] op_at;       // the last event
  } track_t;

  if (RING_BYTES > 2 ** 30) begin : gen_bad_ring
    $fatal(1, "%m: RING_BYTES is %0d; it must be 1073741824 or less", RING_BYTES);
  end

  // ---- 1: the step ------------------------------------------------------------------------------------
  logic [N_STREAMS-1:0] armed;
  cycles_t now_q;
  logic valid_q, live, is_new, again, begins, counts, acks, of_first, of_last;
  index_t at_q;
  // verilator lint_off UNUSEDSIGNAL
  tcp_done_t done_q;
  // verilator lint_on UNUSEDSIGNAL
  track_t track, next;
  cycles_t first_at, last_at;  // of the first segment, and of the last one with new bytes
  tcp_seq_t segment_end;
  // verilator lint_off UNUSEDSIGNAL
  tcp_segment_t segment;
  // verilator lint_on UNUSEDSIGNAL

  ram_sdp #(.W($bits(track_t)), .DEPTH(N_STREAMS), .BLOCK(1'b1)) u_tracks (
    .clk,
    .wr_en  (valid_q),
    .wr_addr(at_q),
    .wr_data(next),
    .rd_en  (done_valid),
    .rd_addr(index_t'(done.stream)),
    .rd_data(track)
  );
  ram_sdp #(.W($bits(cycles_t)), .DEPTH(N_STREAMS), .BLOCK(1'b1)) u_first (
    .clk,
    .wr_en  (valid_q && begins),
    .wr_addr(at_q),
    .wr_data(now_q),
    .rd_en  (done_valid),
    .rd_addr(index_t'(done.stream)),
    .rd_data(first_at)
  );
  ram_sdp #(.W($bits(cycles_t)), .DEPTH(N_STREAMS), .BLOCK(1'b1)) u_last (
    .clk,
    .wr_en  (valid_q && is_new),
    .wr_addr(at_q),
    .wr_data(now_q),
    .rd_en  (done_valid),
    .rd_addr(index_t'(done.stream)),
    .rd_data(last_at)
  );

  assign live        = done_q.state == TcpEstablished;
  assign segment     = done_q.actions.send;
  assign segment_end = segment.seq + tcp_seq_t'(segment.len);
  assign is_new      = live && done_q.max != done_q.max_before;
  assign again       = live && segment.len != '0 && done_q.actions.counts.retransmitted;
  assign counts      = track.running && live && !armed[at_q] && !done_q.actions.opened;
  assign begins      = is_new && !counts;
  assign acks        = counts && tcp_before(track.una, done_q.una);
  assign of_first    = acks && track.first_open && !tcp_before(done_q.una, track.first_end);
  assign of_last     = acks && done_q.una == done_q.max;

  always_comb begin
    next       = track;
    next.op_at = WaitW'(now_q);
    if (counts) begin
      if (acks) next.una = done_q.una;
      if (of_first) next.first_open = 1'b0;
      if (again && done_q.max_before != track.una && tcp_before(track.una, segment_end)) next.resent = 1'b1;
    end else next.running = 1'b0;
    if (begins) begin
      next.running    = 1'b1;
      next.first_open = 1'b1;
      next.resent     = 1'b0;
      next.una        = done_q.max_before;
      next.first_end  = done_q.max;
    end
  end

  always_ff @(posedge clk) begin
    now_q   <= now_q + 64'd1;
    valid_q <= done_valid;
    at_q    <= index_t'(done.stream);
    done_q  <= done;
    if (rst) begin
      now_q   <= '0;
      valid_q <= 1'b0;
    end
  end

  // ---- 2, 3: times and amounts --------------------------------------------------------------------------------
  series_rows #(
    .ROWS    (N_STREAMS),
    .WAIT_W  (WaitW),
    .AMOUNT_W(BytesW)
  ) u_rows (
    .clk, .rst, .clear, .arm_valid,
    .arm_row    (arm_qp),
    .armed,
    .step_valid (valid_q),
    .step_row   (at_q),
    .begins,
    .counts,
    .of_first,
    .of_last,
    .acks,
    .since_first(now_q - first_at),
    .since_last (now_q - last_at),
    .flags      ({next.resent, next.running && done_q.max != next.una, next.running}),
    .outstanding(counts ? bytes_t'(done_q.max_before - track.una) : '0),
    .waited     (WaitW'(now_q) - track.op_at),
    .packets    (32'(is_new)),
    .bytes      (acks ? 32'(bytes_t'(done_q.una - track.una)) : '0),
    .req,
    .rsp
  );

  // ---- 2: the segments for the histogram; one whose bytes have been sent before is none of them --------------------
  // latency_histogram compares numbers of 24 bits: a place in a ring of more than 4 MiB is counted in units, rounded up.
  // A measured segment has a unit or more, so that an acknowledgement of the bytes before it is none of it.
  localparam int unsigned UnitW = $clog2(RING_BYTES) > 22 ? $clog2(RING_BYTES) - 22 : 0;
  function automatic psn_t place(tcp_seq_t seq);
    return UnitW == 0 ? psn_t'(seq) : psn_t'((seq + 32'((64'd1 << UnitW) - 64'd1)) >> UnitW);
  endfunction
  logic [N_STREAMS-1:0] seen_q;  // since reset
  index_t at2_q;
  logic stat_valid_q, stat_init_q;
  psn_t stat_psn_q;
  outcome_t stat_q;
  ring_status_t status_q;
  always_ff @(posedge clk) begin
    at2_q           <= at_q;
    stat_valid_q    <= valid_q && !rst;
    stat_init_q     <= !seen_q[at_q];
    stat_psn_q      <= psn_t'((done_q.max - 32'd1) >> UnitW);
    stat_q          <= '0;
    stat_q.send     <= is_new && !again;
    stat_q.ack_req  <= UnitW == 0 || segment.len >> UnitW != '0;
    status_q        <= '0;
    status_q.state  <= live ? QpRts : QpReset;
    status_q.una    <= place(done_q.una);
    status_q.nxt    <= place(again ? segment.seq : done_q.max);
    if (valid_q) seen_q[at_q] <= 1'b1;
    if (rst) seen_q <= '0;
  end
  latency_histogram #(.N_QP(N_STREAMS)) u_latency (
    .clk, .rst, .clear,
    .stat_valid (stat_valid_q),
    .stat_init  (stat_init_q),
    .stat_qp    (qp_t'(at2_q)),
    .stat_psn   (stat_psn_q),
    .stat       (stat_q),
    .stat_status(status_q),
    .req        (latency_req),
    .rsp        (latency_rsp)
  );

`ifndef SYNTHESIS
  a_spacing : assert property (@(posedge clk) disable iff (rst)
    done_valid && valid_q |-> index_t'(done.stream) != at_q);
  a_ring : assert property (@(posedge clk) disable iff (rst)
    valid_q && counts |-> done_q.max_before - track.una <= 32'(RING_BYTES));
  cycles_t op_at[N_STREAMS];
  always_ff @(posedge clk) if (valid_q) op_at[at_q] <= now_q;
  a_visited : assert property (@(posedge clk) disable iff (rst)
    valid_q && counts |-> (now_q - op_at[at_q]) >> WaitW == '0);
`endif
endmodule
