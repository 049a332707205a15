// SPDX-License-Identifier: SHL-2.1
// Holds the slices of one input while the merger serves another input or waits for the transport: a stalled slicer
// would accept beats later and assign them to a later slice.
// Promise: beats leave once, in order, with number, time and type of their slice. The beats of a slice are full, or
// it is one empty beat (stream_slicer). There is room for DEPTH beats of at most 16 slices.
module slice_store
  import event_pkg::*;
#(
  parameter  int unsigned DATA_W = 64,
  parameter  int unsigned DEPTH  = 1024,
  localparam int unsigned Bytes  = DATA_W / 8
) (
  input  logic              clk,
  input  logic              rst,

  input  logic [DATA_W-1:0] s_axis_tdata,
  input  logic [Bytes-1:0]  s_axis_tkeep,
  input  fragment_t         s_axis_tuser,
  input  logic              s_axis_tvalid,
  output logic              s_axis_tready,
  input  logic              s_axis_tlast,

  output logic [DATA_W-1:0] m_axis_tdata,
  output logic [Bytes-1:0]  m_axis_tkeep,
  output fragment_t         m_axis_tuser,
  output logic              m_axis_tvalid,
  input  logic              m_axis_tready,
  output logic              m_axis_tlast
);
  localparam int unsigned Slices = 16;

  logic first_q, beat_room, about_room, about_valid, taken, given, full;
  logic [$clog2(DEPTH):0] unused_beats;
  logic [$clog2(Slices):0] unused_slices;

  assign s_axis_tready = beat_room && (about_room || !first_q);
  assign taken         = s_axis_tvalid && s_axis_tready;
  assign given         = m_axis_tvalid && m_axis_tready;
  assign m_axis_tkeep  = {Bytes{full}};

  always_ff @(posedge clk) begin
    if (taken) first_q <= s_axis_tlast;
    if (rst) first_q <= 1'b1;
  end

  block_fifo #(.W(DATA_W + 2), .DEPTH(DEPTH)) u_beats (
    .clk, .rst,
    .s_data ({s_axis_tlast, s_axis_tkeep[0], s_axis_tdata}),
    .s_valid(taken),
    .s_ready(beat_room),
    .m_data ({m_axis_tlast, full, m_axis_tdata}),
    .m_valid(m_axis_tvalid),
    .m_ready(m_axis_tready),
    .level  (unused_beats)
  );

  // A word of this FIFO is there a cycle before its beat is.
  sync_fifo #(.W($bits(fragment_t)), .DEPTH(Slices)) u_about (
    .clk, .rst,
    .s_data (s_axis_tuser),
    .s_valid(taken && first_q),
    .s_ready(about_room),
    .m_data (m_axis_tuser),
    .m_valid(about_valid),
    .m_ready(given && m_axis_tlast),
    .level  (unused_slices)
  );

  wire unused = &{1'b0, s_axis_tkeep, about_valid};

`ifndef SYNTHESIS
  a_about : assert property (@(posedge clk) disable iff (rst) m_axis_tvalid |-> about_valid);
  a_full : assert property (@(posedge clk) disable iff (rst)
    s_axis_tvalid |-> s_axis_tkeep == {Bytes{s_axis_tkeep[0]}});
`endif
endmodule
