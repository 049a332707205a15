// SPDX-License-Identifier: SHL-2.1
// Sends each good frame back unchanged, to test pins, PHY and cable of a board before anything else.
// A frame waits in block RAM until it is known to be good; bad frames and frames without room are discarded.
// Promise: frames leave unchanged, in order, without bubbles inside a frame.
module line_echo #(
  parameter  int unsigned WORDS = 2048,  // of eight octets, a power of two
  localparam int unsigned PtrW  = $clog2(WORDS)
) (
  input  logic        clk,
  input  logic        rst,
  input  logic [63:0] s_axis_tdata,
  input  logic [7:0]  s_axis_tkeep,
  input  logic        s_axis_tvalid,
  input  logic        s_axis_tlast,
  input  logic        s_axis_tuser,   // at tlast: bad frame
  output logic [63:0] m_axis_tdata,
  output logic [7:0]  m_axis_tkeep,
  output logic        m_axis_tvalid,
  input  logic        m_axis_tready,
  output logic        m_axis_tlast,
  input  logic        damaged,        // pulse: the MAC has seen a bad frame

  // For the lamps of board_leds: a frame that went back is a message, one that came damaged a failure.
  output logic [63:0] m_axis_cpl_tdata,
  output logic        m_axis_cpl_tvalid
);
  if (WORDS < 4 || WORDS != 2 ** PtrW) begin : gen_bad_words
    $fatal(1, "%m: WORDS %0d is not a power of two, 4 or more", WORDS);
  end

  logic [PtrW:0] head_q, whole_q, tail_q, level;  // written, of whole good frames, read
  logic room, lost_q, lost, push, fetch, valid_q;

  assign level = head_q - tail_q;
  assign room  = !level[PtrW];
  assign lost  = lost_q || !room;
  assign push  = s_axis_tvalid && !lost;
  assign fetch = tail_q != whole_q && (m_axis_tready || !valid_q);

  ram_sdp #(.W(73), .DEPTH(WORDS), .BLOCK(1'b1)) u_ram (
    .clk,
    .wr_en  (push),
    .wr_addr(head_q[PtrW-1:0]),
    .wr_data({s_axis_tlast, s_axis_tkeep, s_axis_tdata}),
    .rd_en  (fetch),
    .rd_addr(tail_q[PtrW-1:0]),
    .rd_data({m_axis_tlast, m_axis_tkeep, m_axis_tdata})
  );

  assign m_axis_tvalid = valid_q;

  localparam penstock_pkg::cpl_t Sent    = '{status: penstock_pkg::WcSuccess, default: '0};
  localparam penstock_pkg::cpl_t Damaged = '{status: penstock_pkg::WcFlushErr, default: '0};
  assign m_axis_cpl_tvalid = damaged || (valid_q && m_axis_tready && m_axis_tlast);
  assign m_axis_cpl_tdata  = damaged ? Damaged : Sent;

  always_ff @(posedge clk) begin
    if (push) head_q <= head_q + 1'b1;
    if (s_axis_tvalid) begin
      lost_q <= lost && !s_axis_tlast;
      if (s_axis_tlast && (lost || s_axis_tuser)) head_q <= whole_q;
      else if (s_axis_tlast) whole_q <= head_q + 1'b1;
    end
    if (fetch) tail_q <= tail_q + 1'b1;
    if (fetch) valid_q <= 1'b1;
    else if (m_axis_tready) valid_q <= 1'b0;
    if (rst) begin
      head_q  <= '0;
      whole_q <= '0;
      tail_q  <= '0;
      lost_q  <= 1'b0;
      valid_q <= 1'b0;
    end
  end
endmodule
