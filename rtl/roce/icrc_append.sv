// SPDX-License-Identifier: SHL-2.1
// Writes the ICRC into the last four bytes of every RoCEv2 frame that passes.
// Promise: one beat a cycle, no gap inside a frame that was not there, what the four bytes held
// does not matter, a whole frame never waits for the next one. Latency 7 cycles at 64 bit, 8 at 512
// (IBTA volume 1, 7.8.1; annex A17.3.3).
//
//   s_axis -> 0 -> 1 --> 2 --> 3 ---> 4 [-> 5] -> Out -> m_axis   the beats
//               \> mask, beat, state -> undo -------^             icrc_core; zeros taken back
//
// The CRC also runs over the zeros behind the covered bytes, up to the end of the last beat; `undo`
// takes those back. A frame has 2 modulo 4 bytes (Ethernet 14, all the rest fours), so their number
// is 6 + 4 i, and the ICRC lies in the lanes 4 j + 2 .. 4 j + 5: one mux for every position. It may
// begin in the beat before the last, which therefore leaves Out only with the last one behind it.
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

  if (DATA_W != 64 && DATA_W != 512) begin : g_bad_width
    $fatal(1, "%m: DATA_W = %0d, must be 64 or 512", DATA_W);
  end

  localparam int unsigned UndoStages = DATA_W == 64 ? 1 : 2;
  localparam int unsigned CrcStage   = 3;                      // holds a beat beside its CRC state
  localparam int unsigned OutStage   = CrcStage + UndoStages + 1;

  typedef struct packed {
    logic [DATA_W-1:0] data;
    logic [Bytes-1:0]  keep;
    logic [Bytes-1:0]  covered;  // in front of the ICRC
    logic              last;
  } beat_t;

  // ---- the beats: stage i moves on when stage i + 1 is free or moves too ------------------------
  logic              m_free;
  beat_t             beat_q [0:OutStage];
  logic [OutStage:0] valid_q, free, go;  // go: what stands in stage i leaves it
  logic              successor;          // the first stage knows what comes behind its beat
  logic [Bytes-1:0]  covered;

  assign m_free    = m_axis_tready || !m_axis_tvalid;
  assign successor = beat_q[0].last || s_axis_tvalid;
  assign covered   = Bytes'({beat_q[0].last ? 4'h0 : s_axis_tkeep[3:0], beat_q[0].keep} >> 4);

  always_comb begin
    go[OutStage]   = valid_q[OutStage] && m_free && (beat_q[OutStage].last || valid_q[OutStage-1]);
    free[OutStage] = !valid_q[OutStage] || go[OutStage];
    for (int i = int'(OutStage) - 1; i >= 0; i--) begin
      go[i]   = valid_q[i] && free[i+1] && (i != 0 || successor);
      free[i] = !valid_q[i] || free[i+1];
    end
  end
  assign s_axis_tready = free[0];

  always_ff @(posedge clk) begin
    if (s_axis_tvalid && s_axis_tready)
      beat_q[0] <= '{data: s_axis_tdata, keep: s_axis_tkeep, covered: '0, last: s_axis_tlast};
    valid_q[0] <= (s_axis_tvalid && s_axis_tready) || (valid_q[0] && !go[0]);
    for (int i = 1; i <= int'(OutStage); i++) begin
      if (go[i-1]) beat_q[i] <= beat_q[i-1];
      valid_q[i] <= go[i-1] || (valid_q[i] && !go[i]);
    end
    if (go[0]) beat_q[1].covered <= covered;
    if (rst) valid_q <= '0;
  end

  // ---- the CRC state, and the zeros behind the last covered byte taken back ---------------------
  logic [31:0] state_q [0:UndoStages];
  icrc_core #(.DATA_W(DATA_W)) u_core (
    .clk, .rst,
    .move    (go[2:0]),
    .last    (beat_q[0].last),
    .data    (beat_q[0].data),
    .covered (covered),
    .crc     (state_q[0])
  );

  // Four-byte groups of the last beat that the frame does not fill, less the one it ends in.
  logic [3:0] spare_q [CrcStage:CrcStage+UndoStages-1];
  always_ff @(posedge clk) begin
    if (go[CrcStage-1] && beat_q[CrcStage-1].last)
      spare_q[CrcStage] <= spare_groups(beat_q[CrcStage-1].keep);
    for (int i = int'(CrcStage) + 1; i < int'(CrcStage + UndoStages); i++)
      if (go[i-1]) spare_q[i] <= spare_q[i-1];
  end

  function automatic logic [3:0] spare_groups(logic [Bytes-1:0] keep);
    spare_groups = 4'(Bytes / 4 - 1);
    for (int i = 0; i < int'(Bytes) / 4; i++)
      if (keep[4*i+3]) spare_groups = 4'(int'(Bytes) / 4 - 2 - i);
  endfunction

  for (genvar g = 0; g < UndoStages; g++) begin : g_undo
    localparam int unsigned Always = g == 0 ? 6 : 0;
    localparam int unsigned Step   = g == 0 ? 4 : 16;
    localparam matrix_t UndoNone = undo_zeros_matrix(Always);
    localparam matrix_t UndoOne  = undo_zeros_matrix(Always + Step);
    localparam matrix_t UndoTwo  = undo_zeros_matrix(2 * Step);

    function automatic logic [31:0] undo(logic [31:0] state, logic [1:0] steps);
      undo = steps[0] ? apply(UndoOne, state) : apply(UndoNone, state);
      if (steps[1]) undo = apply(UndoTwo, undo);
    endfunction

    always_ff @(posedge clk) begin
      if (go[CrcStage+g] && beat_q[CrcStage+g].last)
        state_q[g+1] <= undo(state_q[g], spare_q[CrcStage+g][2*g+:2]);
    end
  end

  // ---- the ICRC goes where that ends -----------------------------------------------------------
  logic [31:0]       last_state_q, icrc;
  logic [DATA_W-1:0] icrc_lanes, out_data;
  beat_t             out;
  assign out        = beat_q[OutStage];
  assign icrc       = ~(out.last ? last_state_q : state_q[UndoStages]);
  assign icrc_lanes = {Bytes/4{icrc[15:0], icrc[31:16]}};

  always_comb begin
    for (int i = 0; i < int'(Bytes); i++)
      out_data[8*i+:8] = out.covered[i] ? out.data[8*i+:8] : icrc_lanes[8*i+:8];
  end

  always_ff @(posedge clk) begin
    if (go[OutStage-1]) last_state_q <= state_q[UndoStages];
    if (go[OutStage]) begin
      m_axis_tdata <= out_data;
      m_axis_tkeep <= out.keep;
      m_axis_tlast <= out.last;
    end
    if (m_free) m_axis_tvalid <= go[OutStage];
    if (rst) m_axis_tvalid <= 1'b0;
  end

`ifndef SYNTHESIS
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
