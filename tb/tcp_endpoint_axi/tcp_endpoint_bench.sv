// SPDX-License-Identifier: Apache-2.0
// tcp_endpoint with its rings in the memory at m_axi, whose ports are flat for cocotbext-axi.
`include "axi_ports.svh"

module tcp_endpoint_bench
  import tcp_pkg::*;
#(
  parameter int unsigned DATA_W     = 64,
  parameter int unsigned N_STREAMS  = 4,
  parameter int unsigned RING_BYTES = 16384,
  parameter int unsigned CLK_KHZ    = 10_000,
  parameter int unsigned STORE      = 1
) (
  input  logic                clk,
  input  logic                rst,
  input  logic [47:0]         local_mac,
  input  logic [31:0]         local_ip,
  input  logic [7:0]          ttl,
  input  logic [7:0]          tos,
  input  logic [15:0]         port_base,
  input  tcp_params_t         params,
  input  logic                tx_paused,
  input  tcp_peer_t           peer,
  input  tcp_opening_t        open_command,
  input  logic                open_valid,
  input  logic                moved,
  output logic                open_ready,
  input  tcp_stream_t         abort_stream,
  input  logic                abort_valid,
  output logic                abort_ready,
  input  tcp_stream_t         s_msg_stream,
  input  logic [DATA_W-1:0]   s_axis_msg_tdata,
  input  logic [DATA_W/8-1:0] s_axis_msg_tkeep,
  input  logic                s_axis_msg_tvalid,
  output logic                s_axis_msg_tready,
  input  logic                s_axis_msg_tlast,
  input  logic [DATA_W-1:0]   s_axis_tdata,
  input  logic [DATA_W/8-1:0] s_axis_tkeep,
  input  logic                s_axis_tvalid,
  input  logic                s_axis_tlast,
  input  logic                s_axis_tuser,
  output logic [DATA_W-1:0]   m_axis_tdata,
  output logic [DATA_W/8-1:0] m_axis_tkeep,
  output logic                m_axis_tvalid,
  input  logic                m_axis_tready,
  output logic                m_axis_tlast,
  output tcp_done_t           done,
  output logic                done_valid,
  output logic                busy,
  output tcp_rx_counts_t      rx_counts,
  output tcp_laid_t           laid,
  output logic                laid_valid,
  output logic                ring_write_error,
  output logic                ring_read_error,
  `AXI_MASTER_PORTS(m_axi, 32, DATA_W)
);
  `AXI_MASTER(m_axi, 32)

  tcp_endpoint #(
    .DATA_W(DATA_W), .N_STREAMS(N_STREAMS), .RING_BYTES(RING_BYTES), .CLK_KHZ(CLK_KHZ),
    .STORE(STORE), .AXI_ADDR_W(32)
  ) u_dut (
    .ring_base(32'h0001_0000),
    .*
  );
endmodule
