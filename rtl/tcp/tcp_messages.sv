// SPDX-License-Identifier: SHL-2.1
// Converts each message to bytes of a stream: with `framed`, its length precedes it and zeros pad it to 8 bytes
// (docs/fragments.md, "In a TCP stream"), so that a reader finds the next one; without, only its bytes.
// Promise: the stream gets the number of bytes in the descriptor, for any length of the payload: missing bytes are
// zeros, surplus bytes are dropped, and the message is reported as cut. A message that cannot be sent is drained and
// reported.
//
//   framed:   | length | length ^ "PSTL" | message ... | zeros |     message bytes move by 8
module tcp_messages
  import penstock_pkg::*;
  import tcp_pkg::*;
#(
  parameter  int unsigned DATA_W    = 64,
  parameter  int unsigned N_STREAMS = 4,
  localparam int unsigned Bytes     = DATA_W / 8
) (
  input  logic clk,
  input  logic rst,
  input  logic framed,
  input  logic [N_STREAMS-1:0] room,  // one more message of the stream may wait for its completion

  // descriptors (desc_t; qp is the stream) and payloads in the same order
  input  logic [175:0]         s_axis_desc_tdata,
  input  logic                 s_axis_desc_tvalid,
  output logic                 s_axis_desc_tready,
  input  logic [DATA_W-1:0]    s_axis_data_tdata,
  input  logic [Bytes-1:0]     s_axis_data_tkeep,
  input  logic                 s_axis_data_tvalid,
  output logic                 s_axis_data_tready,
  input  logic                 s_axis_data_tlast,

  // to tcp_ring_writer
  output tcp_stream_t          m_stream,
  output logic [DATA_W-1:0]    m_axis_tdata,
  output logic [Bytes-1:0]     m_axis_tkeep,
  output logic                 m_axis_tvalid,
  input  logic                 m_axis_tready,
  output logic                 m_axis_tlast,

  // each message once, in order, after its last byte
  output tcp_message_t         message,
  output logic                 message_valid,
  input  logic                 message_ready
);
  localparam int unsigned ByteW      = $clog2(Bytes);
  localparam int unsigned Words      = Bytes / 8;
  localparam logic [31:0] Magic      = 32'h4C545350;  // "PSTL"
  localparam logic [31:0] LongestLen = 32'h8000_0000;

  typedef logic [ByteW:0] count_t;

  // StBody: header and message; StTail: its last word; StDrain: payload that is dropped; StReport: its outcome.
  typedef enum logic [2:0] {StIdle, StBody, StTail, StDrain, StReport} state_e;
  state_e state_q, state_d;

  // verilator lint_off UNUSEDSIGNAL
  desc_t next_q, desc_q;  // addresses and immediates are of RDMA alone
  // verilator lint_on UNUSEDSIGNAL
  logic next_valid_q, checked_q, begins;
  tcp_verdict_e next_verdict_q;
  logic [31:0] left_q;
  logic [63:0] carry_q;  // of the stream's next word: header, then the last word of the beat before
  logic framed_q, ended_q, drains_q;
  tcp_verdict_e verdict_q, refusal;

  // ---- the next message, checked while the one before it passes: on a full line there is no cycle for it between them
  always_comb begin
    refusal = TcpGood;
    if (next_q.length == '0 || next_q.length > LongestLen) refusal = TcpBad;
    if (32'(next_q.qp) >= N_STREAMS || next_q.by_event) refusal = TcpNowhere;
  end

  logic has_room;
  if (N_STREAMS > 1) begin : gen_many
    assign has_room = refusal == TcpNowhere || room[next_q.qp[$clog2(N_STREAMS)-1:0]];
  end else begin : gen_one
    assign has_room = refusal == TcpNowhere || room[0];
  end

  assign begins             = checked_q && (state_q == StIdle || (state_q == StReport && message_ready));
  assign s_axis_desc_tready = !next_valid_q;
  always_ff @(posedge clk) begin
    if (s_axis_desc_tready) next_q <= s_axis_desc_tdata;
    if (s_axis_desc_tready) next_valid_q <= s_axis_desc_tvalid;
    next_verdict_q <= refusal;
    if (next_valid_q && has_room) checked_q <= 1'b1;
    if (begins) begin
      next_valid_q <= 1'b0;
      checked_q    <= 1'b0;
    end
    if (rst) begin
      next_valid_q <= 1'b0;
      checked_q    <= 1'b0;
    end
  end

  // ---- a beat of the message ----------------------------------------------------------------------------------------
  logic [DATA_W-1:0] beat;
  count_t needed;
  logic [Bytes-1:0] expected;
  logic final_beat, offered, moves, fits;  // fits: descriptor and payload agree, to the byte
  assign final_beat = left_q <= 32'(Bytes);
  assign needed      = final_beat ? count_t'(left_q) : count_t'(Bytes);
  assign offered    = ended_q || s_axis_data_tvalid;
  assign fits       = !ended_q && s_axis_data_tkeep == expected && (s_axis_data_tlast || !final_beat);
  always_comb
    for (int unsigned i = 0; i < Bytes; i++) begin
      expected[i]  = count_t'(i) < needed;
      beat[8*i+:8] = s_axis_data_tdata[8*i+:8] & {8{!ended_q && s_axis_data_tkeep[i] && expected[i]}};
    end

  // ---- out, through a register: the ring writer turns the bytes to their places -------------------------------------
  typedef struct packed {
    tcp_stream_t       stream;
    logic              last;
    logic [Bytes-1:0]  keep;
    logic [DATA_W-1:0] data;
  } out_t;
  out_t out_d, out;
  logic out_valid, out_ready;
  logic [127+DATA_W:0] shifted;
  count_t bytes_out;
  logic spills;  // the final beat's last word does not fit after the carried one
  assign spills  = framed_q && needed > count_t'(Bytes - 8);
  assign shifted = {64'd0, beat, carry_q};
  always_comb begin
    bytes_out = count_t'(Bytes);
    if (state_q == StTail) bytes_out = count_t'(8);
    else if (final_beat && !framed_q) bytes_out = needed;
    else if (final_beat && !spills) bytes_out = {needed[ByteW:3] + (ByteW - 2)'(|needed[2:0]) + (ByteW - 2)'(1), 3'b0};
    out_d.stream = desc_q.qp[$bits(tcp_stream_t)-1:0];
    out_d.last   = state_q == StTail || (final_beat && !spills);
    out_d.data   = framed_q ? shifted[DATA_W-1:0] : beat;
    for (int unsigned i = 0; i < Bytes; i++) out_d.keep[i] = count_t'(i) < bytes_out;
  end
  assign out_valid = (state_q == StBody && offered) || state_q == StTail;
  assign moves     = out_valid && out_ready;

  axis_register #(.W($bits(out_t))) u_out (
    .clk, .rst,
    .s_axis_tdata (out_d),
    .s_axis_tvalid(out_valid),
    .s_axis_tready(out_ready),
    .m_axis_tdata (out),
    .m_axis_tvalid,
    .m_axis_tready
  );
  assign m_stream     = out.stream;
  assign m_axis_tdata = out.data;
  assign m_axis_tkeep = out.keep;
  assign m_axis_tlast = out.last;

  assign s_axis_data_tready = state_q == StDrain || (state_q == StBody && !ended_q && out_ready);
  assign message            = '{verdict: verdict_q, tag: desc_q.tag, qp: desc_q.qp};
  assign message_valid      = state_q == StReport;

  always_comb begin
    state_d = state_q;
    unique case (state_q)
      StIdle: ;
      StBody:
        if (moves && final_beat) begin
          if (spills) state_d = StTail;
          else state_d = !ended_q && !s_axis_data_tlast ? StDrain : StReport;
        end
      StTail: if (moves) state_d = drains_q ? StDrain : StReport;
      StDrain: if (s_axis_data_tvalid && s_axis_data_tlast) state_d = StReport;
      default: if (message_ready) state_d = StIdle;  // StReport
    endcase
    if (begins) state_d = next_verdict_q == TcpGood ? StBody : next_q.length == '0 ? StReport : StDrain;
  end

  always_ff @(posedge clk) begin
    state_q <= state_d;
    if (begins) begin
      desc_q    <= next_q;
      verdict_q <= next_verdict_q;
      left_q    <= next_q.length;
      framed_q  <= framed;
      carry_q   <= {next_q.length ^ Magic, next_q.length};
      ended_q   <= 1'b0;
      drains_q  <= 1'b0;
    end
    if (state_q == StBody && moves) begin
      left_q   <= left_q - 32'(needed);
      carry_q  <= beat[DATA_W-1-:64];
      drains_q <= !ended_q && !s_axis_data_tlast;
      if (!ended_q && s_axis_data_tlast) ended_q <= 1'b1;
      if (!fits) verdict_q <= TcpCut;
    end
    if (rst) state_q <= StIdle;
  end

  wire unused = &{1'b0, shifted, Words};

`ifndef SYNTHESIS
  a_hold : assert property (@(posedge clk) disable iff (rst)
    m_axis_tvalid && !m_axis_tready |=> m_axis_tvalid && $stable({m_axis_tdata, m_axis_tkeep, m_axis_tlast}));
`endif
endmodule
