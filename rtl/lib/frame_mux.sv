// SPDX-License-Identifier: SHL-2.1
// Joins the frames of two AXI-Streams, in turns.
// Promise: frames leave whole; one whose beats come without a gap leaves without one, and the next one may follow at once.
module frame_mux #(
  parameter  int unsigned DATA_W = 64,
  localparam int unsigned Bytes  = DATA_W / 8
) (
  input  logic                   clk,
  input  logic                   rst,

  input  logic [1:0][DATA_W-1:0] s_axis_tdata,
  input  logic [1:0][Bytes-1:0]  s_axis_tkeep,
  input  logic [1:0]             s_axis_tvalid,
  output logic [1:0]             s_axis_tready,
  input  logic [1:0]             s_axis_tlast,

  output logic [DATA_W-1:0]      m_axis_tdata,
  output logic [Bytes-1:0]       m_axis_tkeep,
  output logic                   m_axis_tvalid,
  input  logic                   m_axis_tready,
  output logic                   m_axis_tlast
);
  logic inside_q, side_q, side;  // of a frame; its side, or that of the last one
  assign side          = inside_q ? side_q : &s_axis_tvalid ? !side_q : s_axis_tvalid[1];
  assign m_axis_tdata  = s_axis_tdata[side];
  assign m_axis_tkeep  = s_axis_tkeep[side];
  assign m_axis_tvalid = s_axis_tvalid[side];
  assign m_axis_tlast  = s_axis_tlast[side];
  assign s_axis_tready = {side, !side} & {2{m_axis_tready}};

  always_ff @(posedge clk) begin
    // A side that is offered stays chosen until it is taken.
    if (m_axis_tvalid) begin
      inside_q <= !(m_axis_tready && m_axis_tlast);
      side_q   <= side;
    end
    if (rst) begin
      inside_q <= 1'b0;
      side_q   <= 1'b0;
    end
  end

`ifndef SYNTHESIS
  a_hold : assert property (@(posedge clk) disable iff (rst)
    m_axis_tvalid && !m_axis_tready |=> m_axis_tvalid && $stable({m_axis_tdata, m_axis_tkeep, m_axis_tlast}));
`endif
endmodule
