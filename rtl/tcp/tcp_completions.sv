// SPDX-License-Identifier: SHL-2.1
// Completes messages: with success once their last byte is acknowledged, with an error when their stream has ended.
// Promise: each message completes exactly once, those of a stream in their order; a message completes with success
// only if its receiver has acknowledged all of it. `clean` means that no message of a stream's last connection is
// waiting.
//
//   tcp_messages -> messages -+
//                             +-> waiting, a ring of TcpMessages for each stream -> checked -> m_axis_cpl
//   tcp_ring_writer -> laid --+                              una, end of the stream --^
module tcp_completions
  import penstock_pkg::*;
  import tcp_pkg::*;
#(
  parameter  int unsigned N_STREAMS = 4,
  localparam int unsigned StreamW   = N_STREAMS > 1 ? $clog2(N_STREAMS) : 1
) (
  input  logic clk,
  input  logic rst,

  // messages in order, and the outcomes of those that went to the rings
  input  tcp_message_t         message,
  input  logic                 message_valid,
  output logic                 message_ready,
  input  tcp_laid_t            laid,
  input  logic                 laid_valid,

  // the streams
  input  tcp_done_t            done,
  input  logic                 done_valid,
  input  logic [N_STREAMS-1:0] live,       // not closed, as `done` left them
  input  tcp_end_e [N_STREAMS-1:0] ended,  // why they ended last
  output logic [N_STREAMS-1:0] room,
  output logic [N_STREAMS-1:0] clean,

  output logic [63:0]          m_axis_cpl_tdata,  // cpl_t
  output logic                 m_axis_cpl_tvalid,
  input  logic                 m_axis_cpl_tready
);
  localparam int unsigned PlaceW = $clog2(TcpMessages);

  typedef logic [StreamW-1:0] index_t;
  typedef logic [PlaceW:0] pointer_t;

  // ---- messages and their outcomes are matched ----------------------------------------------------------------------
  tcp_message_t head;
  tcp_laid_t head_laid;
  logic head_valid, head_taken, laid_there, laid_taken, to_ring, pushes, unused_room;
  sync_fifo #(.W($bits(tcp_message_t)), .DEPTH(8)) u_messages (
    .clk, .rst,
    .s_data (message),
    .s_valid(message_valid),
    .s_ready(message_ready),
    .m_data (head),
    .m_valid(head_valid),
    .m_ready(head_taken),
    .level  ()
  );
  sync_fifo #(.W($bits(tcp_laid_t)), .DEPTH(16)) u_laid (
    .clk, .rst,
    .s_data (laid),
    .s_valid(laid_valid),
    .s_ready(unused_room),  // no more messages are on their way than `u_messages` takes, and one in hand on either side
    .m_data (head_laid),
    .m_valid(laid_there),
    .m_ready(laid_taken),
    .level  ()
  );
  assign to_ring    = head.verdict inside {TcpGood, TcpCut};
  assign laid_taken = head_valid && to_ring && laid_there;
  assign pushes     = laid_taken || (head_valid && head.verdict == TcpBad);

  // ---- those that wait ----------------------------------------------------------------------------------------------
  typedef struct packed {
    logic        acks;     // it waits for its acknowledgement
    logic        cut;
    logic        flushed;  // its stream was closed
    tcp_seq_t    end_seq;
    logic [31:0] tag;
  } waiting_t;
  waiting_t waiting_in, waiting;
  pointer_t [N_STREAMS-1:0] wr_q, rd_q, acking_q;  // acking: those among them that wait for an acknowledgement
  index_t push_at, at_q, at;
  logic reads, pops, there_q;
  logic unused_head_qp;
  assign unused_head_qp = &{1'b0, head.qp};
  assign push_at    = index_t'(head.qp);
  assign waiting_in = '{
    acks:    to_ring && !head_laid.dropped,
    cut:     head.verdict == TcpCut,
    flushed: to_ring && head_laid.dropped,
    end_seq: head_laid.end_seq,
    tag:     head.tag
  };

  localparam int unsigned Depth = N_STREAMS * TcpMessages;
  logic [$clog2(Depth)-1:0] wr_addr, rd_addr;
  if (N_STREAMS > 1) begin : gen_many
    assign wr_addr = {push_at, wr_q[push_at][PlaceW-1:0]};
    assign rd_addr = {at, rd_q[at][PlaceW-1:0]};
  end else begin : gen_one
    assign wr_addr = wr_q[0][PlaceW-1:0];
    assign rd_addr = rd_q[0][PlaceW-1:0];
  end
  ram_sdp #(.W($bits(waiting_t)), .DEPTH(Depth), .BLOCK(1'b1)) u_waiting (
    .clk, .wr_en(pushes), .wr_addr, .wr_data(waiting_in), .rd_en(reads), .rd_addr, .rd_data(waiting)
  );

  // For a stream that has ended: the bytes acknowledged before.
  tcp_seq_t una;
  ram_sdp #(.W(32), .DEPTH(N_STREAMS)) u_una (
    .clk,
    .wr_en  (done_valid && done.state != TcpClosed),
    .wr_addr(index_t'(done.stream)),
    .wr_data(done.una),
    .rd_en  (reads),
    .rd_addr(at),
    .rd_data(una)
  );

  // ---- turns: streams that have changed since they were evaluated ---------------------------------------------------
  logic [N_STREAMS-1:0] changed_q;
  logic turn_valid, turn_done;
  qp_t turn;
  logic unused;
  assign unused = &{1'b0, turn, done};
  tx_scheduler #(.N_QP(N_STREAMS), .GapCycles(1)) u_turn (
    .clk, .rst,
    .ready      (changed_q),
    .eligible   ('1),
    .room       (1'b1),
    .grant_valid(turn_valid),
    .grant_qp   (turn),
    .grant_ready(turn_done)
  );

  typedef enum logic [1:0] {StIdle, StCheck, StEmit} state_e;
  state_e state_q, state_d;
  cpl_t cpl_q;
  logic nowhere, acked, completes;
  wc_status_e status;
  assign at      = index_t'(turn);
  assign nowhere = state_q == StIdle && head_valid && head.verdict == TcpNowhere;
  assign reads   = state_q == StIdle && !nowhere && turn_valid;
  assign acked   = !tcp_before(una, waiting.end_seq);
  always_comb begin
    completes = there_q && (!waiting.acks || acked || !live[at_q]);
    if (waiting.flushed) status = WcFlushErr;
    else if (!waiting.acks) status = WcLocLenErr;
    else if (acked) status = waiting.cut ? WcLocLenErr : WcSuccess;
    else
      unique case (ended[at_q])
        TcpRefused, TcpReset, TcpFinished: status = WcRemAbort;
        TcpTimedOut: status = WcRetryExc;
        default: status = WcFlushErr;
      endcase
  end
  assign pops       = state_q == StCheck && completes;
  assign turn_done  = reads;
  assign head_taken = pushes || nowhere;

  always_comb begin
    state_d = state_q;
    unique case (state_q)
      StIdle: if (nowhere) state_d = StEmit;
              else if (reads) state_d = StCheck;
      StCheck: state_d = completes ? StEmit : StIdle;
      default: if (m_axis_cpl_tready) state_d = StIdle;  // StEmit
    endcase
  end

  always_ff @(posedge clk) begin
    state_q <= state_d;
    // A message that comes in the cycle of the read is not in `waiting` yet: it has a turn of its own.
    if (reads) {at_q, there_q} <= {at, wr_q[at] != rd_q[at]};
    if (nowhere) cpl_q <= '{tag: head.tag, reserved: '0, status: WcFlushErr, qp: head.qp};
    if (pops) cpl_q <= '{tag: waiting.tag, reserved: '0, status: status, qp: qp_t'(at_q)};

    for (int unsigned i = 0; i < N_STREAMS; i++) begin
      logic here_push, here_pop;
      here_push = pushes && push_at == index_t'(i);
      here_pop  = pops && at_q == index_t'(i);
      wr_q[i]     <= wr_q[i] + pointer_t'(here_push);
      rd_q[i]     <= rd_q[i] + pointer_t'(here_pop);
      acking_q[i] <= acking_q[i] + pointer_t'(here_push && waiting_in.acks) - pointer_t'(here_pop && waiting.acks);
      // Eight messages may be in `u_messages`, and two in tcp_messages.
      room[i]     <= wr_q[i] - rd_q[i] <= pointer_t'(TcpMessages - 12);
      clean[i]    <= acking_q[i] == '0 && !here_push;
      if (reads && at == index_t'(i)) changed_q[i] <= 1'b0;
      if (here_push || here_pop) changed_q[i] <= 1'b1;
    end
    if (done_valid && (done.actions.acknowledged != '0 || done.actions.ended != TcpNotEnded))
      changed_q[index_t'(done.stream)] <= 1'b1;
    if (rst) begin
      state_q   <= StIdle;
      wr_q      <= '0;
      rd_q      <= '0;
      acking_q  <= '0;
      changed_q <= '0;
      room      <= '0;
      clean     <= '0;
    end
  end
  assign m_axis_cpl_tdata  = cpl_q;
  assign m_axis_cpl_tvalid = state_q == StEmit;

`ifndef SYNTHESIS
  a_laid : assert property (@(posedge clk) disable iff (rst) laid_valid |-> unused_room)
    else $error("%m: a message of the rings is forgotten");
  a_fits : assert property (@(posedge clk) disable iff (rst)
    pushes |-> wr_q[push_at] - rd_q[push_at] < pointer_t'(TcpMessages))
    else $error("%m: more than %0d messages of a stream wait", TcpMessages);
  a_hold : assert property (@(posedge clk) disable iff (rst)
    m_axis_cpl_tvalid && !m_axis_cpl_tready |=> m_axis_cpl_tvalid && $stable(m_axis_cpl_tdata));
`endif
endmodule
