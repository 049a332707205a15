// SPDX-License-Identifier: SHL-2.1
// Bench only: the network services between the streams of a MAC, as penstock_core joins them.
module services_bench
  import services_pkg::*;
#(
  parameter int unsigned DATA_W  = 64,
  parameter int unsigned CLK_KHZ = 4
) (
  input logic clk,
  input logic rst,

  input logic [47:0]   local_mac,
  input logic [31:0]   local_ip,
  input logic [7:0]    ttl,
  input services_cfg_t cfg,
  input logic          link_up,

  input  logic [DATA_W-1:0]   s_axis_rx_tdata,
  input  logic [DATA_W/8-1:0] s_axis_rx_tkeep,
  input  logic                s_axis_rx_tvalid,
  input  logic                s_axis_rx_tlast,
  input  logic                s_axis_rx_tuser,
  output logic [DATA_W-1:0]   m_axis_tx_tdata,
  output logic [DATA_W/8-1:0] m_axis_tx_tkeep,
  output logic                m_axis_tx_tvalid,
  input  logic                m_axis_tx_tready,
  output logic                m_axis_tx_tlast,

  output logic [15:0] m_axis_ipbus_tdata,
  output logic [1:0]  m_axis_ipbus_tkeep,
  output logic        m_axis_ipbus_tvalid,
  input  logic        m_axis_ipbus_tready,
  output logic        m_axis_ipbus_tlast,
  output udp_peer_t   m_axis_ipbus_tuser,
  input  logic [15:0] s_axis_ipbus_tdata,
  input  logic [1:0]  s_axis_ipbus_tkeep,
  input  logic        s_axis_ipbus_tvalid,
  output logic        s_axis_ipbus_tready,
  input  logic        s_axis_ipbus_tlast,
  input  udp_peer_t   s_axis_ipbus_tuser,

  output logic [15:0] m_axis_cm_tdata,
  output logic        m_axis_cm_tvalid,
  input  logic        m_axis_cm_tready,
  output logic        m_axis_cm_tlast,
  output logic [31:0] cm_rx_ip,
  output logic [15:0] cm_rx_sport,
  output logic [15:0] cm_rx_dport,
  output logic [15:0] m_axis_mad_tdata,
  output logic        m_axis_mad_tvalid,
  output logic        m_axis_mad_tlast,
  output logic [31:0] mad_rx_ip,
  input  logic [15:0] s_axis_cm_tdata,
  input  logic        s_axis_cm_tvalid,
  output logic        s_axis_cm_tready,
  input  logic        s_axis_cm_tlast,
  input  logic [31:0] cm_tx_ip,
  input  logic [15:0] cm_tx_dport,
  input  logic [15:0] cm_tx_sport,

  input  logic        lookup_valid,
  output logic        lookup_ready,
  input  logic [31:0] lookup_ip,
  input  logic        lookup_fresh,
  output logic        found_valid,
  output logic        found,
  output logic [47:0] found_mac,

  output logic [15:0]      level_bytes,
  output service_rx_stat_t stat_rx,
  output services_stat_t   stat
);
  logic [15:0] rx_tdata, tx_data;
  logic [1:0] rx_tkeep;
  logic [12:0] tx_index;
  logic rx_tvalid, rx_tready, rx_tlast, tx_room, tx_valid, tx_body, tx_last, tx_odd, tx_commit;

  service_rx #(.DATA_W(DATA_W), .MADS(1'b1)) u_rx (
    .clk, .rst, .local_mac,
    .s_axis_tdata (s_axis_rx_tdata),
    .s_axis_tkeep (s_axis_rx_tkeep),
    .s_axis_tvalid(s_axis_rx_tvalid),
    .s_axis_tlast (s_axis_rx_tlast),
    .s_axis_tuser (s_axis_rx_tuser),
    .m_axis_tdata (rx_tdata),
    .m_axis_tkeep (rx_tkeep),
    .m_axis_tvalid(rx_tvalid),
    .m_axis_tready(rx_tready),
    .m_axis_tlast (rx_tlast),
    .level_bytes,
    .stat         (stat_rx)
  );

  services #(.CLK_KHZ(CLK_KHZ), .MADS(1'b1)) u_services (
    .m_axis_mad_tready(1'b1),
    .s_axis_rx_tdata (rx_tdata),
    .s_axis_rx_tkeep (rx_tkeep),
    .s_axis_rx_tvalid(rx_tvalid),
    .s_axis_rx_tready(rx_tready),
    .s_axis_rx_tlast (rx_tlast),
    .*
  );

  service_tx #(.DATA_W(DATA_W)) u_tx (
    .clk, .rst,
    .room     (tx_room),
    .wr_valid (tx_valid),
    .wr_index (tx_index),
    .wr_data  (tx_data),
    .wr_body  (tx_body),
    .wr_last  (tx_last),
    .wr_odd   (tx_odd),
    .wr_commit(tx_commit),
    .m_axis_tdata (m_axis_tx_tdata),
    .m_axis_tkeep (m_axis_tx_tkeep),
    .m_axis_tvalid(m_axis_tx_tvalid),
    .m_axis_tready(m_axis_tx_tready),
    .m_axis_tlast (m_axis_tx_tlast)
  );
endmodule
