// SPDX-License-Identifier: SHL-2.1
// A stream of 64 bits as one of 16, first bytes first. Promise: a beat of the wide side is taken with the last of its
// bytes, so what stands beside it stays for all of them; nothing is added or lost (AXI4-Stream, ARM IHI 0051).
module axis_narrow (
  input  logic        clk,
  input  logic        rst,
  input  logic [63:0] s_axis_tdata,
  input  logic [7:0]  s_axis_tkeep,   // the first bytes of a packet's last beat
  input  logic        s_axis_tvalid,
  output logic        s_axis_tready,
  input  logic        s_axis_tlast,
  output logic [15:0] m_axis_tdata,
  output logic [1:0]  m_axis_tkeep,
  output logic        m_axis_tvalid,
  input  logic        m_axis_tready,
  output logic        m_axis_tlast
);
  logic [1:0] part_q;
  logic [7:0] behind;    // bytes from this part on
  logic       ends;      // nothing follows in this beat

  assign behind        = s_axis_tkeep >> {part_q, 1'b0};
  assign ends          = part_q == 2'd3 || !behind[2];
  assign m_axis_tdata  = s_axis_tdata[{part_q, 4'b0}+:16];
  assign m_axis_tkeep  = behind[1:0];
  assign m_axis_tvalid = s_axis_tvalid;
  assign m_axis_tlast  = s_axis_tlast && ends;
  assign s_axis_tready = m_axis_tready && ends;

  always_ff @(posedge clk) begin
    if (m_axis_tvalid && m_axis_tready) part_q <= ends ? '0 : part_q + 1'b1;
    if (rst) part_q <= '0;
  end
  wire unused = &{1'b0, behind[7:3]};
endmodule
