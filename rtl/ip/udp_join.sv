// SPDX-License-Identifier: SHL-2.1
// Makes the datagrams of two senders one stream: in turn, each whole, with its peer and source port.
// Promise: nothing is delayed while only one side sends; order within a side is kept, and a datagram
// that has been offered stays until it is taken.
module udp_join
  import services_pkg::*;
(
  input  logic clk,
  input  logic rst,

  input  udp_peer_t   [1:0]       s_peer,    // with every beat
  input  logic        [1:0][15:0] s_sport,
  input  logic        [1:0][63:0] s_axis_tdata,
  input  logic        [1:0][7:0]  s_axis_tkeep,
  input  logic        [1:0]       s_axis_tvalid,
  output logic        [1:0]       s_axis_tready,
  input  logic        [1:0]       s_axis_tlast,

  output udp_peer_t   m_peer,
  output logic [15:0] m_sport,
  output logic [63:0] m_axis_tdata,
  output logic [7:0]  m_axis_tkeep,
  output logic        m_axis_tvalid,
  input  logic        m_axis_tready,
  output logic        m_axis_tlast
);
  logic chosen, chosen_q, begun_q;  // begun_q: its beats have been shown, and not the last one taken

  // The side that did not have the last datagram goes first.
  assign chosen = begun_q ? chosen_q : s_axis_tvalid[!chosen_q] ? !chosen_q : chosen_q;

  assign m_peer        = s_peer[chosen];
  assign m_sport       = s_sport[chosen];
  assign m_axis_tdata  = s_axis_tdata[chosen];
  assign m_axis_tkeep  = s_axis_tkeep[chosen];
  assign m_axis_tlast  = s_axis_tlast[chosen];
  assign m_axis_tvalid = s_axis_tvalid[chosen];
  assign s_axis_tready = {m_axis_tready && chosen, m_axis_tready && !chosen};

  always_ff @(posedge clk) begin
    if (m_axis_tvalid) begin
      chosen_q <= chosen;
      begun_q  <= !(m_axis_tready && m_axis_tlast);
    end
    if (rst) {begun_q, chosen_q} <= '0;
  end

`ifndef SYNTHESIS
  a_hold : assert property (@(posedge clk) disable iff (rst)
    m_axis_tvalid && !m_axis_tready
    |=> m_axis_tvalid && $stable({m_axis_tdata, m_axis_tkeep, m_axis_tlast, m_peer, m_sport}));
`endif
endmodule
