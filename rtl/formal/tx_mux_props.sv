// SPDX-License-Identifier: SHL-2.1
// Promises of the multiplexer of the transmit streams: beats leave unchanged and in order, none lost, none
// made up; a frame is never interleaved with another; a held kind never starts a frame; while
// the output is free, an eligible beat leaves; control frames go first, and of the two
// others none waits for more than one frame of the other. IEEE 802.3 annex 31B.3; AMBA AXI-Stream 2.2.1.
module tx_mux_props
  import eth_pkg::*;
#(
  parameter int unsigned DATA_W = 8
) (
  input logic              clk,
  input logic              rst,
  input flow_control_cfg_t cfg,
  input logic              paused_global,
  input logic [7:0]        paused_class,
  input logic              tx_paused,
  input logic              hold_service_q,
  input logic [2:0]        s_valid,  // by frame_kind_e: RoCE, service, control
  input logic [2:0]        s_ready,
  input logic [2:0]        s_last,
  input logic [2:0][DATA_W+DATA_W/8-1:0] s_beat,
  input logic              m_axis_tvalid,
  input logic              m_axis_tready,
  input logic              m_axis_tlast,
  input logic [1:0]        m_axis_tuser,
  input logic [DATA_W+DATA_W/8-1:0] m_beat,
  input logic              busy_q,
  input frame_kind_e       kind_q,
  input logic              roce_was_last_q
);
  logic started_q = 1'b0;
  always_ff @(posedge clk) started_q <= 1'b1;
  always_comb if (!started_q) assume (rst);

  logic [2:0] taken, held, offers;
  logic [1:0] who;   // whose beat is taken
  logic free;
  assign taken = s_valid & s_ready;
  assign who   = taken[2] ? 2'd2 : 2'(taken[1]);
  assign free  = m_axis_tready || !m_axis_tvalid;

  // Kinds that may not start, a cycle later: 802.3x pause holds all but control frames, PFC the class of RoCE.
  always_ff @(posedge clk) begin
    held[FrameControl] <= 1'b0;
    held[FrameService] <= !rst && cfg.pause_en && paused_global;
    held[FrameRoce]    <= !rst && ((cfg.pause_en && paused_global) || (cfg.pfc_en && paused_class[cfg.traffic_class]));
  end
  assign offers = s_valid & ~held;

  // What entered: whose frame is under way, and the beat that must come out now.
  logic       inside_q;
  logic [1:0] owner_q;
  logic       due_q, due_last_q, waits_q;
  logic [DATA_W+DATA_W/8-1:0] due_beat_q;
  // What left: whose frame is under way at the output.
  logic       out_inside_q;
  logic [1:0] out_owner_q;
  // Frames of the other kind that began since one of the two began to wait.
  logic [1:0][1:0] passed_q;
  logic       begins;  // a frame
  assign begins = |taken && !inside_q;

  always_ff @(posedge clk) begin
    due_q   <= |taken;
    waits_q <= m_axis_tvalid && !m_axis_tready;
    if (|taken) begin
      {due_beat_q, due_last_q, owner_q} <= {s_beat[who], s_last[who], who};
      inside_q <= !s_last[who];
    end
    if (m_axis_tvalid && m_axis_tready) {out_inside_q, out_owner_q} <= {!m_axis_tlast, m_axis_tuser};
    for (int i = 0; i < 2; i++) begin
      if (!offers[i] || (begins && 32'(who) == i)) passed_q[i] <= '0;
      else if (begins && 32'(who) == 1 - i) passed_q[i] <= passed_q[i] + 2'(passed_q[i] != '1);
    end
    if (rst) {due_q, waits_q, inside_q, out_inside_q, passed_q} <= '0;
  end

  always_comb if (started_q && !rst) begin
    a_0_state : assert (inside_q == busy_q && (!inside_q || (owner_q == kind_q && owner_q != 2'd3)));
    if (inside_q && owner_q != FrameControl) a_0_last_kind : assert (roce_was_last_q == (owner_q == FrameRoce));
    a_0_held : assert (held[FrameService] == hold_service_q);
    a_0_last : assert (!m_axis_tvalid || (m_axis_tuser == owner_q && m_axis_tlast != inside_q));
    a_0_turn : assert ((passed_q[FrameRoce] == '0 || !roce_was_last_q)
                       && (passed_q[FrameService] == '0 || roce_was_last_q));
    a_0_out : assert (m_axis_tvalid || (out_inside_q == inside_q && (!inside_q || out_owner_q == owner_q)));
    if (due_q || waits_q) a_kept : assert (m_axis_tvalid && m_beat == due_beat_q && m_axis_tlast == due_last_q);
    else a_not_made_up : assert (!m_axis_tvalid);
    a_one : assert ($onehot0(taken) && (taken == '0 || free));
    if (inside_q) a_no_other : assert ((taken & ~(3'd1 << owner_q)) == '0);
    if (m_axis_tvalid && out_inside_q) a_whole : assert (m_axis_tuser == out_owner_q);
    if (begins) a_held : assert (!held[who]);
    a_paused : assert (tx_paused == held[FrameRoce]);
    if (free) a_no_gap : assert (|taken == (inside_q ? s_valid[owner_q] : |offers));
    if (begins && offers[FrameControl]) a_control_first : assert (taken[FrameControl]);
    a_turns : assert (passed_q[FrameRoce] <= 2'd1 && passed_q[FrameService] <= 2'd1);
    c_turn : cover (passed_q[FrameRoce] == 2'd1 && begins && taken[FrameRoce]);
    c_held : cover (held[FrameRoce] && inside_q && owner_q == FrameRoce && taken[FrameRoce] && m_axis_tvalid);
  end
endmodule

bind tx_mux tx_mux_props #(.DATA_W(DATA_W)) u_props (
  .s_valid({s_axis_control_tvalid, s_axis_service_tvalid, s_axis_roce_tvalid}),
  .s_ready({s_axis_control_tready, s_axis_service_tready, s_axis_roce_tready}),
  .s_last ({s_axis_control_tlast, s_axis_service_tlast, s_axis_roce_tlast}),
  .s_beat ({s_axis_control_tdata, s_axis_control_tkeep, s_axis_service_tdata, s_axis_service_tkeep,
            s_axis_roce_tdata, s_axis_roce_tkeep}),
  .m_beat ({m_axis_tdata, m_axis_tkeep}),
  .*
);
