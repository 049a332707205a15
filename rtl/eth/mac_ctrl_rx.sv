// SPDX-License-Identifier: SHL-2.1
// Takes MAC control frames out of the receive stream and runs the pause timers they set.
// A frame takes effect only after it was good to its end; a beat leaves when the next one is known.
// A pause frame counts with the address of the station, too; such a frame with another opcode is dropped.
// Source: IEEE 802.3 annex 31B (pause; addresses: 31B.3.3), IEEE 802.1Q clause 36 and 802.3 annex 31D (PFC).
//
//   octet  0                 6           12     14         16      18         20          32
//   pause  01 80 C2 00 00 01 source(6)   88 08  00 01      quanta
//   PFC    01 80 C2 00 00 01 source(6)   88 08  01 01   0, vector  quanta 0   quanta 1 .. quanta 7
module mac_ctrl_rx
  import eth_pkg::*;
#(
  parameter int unsigned DATA_W    = 64,
  parameter int unsigned CLK_KHZ   = 156250,
  parameter int unsigned LINE_MBPS = 10000,
  localparam int unsigned Bytes    = DATA_W / 8
) (
  input  logic              clk,
  input  logic              rst,
  input  logic              tick,           // of eth_port, for the pause timers
  input  logic [47:0]       local_mac,
  input  logic [DATA_W-1:0] s_axis_tdata,
  input  logic [Bytes-1:0]  s_axis_tkeep,
  input  logic              s_axis_tvalid,
  input  logic              s_axis_tlast,
  input  logic              s_axis_tuser,   // at tlast: bad frame
  output logic [DATA_W-1:0] m_axis_tdata,   // all frames but MAC control
  output logic [Bytes-1:0]  m_axis_tkeep,
  output logic              m_axis_tvalid,
  output logic              m_axis_tlast,
  output logic              m_axis_tuser,
  output logic              paused_global,
  output logic [7:0]        paused_class,
  output logic              stat_pause,     // pulse: a pause frame acted
  output logic              stat_pfc        // pulse: a PFC frame acted
);
  if (DATA_W != 64 && DATA_W != 512) begin : gen_bad_width
    $fatal(1, "%m: DATA_W = %0d, must be 64 or 512", DATA_W);
  end

  localparam int unsigned TypeByte  = 12;
  localparam int unsigned TypeBeat  = TypeByte / Bytes;  // here the kind of the frame is known
  localparam int unsigned TypeLane  = TypeByte % Bytes;
  localparam int unsigned FieldByte = 14;
  localparam int unsigned Fields    = 20;                // octets from the opcode to the last quanta
  localparam logic [47:0] MacLanes  = {<<8{ControlMac}};
  localparam logic [15:0] TypeLanes = {<<8{ControlEtherType}};

  // ---- filter ----------------------------------------------------------------------------------
  logic [DATA_W-1:0] held_q;
  logic [Bytes-1:0]  held_keep_q;
  logic              held_valid_q, held_last_q, held_user_q;
  logic [2:0]        index_q;              // beat of the frame, stays at 7
  logic              to_all, to_us, to_control, to_control_q, to_us_q, is_control;
  logic [47:0]       local_lanes;
  logic              control, control_q;   // the frame of the present beat is MAC control
  logic              drop, drop_q;         // the held beat belongs to one

  assign local_lanes = {<<8{local_mac}};
  assign to_all     = s_axis_tdata[47:0] == MacLanes;
  assign to_us      = s_axis_tdata[47:0] == local_lanes;
  assign to_control = index_q == '0 ? to_all || to_us : to_control_q;
  assign is_control = s_axis_tvalid && index_q == 3'(TypeBeat) && to_control
                   && s_axis_tdata[8*TypeLane+:16] == TypeLanes && s_axis_tkeep[TypeLane+1];
  assign control    = is_control || (control_q && index_q != '0);
  assign drop       = drop_q || (TypeBeat != 0 && is_control);

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
      to_control_q <= to_control;
      if (index_q == '0) to_us_q <= to_us;
      control_q    <= control;
      drop_q       <= control;
    end else if (held_last_q) begin
      held_valid_q <= 1'b0;
    end
    if (rst) begin
      held_valid_q <= 1'b0;
      held_last_q  <= 1'b0;
      index_q      <= '0;
      control_q    <= 1'b0;
      drop_q       <= 1'b0;
    end
  end

  // ---- contents --------------------------------------------------------------------------------
  logic [Fields-1:0][7:0] field_q;
  logic [15:0]            opcode;
  logic [8:0][15:0]       quanta;
  logic                   whole, end_q, end_us_q, act_pause, act_pfc;

  // The last quanta field is in octets 32 and 33; a control frame is 60 octets long.
  assign whole     = DATA_W == 64 ? index_q == '1 : index_q != '0 || s_axis_tkeep[Bytes-8];
  assign opcode    = {field_q[0], field_q[1]};
  assign act_pause = end_q && opcode == OpcodePause;
  assign act_pfc   = end_q && opcode == OpcodePfc && !end_us_q;

  always_comb begin
    for (int i = 0; i < 8; i++) quanta[i] = {field_q[4+2*i], field_q[5+2*i]};
    quanta[8] = {field_q[2], field_q[3]};
  end

  for (genvar i = 0; i < int'(Fields); i++) begin : gen_field
    localparam int unsigned Beat = (FieldByte + i) / Bytes;
    localparam int unsigned Lane = (FieldByte + i) % Bytes;
    always_ff @(posedge clk) begin
      if (s_axis_tvalid && index_q == 3'(Beat)) field_q[i] <= s_axis_tdata[8*Lane+:8];
    end
  end

  always_ff @(posedge clk) begin
    end_q      <= s_axis_tvalid && s_axis_tlast && !s_axis_tuser && control && whole && !rst;
    end_us_q   <= index_q == '0 ? to_us : to_us_q;
    stat_pause <= act_pause && !rst;
    stat_pfc   <= act_pfc && !rst;
  end

  pause_timers #(
    .CLK_KHZ  (CLK_KHZ),
    .LINE_MBPS(LINE_MBPS)
  ) u_timers (
    .clk,
    .rst,
    .tick,
    .load  ({act_pause, act_pfc ? field_q[3] : 8'h00}),
    .quanta,
    .paused({paused_global, paused_class})
  );

`ifndef SYNTHESIS
  a_no_bad_pause : assert property (@(posedge clk) disable iff (rst)
    s_axis_tvalid && s_axis_tlast && s_axis_tuser |=> ##1 !stat_pause && !stat_pfc);
`endif
endmodule
