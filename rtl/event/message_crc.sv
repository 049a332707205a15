// SPDX-License-Identifier: SHL-2.1
// Writes the CRC-32C (RFC 3720 section 12.1) of each message into its last four bytes. Messages are whole words of 64
// bits.
// Promise: one beat per cycle, a message never waits for the next one; 5 cycles from a message's last beat to its
// departure, fewer for earlier beats. `length` and `event_number` of the last beat leave with it.
//
//   s_axis --> queue of beats ------------------------------------> m_axis
//         \--> word, root, zeros taken back --> queue of CRCs --^        crc32_word, crc32_end
module message_crc #(
  parameter  int unsigned DATA_W = 64,
  localparam int unsigned Bytes  = DATA_W / 8,
  localparam int unsigned Words  = DATA_W / 64,
  localparam int unsigned CountW = $clog2(Words + 1)
) (
  input  logic              clk,
  input  logic              rst,
  input  logic [DATA_W-1:0] s_data,          // zeros after the last word, and in place of the CRC
  input  logic [CountW-1:0] s_count,         // words; all but in the last beat
  input  logic              s_last,
  input  logic [31:0]       s_length,        // bytes of the message
  input  logic [63:0]       s_event_number,
  input  logic              s_valid,
  output logic              s_ready,
  output logic [DATA_W-1:0] m_axis_tdata,
  output logic [Bytes-1:0]  m_axis_tkeep,
  output logic              m_axis_tlast,
  output logic [31:0]       length,          // of the message that ends
  output logic [63:0]       event_number,
  output logic              m_axis_tvalid,
  input  logic              m_axis_tready
);
  import crc32_pkg::*;

  localparam int unsigned Depth  = 16;
  localparam int unsigned Steps  = Words > 1 ? Words : 2;
  localparam int unsigned StepW  = $clog2(Steps);
  localparam int unsigned Stage  = 4;  // cycles from a beat to the state after it

  typedef struct packed {
    logic              last;
    logic [CountW-1:0] count;
    logic [DATA_W-1:0] data;
  } beat_t;

  typedef struct packed {
    logic [63:0] event_number;
    logic [31:0] length;
    logic [31:0] state;
  } end_t;

  // ---- the beats wait ---------------------------------------------------------------------------------
  beat_t out;
  logic waits, go, leave;
  logic [$clog2(Depth):0] unused_beats;
  assign go = s_valid && s_ready;

  sync_fifo #(.W($bits(beat_t)), .DEPTH(Depth)) u_beats (
    .clk, .rst,
    .s_data ({s_last, s_count, s_data}),
    .s_valid,
    .s_ready,
    .m_data (out),
    .m_valid(waits),
    .m_ready(leave),
    .level  (unused_beats)
  );

  // ---- the state's root, a beat a cycle; then the zeros from the CRC's place on are removed ---------------
  logic first_q;                 // the next beat begins a message
  logic [Stage-2:1] begins_q;
  logic [Stage-2:1] moves_q;
  logic [Stage-1:1] ends_q;
  logic [Stage-1:1][StepW-1:0] spare_q;
  logic [Stage-1:1][95:0] about_q;
  logic [DATA_W-1:0] word;
  logic [31:0] added, added_q, root_q, state;
  logic ended_q;
  logic [95:0] about_end_q;

  always_comb begin
    word = s_data;
    if (first_q) word[31:0] = ~s_data[31:0];  // the start value, all ones, is added to the first four bytes
  end

  crc32_word #(.DATA_W(DATA_W), .POLYNOMIAL(Castagnoli)) u_word (.clk, .data(word), .added);
  crc32_end #(.DATA_W(DATA_W), .ALWAYS(4), .STEP(8), .STEPS(Steps), .POLYNOMIAL(Castagnoli)) u_end (
    .clk,
    .root (root_q),
    .steps(spare_q[Stage-1]),
    .state(state)
  );

  always_ff @(posedge clk) begin
    if (go) first_q <= s_last;
    added_q <= added;
    if (moves_q[2]) root_q <= (begins_q[2] ? '0 : next_bit(root_q, Castagnoli)) ^ added_q;
    begins_q    <= {begins_q[1], first_q};
    moves_q     <= {moves_q[1], go};
    ends_q      <= {ends_q[2:1], go && s_last};
    spare_q     <= {spare_q[2:1], StepW'(CountW'(Words) - s_count)};
    about_q     <= {about_q[2:1], {s_event_number, s_length}};
    ended_q     <= ends_q[3];
    about_end_q <= about_q[3];
    if (rst) begin
      first_q <= 1'b1;
      moves_q <= '0;
      ends_q  <= '0;
      ended_q <= 1'b0;
    end
  end

  // ---- each message's end -----------------------------------------------------------------------------
  end_t ending;
  logic ending_valid, ending_room;
  logic [$clog2(Depth):0] unused_ends;

  sync_fifo #(.W($bits(end_t)), .DEPTH(Depth)) u_ends (
    .clk, .rst,
    .s_data ({about_end_q, state}),
    .s_valid(ended_q),
    .s_ready(ending_room),
    .m_data (ending),
    .m_valid(ending_valid),
    .m_ready(leave && out.last),
    .level  (unused_ends)
  );

  assign m_axis_tvalid = waits && (!out.last || ending_valid);
  assign leave         = m_axis_tvalid && m_axis_tready;
  assign m_axis_tlast  = out.last;
  assign length        = ending.length;
  assign event_number  = ending.event_number;

  for (genvar i = 0; i < int'(Words); i++) begin : gen_word
    wire here = out.last && out.count == CountW'(i + 1);
    assign m_axis_tdata[64*i+:64] = {here ? ~ending.state : out.data[64*i+32+:32], out.data[64*i+:32]};
    assign m_axis_tkeep[8*i+:8]   = {8{CountW'(i) < out.count}};
  end

`ifndef SYNTHESIS
  a_room : assert property (@(posedge clk) disable iff (rst) ended_q |-> ending_room);
  a_place : assert property (@(posedge clk) disable iff (rst)
    s_valid && s_last |-> s_count != '0 && s_data[64*(32'(s_count)-1)+32+:32] == '0);
  a_full : assert property (@(posedge clk) disable iff (rst)
    s_valid && !s_last |-> 32'(s_count) == Words);
`endif
endmodule
