// SPDX-License-Identifier: SHL-2.1
// One output queue: a ring of cells in block RAM, store and forward.
// Promise: a frame that enters leaves whole and in order; one for which there is no room, in cells or by the limit,
// leaves no trace but a pulse. `level` counts octets from the cycle after a frame's first cell has entered until its
// first cell is taken: the frame under transmission is not in the queue.
module output_queue
  import switch_pkg::*;
#(
  parameter int unsigned CELLS = 4096  // of 64 octets; a power of two
) (
  input  logic         clk,
  input  logic         rst,
  input  queue_bytes_t limit_bytes,

  input  logic         s_valid,       // a cell of a frame for this queue
  input  logic         s_first,
  input  frame_bytes_t s_bytes,       // of the frame
  input  cell_t        s_cell,
  output logic         accepts,       // at s_first: the frame enters
  output queue_bytes_t level_then,    // at s_first: the level with this frame
  output logic         stat_dropped,

  output queue_bytes_t level,
  output logic         m_valid,
  output frame_bytes_t m_bytes,       // of the frame, with its first cell
  output cell_t        m_cell,
  input  logic         m_ready
);
  localparam int unsigned PtrW  = $clog2(CELLS);
  localparam int unsigned CountW = FrameBytesW - 6;
  if (CELLS < 256 || CELLS != 2 ** PtrW || PtrW + 6 >= QueueBytesW) begin : gen_bad_cells
    $fatal(1, "%m: CELLS = %0d, must be a power of two from 256 to 131072", CELLS);
  end

  logic [PtrW:0] head_q, tail_q, free;
  logic [CountW-1:0] needed, left_q;    // cells: of the frame that comes; of the one that leaves after this one
  logic accepted_q, write, fetch, leaves;

  assign needed     = CountW'((s_bytes + FrameBytesW'(CellBytes - 1)) >> 6);
  assign free       = (PtrW + 1)'(CELLS) - (head_q - tail_q);
  assign level_then = level + QueueBytesW'(s_bytes);
  assign accepts    = free >= (PtrW + 1)'(needed) && level_then <= limit_bytes;
  assign write      = s_valid && (s_first ? accepts : accepted_q);
  assign fetch      = head_q != tail_q && (m_ready || !m_valid);
  assign leaves     = m_valid && m_ready && left_q == '0;  // the first cell of a frame

  ram_sdp #(.W(FrameBytesW + CellW), .DEPTH(CELLS), .BLOCK(1'b1)) u_cells (
    .clk,
    .wr_en  (write),
    .wr_addr(head_q[PtrW-1:0]),
    .wr_data({s_bytes, s_cell}),
    .rd_en  (fetch),
    .rd_addr(tail_q[PtrW-1:0]),
    .rd_data({m_bytes, m_cell})
  );

  always_ff @(posedge clk) begin
    if (s_valid && s_first) accepted_q <= accepts;
    if (write) head_q <= head_q + 1'b1;
    if (fetch) tail_q <= tail_q + 1'b1;
    if (fetch) m_valid <= 1'b1;
    else if (m_ready) m_valid <= 1'b0;
    if (m_valid && m_ready) left_q <= leaves ? CountW'((m_bytes - FrameBytesW'(1)) >> 6) : left_q - 1'b1;
    level <= level + (write && s_first ? QueueBytesW'(s_bytes) : '0) - (leaves ? QueueBytesW'(m_bytes) : '0);
    stat_dropped <= s_valid && s_first && !accepts && !rst;
    if (rst) begin
      head_q  <= '0;
      tail_q  <= '0;
      m_valid <= 1'b0;
      left_q  <= '0;
      level   <= '0;
    end
  end

`ifndef SYNTHESIS
  a_level : assert property (@(posedge clk) disable iff (rst) leaves |-> level >= QueueBytesW'(m_bytes));
  a_room : assert property (@(posedge clk) disable iff (rst) 32'(free) <= CELLS);
`endif
endmodule
