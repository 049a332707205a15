// SPDX-License-Identifier: SHL-2.1
// Keeps the payloads of packets from their first beat until it is decided what becomes of them. Only SENDs and WRITEs
// are kept; each as its frame's beats from the one with the end of the BTH on.
// Promise: frames leave in the order of their arrival, each once, those that were not accepted, too. A frame is kept if
// there is room for the longest one and FRAMES are not exceeded, else it leaves no trace.
//
//   s_axis -> words of a frame -> (8 cycles after tlast) accepted? -> m_frame, words by their place in it
module receive_store
  import penstock_pkg::*;
#(
  parameter  int unsigned DATA_W   = 64,
  parameter  int unsigned BYTES    = 16384,
  parameter  int unsigned FRAMES   = 16,
  localparam int unsigned Bytes    = DATA_W / 8,
  localparam int unsigned First    = (ip_pkg::EthBytes + 40) / Bytes,  // beat; 54 bytes of headers on all packets
  localparam int unsigned MaxWords = (54 + 20 + 4096 + Bytes - 1) / Bytes - First,
  localparam int unsigned Words    = BYTES / Bytes,
  localparam int unsigned PtrW     = $clog2(Words)
) (
  input  logic              clk,
  input  logic              rst,
  input  logic [DATA_W-1:0] s_axis_tdata,
  input  logic              s_axis_tvalid,
  input  logic              s_axis_tlast,

  // 8 cycles after a frame's tlast
  output logic              kept,        // it was kept,
  input  logic              accepted,    // and its packet has become a request

  // the oldest frame
  output logic              m_valid,
  output logic              m_accepted,
  input  logic              m_taken,
  input  logic              rd_en,
  input  logic [PtrW-1:0]   rd_word,     // of it, modulo Words
  output logic [DATA_W-1:0] rd_data      // a cycle later
);
  localparam int unsigned WordW     = $clog2(MaxWords + 1);
  localparam int unsigned CountW    = $clog2(FRAMES) + 1;
  localparam int unsigned Verdict   = 8;  // cycles from tlast to the request
  localparam int unsigned PortByte  = ip_pkg::EthBytes + 22;
  localparam int unsigned OpByte    = ip_pkg::EthBytes + 28;
  localparam int unsigned BeatW     = $clog2(First + 2);

  if (Words != 2 ** PtrW || Words < 2 * MaxWords) begin : gen_bad_bytes
    $fatal(1, "%m: BYTES %0d is not a power of two of at least two of the longest packets", BYTES);
  end

  // ---- which frames: RoCEv2 to its port, SEND or WRITE -----------------------------------------------
  logic [BeatW-1:0] beat_q;
  logic is_port, is_message;
  if (DATA_W == 64) begin : gen_narrow
    logic is_port_q, is_message_q;
    assign {is_port, is_message} = {is_port_q, is_message_q};
    always_ff @(posedge clk) begin
      if (s_axis_tvalid && beat_q == BeatW'(PortByte / Bytes)) is_port_q <= ports(s_axis_tdata);
      if (s_axis_tvalid && beat_q == BeatW'(OpByte / Bytes)) is_message_q <= messages(s_axis_tdata);
    end
  end else begin : gen_wide
    assign is_port    = ports(s_axis_tdata);
    assign is_message = messages(s_axis_tdata);
  end

  // verilator lint_off UNUSEDSIGNAL
  // (the rest of the beat)
  function automatic logic ports(logic [DATA_W-1:0] beat);
    return {beat[8*(PortByte%Bytes)+:8], beat[8*((PortByte+1)%Bytes)+:8]} == roce_pkg::UdpPort;
  endfunction
  function automatic logic messages(logic [DATA_W-1:0] beat);
    return beat[8*(OpByte%Bytes)+:8] < roce_read_pkg::OpcodeReadRequest;
  endfunction
  // verilator lint_on UNUSEDSIGNAL

  // ---- words in ----------------------------------------------------------------------------------------
  logic begins, keeps, keeping_q, frame_ends;
  logic [PtrW-1:0]   head_q, tail_q;
  logic [PtrW:0]     used_q;    // words, of frames that are here
  logic [CountW-1:0] frames_q;
  logic [WordW-1:0]  words_q, m_words;
  logic [WordW-1:0]  words;     // with this beat

  assign begins     = beat_q == BeatW'(First) && is_port && is_message
                    && used_q <= (PtrW + 1)'(Words - MaxWords) && frames_q != CountW'(FRAMES);
  assign keeps      = s_axis_tvalid && (begins || (keeping_q && words_q != WordW'(MaxWords)));
  assign frame_ends = s_axis_tvalid && s_axis_tlast;
  assign words      = (begins ? '0 : words_q) + WordW'(keeps);

  typedef struct packed {
    logic             kept;
    logic [WordW-1:0] words;
  } frame_t;
  frame_t line_q [1:Verdict];

  always_ff @(posedge clk) begin
    if (s_axis_tvalid) begin
      beat_q    <= s_axis_tlast ? '0 : beat_q + BeatW'(beat_q != BeatW'(First + 1));
      keeping_q <= (begins || keeping_q) && !s_axis_tlast;
      words_q   <= words;
    end
    if (keeps) head_q <= head_q + 1'b1;
    used_q   <= used_q + (PtrW + 1)'(keeps) - (m_taken ? (PtrW + 1)'(m_words) : '0);
    frames_q <= frames_q + CountW'(s_axis_tvalid && begins) - CountW'(m_taken);
    line_q[1] <= '{kept: frame_ends && (begins || keeping_q), words: words};
    for (int unsigned i = 2; i <= Verdict; i++) line_q[i] <= line_q[i-1];
    if (m_taken) tail_q <= tail_q + PtrW'(m_words);
    if (rst) begin
      {beat_q, keeping_q, head_q, tail_q, used_q, frames_q} <= '0;
      for (int unsigned i = 1; i <= Verdict; i++) line_q[i].kept <= 1'b0;
    end
  end

  // ---- frames out ----------------------------------------------------------------------------------------
  logic frames_room;
  logic [$clog2(FRAMES):0] unused_level;
  assign kept = line_q[Verdict].kept;
  sync_fifo #(.W(1 + WordW), .DEPTH(FRAMES)) u_frames (
    .clk, .rst,
    .s_data ({accepted, line_q[Verdict].words}),
    .s_valid(kept),
    .s_ready(frames_room),
    .m_data ({m_accepted, m_words}),
    .m_valid(m_valid),
    .m_ready(m_taken),
    .level  (unused_level)
  );
  ram_sdp #(.W(DATA_W), .DEPTH(Words)) u_words (
    .clk,
    .wr_en  (keeps),
    .wr_addr(head_q),
    .wr_data(s_axis_tdata),
    .rd_en,
    .rd_addr(tail_q + rd_word),
    .rd_data
  );

`ifndef SYNTHESIS
  a_room : assert property (@(posedge clk) disable iff (rst) kept |-> frames_room);
  a_used : assert property (@(posedge clk) disable iff (rst) 32'(used_q) <= Words);
  a_here : assert property (@(posedge clk) disable iff (rst) accepted |-> kept);
`endif
endmodule
