// SPDX-License-Identifier: SHL-2.1
// Queue of completions to the user: those of the requester, and those of refused messages.
// The requester is stopped (`cpl_room`) while the queue still has room for a few completions, because its
// pipeline may contain more releases; completions of refused messages use the gaps.
module completions
  import penstock_pkg::*;
(
  input  logic        clk,
  input  logic        rst,
  input  logic        cpl_valid,
  input  cpl_t        cpl,
  output logic        cpl_room,
  input  logic        refused_valid,
  input  cpl_t        refused,
  output logic        refused_ready,
  output logic [63:0] m_axis_cpl_tdata,
  output logic        m_axis_cpl_tvalid,
  input  logic        m_axis_cpl_tready
);
  logic [4:0] level;
  logic ready;

  assign cpl_room      = level <= 5'd8;
  assign refused_ready = cpl_room && !cpl_valid;

  block_fifo #(.W($bits(cpl_t)), .DEPTH(16)) u_queue (
    .clk, .rst,
    .s_data (cpl_valid ? cpl : refused),
    .s_valid(cpl_valid || (refused_valid && cpl_room)),
    .s_ready(ready),
    .m_data (m_axis_cpl_tdata),
    .m_valid(m_axis_cpl_tvalid),
    .m_ready(m_axis_cpl_tready),
    .level
  );

`ifndef SYNTHESIS
  a_taken : assert property (@(posedge clk) disable iff (rst) cpl_valid |-> ready);
`endif
endmodule
