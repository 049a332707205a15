// SPDX-License-Identifier: SHL-2.1
// Between software's commands and tcp_sender.
// Promise: an opening waits until the accesses to the rings that were under way when its stream ended are done, its RST
// included, so that no bytes of a new connection get into segments of an earlier one, or the reverse, and all segments
// go to the peer of their own connection; it waits for no later ones. Meanwhile, and of the earlier peer also later,
// arrivals are `stale`. A live stream whose bytes an AXI4 memory refused or did not give back is aborted, and its end
// is named TcpBadMemory. Aborts of software wait neither for accesses nor for an opening.
module tcp_ring_guard
  import tcp_pkg::*;
#(
  parameter  int unsigned N_STREAMS = 4,
  parameter  int unsigned WRITES_W  = 8,
  parameter  int unsigned READS_W   = 7,
  localparam int unsigned StreamW   = N_STREAMS > 1 ? $clog2(N_STREAMS) : 1
) (
  input  logic clk,
  input  logic rst,

  // software's openings, which may be withdrawn, and aborts; the commands that the sender gets
  input  tcp_opening_t s_open,
  input  logic         s_open_valid,
  output logic         s_open_ready,
  input  tcp_stream_t  s_abort_stream,
  input  logic         s_abort_valid,
  output logic         s_abort_ready,
  output tcp_command_t m_command,
  output logic         m_command_valid,
  input  logic         m_command_ready,
  output logic         peer_wr,     // an opening is taken, and with it the peer of its stream
  output logic         peer_epoch,  // of that peer: the parity of the stream's connections

  // whether what has arrived is of another connection than the one that is open
  input  tcp_stream_t  arrival_stream,
  input  logic         arrival_epoch,
  output logic         stale,

  // what the sender has done, and the same with the name of the end
  input  tcp_done_t    s_done,
  output tcp_done_t    m_done,
  input  logic         done_valid,

  // accesses under way, of the writer and of the reader (segments without payload count), each in order; those that
  // failed
  input  logic [WRITES_W-1:0] unconfirmed,
  input  logic                confirmed,
  input  logic [READS_W-1:0]  unread,
  input  logic                read,
  input  logic                wr_fault_valid,
  input  tcp_stream_t         wr_fault_stream,
  input  logic                rd_fault_valid,
  input  tcp_stream_t         rd_fault_stream
);
  typedef logic [StreamW-1:0] index_t;

  // ---- streams that the memory has failed, until they have ended ----------------------------------------------------
  logic [N_STREAMS-1:0] live_q, fault_q;
  index_t next, done_at;
  logic ended;
  assign done_at = index_t'(s_done.stream);
  assign ended   = done_valid && s_done.actions.ended != TcpNotEnded;
  always_comb begin
    next = '0;
    for (int i = int'(N_STREAMS) - 1; i >= 0; i--) if (fault_q[i]) next = index_t'(i);
  end

  // ---- one abort at a time -----------------------------------------------------------------------------------------
  typedef enum logic [1:0] {StIdle, StAbort, StWait} state_e;
  state_e state_q, state_d;
  index_t at_q;
  logic over;
  assign over = state_q == StWait && done_valid && done_at == at_q && s_done.kind == TcpAbort;
  always_comb begin
    state_d = state_q;
    unique case (state_q)
      StIdle: if (fault_q != '0) state_d = StAbort;
      StAbort: if (m_command_ready) state_d = StWait;
      default: if (over) state_d = StIdle;  // StWait
    endcase
  end

  always_ff @(posedge clk) begin
    state_q <= state_d;
    if (state_q == StIdle) at_q <= next;
    if (wr_fault_valid && live_q[index_t'(wr_fault_stream)]) fault_q[index_t'(wr_fault_stream)] <= 1'b1;
    if (rd_fault_valid && live_q[index_t'(rd_fault_stream)]) fault_q[index_t'(rd_fault_stream)] <= 1'b1;
    if (done_valid) live_q[done_at] <= s_done.state != TcpClosed;
    if (ended) fault_q[done_at] <= 1'b0;
    if (over) fault_q[at_q] <= 1'b0;
    if (rst) begin
      state_q <= StIdle;
      fault_q <= '0;
      live_q  <= '0;
    end
  end

  always_comb begin
    m_done = s_done;
    if (over && s_done.actions.ended == TcpAborted) m_done.actions.ended = TcpBadMemory;
  end

  // ---- an opening waits for the accesses before it ------------------------------------------------------------------
  logic [N_STREAMS-1:0] due_q;  // streams that have an RST to send
  logic of_opening, counted_q, quiet;
  index_t opens_at;
  logic [WRITES_W-1:0] writes_left_q;
  logic [READS_W-1:0] reads_left_q;
  assign opens_at   = index_t'(s_open.stream);
  assign of_opening = done_valid && done_at == opens_at;
  assign quiet = counted_q && writes_left_q == '0 && reads_left_q == '0;
  always_ff @(posedge clk) begin
    if (!counted_q) begin
      writes_left_q <= unconfirmed - WRITES_W'(confirmed);
      reads_left_q  <= unread - READS_W'(read);
    end else begin
      if (confirmed && writes_left_q != '0) writes_left_q <= writes_left_q - 1'b1;
      if (read && reads_left_q != '0) reads_left_q <= reads_left_q - 1'b1;
    end
    // If the stream was still live and ends now, its last accesses are under way from the next cycle on; so is its RST
    // from the cycle on in which it is no longer due.
    counted_q <= s_open_valid && !s_open_ready && !(of_opening && (ended || s_done.reset_due)) && !due_q[opens_at] && !rst;
    if (done_valid) due_q[done_at] <= s_done.reset_due;
    if (rst) due_q <= '0;
  end

  // ---- segments of a peer count only in its present connection ------------------------------------------------------------------
  logic [N_STREAMS-1:0] epoch_q;
  index_t arrives_at;
  assign arrives_at = index_t'(arrival_stream);
  assign peer_wr    = s_open_ready && !live_q[opens_at];
  assign peer_epoch = !epoch_q[opens_at];
  assign stale      = arrival_epoch != epoch_q[arrives_at] || (s_open_valid && !live_q[opens_at] && arrives_at == opens_at);
  always_ff @(posedge clk) begin
    if (peer_wr) epoch_q[opens_at] <= peer_epoch;
    if (rst) epoch_q <= '0;
  end

  // ---- its own abort first, then those of software: what an opening waits for delays no abort -----------------------
  always_comb begin
    m_command = '{stream: s_open.stream, opens: 1'b1, iss: s_open.iss};
    if (s_abort_valid) m_command = '{stream: s_abort_stream, opens: 1'b0, iss: '0};
    if (state_q == StAbort) m_command = '{stream: tcp_stream_t'(at_q), opens: 1'b0, iss: '0};
  end
  assign m_command_valid = state_q == StAbort || s_abort_valid || (s_open_valid && quiet);
  assign s_abort_ready   = m_command_ready && state_q != StAbort && s_abort_valid;
  assign s_open_ready    = m_command_ready && state_q != StAbort && !s_abort_valid && s_open_valid && quiet;

  wire unused = &{1'b0, wr_fault_stream, rd_fault_stream, arrival_stream, s_open.stream};
endmodule
