// SPDX-License-Identifier: SHL-2.1
// Promises of a register slice: beats leave unchanged and in order, none lost or made up; a beat
// at the output waits unchanged; no bubble: an accepted beat is visible one cycle later, and room
// is there one cycle after the consumer takes a beat (AMBA AXI-Stream 2.2.1).
module axis_register_props #(
  parameter int unsigned W = 8
) (
  input logic         clk,
  input logic         rst,
  input logic [W-1:0] s_axis_tdata,
  input logic         s_axis_tvalid,
  input logic         s_axis_tready,
  input logic [W-1:0] m_axis_tdata,
  input logic         m_axis_tvalid,
  input logic         m_axis_tready,
  input logic [W-1:0] skid_q
);
  logic started_q = 1'b0;
  always_ff @(posedge clk) started_q <= 1'b1;
  always_comb if (!started_q) assume (rst);

  logic push, pop;
  assign push = s_axis_tvalid && s_axis_tready;
  assign pop  = m_axis_tvalid && m_axis_tready;

  // One beat, chosen freely, is watched until it leaves; at most one other is in front of it.
  logic choose;
  anything u_choose (.value(choose));

  logic watching_q, behind_q, pushed_q, popped_q, held_q;
  logic [W-1:0] watched_q, last_q;

  always_ff @(posedge clk) begin
    pushed_q <= push;
    popped_q <= m_axis_tready;
    held_q   <= m_axis_tvalid && !m_axis_tready;
    last_q   <= m_axis_tdata;
    if (watching_q) begin
      if (pop) begin
        behind_q   <= 1'b0;
        watching_q <= behind_q;
      end
    end else if (push && choose) begin
      watching_q <= 1'b1;
      watched_q  <= s_axis_tdata;
      behind_q   <= m_axis_tvalid && !m_axis_tready;
    end
    if (rst) begin
      watching_q <= 1'b0;
      pushed_q   <= 1'b0;
      held_q     <= 1'b0;
      popped_q   <= 1'b1;
    end
  end

  always_comb if (started_q && !rst) begin
    if (watching_q) a_kept : assert (m_axis_tvalid && (behind_q ? !s_axis_tready : 1'b1));
    if (watching_q) a_data : assert ((behind_q ? skid_q : m_axis_tdata) == watched_q);
    if (held_q) a_hold : assert (m_axis_tvalid && m_axis_tdata == last_q);
    if (pushed_q) a_no_bubble : assert (m_axis_tvalid);
    if (popped_q) a_room : assert (s_axis_tready);
    a_order : assert (s_axis_tready || m_axis_tvalid);
    c_both_full : cover (watching_q && behind_q && pop);
  end
endmodule

bind axis_register axis_register_props #(.W(W)) u_props (.*);
