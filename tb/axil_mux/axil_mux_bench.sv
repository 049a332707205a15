// SPDX-License-Identifier: SHL-2.1
// Bench only: three masters with separately named ports.
`include "axi_ports.svh"

module axil_mux_bench (
  input logic clk,
  input logic rst,

  `AXIL_SLAVE_PORTS(s0_axil, 18),
  `AXIL_SLAVE_PORTS(s1_axil, 18),
  `AXIL_SLAVE_PORTS(s2_axil, 18),
  `AXIL_MASTER_PORTS(m_axil)
);
  `AXIL_SLAVE(s0_axil)
  `AXIL_SLAVE(s1_axil)
  `AXIL_SLAVE(s2_axil)
  `AXIL_MASTER(m_axil)

  axil_mux #(.N(3)) u_mux (
    .s_axil_req({s2_axil_req, s1_axil_req, s0_axil_req}),
    .s_axil_rsp({s2_axil_rsp, s1_axil_rsp, s0_axil_rsp}),
    .*
  );
endmodule
