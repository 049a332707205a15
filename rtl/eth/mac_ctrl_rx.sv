// SPDX-License-Identifier: SHL-2.1
// Takes MAC control frames out of the receive stream and runs the pause timers they set.
// A frame acts only when its FCS was good; quanta are 512 bit times, and a quanta of 0 ends a pause.
// Source: IEEE 802.3 annex 31B (pause), IEEE 802.1Q clause 36 and 802.3 annex 31D (PFC).
//
//   word  octets  0    1    2    3    4    5    6    7
//    0            01   80   C2   00   00   01   source..
//    1            ..source             88   08  opcode(2)   0001 pause, 0101 PFC
//    2   pause    quanta(2)
//    2   PFC      0   vector quanta 0  quanta 1  quanta 2
//    3   PFC      quanta 3  quanta 4  quanta 5  quanta 6
//    4   PFC      quanta 7
module mac_ctrl_rx (
  input  logic        clk,
  input  logic        rst,
  input  logic [63:0] s_axis_tdata,
  input  logic [7:0]  s_axis_tkeep,
  input  logic        s_axis_tvalid,
  input  logic        s_axis_tlast,
  input  logic        s_axis_tuser,   // at tlast: bad frame
  output logic [63:0] m_axis_tdata,   // all frames but MAC control
  output logic [7:0]  m_axis_tkeep,
  output logic        m_axis_tvalid,
  output logic        m_axis_tlast,
  output logic        m_axis_tuser,
  output logic        paused_global,
  output logic [7:0]  paused_class,
  output logic        stat_pause,     // pulse: a pause frame acted
  output logic        stat_pfc        // pulse: a PFC frame acted
);
  localparam logic [47:0] ControlMac  = 48'h01_00_00_C2_80_01;  // first octet lowest
  localparam logic [15:0] ControlType = 16'h08_88;
  localparam logic [15:0] OpcodePause = 16'h01_00;
  localparam logic [15:0] OpcodePfc   = 16'h01_01;
  localparam int unsigned Timers      = 9;   // classes 0 to 7, then the global one
  localparam int unsigned CycleBits   = 3;   // a quanta is 512 / 64 = 8 cycles
  localparam int unsigned TimerW      = 16 + CycleBits;

  function automatic logic [15:0] swap(input logic [15:0] octets);
    return {octets[7:0], octets[15:8]};
  endfunction

  // ---- filter: a word leaves when the next one is known ------------------------------------------
  logic [63:0] held_q;
  logic [7:0]  held_keep_q;
  logic        held_valid_q, held_last_q, held_user_q;
  logic        to_control_q;            // the frame's destination is the control address
  logic        is_control, control_q;   // from word 1 on: this is a MAC control frame
  logic        drop, drop_q;            // the held word belongs to one
  logic [2:0]  index_q;                 // word of the frame, stays at 7

  assign is_control = s_axis_tvalid && index_q == 3'd1 && to_control_q && s_axis_tdata[47:32] == ControlType;
  assign drop       = drop_q || is_control;

  assign m_axis_tdata  = held_q;
  assign m_axis_tkeep  = held_keep_q;
  assign m_axis_tvalid = held_valid_q && (s_axis_tvalid || held_last_q) && !drop;
  assign m_axis_tlast  = held_last_q;
  assign m_axis_tuser  = held_user_q;

  always_ff @(posedge clk) begin
    if (s_axis_tvalid) begin
      held_q       <= s_axis_tdata;
      held_keep_q  <= s_axis_tkeep;
      held_last_q  <= s_axis_tlast;
      held_user_q  <= s_axis_tuser;
      held_valid_q <= 1'b1;
      index_q      <= s_axis_tlast ? '0 : index_q == '1 ? index_q : index_q + 3'd1;
      to_control_q <= index_q == '0 && s_axis_tdata[47:0] == ControlMac;
      control_q    <= is_control || (control_q && index_q != '0);
    end else if (held_last_q) begin
      held_valid_q <= 1'b0;
    end
    drop_q <= drop && !(held_valid_q && held_last_q);
    if (rst) begin
      held_valid_q <= 1'b0;
      held_last_q  <= 1'b0;
      index_q      <= '0;
      to_control_q <= 1'b0;
      control_q    <= 1'b0;
      drop_q       <= 1'b0;
    end
  end

  // ---- contents ------------------------------------------------------------------------------------
  logic [15:0]      opcode_q;
  logic [7:0]       vector_q;
  logic [15:0]      pause_quanta_q;
  logic [7:0][15:0] quanta_q;
  logic             act, act_pause, act_pfc;

  assign act       = s_axis_tvalid && s_axis_tlast && !s_axis_tuser && control_q && index_q == '1;
  assign act_pause = act && opcode_q == OpcodePause;
  assign act_pfc   = act && opcode_q == OpcodePfc;

  always_ff @(posedge clk) begin
    if (s_axis_tvalid) begin
      unique case (index_q)
        3'd1: opcode_q <= s_axis_tdata[63:48];
        3'd2: begin
          pause_quanta_q <= swap(s_axis_tdata[15:0]);
          vector_q       <= s_axis_tdata[15:8];
          for (int i = 0; i < 3; i++) quanta_q[i] <= swap(s_axis_tdata[16*i+16+:16]);
        end
        3'd3: for (int i = 0; i < 4; i++) quanta_q[i+3] <= swap(s_axis_tdata[16*i+:16]);
        3'd4: quanta_q[7] <= swap(s_axis_tdata[15:0]);
        default: ;
      endcase
    end
    stat_pause <= act_pause && !rst;
    stat_pfc   <= act_pfc && !rst;
  end

  // ---- timers --------------------------------------------------------------------------------------
  logic [TimerW-1:0] timer_q[Timers];
  logic [TimerW-1:0] timer_d[Timers];
  logic [Timers-1:0] paused_q, load;

  assign paused_class  = paused_q[7:0];
  assign paused_global = paused_q[8];
  assign load          = {act_pause, act_pfc ? vector_q : 8'h00};

  always_comb begin
    for (int i = 0; i < Timers; i++) begin
      timer_d[i] = timer_q[i] - TimerW'(paused_q[i]);
      if (load[i]) timer_d[i] = {i == 8 ? pause_quanta_q : quanta_q[i[2:0]], {CycleBits{1'b0}}};
    end
  end

  always_ff @(posedge clk) begin
    if (load != '0 || paused_q != '0) begin  // nothing moves while nobody is paused
      for (int i = 0; i < Timers; i++) begin
        timer_q[i]  <= timer_d[i];
        paused_q[i] <= timer_d[i] != '0;
      end
    end
    if (rst) begin
      paused_q <= '0;
      for (int i = 0; i < Timers; i++) timer_q[i] <= '0;
    end
  end

`ifndef SYNTHESIS
  a_no_bad_pause : assert property (@(posedge clk) disable iff (rst)
    s_axis_tvalid && s_axis_tlast && s_axis_tuser |=> !stat_pause && !stat_pfc);
  a_pause_ends : assert property (@(posedge clk) disable iff (rst)
    paused_global |-> timer_q[8] != '0);
`endif
endmodule
