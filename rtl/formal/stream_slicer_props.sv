// SPDX-License-Identifier: SHL-2.1
// Promises of the slicer: beats leave once, unchanged and in order; a beat accepted after a mark leaves in the fragment
// that this mark started; each cut ends one fragment; an end without a cut comes only by size or at the end of the run.
module stream_slicer_props
  import event_pkg::*;
  import stages_pkg::*;
#(
  parameter int unsigned DATA_W = 64,
  localparam int unsigned Bytes = DATA_W / 8
) (
  input logic              clk,
  input logic              rst,
  input slicer_cfg_t       cfg,
  input logic              run,
  input logic [DATA_W-1:0] s_axis_tdata,
  input logic              s_axis_tvalid,
  input logic              s_axis_tready,
  input logic [DATA_W-1:0] m_axis_tdata,
  input logic [Bytes-1:0]  m_axis_tkeep,
  input fragment_t         m_axis_tuser,
  input logic              m_axis_tvalid,
  input logic              m_axis_tready,
  input logic              m_axis_tlast,
  input logic              stat_fragment,
  input logic              stat_empty,
  input logic              stat_lost,
  input logic              marks,
  input logic              room,
  input logic              cut_valid,
  input logic [127:0]      newest,    // of the cuts that wait
  input logic [4:0]        waiting,
  input logic              ends,
  input logic              passes,
  input logic              take,
  input logic              idle,
  input logic              held_q,
  input logic [DATA_W-1:0] data_q,
  input logic [63:0]       number_q,
  input logic [63:0]       marked_q
);
  logic started_q = 1'b0;
  always_ff @(posedge clk) started_q <= 1'b1;
  always_comb if (!started_q) assume (rst);

  // A valid beat waits unchanged (AXI-Stream 2.2.1).
  keeps_offer #(.W(DATA_W)) u_offer (.valid(s_axis_tvalid), .ready(s_axis_tready), .offer(s_axis_tdata), .*);
  slice_e mode_q;
  always_ff @(posedge clk) mode_q <= cfg.mode;
  always_comb if (started_q) assume (cfg.mode == mode_q);

  // ---- one beat, any one ------------------------------------------------------------------------------
  logic choose, watching_q, moved_q;
  logic [DATA_W-1:0] word_q;
  anything u_choose (.value(choose));
  wire pop = m_axis_tvalid && m_axis_tready;
  always_ff @(posedge clk) begin
    if (watching_q && moved_q && pop) watching_q <= 1'b0;
    if (watching_q && !moved_q && (ends || passes)) moved_q <= 1'b1;
    if (!watching_q && take && choose) begin
      watching_q <= 1'b1;
      moved_q    <= 1'b0;
      word_q     <= s_axis_tdata;
    end
    if (rst) watching_q <= 1'b0;
  end

  // ---- accounts -----------------------------------------------------------------------------------------
  logic held1_q, ends1_q, empty1_q, lost1_q, user_valid_q;
  logic [DATA_W+Bytes:0] out_q;
  logic [63:0] last_number_q;
  logic [63:0] pushed_q;        // number of the last mark that had room
  logic [7:0] beats_q, left_q;  // taken, and left, modulo 256
  logic inside_q;               // beats of the fragment at hand have moved to the output
  always_ff @(posedge clk) begin
    held1_q  <= m_axis_tvalid && !m_axis_tready && !rst;
    out_q    <= {m_axis_tdata, m_axis_tkeep, m_axis_tlast};
    ends1_q  <= ends && !rst;
    empty1_q <= ends && !held_q && !rst;
    lost1_q  <= marks && !room && !rst;
    if (marks && room) pushed_q <= marked_q + 64'd1;
    if (idle || rst) pushed_q <= '0;
    if (ends || passes) inside_q <= passes;
    if (take) beats_q <= beats_q + 8'd1;
    if (pop && m_axis_tkeep != '0) left_q <= left_q + 8'd1;
    if (pop) begin
      last_number_q <= m_axis_tuser.event_number;
      user_valid_q  <= !m_axis_tlast;
    end
    if (rst) begin
      {beats_q, left_q} <= '0;
      {inside_q, user_valid_q} <= '0;
    end
  end

  always_comb if (started_q && !rst) begin
    if (watching_q && !moved_q) a_held : assert (held_q && data_q == word_q);
    if (watching_q && moved_q) a_word : assert (m_axis_tvalid && m_axis_tdata == word_q && &m_axis_tkeep);
    if (held1_q) a_hold : assert (m_axis_tvalid && {m_axis_tdata, m_axis_tkeep, m_axis_tlast} == out_q);
    a_all : assert (8'(beats_q - left_q) == 8'(held_q) + 8'(m_axis_tvalid && m_axis_tkeep != '0));
    a_full : assert (!m_axis_tvalid || &m_axis_tkeep || (m_axis_tkeep == '0 && m_axis_tlast));
    if (waiting != '0) a_0_newest : assert (newest[127:64] == pushed_q);
    if (waiting == '0 && cfg.mode != SliceBySize) a_number : assert (number_q == pushed_q);
    if (take && run && cfg.mode != SliceBySize) a_after : assert (waiting == '0 || (waiting == 5'd1 && ends));
    a_why : assert (!ends || cut_valid || (held_q && (!run || cfg.mode == SliceBySize)));
    a_counted : assert (stat_fragment == ends1_q && stat_empty == empty1_q && stat_lost == lost1_q);
    // A fragment of which beats have moved on, and its last has not: its number stands.
    if (inside_q) a_0_inside : assert (held_q && (!m_axis_tvalid || !m_axis_tlast));
    if (inside_q && m_axis_tvalid) a_0_out : assert (m_axis_tuser.event_number == number_q);
    if (inside_q && !m_axis_tvalid) a_0_gone : assert (user_valid_q && last_number_q == number_q);
    if (!inside_q && m_axis_tvalid) a_0_end : assert (m_axis_tlast);
    if (user_valid_q && !inside_q) a_0_user : assert (m_axis_tvalid);
    if (m_axis_tvalid && user_valid_q) a_same : assert (m_axis_tuser.event_number == last_number_q);
    c_empty : cover (stat_empty && run);
    c_next : cover (take && ends && held_q && run);
    c_lost : cover (stat_lost);
    c_size : cover (stat_fragment && cfg.mode == SliceBySize && run);
  end
endmodule

bind stream_slicer stream_slicer_props #(.DATA_W(DATA_W)) u_props (.newest(u_marks.mem[4'(u_marks.head_q - 1'b1)]), .*);
