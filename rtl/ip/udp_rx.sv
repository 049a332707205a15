// SPDX-License-Identifier: SHL-2.1
// Sorts the datagrams that service_parser found right by their port: those for IPbus, and messages of 64 bytes
// for the connection manager, a stream each. The sender's address and port go along, for the reply.
// Promise: a datagram is handed on whole or not at all; without room it is dropped and counted (RFC 768).
module udp_rx
  import services_pkg::*;
#(
  parameter int unsigned STORE_BYTES = 16384,  // of IPbus requests
  parameter int unsigned DATAGRAMS   = 16,     // of IPbus that wait
  parameter int unsigned MESSAGES    = 4       // of the connection manager that wait
) (
  input  logic clk,
  input  logic rst,

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

  output logic [63:0] m_axis_ipbus_tdata,
  output logic [7:0]  m_axis_ipbus_tkeep,
  output logic        m_axis_ipbus_tvalid,
  input  logic        m_axis_ipbus_tready,
  output logic        m_axis_ipbus_tlast,
  output udp_peer_t   m_axis_ipbus_tuser,     // the sender, with every beat

  output logic [63:0] m_axis_cm_tdata,        // whole beats only
  output logic        m_axis_cm_tvalid,
  input  logic        m_axis_cm_tready,
  output logic        m_axis_cm_tlast,
  output logic [31:0] cm_rx_ip,               // with every beat
  output logic [15:0] cm_rx_sport,
  output logic [15:0] cm_rx_dport,

  output logic stat_unserved,
  output logic stat_dropped,
  output logic stat_cm_malformed
);
  import ip_pkg::*;

  // ---- whose it is --------------------------------------------------------------------------------------
  // verilator lint_off UNUSEDSIGNAL
  udp_hdr_t udp;
  // verilator lint_on UNUSEDSIGNAL
  logic for_ipbus, for_cm, ipbus_room, cm_room, lost, cm_lost, ipbus_accept, cm_accept;

  assign udp          = head.l4;
  assign for_ipbus    = done && kind == KindUdp && udp.dport == PortIpbus;
  assign for_cm       = done && kind == KindUdp && (udp.dport == PortCm || udp.dport == PortCmReply);
  assign ipbus_accept = for_ipbus && ipbus_room && !lost && payload_bytes != '0;
  assign cm_accept    = for_cm && cm_room && !cm_lost && payload_bytes == 14'(CmBytes);

  always_ff @(posedge clk) begin
    stat_unserved     <= done && kind == KindUdp && !for_ipbus && !for_cm;
    stat_dropped      <= (for_ipbus && !ipbus_accept) || (for_cm && payload_bytes == 14'(CmBytes) && !cm_accept);
    stat_cm_malformed <= for_cm && payload_bytes != 14'(CmBytes);
    if (rst) {stat_unserved, stat_dropped, stat_cm_malformed} <= '0;
  end

  // ---- IPbus ----------------------------------------------------------------------------------------------
  typedef struct packed {
    logic        last;
    logic [2:0]  tail;
    logic [63:0] data;
  } word_t;

  word_t     wr_word, rd_word;
  udp_peer_t sender;
  logic      peer_valid;

  assign wr_word = '{last: payload_last, tail: payload_tail, data: payload_data};
  assign sender  = '{mac: head.eth.src, ip: head.ip.src, port: udp.sport};

  frame_store #(
    .W    ($bits(word_t)),
    .DEPTH(STORE_BYTES / 8)
  ) u_store (
    .clk, .rst,
    .wr_data (wr_word),
    .wr_valid(payload_valid),
    .commit  (ipbus_accept),
    .drop    (done && !ipbus_accept),
    .full    (),
    .lost    (lost),
    .level   (),
    .rd_data (rd_word),
    .rd_valid(m_axis_ipbus_tvalid),
    .rd_ready(m_axis_ipbus_tready)
  );

  block_fifo #(
    .W    ($bits(udp_peer_t)),
    .DEPTH(DATAGRAMS)
  ) u_peers (
    .clk, .rst,
    .s_data (sender),
    .s_valid(ipbus_accept),
    .s_ready(ipbus_room),
    .m_data (m_axis_ipbus_tuser),
    .m_valid(peer_valid),
    .m_ready(m_axis_ipbus_tvalid && m_axis_ipbus_tready && m_axis_ipbus_tlast),
    .level  ()
  );

  assign m_axis_ipbus_tdata = rd_word.data;
  assign m_axis_ipbus_tlast = rd_word.last;
  assign m_axis_ipbus_tkeep = rd_word.last ? lanes(rd_word.tail) : '1;

  // ---- connection manager -----------------------------------------------------------------------------------
  logic cm_peer_valid;

  frame_store #(
    .W    (65),
    .DEPTH(MESSAGES * CmBytes / 8)
  ) u_cm_store (
    .clk, .rst,
    .wr_data ({payload_last, payload_data}),
    .wr_valid(payload_valid),
    .commit  (cm_accept),
    .drop    (done && !cm_accept),
    .full    (),
    .lost    (cm_lost),
    .level   (),
    .rd_data ({m_axis_cm_tlast, m_axis_cm_tdata}),
    .rd_valid(m_axis_cm_tvalid),
    .rd_ready(m_axis_cm_tready)
  );

  block_fifo #(
    .W    (32 + 16 + 16),
    .DEPTH(MESSAGES)
  ) u_cm_peers (
    .clk, .rst,
    .s_data ({head.ip.src, udp.sport, udp.dport}),
    .s_valid(cm_accept),
    .s_ready(cm_room),
    .m_data ({cm_rx_ip, cm_rx_sport, cm_rx_dport}),
    .m_valid(cm_peer_valid),
    .m_ready(m_axis_cm_tvalid && m_axis_cm_tready && m_axis_cm_tlast),
    .level  ()
  );

`ifndef SYNTHESIS
  a_in_step : assert property (@(posedge clk) disable iff (rst) m_axis_ipbus_tvalid |-> peer_valid)
    else $error("%m: a datagram of IPbus without its sender");
  a_cm_in_step : assert property (@(posedge clk) disable iff (rst) m_axis_cm_tvalid |-> cm_peer_valid)
    else $error("%m: a message without its sender");
`endif
  wire unused = &{1'b0, peer_valid, cm_peer_valid};
endmodule
