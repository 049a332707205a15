// SPDX-License-Identifier: SHL-2.1
// Bench only: the transmit framing as it stands in the core, roce_framer and icrc_append in a row.
module roce_frame_chain
  import penstock_pkg::*;
#(
  parameter int unsigned DATA_W = 64
) (
  input  logic                clk,
  input  logic                rst,
  input  logic [47:0]         local_mac,
  input  logic [31:0]         local_ip,
  input  logic [7:0]          ttl,
  input  tx_hdr_t             hdr,
  input  logic                hdr_valid,
  output logic                hdr_ready,
  input  logic [DATA_W-1:0]   s_axis_tdata,
  input  logic [DATA_W/8-1:0] s_axis_tkeep,
  input  logic                s_axis_tvalid,
  output logic                s_axis_tready,
  input  logic                s_axis_tlast,
  output logic [DATA_W-1:0]   m_axis_tdata,
  output logic [DATA_W/8-1:0] m_axis_tkeep,
  output logic                m_axis_tvalid,
  input  logic                m_axis_tready,
  output logic                m_axis_tlast
);
  logic [DATA_W-1:0]   frame_tdata;
  logic [DATA_W/8-1:0] frame_tkeep;
  logic                frame_tvalid, frame_tready, frame_tlast;

  roce_framer #(.DATA_W(DATA_W)) u_framer (
    .clk, .rst, .local_mac, .local_ip, .ttl, .hdr, .hdr_valid, .hdr_ready,
    .s_axis_tdata, .s_axis_tkeep, .s_axis_tvalid, .s_axis_tready, .s_axis_tlast,
    .m_axis_tdata  (frame_tdata),
    .m_axis_tkeep  (frame_tkeep),
    .m_axis_tvalid (frame_tvalid),
    .m_axis_tready (frame_tready),
    .m_axis_tlast  (frame_tlast)
  );

  icrc_append #(.DATA_W(DATA_W)) u_icrc_append (
    .clk, .rst,
    .s_axis_tdata  (frame_tdata),
    .s_axis_tkeep  (frame_tkeep),
    .s_axis_tvalid (frame_tvalid),
    .s_axis_tready (frame_tready),
    .s_axis_tlast  (frame_tlast),
    .m_axis_tdata, .m_axis_tkeep, .m_axis_tvalid, .m_axis_tready, .m_axis_tlast
  );
endmodule
