// SPDX-License-Identifier: SHL-2.1
// Packets of two sources for one framer: headers in turns, payloads in the order of their headers.
// Promise: a header waits for at most one of the other source; no cycle is added.
// `soon`: the payload is there within three cycles. The framer may then begin, since at 64 bits it sends seven beats of
// headers before it takes payload.
module packet_mux
  import penstock_pkg::*;
#(
  parameter int unsigned DATA_W = 64
) (
  input  logic                     clk,
  input  logic                     rst,

  input  tx_hdr_t [1:0]            s_hdr,
  input  logic [1:0]               s_hdr_valid,
  output logic [1:0]               s_hdr_ready,
  input  logic [1:0][DATA_W-1:0]   s_axis_tdata,
  input  logic [1:0][DATA_W/8-1:0] s_axis_tkeep,
  input  logic [1:0]               s_axis_tvalid,
  output logic [1:0]               s_axis_tready,
  input  logic [1:0]               s_axis_tlast,
  input  logic [1:0]               s_axis_soon,

  output tx_hdr_t                  hdr,
  output logic                     hdr_valid,
  input  logic                     hdr_ready,
  output logic [DATA_W-1:0]        m_axis_tdata,
  output logic [DATA_W/8-1:0]      m_axis_tkeep,
  output logic                     m_axis_tvalid,
  input  logic                     m_axis_tready,
  output logic                     m_axis_tlast
);
  localparam int unsigned Depth = 4;

  // ---- headers: the other source's turn, if it has one -------------------------------------------
  logic last_q, turn, order_room, moves;
  assign turn        = s_hdr_valid[!last_q] ? !last_q : last_q;
  assign hdr         = s_hdr[turn];
  assign hdr_valid   = s_hdr_valid[turn] && order_room;
  assign moves       = hdr_valid && hdr_ready;
  assign s_hdr_ready = {turn && hdr_ready && order_room, !turn && hdr_ready && order_room};
  always_ff @(posedge clk) begin
    if (moves) last_q <= turn;
    if (rst) last_q <= 1'b0;
  end

  // ---- payloads -------------------------------------------------------------------------------------
  logic source, source_valid, payload_ends;
  logic [$clog2(Depth):0] unused_level;
  sync_fifo #(.W(1), .DEPTH(Depth)) u_order (
    .clk, .rst,
    .s_data (turn),
    .s_valid(moves && hdr.payload_len != '0),
    .s_ready(order_room),
    .m_data (source),
    .m_valid(source_valid),
    .m_ready(payload_ends),
    .level  (unused_level)
  );
  assign payload_ends  = m_axis_tvalid && m_axis_tready && m_axis_tlast;
  assign m_axis_tdata  = s_axis_tdata[source];
  assign m_axis_tkeep  = s_axis_tkeep[source];
  assign m_axis_tlast  = s_axis_tlast[source];
  assign m_axis_tvalid = (s_axis_tvalid[source] || (DATA_W == 64 && s_axis_soon[source])) && source_valid;
  assign s_axis_tready = {source && source_valid && m_axis_tready, !source && source_valid && m_axis_tready};

`ifndef SYNTHESIS
  a_soon : assert property (@(posedge clk) disable iff (rst)
    source_valid && m_axis_tvalid && m_axis_tready |-> s_axis_tvalid[source])
    else $error("%m: payload of source %0d was taken before it was there", source);
`endif
endmodule
