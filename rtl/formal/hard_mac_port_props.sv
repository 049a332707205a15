// SPDX-License-Identifier: SHL-2.1
// Promises of the port to a hard MAC: a frame that has started has no gap; each frame equals that of the stream,
// padded to 60 octets, or ends marked as bad because a beat was late, and its rest is dropped; a beat
// stays until it is taken; each frame is counted once, as sent or as an underrun.
module hard_mac_port_props
  import eth_pkg::*;
#(
  parameter int unsigned DATA_W = 512,
  localparam int unsigned Bytes = DATA_W / 8
) (
  input logic              clk,
  input logic              rst,
  input logic [DATA_W-1:0] s_axis_tx_tdata,
  input logic [Bytes-1:0]  s_axis_tx_tkeep,
  input logic              s_axis_tx_tvalid,
  input logic              s_axis_tx_tready,
  input logic              s_axis_tx_tlast,
  input logic [DATA_W-1:0] m_axis_tx_tdata,
  input logic [Bytes-1:0]  m_axis_tx_tkeep,
  input logic              m_axis_tx_tvalid,
  input logic              m_axis_tx_tready,
  input logic              m_axis_tx_tlast,
  input logic              m_axis_tx_tuser,
  input mac_status_t       status,
  input logic              inside_q, rest_q, late_q
);
  logic started_q = 1'b0;
  always_ff @(posedge clk) started_q <= 1'b1;

  logic [$clog2(Bytes)-1:0] lane;  // any octet
  logic [$clog2(Bytes)-1:0] any;
  anything #(.W($clog2(Bytes))) u_any (.value(any));
  always_ff @(posedge clk) if (!started_q) lane <= any;

  logic takes, moves, waits_q, open_q, spoilt_q, last_q, user_q, keep_q, was_last_q, was_valid_q, ends_q, fails_q, had_spoilt_q;
  logic [7:0] octet, octet_q, input_q;
  logic [Bytes-1:0] input_keep_q;
  assign takes = s_axis_tx_tvalid && s_axis_tx_tready;
  assign moves = m_axis_tx_tvalid && m_axis_tx_tready;
  assign octet = m_axis_tx_tdata[8*lane+:8];

  always_ff @(posedge clk) begin
    if (moves) open_q <= !m_axis_tx_tlast;  // a frame has begun on the MAC's side
    // The stream is inside a frame whose end the MAC has already seen.
    if (moves && m_axis_tx_tuser) spoilt_q <= 1'b1;
    else if (takes && s_axis_tx_tlast) spoilt_q <= 1'b0;
    waits_q <= m_axis_tx_tvalid && !m_axis_tx_tready;
    {last_q, user_q, keep_q, octet_q} <= {m_axis_tx_tlast, m_axis_tx_tuser, m_axis_tx_tkeep[lane], octet};
    {was_valid_q, was_last_q} <= {s_axis_tx_tvalid && !s_axis_tx_tready, s_axis_tx_tlast};
    {input_q, input_keep_q} <= {s_axis_tx_tdata[8*lane+:8], s_axis_tx_tkeep};
    {ends_q, fails_q} <= {moves && m_axis_tx_tlast && !m_axis_tx_tuser, moves && m_axis_tx_tuser};
    if (fails_q) had_spoilt_q <= 1'b1;
    if (rst) {had_spoilt_q, open_q, spoilt_q, waits_q, was_valid_q, ends_q, fails_q} <= '0;
  end

  // The stream keeps its beat until it is taken, has octets in it, and no hole but at a frame's end.
  always_comb begin
    assume (rst == !started_q);
    if (was_valid_q) begin
      assume (s_axis_tx_tvalid && s_axis_tx_tlast == was_last_q && s_axis_tx_tdata[8*lane+:8] == input_q);
      assume (s_axis_tx_tkeep == input_keep_q);
    end
    if (s_axis_tx_tvalid) begin
      assume (s_axis_tx_tkeep[0] && (s_axis_tx_tkeep & (s_axis_tx_tkeep + 1'b1)) == '0);
      if (!s_axis_tx_tlast) assume (s_axis_tx_tkeep == '1);
    end
  end

  always_comb if (started_q) begin
    a_inside : assert (inside_q == open_q && rest_q == spoilt_q && !(inside_q && rest_q) && (!late_q || inside_q)
                       && (!late_q || waits_q) && (!waits_q || user_q == late_q));
    if (open_q) a_no_gap : assert (m_axis_tx_tvalid);
    if (waits_q) begin
      a_kept : assert (m_axis_tx_tvalid && m_axis_tx_tlast == last_q && m_axis_tx_tuser == user_q
                       && m_axis_tx_tkeep[lane] == keep_q && (!keep_q || octet == octet_q));
    end
    if (m_axis_tx_tvalid && !m_axis_tx_tuser) begin
      a_same : assert (s_axis_tx_tvalid && takes == moves && m_axis_tx_tlast == s_axis_tx_tlast);
      a_octets : assert (s_axis_tx_tkeep[lane] ? m_axis_tx_tkeep[lane] && octet == s_axis_tx_tdata[8*lane+:8]
                         : !m_axis_tx_tkeep[lane] || (octet == '0 && !open_q && 32'(lane) < MinFrameBytes));
      if (!open_q) a_padded : assert (m_axis_tx_tkeep[MinFrameBytes-1]);
    end
    if (m_axis_tx_tvalid && m_axis_tx_tuser) a_marked : assert (open_q && m_axis_tx_tlast && !takes && m_axis_tx_tkeep[0]);
    if (spoilt_q) a_rest : assert (!m_axis_tx_tvalid && s_axis_tx_tready);
    a_counted : assert (status.tx_frame == ends_q && status.tx_underrun == fails_q);
    c_spoilt_then_whole : cover (ends_q && had_spoilt_q && !fails_q);
    c_short : cover (moves && !m_axis_tx_tuser && m_axis_tx_tlast && !s_axis_tx_tkeep[1]);
  end
endmodule

bind hard_mac_port hard_mac_port_props #(.DATA_W(DATA_W)) u_props (.*);
