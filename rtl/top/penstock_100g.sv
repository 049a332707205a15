// SPDX-License-Identifier: SHL-2.1
// The 100G front end for a hard MAC on 512-bit AXI-Stream (such as AMD's CMAC) at 322.266 MHz.
// Everything a board needs is on flat AMBA ports; the hard MAC provides preamble, FCS, gap and link fault signalling,
// this design pause and PFC (IEEE 802.3 clauses 80, 81; annex 31B).
`include "axi_ports.svh"

module penstock_100g #(
  localparam int unsigned DATA_W      = 512,
  parameter  int unsigned CLK_KHZ     = 322266,
  `include "front_end_parameters.svh"
) (
  input logic clk,
  input logic rst,

  // Frames from destination MAC to the last octet before the FCS, at least 60 octets. A frame that has
  // begun comes without a gap. Receive cannot be stalled. tuser at tlast: bad frame, either way.
  output logic [511:0] m_axis_tx_tdata,
  output logic [63:0]  m_axis_tx_tkeep,
  output logic         m_axis_tx_tvalid,
  input  logic         m_axis_tx_tready,
  output logic         m_axis_tx_tlast,
  output logic         m_axis_tx_tuser,
  input  logic [511:0] s_axis_rx_tdata,
  input  logic [63:0]  s_axis_rx_tkeep,
  input  logic         s_axis_rx_tvalid,
  input  logic         s_axis_rx_tlast,
  input  logic         s_axis_rx_tuser,

  // The hard MAC's link fault status (0 where it has none).
  input  logic rx_local_fault,
  input  logic rx_remote_fault,

  `include "front_end_ports.svh"
);
  localparam int unsigned LINE_MBPS = 100_000;

  `include "front_end_core.svh"

  assign rx_tdata  = s_axis_rx_tdata;
  assign rx_tkeep  = s_axis_rx_tkeep;
  assign rx_tvalid = s_axis_rx_tvalid;
  assign rx_tlast  = s_axis_rx_tlast;
  assign rx_tuser  = s_axis_rx_tuser;

  hard_mac_port u_hard_mac_port (
    .rst             (front_rst),
    .s_axis_tx_tdata (tx_tdata),
    .s_axis_tx_tkeep (tx_tkeep),
    .s_axis_tx_tvalid(tx_tvalid),
    .s_axis_tx_tready(tx_tready),
    .s_axis_tx_tlast (tx_tlast),
    .status          (mac),
    .*
  );
endmodule
