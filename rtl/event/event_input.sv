// SPDX-License-Identifier: SHL-2.1
// Moves one detector stream from its own clock to the front end's: beats through one FIFO, the side information of
// fragments through another. Promise: that of async_fifo; tuser needs to be valid only in a first beat, and leaves with
// it.
module event_input
  import event_pkg::*;
#(
  parameter  int unsigned DATA_W = 64,
  parameter  int unsigned DEPTH  = 16,  // beats
  localparam int unsigned Bytes  = DATA_W / 8
) (
  input  logic              s_clk,
  input  logic              s_rst,
  input  logic [DATA_W-1:0] s_axis_tdata,
  input  logic [Bytes-1:0]  s_axis_tkeep,
  input  fragment_t         s_axis_tuser,
  input  logic              s_axis_tvalid,
  output logic              s_axis_tready,
  input  logic              s_axis_tlast,

  input  logic              m_clk,
  input  logic              m_rst,
  output logic [DATA_W-1:0] m_axis_tdata,
  output logic [Bytes-1:0]  m_axis_tkeep,
  output fragment_t         m_axis_tuser,
  output logic              m_axis_tvalid,
  input  logic              m_axis_tready,
  output logic              m_axis_tlast
);
  // ---- the detector's clock: a fragment begins when both have room ---------------------------------------
  logic s_first_q, beat_room, about_room, s_taken;
  assign s_axis_tready = beat_room && (about_room || !s_first_q);
  assign s_taken       = s_axis_tvalid && s_axis_tready;
  always_ff @(posedge s_clk) begin
    if (s_taken) s_first_q <= s_axis_tlast;
    if (s_rst) s_first_q <= 1'b1;
  end

  // ---- the front end's ----------------------------------------------------------------------------------
  logic m_first_q, beat_valid, about_valid, m_taken;
  assign m_axis_tvalid = beat_valid && (about_valid || !m_first_q);
  assign m_taken       = m_axis_tvalid && m_axis_tready;
  always_ff @(posedge m_clk) begin
    if (m_taken) m_first_q <= m_axis_tlast;
    if (m_rst) m_first_q <= 1'b1;
  end

  async_fifo #(.W(DATA_W + Bytes + 1), .DEPTH(DEPTH)) u_beats (
    .s_clk, .s_rst,
    .s_data ({s_axis_tlast, s_axis_tkeep, s_axis_tdata}),
    .s_valid(s_taken),
    .s_ready(beat_room),
    .m_clk, .m_rst,
    .m_data ({m_axis_tlast, m_axis_tkeep, m_axis_tdata}),
    .m_valid(beat_valid),
    .m_ready(m_taken)
  );

  async_fifo #(.W($bits(fragment_t)), .DEPTH(4)) u_about (
    .s_clk, .s_rst,
    .s_data (s_axis_tuser),
    .s_valid(s_taken && s_first_q),
    .s_ready(about_room),
    .m_clk, .m_rst,
    .m_data (m_axis_tuser),
    .m_valid(about_valid),
    .m_ready(m_taken && m_first_q)
  );
endmodule
