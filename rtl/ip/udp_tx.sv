// SPDX-License-Identifier: SHL-2.1
// Turns payload streams into UDP datagrams with their checksum, which stands in front of the payload:
// so a datagram is stored whole while it is summed, and leaves when its header can be written (RFC 768).
// Promise: order is kept, nothing is lost; the request carries the payload's sum, the framer adds the headers'.
module udp_tx
  import services_pkg::*;
#(
  parameter int unsigned STORE_BYTES = 4096,  // more than the longest payload
  parameter int unsigned DATAGRAMS   = 4      // that wait
) (
  input  logic clk,
  input  logic rst,

  input  udp_peer_t   peer,        // with every beat of the datagram
  input  logic [15:0] sport,
  input  logic [63:0] s_axis_tdata,
  input  logic [7:0]  s_axis_tkeep,
  input  logic        s_axis_tvalid,
  output logic        s_axis_tready,
  input  logic        s_axis_tlast,

  // to service_framer
  output tx_req_t     req,
  output logic        req_valid,
  input  logic        req_ready,
  output logic [63:0] m_axis_tdata,
  output logic [7:0]  m_axis_tkeep,
  output logic        m_axis_tvalid,
  input  logic        m_axis_tready,
  output logic        m_axis_tlast
);
  typedef struct packed {
    udp_peer_t   peer;
    logic [15:0] sport;
  } way_t;

  typedef struct packed {
    logic [13:0] bytes;
    logic [15:0] sum;
  } payload_t;

  typedef struct packed {
    logic        last;
    logic [2:0]  tail;
    logic [63:0] data;
  } word_t;

  // ---- store and sum ----------------------------------------------------------------------------------
  logic     full, take, ended_q, room;
  word_t    wr_word, rd_word;
  way_t     way;
  payload_t payload;
  logic [13:0] bytes_q;
  logic [31:0] sum_q;
  logic [63:0] summed;
  logic        first_q;

  assign s_axis_tready = !full && !ended_q && room;
  assign take          = s_axis_tvalid && s_axis_tready;
  assign wr_word       = '{last: s_axis_tlast, tail: 3'($countones(s_axis_tkeep)), data: s_axis_tdata};

  always_comb begin
    for (int i = 0; i < 8; i++) summed[8*i+:8] = s_axis_tdata[8*i+:8] & {8{s_axis_tkeep[i]}};
  end

  always_ff @(posedge clk) begin
    if (take) begin
      bytes_q <= (first_q ? '0 : bytes_q) + 14'($countones(s_axis_tkeep));
      sum_q   <= (first_q ? '0 : sum_q) + 32'(beat_sum(summed));
      first_q <= s_axis_tlast;
    end
    ended_q <= take && s_axis_tlast;
    if (rst) begin
      first_q <= 1'b1;
      ended_q <= 1'b0;
    end
  end

  frame_store #(
    .W    ($bits(word_t)),
    .DEPTH(STORE_BYTES / 8)
  ) u_store (
    .clk, .rst,
    .wr_data (wr_word),
    .wr_valid(take),
    .commit  (ended_q),
    .drop    (1'b0),
    .full    (full),
    .lost    (),
    .level   (),
    .rd_data (rd_word),
    .rd_valid(m_axis_tvalid),
    .rd_ready(m_axis_tready)
  );

  // The way is there a cycle before the sum, which says that the datagram is whole.
  block_fifo #(
    .W    ($bits(way_t)),
    .DEPTH(DATAGRAMS)
  ) u_ways (
    .clk, .rst,
    .s_data ({peer, sport}),
    .s_valid(take && s_axis_tlast),
    .s_ready(room),
    .m_data (way),
    .m_valid(),
    .m_ready(req_valid && req_ready),
    .level  ()
  );

  block_fifo #(
    .W    ($bits(payload_t)),
    .DEPTH(DATAGRAMS)
  ) u_payloads (
    .clk, .rst,
    .s_data ({bytes_q, fold32(sum_q)}),
    .s_valid(ended_q),
    .s_ready(),
    .m_data (payload),
    .m_valid(req_valid),
    .m_ready(req_ready),
    .level  ()
  );

  // ---- what is sent ---------------------------------------------------------------------------------------
  udp_l4_t l4;
  assign l4  = '{sport: way.sport, dport: way.peer.port, reserved: '0, payload_sum: payload.sum};
  assign req = '{
    kind: SendUdp, dst_mac: way.peer.mac, ip: way.peer.ip, tos: '0, l4: l4, payload_bytes: payload.bytes
  };

  assign m_axis_tdata = rd_word.data;
  assign m_axis_tlast = rd_word.last;
  assign m_axis_tkeep = rd_word.last ? lanes(rd_word.tail) : '1;

`ifndef SYNTHESIS
  a_fits : assert property (@(posedge clk) disable iff (rst)
    s_axis_tvalid |-> 32'(bytes_q) < STORE_BYTES)
    else $error("%m: a payload of %0d bytes does not fit the store", bytes_q);
`endif
endmodule
