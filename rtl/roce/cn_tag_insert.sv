// SPDX-License-Identifier: SHL-2.1
// Inserts a CN-TAG into the frames of the queue pairs under QCN: a switch's notification carries its flow ID back, and
// cnm_receiver takes that as our queue pair. A queue pair is under QCN if software has chosen that law for it by name.
// Promise: frames leave in the order of their headers, tagged as the law was when the header was taken.
// Source: IEEE 802.1Qau clause 33.2.
//
//   | destination, source: 12 octets | 22 E9 | flow ID: our queue pair | type and the rest, 4 octets later |
module cn_tag_insert
  import penstock_pkg::*;
#(
  parameter  int unsigned DATA_W = 64,
  parameter  int unsigned N_QP   = 4,
  localparam int unsigned Bytes  = DATA_W / 8
) (
  input  logic              clk,
  input  logic              rst,

  input  logic              choice_valid,  // software chooses a law
  input  qp_t               choice_qp,
  input  law_choice_e       choice_law,

  input  logic              hdr_valid,     // the framer takes the header of a packet of queue pair hdr_qp
  input  qp_t               hdr_qp,

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
  localparam int unsigned QpW   = N_QP > 1 ? $clog2(N_QP) : 1;
  localparam int unsigned Depth = 32;  // packets in framer and icrc_append: at 512 bits one may be a beat

  logic [N_QP-1:0] tagged_q;
  always_ff @(posedge clk) begin
    if (choice_valid) tagged_q[choice_qp[QpW-1:0]] <= choice_law == ChooseQcn;
    if (rst) tagged_q <= '0;
  end

  logic with_tag, waits, room;
  qp_t  flow;
  logic [$clog2(Depth):0] unused_level;
  sync_fifo #(.W($bits(qp_t) + 1), .DEPTH(Depth)) u_frames (
    .clk, .rst,
    .s_data ({tagged_q[hdr_qp[QpW-1:0]], hdr_qp}),
    .s_valid(hdr_valid),
    .s_ready(room),
    .m_data ({with_tag, flow}),
    .m_valid(waits),
    .m_ready(s_axis_tvalid && s_axis_tready && s_axis_tlast),
    .level  (unused_level)
  );

  // The tag has the form of a VLAN tag, with a flow ID below 4096 in place of the VID.
  eth_pkg::vlan_cfg_t cfg;
  assign cfg = '{enable: with_tag, vid: 12'(flow), pcp_data: '0, pcp_services: '0};

  vlan_insert #(
    .DATA_W   (DATA_W),
    .ETHERTYPE(EtherTypeCnTag)
  ) u_insert (
    .s_axis_tuser(eth_pkg::FrameRoce),
    .*
  );

  wire unused = &{1'b0, choice_qp, hdr_qp, room, waits};

`ifndef SYNTHESIS
  a_room : assert property (@(posedge clk) disable iff (rst) hdr_valid |-> room);
  a_waits : assert property (@(posedge clk) disable iff (rst) s_axis_tvalid |-> waits)
    else $error("%m: a frame whose header was not taken");
`endif
endmodule
