// SPDX-License-Identifier: SHL-2.1
// Merges the messages of several sides, a whole message at a time.
// Each descriptor passes as soon as the next stage takes it, in turn if several sides have one; payloads follow in
// the order of their descriptors. Messages are neither delayed nor changed; a silent side costs nothing.
module message_mux
  import penstock_pkg::*;
#(
  parameter  int unsigned DATA_W = 64,
  parameter  int unsigned N      = 3,  // sides, 2 to 8
  localparam int unsigned Bytes  = DATA_W / 8
) (
  input  logic                     clk,
  input  logic                     rst,

  input  logic [N-1:0][175:0]      s_axis_desc_tdata,
  input  logic [N-1:0]             s_axis_desc_tvalid,
  output logic [N-1:0]             s_axis_desc_tready,
  input  logic [N-1:0][DATA_W-1:0] s_axis_data_tdata,
  input  logic [N-1:0][Bytes-1:0]  s_axis_data_tkeep,
  input  logic [N-1:0]             s_axis_data_tvalid,
  output logic [N-1:0]             s_axis_data_tready,
  input  logic [N-1:0]             s_axis_data_tlast,

  output logic [175:0]             m_axis_desc_tdata,
  output logic                     m_axis_desc_tvalid,
  input  logic                     m_axis_desc_tready,
  output logic [DATA_W-1:0]        m_axis_data_tdata,
  output logic [Bytes-1:0]         m_axis_data_tkeep,
  output logic                     m_axis_data_tvalid,
  input  logic                     m_axis_data_tready,
  output logic                     m_axis_data_tlast
);
  if (N < 2 || N > 8) begin : gen_bad_n
    $fatal(1, "%m: N is %0d; 2 to 8 sides are possible", N);
  end

  localparam int unsigned SideW = $clog2(N);
  typedef logic [SideW-1:0] side_t;

  // ---- descriptors ------------------------------------------------------------------------------------
  side_t next, side, waiting_q, last_q;
  logic waits_q, order_room, taken;
  desc_t desc;

  always_comb begin
    // The first one above the last, else the lowest.
    next = '0;
    for (int i = int'(N) - 1; i >= 0; i--) if (s_axis_desc_tvalid[i]) next = side_t'(i);
    for (int i = int'(N) - 1; i >= 0; i--) if (s_axis_desc_tvalid[i] && i > int'(last_q)) next = side_t'(i);
  end

  assign side               = waits_q ? waiting_q : next;  // a descriptor that has been shown stays until it is taken
  assign desc               = s_axis_desc_tdata[side];
  assign m_axis_desc_tdata  = desc;
  assign m_axis_desc_tvalid = s_axis_desc_tvalid[side] && order_room;
  assign taken              = m_axis_desc_tvalid && m_axis_desc_tready;
  always_comb begin
    s_axis_desc_tready       = '0;
    s_axis_desc_tready[side] = m_axis_desc_tready && order_room;
  end

  always_ff @(posedge clk) begin
    waits_q   <= m_axis_desc_tvalid && !m_axis_desc_tready;
    waiting_q <= side;
    if (taken) last_q <= side;
    if (rst) begin
      waits_q <= 1'b0;
      last_q  <= side_t'(N - 1);
    end
  end

  // ---- payloads: the side of each message that has one, in the order of descriptors ---------------------
  // The side at hand stands in registers, since all of a payload's signals are chosen by it; the others wait after it.
  side_t data_side, queued_side;
  logic data_open, data_ends, begins, is_queued, next_data;
  logic [2:0] unused_level;

  assign begins    = taken && desc.length != '0;
  assign next_data = data_ends || !data_open;
  always_ff @(posedge clk) begin
    if (next_data) begin
      data_side <= is_queued ? queued_side : side;
      data_open <= is_queued || begins;
    end
    if (rst) data_open <= 1'b0;
  end

  sync_fifo #(.W(SideW), .DEPTH(4)) u_order (
    .clk, .rst,
    .s_data (side),
    .s_valid(begins && (is_queued || !next_data)),
    .s_ready(order_room),
    .m_data (queued_side),
    .m_valid(is_queued),
    .m_ready(next_data),
    .level  (unused_level)
  );

  assign m_axis_data_tdata  = s_axis_data_tdata[data_side];
  assign m_axis_data_tkeep  = s_axis_data_tkeep[data_side];
  assign m_axis_data_tlast  = s_axis_data_tlast[data_side];
  assign m_axis_data_tvalid = data_open && s_axis_data_tvalid[data_side];
  assign data_ends          = m_axis_data_tvalid && m_axis_data_tready && m_axis_data_tlast;
  always_comb begin
    s_axis_data_tready            = '0;
    s_axis_data_tready[data_side] = data_open && m_axis_data_tready;
  end
endmodule
