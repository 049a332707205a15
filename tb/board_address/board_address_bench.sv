// SPDX-License-Identifier: SHL-2.1
// Bench only: board_address with flat AXI4-Lite ports.
`include "axi_ports.svh"

module board_address_bench (
  input logic clk,
  input logic rst,

  input  logic [47:0] mac,
  input  logic [31:0] ip,
  output logic        done,

  `AXIL_SLAVE_PORTS(s_axil, 18),
  `AXIL_MASTER_PORTS(m_axil)
);
  `AXIL_SLAVE(s_axil)
  `AXIL_MASTER(m_axil)

  board_address u_board_address (.*);
endmodule
