// SPDX-License-Identifier: SHL-2.1
// Notifications that leave by one port: a short queue, and the frames, in the form that cnm_receiver reads. A sampled
// frame with a VLAN tag gives a notification with the same VID. Source: IEEE 802.1Qau clauses 33.2 to 33.4.
//
//    0 destination MAC | 6 source MAC | (0x8100, priority and VID) | 12 0x22E9 | 14 flow ID | 16 0x22E7
//   18 version 4, reserved 6, |F_b| 6 | 20 CPID 8 | 28 QOffset 2 | 30 QDelta 2
//   32 encapsulated priority 3, 0 13 | 34 encapsulated destination MAC 6 | 40 length 2 | 42 encapsulated MSDU 44
module cnm_sender
  import switch_pkg::*;
#(
  parameter int unsigned DEPTH = 4  // notifications that wait
) (
  input  logic         clk,
  input  logic         rst,
  input  logic [47:0]  mac,
  input  logic [2:0]   cnm_priority,

  input  logic         s_valid,
  input  cnm_request_t s_request,

  output logic [63:0]  m_axis_tdata,
  output logic [7:0]   m_axis_tkeep,
  output logic         m_axis_tvalid,
  input  logic         m_axis_tready,
  output logic         m_axis_tlast,

  output logic         stat_sent,
  output logic         stat_dropped
);
  localparam int unsigned PlainBytes = 42 + QuotedBytes;
  localparam int unsigned Octets     = 96;  // 12 beats
  localparam int unsigned PlainBeats = (PlainBytes + 7) / 8;
  localparam int unsigned VlanBeats  = (PlainBytes + 4 + 7) / 8;

  cnm_request_t request;
  logic ready, valid, pop;
  logic [$clog2(DEPTH):0] unused_level;

  sync_fifo #(.W($bits(cnm_request_t)), .DEPTH(DEPTH)) u_requests (
    .clk,
    .rst,
    .s_data (s_request),
    .s_valid,
    .s_ready(ready),
    .m_data (request),
    .m_valid(valid),
    .m_ready(pop),
    .level  (unused_level)
  );

  logic [8*(PlainBytes-12)-1:0] body;
  logic [8*Octets-1:0]          frame;
  logic [3:0]                   beat_q;
  logic [63:0]                  beat;  // its first octet is the most significant one

  always_comb begin
    body = {
      EtherTypeCnTag, request.flow, EtherTypeCnm, 10'b0, request.feedback, mac, request.point, request.q_offset,
      request.q_delta, request.prio, 13'b0, request.sampled_dst, 10'b0, request.quoted, request.msdu
    };
    frame = {request.dst, mac, body, {8*(Octets-PlainBytes){1'b0}}};
    if (request.has_vlan) begin
      frame = {
        request.dst, mac, EtherTypeVlan, cnm_priority, 1'b0, request.vid, body, {8*(Octets-PlainBytes-4){1'b0}}
      };
    end
  end

  assign beat          = frame[10'(64 * (Octets / 8 - 1 - 32'(beat_q)))+:64];
  assign m_axis_tdata  = {<<8{beat}};
  assign m_axis_tvalid = valid;
  assign m_axis_tlast  = beat_q == 4'(request.has_vlan ? VlanBeats - 1 : PlainBeats - 1);
  assign pop           = m_axis_tvalid && m_axis_tready && m_axis_tlast;
  always_comb begin
    m_axis_tkeep = '1;
    if (m_axis_tlast)
      m_axis_tkeep = request.has_vlan ? 8'hFF >> (8 * VlanBeats - PlainBytes - 4) : 8'hFF >> (8 * PlainBeats - PlainBytes);
  end

  always_ff @(posedge clk) begin
    if (m_axis_tvalid && m_axis_tready) beat_q <= m_axis_tlast ? '0 : beat_q + 4'd1;
    stat_sent    <= pop && !rst;
    stat_dropped <= s_valid && !ready && !rst;
    if (rst) beat_q <= '0;
  end
endmodule
