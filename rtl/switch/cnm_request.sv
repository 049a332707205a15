// SPDX-License-Identifier: SHL-2.1
// What a notification says: the sample, and the sampled frame's addresses, tags and first octets. Combinational.
// The flow ID is that of the frame's CN-TAG, or the low 14 bits of its TCP or UDP source port, or 0. Notifications are
// never answered, and neither are frames from a group address. Source: IEEE 802.1Qau clauses 33.2 to 33.4.
module cnm_request
  import switch_pkg::*;
(
  input  frame_t       frame,      // sampled
  input  cell_t        first,      // its first cell
  input  queue_bytes_t q_eq,
  input  qcn_sample_t  sample,
  input  logic [15:0]  point,      // port << 3 | queue
  output logic         answered,
  output cnm_request_t request
);
  localparam logic [7:0] ProtocolTcp = 8'd6;
  localparam logic [7:0] ProtocolUdp = 8'd17;

  tags_t tags;
  // verilator lint_off UNUSEDSIGNAL
  cell_t msdu;                     // the first octet lowest
  // verilator lint_on UNUSEDSIGNAL
  logic [7:0]   protocol;
  logic         has_ports;
  frame_bytes_t after_tags;

  assign tags       = tags_of(first);
  assign msdu       = msdu_of(first, tags);
  assign protocol   = msdu[8*11+:8];
  assign after_tags = frame.bytes - FrameBytesW'(12 + (tags.has_vlan ? 4 : 0) + (tags.has_flow ? 4 : 0));
  // no options, and not a later fragment
  assign has_ports  = tags.ethertype == EtherTypeIpv4 && msdu[8*2+:8] == 8'h45 && (half_at(msdu, 8) & 16'h1FFF) == '0
    && (protocol == ProtocolTcp || protocol == ProtocolUdp);
  assign answered   = !frame.src[40] && !(tags.has_flow && tags.ethertype == EtherTypeCnm);

  always_comb begin
    request = '{
      dst: frame.src, has_vlan: tags.has_vlan, vid: tags.tci[11:0], flow: '0,
      feedback: sample.feedback, point: point,
      q_offset: in_cells(q_eq, sample.queue_now), q_delta: in_cells(sample.queue_now, sample.queue_old),
      prio: frame.prio, sampled_dst: frame.dst,
      quoted: after_tags < FrameBytesW'(QuotedBytes) ? 6'(after_tags) : 6'(QuotedBytes),
      msdu: {<<8{msdu[8*QuotedBytes-1:0]}}
    };
    if (tags.has_flow) request.flow = tags.flow;
    else if (has_ports) request.flow = half_at(msdu, 22) & 16'h3FFF;
  end
endmodule
