// SPDX-License-Identifier: SHL-2.1
// SYNs that wait until their options are read, a byte per cycle: those of all streams may come back to back.
// Promise: SYNs leave in the order in which they came; `room` is 1 while there is room for another one. A SYN whose verdict
// is not `good` (of a stranger, damaged) costs one cycle.
module tcp_syn_queue
  import tcp_pkg::*;
#(
  parameter int unsigned DEPTH = 16  // SYNs that wait, a power of two
) (
  input  logic clk,
  input  logic rst,

  // a SYN has come, before all of it is checked
  input  logic                           push,
  input  logic [TcpOptionBytes-1:0][7:0] bytes,  // of its options; byte 0 is the first on the wire
  input  logic [5:0]                     count,
  output logic                           room,

  // the verdict on each, in the same order
  input  logic         checked,
  input  logic         good,
  input  tcp_arrival_t syn,  // without options

  output tcp_arrival_t arrival,
  output logic         arrival_valid,
  input  logic         arrival_ready
);
  typedef struct packed {
    logic [5:0]                     count;
    logic [TcpOptionBytes-1:0][7:0] bytes;
  } unread_t;
  typedef struct packed {
    logic         good;
    tcp_stream_t  stream;
    logic         epoch;
    tcp_seq_t     seq;
    tcp_seq_t     ack;
    tcp_flags_t   flags;
    logic [15:0]  window;
    logic [15:0]  len;
  } checked_t;

  unread_t unread;
  checked_t in, out;
  logic unread_valid, out_valid, in_ready, reads, reading_q, walked, pop;
  tcp_options_t options;
  assign in = '{
    good:   good,
    stream: syn.stream,
    epoch:  syn.epoch,
    seq:    syn.what.seq,
    ack:    syn.what.ack,
    flags:  syn.what.flags,
    window: syn.what.window,
    len:    syn.what.len
  };

  // A verdict comes a few cycles after its options, so there is room for it wherever there was for them.
  block_fifo #(.W($bits(unread_t)), .DEPTH(DEPTH)) u_unread (
    .clk, .rst,
    .s_data ({count, bytes}),
    .s_valid(push),
    .s_ready(room),
    .m_data (unread),
    .m_valid(unread_valid),
    .m_ready(pop),
    .level  ()
  );
  block_fifo #(.W($bits(checked_t)), .DEPTH(DEPTH)) u_checked (
    .clk, .rst,
    .s_data (in),
    .s_valid(checked),
    .s_ready(in_ready),
    .m_data (out),
    .m_valid(out_valid),
    .m_ready(pop),
    .level  ()
  );

  assign reads         = out_valid && out.good && !reading_q;
  assign arrival_valid = reading_q && walked;
  assign pop           = out_valid && (!out.good || (arrival_valid && arrival_ready));
  tcp_syn_options u_options (
    .clk, .rst,
    .start(reads),
    .bytes(unread.bytes),
    .count(unread.count),
    .done (walked),
    .options
  );
  always_ff @(posedge clk) begin
    if (reads) reading_q <= 1'b1;
    else if (pop) reading_q <= 1'b0;
    if (rst) reading_q <= 1'b0;
  end

  always_comb begin
    arrival              = '0;
    arrival.stream       = out.stream;
    arrival.epoch        = out.epoch;
    arrival.what.kind    = TcpSegment;
    arrival.what.seq     = out.seq;
    arrival.what.ack     = out.ack;
    arrival.what.flags   = out.flags;
    arrival.what.window  = out.window;
    arrival.what.len     = out.len;
    arrival.what.options = options;
  end

  logic unused;
  assign unused = &{1'b0, syn, unread_valid, in_ready};

`ifndef SYNTHESIS
  a_in_step : assert property (@(posedge clk) disable iff (rst) out_valid |-> unread_valid)
    else $error("%m: a verdict without its SYN");
  a_room : assert property (@(posedge clk) disable iff (rst) checked |-> in_ready)
    else $error("%m: no room for a verdict");
`endif
endmodule
