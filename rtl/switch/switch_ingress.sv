// SPDX-License-Identifier: SHL-2.1
// One port's receive side: frames become cells in a store, and leave by the bus when they are whole and good.
// Promise: a frame that is bad, longer than MAX_BYTES or lost for lack of room never leaves, and is counted once; all
// others leave in order, one cell a cycle. Frames come at the line rate and cannot be held back.
//
//   beats -> cell -> frame_store -> m_cell
//              |-> addresses, priority -> MAC table -> descriptors -> m_frame, m_egress
module switch_ingress
  import switch_pkg::*;
#(
  parameter int unsigned N_PORTS   = 4,
  parameter int unsigned MAX_BYTES = 9018,  // longest frame that is forwarded, without FCS
  parameter int unsigned CELLS     = 256    // of the store
) (
  input  logic        clk,
  input  logic        rst,
  input  logic [2:0]  cnm_priority,

  input  logic [63:0] s_axis_tdata,
  input  logic [7:0]  s_axis_tkeep,
  input  logic        s_axis_tvalid,
  input  logic        s_axis_tlast,
  input  logic        s_axis_tuser,        // at tlast: bad frame

  output logic               lookup_valid,  // the MAC table looks up a good frame
  output frame_t             lookup,
  input  logic               answer_valid,
  input  logic [N_PORTS-1:0] answer,       // the ports that it leaves by

  output logic               m_frame_valid,
  output frame_t             m_frame,
  output logic [N_PORTS-1:0] m_egress,
  input  logic               m_frame_ready,
  output cell_t              m_cell,
  input  logic               m_cell_ready,

  output logic        stat_frame,
  output logic        stat_bad,
  output logic        stat_lost,
  output logic        stat_filtered
);
  localparam int unsigned Descriptors = 64;

  // ---- cells -----------------------------------------------------------------------------------
  cell_t        cell_q, first_q;
  frame_t       frame;
  logic [2:0]   beat_q;               // in the cell
  logic         first_cell_q;         // of the frame: the cell under way
  logic         write_q, wrote_first_q, end_q, bad_q;
  frame_bytes_t bytes_q, bytes;
  logic         long_q;
  logic [3:0]   octets;
  logic [63:0]  data;

  always_comb begin
    data = '0;
    for (int i = 0; i < 8; i++) if (s_axis_tkeep[i]) data[8*i+:8] = s_axis_tdata[8*i+:8];
  end

  assign octets = 4'(penstock_pkg::keep_bytes(64'(s_axis_tkeep)));
  assign bytes  = bytes_q + FrameBytesW'(octets);

  always_ff @(posedge clk) begin
    write_q <= 1'b0;
    end_q   <= 1'b0;
    if (end_q) long_q <= 1'b0;
    if (end_q) bytes_q <= '0;
    if (s_axis_tvalid) begin
      if (beat_q == '0) cell_q <= '0;  // octets after the end are zero
      cell_q[64*beat_q+:64] <= data;
      beat_q        <= s_axis_tlast ? '0 : beat_q + 3'd1;
      bytes_q       <= end_q ? FrameBytesW'(octets) : bytes;
      long_q        <= !end_q && (long_q || 32'(bytes) > MAX_BYTES);
      write_q       <= s_axis_tlast || beat_q == '1;
      wrote_first_q <= first_cell_q;
      end_q         <= s_axis_tlast;
      bad_q         <= s_axis_tuser;
      if (s_axis_tlast) first_cell_q <= 1'b1;
      else if (beat_q == '1) first_cell_q <= 1'b0;
    end
    if (write_q && wrote_first_q) first_q <= cell_q;
    if (rst) begin
      write_q      <= 1'b0;
      end_q        <= 1'b0;
      beat_q       <= '0;
      bytes_q      <= '0;
      long_q       <= 1'b0;
      first_cell_q <= 1'b1;
    end
  end

  // ---- its end ---------------------------------------------------------------------------------
  logic bad, commit, lost, room;
  logic [$clog2(Descriptors):0] waiting;
  logic [$clog2(CELLS):0] unused_level;
  cell_t head;

  assign bad    = bad_q || long_q;
  assign room   = waiting < ($clog2(Descriptors) + 1)'(Descriptors - 2);  // two may be at the table
  assign commit = end_q && !bad && room;
  assign head   = wrote_first_q ? cell_q : first_q;
  assign frame  = '{
    bytes: bytes_q, prio: priority_of(head, cnm_priority), dst: {<<8{head[47:0]}}, src: {<<8{head[95:48]}}
  };

  logic store_valid;
  frame_store #(.W(CellW), .DEPTH(CELLS)) u_store (
    .clk,
    .rst,
    .wr_data (cell_q),
    .wr_valid(write_q),
    .commit,
    .drop    (end_q && !commit),
    .lost,
    .level   (unused_level),
    .rd_data (m_cell),
    .rd_valid(store_valid),
    .rd_ready(m_cell_ready)
  );

  always_ff @(posedge clk) begin
    if (commit && !lost) begin
      lookup_valid <= 1'b1;
      lookup       <= frame;
    end else if (answer_valid) lookup_valid <= 1'b0;
    stat_frame    <= end_q && !bad && !rst;
    stat_bad      <= end_q && bad && !rst;
    stat_lost     <= end_q && !bad && (!room || lost) && !rst;
    stat_filtered <= lookup_valid && answer_valid && answer == '0 && !rst;
    if (rst) lookup_valid <= 1'b0;
  end

  logic unused_room, descriptor_valid;
  sync_fifo #(.W($bits(frame_t) + N_PORTS), .DEPTH(Descriptors)) u_descriptors (
    .clk,
    .rst,
    .s_data ({answer, lookup}),
    .s_valid(lookup_valid && answer_valid),
    .s_ready(unused_room),
    .m_data ({m_egress, m_frame}),
    .m_valid(descriptor_valid),
    .m_ready(m_frame_ready),
    .level  (waiting)
  );
  assign m_frame_valid = descriptor_valid && store_valid;

`ifndef SYNTHESIS
  a_cells : assert property (@(posedge clk) disable iff (rst) m_cell_ready |-> store_valid);
  a_requested : assert property (@(posedge clk) disable iff (rst) commit && !lost |-> !lookup_valid || answer_valid);
`endif
endmodule
