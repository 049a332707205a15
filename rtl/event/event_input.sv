// SPDX-License-Identifier: SHL-2.1
// Moves one detector stream from its own clock to the front end's: each beat with its side information, and whether it
// begins a fragment, through one FIFO, so that no reset can separate them.
// Promise: a fragment leaves whole and as it came, or it is broken off, marked so, and counted once.
//   - s_rst alone: what was accepted leaves. A fragment that was under way ends when the next one begins, with an empty
//     last beat and m_axis_tbroken; until then the stream is silent within it, and the merger's timeout may end it.
//   - m_rst alone: what was accepted is gone with the front end. The rest of a fragment that was under way is dropped.
//   - Either may last one cycle. Nothing is accepted during s_rst, or after m_rst before both clocks have seen it.
// A `streaming` input has no fragments: all beats pass, and tkeep, tuser, tlast and tbroken are ignored.
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
  input  fragment_t         s_axis_tuser,    // in the first beat
  input  logic              s_axis_tvalid,
  output logic              s_axis_tready,
  input  logic              s_axis_tlast,

  input  logic              m_clk,
  input  logic              m_rst,
  input  logic              streaming,       // changes only while the stream stands still
  output logic [DATA_W-1:0] m_axis_tdata,
  output logic [Bytes-1:0]  m_axis_tkeep,
  output fragment_t         m_axis_tuser,
  output logic              m_axis_tvalid,
  input  logic              m_axis_tready,
  output logic              m_axis_tlast,
  output logic              m_axis_tbroken,  // in a last beat: the fragment was broken off before it
  output logic              stat_broken      // a fragment was broken off
);
  typedef struct packed {
    logic              first;
    logic              last;
    logic [Bytes-1:0]  keep;
    logic [DATA_W-1:0] data;
    fragment_t         about;
  } beat_t;

  // ---- resets: the front end's is that of the FIFO, on both sides ---------------------------------------
  logic s_down, m_hold;
  reset_bridge u_reset (
    .s_clk (m_clk),
    .s_rst (m_rst),
    .s_hold(m_hold),
    .m_clk (s_clk),
    .m_rst (s_down)
  );

  // ---- the detector's clock: which beat begins a fragment depends on the detector alone -----------------
  logic s_first_q, room, s_taken;
  beat_t s_beat;
  assign s_axis_tready = room && !s_down && !s_rst;
  assign s_taken       = s_axis_tvalid && s_axis_tready;
  assign s_beat        = '{
    first: s_first_q, last: s_axis_tlast, keep: s_axis_tkeep, data: s_axis_tdata, about: s_axis_tuser
  };
  always_ff @(posedge s_clk) begin
    if (s_taken) s_first_q <= s_axis_tlast;
    if (s_rst) s_first_q <= 1'b1;
  end

  beat_t m_beat;
  logic m_valid, m_ready;
  async_fifo #(.W($bits(beat_t)), .DEPTH(DEPTH)) u_beats (
    .s_clk,
    .s_rst  (s_down),
    .s_data (s_beat),
    .s_valid(s_taken),
    .s_ready(room),
    .m_clk,
    .m_rst  (m_hold),
    .m_data (m_beat),
    .m_valid(m_valid),
    .m_ready(m_ready)
  );

  // ---- the front end's ----------------------------------------------------------------------------------
  logic inside_q;            // a fragment that has begun here
  logic orphan_q;            // the last beat was an orphan, and more of its fragment are to come
  logic breaks, orphan, m_taken;

  assign breaks = !streaming && inside_q && m_beat.first;    // before this beat
  assign orphan = !streaming && !inside_q && !m_beat.first;  // its fragment began before a reset
  assign m_axis_tdata   = m_beat.data;
  assign m_axis_tkeep   = breaks ? '0 : m_beat.keep;
  assign m_axis_tuser   = m_beat.about;
  assign m_axis_tvalid  = m_valid && !orphan;
  assign m_axis_tlast   = breaks || m_beat.last;
  assign m_axis_tbroken = breaks;
  assign m_taken        = m_axis_tvalid && m_axis_tready;
  assign m_ready        = orphan || (m_axis_tready && !breaks);

  always_ff @(posedge m_clk) begin
    if (m_taken) inside_q <= !streaming && !m_axis_tlast;
    if (m_valid) orphan_q <= orphan && !m_beat.last;
    stat_broken <= m_valid && (orphan ? !orphan_q : breaks && m_axis_tready);
    if (m_hold) begin
      inside_q    <= 1'b0;
      orphan_q    <= 1'b0;
      stat_broken <= 1'b0;
    end
  end

`ifndef SYNTHESIS
  a_hold : assert property (@(posedge m_clk) disable iff (m_rst || m_hold)
    m_axis_tvalid && !m_axis_tready |=> m_axis_tvalid && $stable({m_axis_tdata, m_axis_tkeep, m_axis_tlast}));
`endif
endmodule
