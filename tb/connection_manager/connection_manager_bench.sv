// SPDX-License-Identifier: SHL-2.1
// Bench only: connection_manager with flat AXI4-Lite ports.
`include "axi_ports.svh"

module connection_manager_bench
  import penstock_pkg::*;
  import cm_pkg::*;
#(
  parameter int unsigned N_QP    = 4,
  parameter int unsigned CLK_KHZ = 156250
) (
  input logic clk,
  input logic rst,

  input  cm_cfg_t     cfg,
  output cm_status_t  status,
  input  logic [31:0] local_ip,
  input  logic [23:0] qpn_base,

  // a queue pair has failed; software has put one into the error state
  input logic qp_err_valid,
  input qp_t  qp_err_qp,
  input logic qp_stop_valid,
  input qp_t  qp_stop_qp,

  // 64-byte UDP payloads, 32 beats each, with the other side's address during all of them
  input  logic [15:0] s_axis_cm_tdata,
  input  logic        s_axis_cm_tvalid,
  output logic        s_axis_cm_tready,
  input  logic        s_axis_cm_tlast,
  input  logic [31:0] cm_rx_ip,
  output logic [15:0] m_axis_cm_tdata,
  output logic        m_axis_cm_tvalid,
  input  logic        m_axis_cm_tready,
  output logic        m_axis_cm_tlast,
  output logic [31:0] cm_tx_ip,
  output logic [15:0] cm_tx_dport,
  output logic [15:0] cm_tx_sport,

  // MAC address of the next hop
  output logic        lookup_valid,
  input  logic        lookup_ready,
  output logic [31:0] lookup_ip,
  input  logic        found_valid,
  input  logic        found,
  input  logic [47:0] found_mac,

  // registers
  `AXIL_MASTER_PORTS(m_axil),

  output logic stat_request,    // served
  output logic stat_refused,    // answered with anything but ACK
  output logic stat_ignored,    // an unexpected answer, or a request while not listening
  output logic stat_timeout,    // an answer did not come in time
  output logic stat_peer_lost   // an open queue pair has failed
);
  `AXIL_MASTER(m_axil)

  connection_manager #(
    .N_QP   (N_QP),
    .CLK_KHZ(CLK_KHZ)
  ) u_connection_manager (
    .proxied('0),
    .*
  );
endmodule
