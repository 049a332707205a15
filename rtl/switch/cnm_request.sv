// SPDX-License-Identifier: SHL-2.1
// Contents of a notification: the sample, and the sampled frame's addresses, tags and first octets.
// The flow ID is that of the frame's CN-TAG, or the low 14 bits of its TCP or UDP source port, or 0. Notifications are
// never answered, and neither are frames from a group address. A sample takes cycles; by then the frame has been
// looked at. Source: IEEE 802.1Qau clauses 33.2 to 33.4.
module cnm_request
  import switch_pkg::*;
(
  input  logic         clk,
  input  frame_t       frame,      // sampled
  input  cell_t        first,      // its first cell, from two cycles before the answer on
  input  queue_bytes_t q_eq,
  input  qcn_sample_t  sample,
  input  logic [15:0]  point,      // port << 3 | queue
  output logic         answered,
  output cnm_request_t request
);
  localparam logic [7:0] ProtocolTcp = 8'd6;
  localparam logic [7:0] ProtocolUdp = 8'd17;

  tags_t tags_q;
  // verilator lint_off UNUSEDSIGNAL
  cell_t msdu_q;                   // the first octet lowest
  // verilator lint_on UNUSEDSIGNAL
  logic [7:0]   protocol;
  logic         has_ports;
  frame_bytes_t after_tags;

  always_ff @(posedge clk) begin
    tags_q <= tags_of(first);
    msdu_q <= msdu_of(first, tags_q);
  end

  assign protocol   = msdu_q[8*11+:8];
  assign after_tags = frame.bytes - FrameBytesW'(12 + (tags_q.has_vlan ? 4 : 0) + (tags_q.has_flow ? 4 : 0));
  // no options, and not a later fragment
  assign has_ports  = tags_q.ethertype == EtherTypeIpv4 && msdu_q[8*2+:8] == 8'h45 && (half_at(msdu_q, 8) & 16'h1FFF) == '0
    && (protocol == ProtocolTcp || protocol == ProtocolUdp);
  assign answered   = !frame.src[40] && !(tags_q.has_flow && tags_q.ethertype == EtherTypeCnm);

  always_comb begin
    request = '{
      dst: frame.src, has_vlan: tags_q.has_vlan, vid: tags_q.tci[11:0], flow: '0,
      feedback: sample.feedback, point: point,
      q_offset: in_cells(q_eq, sample.queue_now), q_delta: in_cells(sample.queue_now, sample.queue_old),
      prio: frame.prio, sampled_dst: frame.dst,
      quoted: after_tags < FrameBytesW'(QuotedBytes) ? 6'(after_tags) : 6'(QuotedBytes),
      msdu: {<<8{msdu_q[8*QuotedBytes-1:0]}}
    };
    if (tags_q.has_flow) request.flow = tags_q.flow;
    else if (has_ports) request.flow = half_at(msdu_q, 22) & 16'h3FFF;
  end
endmodule
