// SPDX-License-Identifier: SHL-2.1
// Writes the ICRC into the last four bytes of every RoCEv2 frame that passes.
// Promise: one beat per cycle, no additional gap inside a frame, the previous value of the four bytes
// is ignored, a whole frame never waits for the next one. Latency 8 cycles
// (IBTA volume 1, 7.8.1; annex A17.3.3).
//
//   s_axis -> 0 -> queue of beats, each for Age cycles --------> m_axis
//              \-> mask, beat, state, undo -> queue of ICRCs -^        icrc_core; crc32_end
//
// The CRC also covers the zeros after the covered bytes, up to the end of the last beat; crc32_end
// removes them. A frame has 2 modulo 4 bytes (Ethernet 14, the rest a multiple of 4), so their number
// is 6 + 4 i, and the ICRC is in the lanes 4 j + 2 .. 4 j + 5: one mux for every position. It may
// start in the beat before the last, which is therefore delayed until the ICRC is known.
module icrc_append #(
  parameter int unsigned DATA_W = 64,
  localparam int unsigned Bytes = DATA_W / 8
) (
  input  logic clk,
  input  logic rst,

  input  logic [DATA_W-1:0] s_axis_tdata,
  input  logic [Bytes-1:0]  s_axis_tkeep,
  input  logic              s_axis_tvalid,
  output logic              s_axis_tready,
  input  logic              s_axis_tlast,

  output logic [DATA_W-1:0] m_axis_tdata,
  output logic [Bytes-1:0]  m_axis_tkeep,
  output logic              m_axis_tvalid,
  input  logic              m_axis_tready,
  output logic              m_axis_tlast
);
  import icrc_pkg::*;

  if (DATA_W != 64 && DATA_W != 512) begin : gen_bad_width
    $fatal(1, "%m: DATA_W = %0d, must be 64 or 512", DATA_W);
  end

  localparam int unsigned CrcStage = 4;             // cycles from a beat to the state before its zeros
  localparam int unsigned Age      = CrcStage + 2;  // and to its ICRC, for the beat before it
  localparam int unsigned Depth    = 16;

  typedef struct packed {
    logic [DATA_W-1:0] data;
    logic [Bytes-1:0]  keep;
    logic [Bytes-1:0]  covered;  // before the ICRC
    logic              last;
  } beat_t;

  // ---- 0: the first stage has the beat after its own ------------------------------------------
  logic [DATA_W-1:0] data_q;
  logic [Bytes-1:0]  keep_q, covered;
  logic              last_q, valid_q, successor, room, go;

  assign successor     = last_q || s_axis_tvalid;
  assign covered       = Bytes'({last_q ? 4'h0 : s_axis_tkeep[3:0], keep_q} >> 4);
  assign go            = valid_q && successor && room;
  assign s_axis_tready = !valid_q || go;

  always_ff @(posedge clk) begin
    if (s_axis_tready) valid_q <= s_axis_tvalid;
    if (s_axis_tvalid && s_axis_tready) begin
      data_q <= s_axis_tdata;
      keep_q <= s_axis_tkeep;
      last_q <= s_axis_tlast;
    end
    if (rst) valid_q <= 1'b0;
  end

  // ---- the beats wait ----------------------------------------------------------------------------
  beat_t                  beat, out;
  logic [Age-1:1]         went_q;  // cycles ago
  logic [$clog2(Depth):0] old_q, unused_level;  // beats that have waited long enough
  logic                   waits, leave;

  assign beat = '{data: data_q, keep: keep_q, covered: covered, last: last_q};

  block_fifo #(.W($bits(beat_t)), .DEPTH(Depth)) u_beats (
    .clk, .rst,
    .s_data (beat),
    .s_valid(go),
    .s_ready(room),
    .m_data (out),
    .m_valid(waits),
    .m_ready(leave),
    .level  (unused_level)
  );

  always_ff @(posedge clk) begin
    went_q <= {went_q[Age-2:1], go};
    old_q  <= old_q + ($clog2(Depth) + 1)'(went_q[Age-1]) - ($clog2(Depth) + 1)'(leave);
    if (rst) begin
      went_q <= '0;
      old_q  <= '0;
    end
  end

  // ---- the CRC state, with the zeros after the last covered byte removed ------------------------
  // Nothing stalls here: data in flight has its place in the queue.
  logic [31:0] root, state;
  icrc_core #(.DATA_W(DATA_W)) u_core (
    .clk, .rst,
    .move    (go),
    .last    (last_q),
    .data    (data_q),
    .covered (covered),
    .root    (root)
  );

  // Whether it was the last beat, and its four-byte groups that the frame does not fill, less the one it ends in.
  localparam int unsigned Groups = Bytes / 4;
  localparam int unsigned SpareW = $clog2(Groups);
  logic [CrcStage:1] ended_q;
  logic [SpareW-1:0] spare_q [1:CrcStage-1];
  always_ff @(posedge clk) begin
    ended_q    <= {ended_q[CrcStage-1:1], go && last_q};
    spare_q[1] <= spare_groups(keep_q);
    for (int stage = 2; stage < int'(CrcStage); stage++) spare_q[stage] <= spare_q[stage-1];
    if (rst) ended_q <= '0;
  end

  function automatic logic [SpareW-1:0] spare_groups(logic [Bytes-1:0] keep);
    spare_groups = SpareW'(Groups - 1);
    for (int i = 0; i < int'(Groups) - 1; i++)
      if (keep[4*i+3]) spare_groups = SpareW'(int'(Groups) - 2 - i);
  endfunction

  crc32_end #(.DATA_W(DATA_W), .ALWAYS(6), .STEP(4), .STEPS(Groups)) u_end (
    .clk,
    .root (root),
    .steps(spare_q[CrcStage-1]),
    .state(state)
  );

  // ---- the ICRC goes where that ends -----------------------------------------------------------
  logic [31:0]       last_state, icrc;
  logic [DATA_W-1:0] icrc_lanes, out_data;
  logic              m_free, icrc_valid, icrc_room;
  logic [$clog2(Depth):0] unused_icrcs;

  sync_fifo #(.W(32), .DEPTH(Depth)) u_icrcs (
    .clk, .rst,
    .s_data (state),
    .s_valid(ended_q[CrcStage]),
    .s_ready(icrc_room),
    .m_data (last_state),
    .m_valid(icrc_valid),
    .m_ready(leave && out.last),
    .level  (unused_icrcs)
  );

  assign m_free     = m_axis_tready || !m_axis_tvalid;
  assign leave      = waits && old_q != '0 && m_free && (icrc_valid || &out.covered);
  assign icrc       = ~last_state;
  assign icrc_lanes = {Bytes/4{icrc[15:0], icrc[31:16]}};

  always_comb begin
    for (int i = 0; i < int'(Bytes); i++)
      out_data[8*i+:8] = out.covered[i] ? out.data[8*i+:8] : icrc_lanes[8*i+:8];
  end

  always_ff @(posedge clk) begin
    if (leave) begin
      m_axis_tdata <= out_data;
      m_axis_tkeep <= out.keep;
      m_axis_tlast <= out.last;
    end
    if (m_free) m_axis_tvalid <= leave;
    if (rst) m_axis_tvalid <= 1'b0;
  end

`ifndef SYNTHESIS
  a_icrc_room : assert property (@(posedge clk) disable iff (rst) ended_q[CrcStage] |-> icrc_room);
  // A valid beat waits unchanged until it is taken (AMBA AXI-Stream 2.2.1).
  a_hold : assert property (@(posedge clk) disable iff (rst)
    m_axis_tvalid && !m_axis_tready
    |=> m_axis_tvalid && $stable({m_axis_tdata, m_axis_tkeep, m_axis_tlast}));
  a_whole_beats : assert property (@(posedge clk) disable iff (rst)
    s_axis_tvalid && !s_axis_tlast |-> &s_axis_tkeep)
    else $error("%m: tkeep = %h inside a frame, must be all ones", s_axis_tkeep);
  a_length : assert property (@(posedge clk) disable iff (rst)
    s_axis_tvalid && s_axis_tlast |-> $countones(s_axis_tkeep) % 4 == 2)
    else $error("%m: last tkeep = %h, a RoCEv2 frame has 2 modulo 4 bytes", s_axis_tkeep);
`endif
endmodule
