// SPDX-License-Identifier: SHL-2.1
// Joins the user's messages with those of the message source, a whole message at a time.
// Each descriptor passes as soon as the next stage takes it, in turn where both have one; payloads follow in the
// order of their descriptors. Nothing is delayed and nothing is added; a side that is silent costs nothing.
module message_mux
  import penstock_pkg::*;
#(
  parameter int unsigned DATA_W = 64
) (
  input  logic                clk,
  input  logic                rst,

  input  logic [175:0]        s_axis_desc_tdata,  // the user's
  input  logic                s_axis_desc_tvalid,
  output logic                s_axis_desc_tready,
  input  logic [DATA_W-1:0]   s_axis_data_tdata,
  input  logic [DATA_W/8-1:0] s_axis_data_tkeep,
  input  logic                s_axis_data_tvalid,
  output logic                s_axis_data_tready,
  input  logic                s_axis_data_tlast,

  input  logic [175:0]        s_axis_source_desc_tdata,
  input  logic                s_axis_source_desc_tvalid,
  output logic                s_axis_source_desc_tready,
  input  logic [DATA_W-1:0]   s_axis_source_data_tdata,
  input  logic [DATA_W/8-1:0] s_axis_source_data_tkeep,
  input  logic                s_axis_source_data_tvalid,
  output logic                s_axis_source_data_tready,
  input  logic                s_axis_source_data_tlast,

  output logic [175:0]        m_axis_desc_tdata,
  output logic                m_axis_desc_tvalid,
  input  logic                m_axis_desc_tready,
  output logic [DATA_W-1:0]   m_axis_data_tdata,
  output logic [DATA_W/8-1:0] m_axis_data_tkeep,
  output logic                m_axis_data_tvalid,
  input  logic                m_axis_data_tready,
  output logic                m_axis_data_tlast
);
  // ---- descriptors ------------------------------------------------------------------------------------
  logic source, waits_q, waiting_source_q, last_source_q, order_room, taken, has_payload;
  desc_t users, sources;

  always_comb begin
    // A descriptor that has been shown stays until it is taken.
    if (waits_q) source = waiting_source_q;
    else if (s_axis_desc_tvalid && s_axis_source_desc_tvalid) source = !last_source_q;
    else source = s_axis_source_desc_tvalid;
  end

  assign users                     = s_axis_desc_tdata;
  assign sources                   = s_axis_source_desc_tdata;
  assign has_payload               = source ? sources.length != '0 : users.length != '0;
  assign m_axis_desc_tdata         = source ? sources : users;
  assign m_axis_desc_tvalid        = (source ? s_axis_source_desc_tvalid : s_axis_desc_tvalid) && order_room;
  assign taken                     = m_axis_desc_tvalid && m_axis_desc_tready;
  assign s_axis_desc_tready        = m_axis_desc_tready && order_room && !source;
  assign s_axis_source_desc_tready = m_axis_desc_tready && order_room && source;

  always_ff @(posedge clk) begin
    waits_q          <= m_axis_desc_tvalid && !m_axis_desc_tready;
    waiting_source_q <= source;
    if (taken) last_source_q <= source;
    if (rst) begin
      waits_q       <= 1'b0;
      last_source_q <= 1'b1;
    end
  end

  // ---- payloads: whose is next. A message of no bytes has none. ---------------------------------------
  logic data_source, data_open, data_ends;
  logic [2:0] unused_level;

  sync_fifo #(.W(1), .DEPTH(4)) u_order (
    .clk, .rst,
    .s_data (source),
    .s_valid(taken && has_payload),
    .s_ready(order_room),
    .m_data (data_source),
    .m_valid(data_open),
    .m_ready(data_ends),
    .level  (unused_level)
  );

  assign m_axis_data_tdata         = data_source ? s_axis_source_data_tdata : s_axis_data_tdata;
  assign m_axis_data_tkeep         = data_source ? s_axis_source_data_tkeep : s_axis_data_tkeep;
  assign m_axis_data_tlast         = data_source ? s_axis_source_data_tlast : s_axis_data_tlast;
  assign m_axis_data_tvalid        = data_open && (data_source ? s_axis_source_data_tvalid : s_axis_data_tvalid);
  assign s_axis_data_tready        = data_open && !data_source && m_axis_data_tready;
  assign s_axis_source_data_tready = data_open && data_source && m_axis_data_tready;
  assign data_ends                 = m_axis_data_tvalid && m_axis_data_tready && m_axis_data_tlast;
endmodule
