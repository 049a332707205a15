// SPDX-License-Identifier: SHL-2.1
// Answers ICMP echo requests (ping) with their own payload, up to the jumbo MTU.
// Promise: the reply's checksum is made of the request's by the difference of the type field alone
// (RFC 1624 equation 3), so it is right exactly if the request's was; a request without room is dropped
// and counted (RFC 792; RFC 1122 3.2.2.6: identifier, sequence and TOS return unchanged).
module icmp_echo
  import services_pkg::*;
#(
  parameter int unsigned STORE_BYTES = 16384,  // of payload
  parameter int unsigned REQUESTS    = 8       // that wait for their reply
) (
  input  logic clk,
  input  logic rst,

  input  logic        enable,

  // from service_parser
  input  logic [63:0] payload_data,
  input  logic        payload_valid,
  input  logic        payload_last,
  input  logic [2:0]  payload_tail,
  input  logic        done,
  input  kind_e       kind,
  // verilator lint_off UNUSEDSIGNAL
  input  ip_head_t    head,
  // verilator lint_on UNUSEDSIGNAL
  input  logic [13:0] payload_bytes,

  // to service_framer
  output tx_req_t     req,
  output logic        req_valid,
  input  logic        req_ready,
  output logic [63:0] m_axis_tdata,
  output logic [7:0]  m_axis_tkeep,
  output logic        m_axis_tvalid,
  input  logic        m_axis_tready,
  output logic        m_axis_tlast,

  output logic stat_replies,
  output logic stat_dropped
);
  typedef struct packed {
    logic [47:0] mac;
    logic [31:0] ip;
    logic [7:0]  tos;
    logic [15:0] checksum;
    logic [31:0] id_sequence;
    logic [13:0] payload_bytes;
  } echo_t;

  typedef struct packed {
    logic        last;
    logic [2:0]  tail;
    logic [63:0] data;
  } word_t;

  // ---- the request ----------------------------------------------------------------------------------
  // verilator lint_off UNUSEDSIGNAL
  icmp_t asked;
  // verilator lint_on UNUSEDSIGNAL
  icmp_t answer;
  echo_t wr_echo, echo;
  logic  wanted, accept, room, lost;
  word_t wr_word, rd_word;

  assign wanted = done && kind == KindEcho && enable;
  assign accept = wanted && room && !lost;
  assign asked  = head.l4;

  // HC' = ~(~HC + ~m + m') with m = 0800, m' = 0000. Where that is 0 the words may all be 0 too, and then
  // only FFFF is right; FFFF, the other zero of one's complement, is right in both cases.
  logic [15:0] not_checksum, not_kind, checksum;
  assign not_checksum = ~asked.checksum;
  assign not_kind     = ~{IcmpEchoRequest, 8'h00};
  assign checksum     = ~fold32(32'(not_checksum) + 32'(not_kind));
  assign wr_echo      = '{
    mac: head.eth.src, ip: head.ip.src, tos: head.ip.tos, checksum: checksum == '0 ? 16'hFFFF : checksum,
    id_sequence: asked.id_sequence, payload_bytes: payload_bytes
  };
  assign wr_word = '{last: payload_last, tail: payload_tail, data: payload_data};

  frame_store #(
    .W    ($bits(word_t)),
    .DEPTH(STORE_BYTES / 8)
  ) u_store (
    .clk, .rst,
    .wr_data (wr_word),
    .wr_valid(payload_valid),
    .commit  (accept),
    .drop    (done && !accept),
    .full    (),
    .lost    (lost),
    .level   (),
    .rd_data (rd_word),
    .rd_valid(m_axis_tvalid),
    .rd_ready(m_axis_tready)
  );

  block_fifo #(
    .W    ($bits(echo_t)),
    .DEPTH(REQUESTS)
  ) u_echoes (
    .clk, .rst,
    .s_data (wr_echo),
    .s_valid(accept),
    .s_ready(room),
    .m_data (echo),
    .m_valid(req_valid),
    .m_ready(req_ready),
    .level  ()
  );

  // ---- the reply ------------------------------------------------------------------------------------
  assign answer = '{kind: '0, code: '0, checksum: echo.checksum, id_sequence: echo.id_sequence};
  assign req    = '{
    kind: SendEcho, dst_mac: echo.mac, ip: echo.ip, tos: echo.tos, l4: answer, payload_bytes: echo.payload_bytes
  };

  assign m_axis_tdata = rd_word.data;
  assign m_axis_tlast = rd_word.last;
  assign m_axis_tkeep = rd_word.last ? lanes(rd_word.tail) : '1;

  always_ff @(posedge clk) begin
    stat_replies <= req_valid && req_ready;
    stat_dropped <= wanted && !accept;
    if (rst) {stat_replies, stat_dropped} <= '0;
  end
endmodule
