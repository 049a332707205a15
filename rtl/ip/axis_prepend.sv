// SPDX-License-Identifier: SHL-2.1
// Puts a header in front of a payload stream and zeros behind it: one frame per prefix.
// Promise: a frame begins once its payload is offered and then moves one beat a cycle as long as the
// payload does not pause; the next frame's first beat comes in the cycle behind the last one's.
// Latency: prefix taken -> first beat offered, 2 cycles.
//
//   | prefix 14 + 4 * prefix_words | payload_bytes from s_axis | zeros up to frame_bytes |
//
// An IPv4 header behind an Ethernet header always ends at 2 modulo 4; that leaves the shifter
// DATA_W/32 positions instead of DATA_W/8. Prefix bytes behind its end must be zero.
module axis_prepend #(
  parameter int unsigned DATA_W           = 64,
  parameter int unsigned PREFIX_BYTES_MAX = 74,
  parameter int unsigned LENGTH_W         = 14,
  localparam int unsigned Bytes           = DATA_W / 8
) (
  input  logic clk,
  input  logic rst,

  input  logic [8*PREFIX_BYTES_MAX-1:0] prefix,         // first byte on the wire in [7:0]
  input  logic [5:0]                    prefix_words,
  input  logic [LENGTH_W-1:0]           payload_bytes,  // 0: s_axis brings no beat
  input  logic [LENGTH_W-1:0]           frame_bytes,    // prefix + payload + zeros
  input  logic                          prefix_valid,
  output logic                          prefix_ready,

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
  localparam int unsigned ByteW       = $clog2(Bytes);
  localparam int unsigned BeatW       = LENGTH_W - ByteW;
  localparam int unsigned PrefixBeats = (PREFIX_BYTES_MAX + Bytes - 1) / Bytes;
  localparam int unsigned PrefixW     = PrefixBeats * DATA_W;

  if (DATA_W != 64 && DATA_W != 512) begin : g_bad_width
    $fatal(1, "%m: DATA_W = %0d, must be 64 or 512", DATA_W);
  end
  if (PREFIX_BYTES_MAX > 14 + 4 * 63) begin : g_bad_prefix
    $fatal(1, "%m: PREFIX_BYTES_MAX = %0d, must not exceed 266", PREFIX_BYTES_MAX);
  end

  // ---- the frame being sent -------------------------------------------------------------------
  logic               busy_q;
  logic               first_q;          // no beat of it has left yet
  logic [PrefixW-1:0] prefix_q;         // what is left of the prefix, next beat in the low lanes
  logic [8:0]         prefix_left_q;    // beats made of prefix alone
  logic [BeatW-1:0]   payload_left_q;   // payload beats still to be taken
  logic [BeatW-1:0]   frame_left_q;     // beats behind this one
  logic [ByteW-1:0]   tail_q;           // bytes of the last beat, 0 = all
  logic [ByteW-3:0]   shift_q;          // payload starts in lane 2 + 4 * shift
  logic [DATA_W-1:0]  carry_q;          // upper payload bytes that wait for the next beat

  logic beat_free, has_payload, wants_payload, step, last;
  assign beat_free     = m_axis_tready || !m_axis_tvalid;
  assign has_payload   = payload_left_q != 0;
  assign wants_payload = has_payload && prefix_left_q == 0;
  assign step          = busy_q && beat_free
                      && (s_axis_tvalid || !(wants_payload || (has_payload && first_q)));
  assign last          = frame_left_q == 0;
  assign s_axis_tready = busy_q && beat_free && wants_payload;
  assign prefix_ready  = !busy_q || (step && last);

  logic [8:0] prefix_bytes;
  assign prefix_bytes = 9'd14 + {1'b0, prefix_words, 2'b00};

  logic [BeatW-1:0] frame_last_beat, payload_beats;
  assign frame_last_beat = BeatW'((frame_bytes - 1'b1) >> ByteW);
  assign payload_beats   = BeatW'((payload_bytes + LENGTH_W'(Bytes - 1)) >> ByteW);

  always_ff @(posedge clk) begin
    if (prefix_valid && prefix_ready) begin
      busy_q         <= 1'b1;
      first_q        <= 1'b1;
      prefix_q       <= PrefixW'(prefix);
      prefix_left_q  <= prefix_bytes >> ByteW;
      shift_q        <= prefix_bytes[ByteW-1:2];
      payload_left_q <= payload_beats;
      frame_left_q   <= frame_last_beat;
      tail_q         <= frame_bytes[ByteW-1:0];
    end else if (step) begin
      busy_q       <= !last;
      first_q      <= 1'b0;
      prefix_q     <= prefix_q >> DATA_W;
      frame_left_q <= frame_left_q - 1'b1;
      if (prefix_left_q != 0) prefix_left_q <= prefix_left_q - 1'b1;
      else if (wants_payload) payload_left_q <= payload_left_q - 1'b1;
    end
    if (rst) busy_q <= 1'b0;
  end

  // ---- the payload moves up by 2 + 4 * shift lanes; what falls out is carried ------------------
  logic [DATA_W-1:0]   payload;
  logic [2*DATA_W-1:0] moved;
  always_comb begin
    payload = '0;
    if (wants_payload) begin
      for (int i = 0; i < int'(Bytes); i++) payload[8*i+:8] = s_axis_tdata[8*i+:8] & {8{s_axis_tkeep[i]}};
    end
    moved = (2*DATA_W)'({payload, 16'h0}) << {shift_q, 5'b0};
  end

  always_ff @(posedge clk) begin
    if (step) carry_q <= last ? '0 : moved[DATA_W+:DATA_W];
    if (rst) carry_q <= '0;
  end

  // ---- the beat offered -----------------------------------------------------------------------
  always_ff @(posedge clk) begin
    if (step) begin
      m_axis_tdata <= prefix_q[DATA_W-1:0] | carry_q | moved[DATA_W-1:0];
      m_axis_tkeep <= last && tail_q != 0 ? ~({Bytes{1'b1}} << tail_q) : {Bytes{1'b1}};
      m_axis_tlast <= last;
    end
    if (beat_free) m_axis_tvalid <= step;
    if (rst) m_axis_tvalid <= 1'b0;
  end

`ifndef SYNTHESIS
  // A valid beat waits unchanged until it is taken (AMBA AXI-Stream 2.2.1).
  a_hold : assert property (@(posedge clk) disable iff (rst)
    m_axis_tvalid && !m_axis_tready
    |=> m_axis_tvalid && $stable({m_axis_tdata, m_axis_tkeep, m_axis_tlast}));
  // The stream ends where payload_bytes says.
  a_payload_length : assert property (@(posedge clk) disable iff (rst)
    s_axis_tvalid && s_axis_tready |-> s_axis_tlast == (payload_left_q == 1))
    else $error("%m: payload stream and payload_bytes disagree, %0d beats left", payload_left_q);
  a_fits : assert property (@(posedge clk) disable iff (rst)
    prefix_valid |-> 32'(frame_bytes) >= 32'(payload_bytes) + 32'(prefix_bytes)
                     && 32'(prefix_bytes) <= PREFIX_BYTES_MAX)
    else $error("%m: prefix of %0d and payload of %0d bytes do not fit", prefix_bytes, payload_bytes);
`endif
endmodule
