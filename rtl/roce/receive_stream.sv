// SPDX-License-Identifier: SHL-2.1
// Buffer between the packets of SENDs, with notices of WRITEs, and the stream to the user. Room is reserved before a
// packet is accepted, so the side of the network never waits for the user.
// Promise: packets leave whole, in order, each after the WRITEs that precede it have been answered by the memory; one
// whose WRITE has failed does not leave. `room`: the longest packet and all that is reserved have a place.
//
//   words, one packet after the other -> RAM ------------------> m_axis
//   end of a packet -> waits for its fence -> may leave, or not ---^
module receive_stream
  import penstock_pkg::*;
  import roce_read_pkg::*;
#(
  parameter  int unsigned DATA_W  = 64,
  parameter  int unsigned BYTES   = 16384,
  parameter  int unsigned PACKETS = 16,
  localparam int unsigned Lanes   = DATA_W / 8,
  localparam int unsigned LaneW   = $clog2(Lanes)
) (
  input  logic                clk,
  input  logic                rst,

  output logic                room,
  input  logic                reserve_valid,  // a packet with `room`
  input  logic                reserve_notice,
  input  logic [PayloadLenW-1:0] reserve_len,

  // words, taken at once, and what their packet is
  input  logic                s_valid,
  input  logic [DATA_W-1:0]   s_data,
  input  logic [LaneW-1:0]    s_last,         // lane
  input  logic                s_empty,
  input  logic                s_ends,         // of the packet
  input  logic                s_notice,
  input  placement_t          s_job,

  // WRITEs that were answered; whether the queue pair of a notice has lost one
  input  fence_t              written,
  output qp_t                 lost_qp,
  input  logic                lost,
  input  logic                closes,         // a queue pair is closed
  output logic                waits,          // a packet that was accepted before that waits for its fence

  output logic [DATA_W-1:0]   m_axis_tdata,
  output logic [Lanes-1:0]    m_axis_tkeep,
  output receive_user_t       m_axis_tuser,
  output logic                m_axis_tvalid,
  input  logic                m_axis_tready,
  output logic                m_axis_tlast
);
  localparam int unsigned Words       = BYTES / Lanes;
  localparam int unsigned PtrW        = $clog2(Words);
  localparam int unsigned MaxWords    = 4096 / Lanes;
  localparam int unsigned NoticeWords = (12 + Lanes - 1) / Lanes;
  localparam int unsigned WordW       = $clog2(MaxWords + 1);
  localparam int unsigned CountW      = $clog2(PACKETS) + 1;

  if (Words != 2 ** PtrW || Words < 2 * MaxWords) begin : gen_bad_bytes
    $fatal(1, "%m: BYTES %0d is not a power of two of at least two packets of 4096", BYTES);
  end

  typedef struct packed {
    receive_user_t    user;
    logic             drops;   // it does not leave
    logic             ends;    // its message
    logic             empty;
    logic [LaneW-1:0] last_lane;
    logic [WordW-1:0] words;
  } packet_t;
  typedef struct packed {
    packet_t packet;
    fence_t  fence;
  } fenced_t;

  // ---- room, from the acceptance of a packet until it has left -------------------------------------------
  logic [PtrW:0]     reserved_q;
  logic [CountW-1:0] packets_q, passing_q;  // that are here; that wait for their fence
  logic [CountW-1:0] earlier_q;             // ... since before a queue pair was closed
  logic [WordW-1:0]  reserve_words;
  packet_t           leaving;
  logic              leaves;     // the last word of a packet, or all words of one that is dropped
  logic              passes;     // its fence
  assign room          = reserved_q <= (PtrW + 1)'(Words - MaxWords) && packets_q != CountW'(PACKETS);
  assign reserve_words = reserve_notice ? WordW'(NoticeWords)
                       : reserve_len == '0 ? WordW'(1) : WordW'((reserve_len + PayloadLenW'(Lanes - 1)) >> LaneW);
  always_ff @(posedge clk) begin
    reserved_q <= reserved_q + (reserve_valid ? (PtrW + 1)'(reserve_words) : '0)
                  - (leaves ? (PtrW + 1)'(leaving.words) : '0);
    packets_q  <= packets_q + CountW'(reserve_valid) - CountW'(leaves);
    passing_q  <= passing_q + CountW'(reserve_valid) - CountW'(passes);
    if (closes) earlier_q <= passing_q + CountW'(reserve_valid) - CountW'(passes);
    else if (passes && earlier_q != '0) earlier_q <= earlier_q - 1'b1;
    if (rst) {reserved_q, packets_q, passing_q, earlier_q} <= '0;
  end

  // ---- words in; at its end a packet waits for its fence ---------------------------------------------------
  logic [PtrW-1:0]  head_q, tail_q;
  logic [WordW-1:0] words_q;
  fenced_t          ending, fenced;
  packet_t          passing;
  logic             fenced_valid, leaving_valid, unused_waiting_ready, unused_leaving_ready;
  fence_t           behind;
  logic [$clog2(PACKETS):0] unused_waiting, unused_leaving;
  assign ending = '{
    packet: '{
      user: '{
        starts: s_notice || s_job.starts, is_write: s_notice, has_imm: s_job.has_imm, imm: s_job.imm, qp: s_job.qp
      },
      drops: 1'b0, ends: s_notice || s_job.ends, empty: s_empty, last_lane: s_last, words: words_q + 1'b1
    },
    fence: s_job.fence
  };
  always_ff @(posedge clk) begin
    if (s_valid) begin
      head_q  <= head_q + 1'b1;
      words_q <= s_ends ? '0 : words_q + 1'b1;
    end
    if (rst) {head_q, words_q} <= '0;
  end
  sync_fifo #(.W($bits(fenced_t)), .DEPTH(PACKETS)) u_waiting (
    .clk, .rst,
    .s_data (ending),
    .s_valid(s_valid && s_ends),
    .s_ready(unused_waiting_ready),
    .m_data (fenced),
    .m_valid(fenced_valid),
    .m_ready(passes),
    .level  (unused_waiting)
  );
  assign behind  = written - fenced.fence;
  assign waits   = earlier_q != '0;
  assign passes  = fenced_valid && !behind[$bits(fence_t)-1];
  assign lost_qp = fenced.packet.user.qp;
  always_comb begin
    passing       = fenced.packet;
    passing.drops = fenced.packet.user.is_write && lost;
  end
  sync_fifo #(.W($bits(packet_t)), .DEPTH(PACKETS)) u_leaving (
    .clk, .rst,
    .s_data (passing),
    .s_valid(passes),
    .s_ready(unused_leaving_ready),
    .m_data (leaving),
    .m_valid(leaving_valid),
    .m_ready(leaves),
    .level  (unused_leaving)
  );

  // ---- words out: the RAM's output is that of the stream ----------------------------------------------------
  logic fetches, drops, at_end;
  logic [WordW-1:0] word_q;
  assign drops   = leaving_valid && leaving.drops;
  assign fetches = leaving_valid && !leaving.drops && (!m_axis_tvalid || m_axis_tready);
  assign at_end  = word_q + 1'b1 == leaving.words;
  assign leaves  = drops || (fetches && at_end);
  ram_sdp #(.W(DATA_W), .DEPTH(Words)) u_words (
    .clk,
    .wr_en  (s_valid),
    .wr_addr(head_q),
    .wr_data(s_data),
    .rd_en  (fetches),
    .rd_addr(tail_q),
    .rd_data(m_axis_tdata)
  );
  always_ff @(posedge clk) begin
    if (fetches) begin
      word_q       <= at_end ? '0 : word_q + 1'b1;
      m_axis_tuser <= leaving.user;
      m_axis_tlast <= at_end && leaving.ends;
      m_axis_tkeep <= !at_end ? '1 : leaving.empty ? '0 : {Lanes{1'b1}} >> (LaneW'(Lanes - 1) - leaving.last_lane);
      // Of a message's start only the first beat, of its immediate only the last.
      m_axis_tuser.starts  <= leaving.user.starts && word_q == '0;
      m_axis_tuser.has_imm <= leaving.user.has_imm && at_end;
    end
    if (fetches) m_axis_tvalid <= 1'b1;
    else if (m_axis_tready) m_axis_tvalid <= 1'b0;
    if (drops) tail_q <= tail_q + PtrW'(leaving.words);
    else if (fetches) tail_q <= tail_q + 1'b1;
    if (rst) begin
      m_axis_tvalid <= 1'b0;
      {tail_q, word_q} <= '0;
    end
  end

  wire unused = &{1'b0, behind, s_job, unused_waiting, unused_leaving, unused_waiting_ready, unused_leaving_ready};

`ifndef SYNTHESIS
  a_reserved : assert property (@(posedge clk) disable iff (rst) reserve_valid |-> room);
  a_room : assert property (@(posedge clk) disable iff (rst) 32'(reserved_q) <= Words);
  a_waiting : assert property (@(posedge clk) disable iff (rst) s_valid && s_ends |-> unused_waiting_ready);
  a_leaving : assert property (@(posedge clk) disable iff (rst) passes |-> unused_leaving_ready);
  a_hold : assert property (@(posedge clk) disable iff (rst)
    m_axis_tvalid && !m_axis_tready |=> m_axis_tvalid && $stable({m_axis_tdata, m_axis_tkeep, m_axis_tlast, m_axis_tuser}));
`endif
endmodule
