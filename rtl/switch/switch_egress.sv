// SPDX-License-Identifier: SHL-2.1
// One port's transmit side: pause frames first, then notifications, then the queues, the highest first.
// Promise: frames leave whole and without a gap; while a kind of frame is held, none of it starts; the next frame
// follows after one idle cycle, which is less than preamble and gap take on the line.
module switch_egress
  import switch_pkg::*;
#(
  parameter int unsigned N_QUEUES = 2
) (
  input  logic clk,
  input  logic rst,

  input  logic                hold_cnm,     // the peer has stopped notifications
  input  logic [N_QUEUES-1:0] hold,         // ... these queues

  input  logic [1:0][63:0]    s_axis_tdata, // 0 pause frames, 1 notifications
  input  logic [1:0][7:0]     s_axis_tkeep,
  input  logic [1:0]          s_axis_tvalid,
  output logic [1:0]          s_axis_tready,
  input  logic [1:0]          s_axis_tlast,

  input  logic         [N_QUEUES-1:0] s_valid,
  input  frame_bytes_t [N_QUEUES-1:0] s_bytes,
  input  cell_t        [N_QUEUES-1:0] s_cell,
  output logic         [N_QUEUES-1:0] s_ready,

  output logic [63:0] m_axis_tdata,
  output logic [7:0]  m_axis_tkeep,
  output logic        m_axis_tvalid,
  input  logic        m_axis_tready,
  output logic        m_axis_tlast,

  output logic        stat_frame           // a frame of a queue has left
);
  localparam int unsigned QueueW = N_QUEUES > 1 ? $clog2(N_QUEUES) : 1;

  typedef enum logic [1:0] {StIdle, StPause, StNotify, StCells} state_e;
  state_e state_q;

  logic [N_QUEUES-1:0] may;
  logic [QueueW-1:0]   chosen, queue_q, queue;
  cell_t               cell_q;
  frame_bytes_t        left_q;    // octets to send, this beat's included
  logic [2:0]          beat_q;    // in the cell
  logic                take, load, last;

  assign may  = s_valid & ~hold;
  assign last = left_q <= FrameBytesW'(8);
  assign take = m_axis_tvalid && m_axis_tready;

  always_comb begin
    chosen = '0;
    for (int i = 0; i < int'(N_QUEUES); i++) if (may[i]) chosen = QueueW'(i);
  end

  // ---- the beat --------------------------------------------------------------------------------
  always_comb begin
    m_axis_tdata  = cell_q[63:0];
    m_axis_tkeep  = last ? 8'hFF >> (4'd8 - left_q[3:0]) : '1;
    m_axis_tlast  = last;
    m_axis_tvalid = state_q == StCells;
    s_axis_tready = '0;
    if (state_q == StPause || state_q == StNotify) begin
      automatic logic side = state_q == StNotify;
      m_axis_tdata        = s_axis_tdata[side];
      m_axis_tkeep        = s_axis_tkeep[side];
      m_axis_tlast        = s_axis_tlast[side];
      m_axis_tvalid       = s_axis_tvalid[side];
      s_axis_tready[side] = m_axis_tready;
    end
  end

  // ---- the next cell ---------------------------------------------------------------------------
  logic starts;
  assign starts = state_q == StIdle && !s_axis_tvalid[0] && !(s_axis_tvalid[1] && !hold_cnm) && may != '0;
  assign load   = state_q == StCells && take && !last && beat_q == '1;
  assign queue  = starts ? chosen : queue_q;
  always_comb begin
    s_ready = '0;
    s_ready[queue] = starts || load;
  end

  always_ff @(posedge clk) begin
    if (state_q == StIdle) begin
      if (s_axis_tvalid[0]) state_q <= StPause;
      else if (s_axis_tvalid[1] && !hold_cnm) state_q <= StNotify;
      else if (starts) state_q <= StCells;
    end else if (take && m_axis_tlast) state_q <= StIdle;

    if (starts) begin
      queue_q <= chosen;
      left_q  <= s_bytes[chosen];
      beat_q  <= '0;
    end else if (state_q == StCells && take) begin
      left_q <= left_q - FrameBytesW'(8);
      beat_q <= beat_q + 3'd1;
    end
    if (starts || load) cell_q <= s_cell[queue];
    else if (take) cell_q <= cell_q >> 64;

    stat_frame <= state_q == StCells && take && last && !rst;
    if (rst) state_q <= StIdle;
  end

`ifndef SYNTHESIS
  a_cell : assert property (@(posedge clk) disable iff (rst) load |-> s_valid[queue_q])
    else $error("%m: the next cell of a frame is not there");
`endif
endmodule
