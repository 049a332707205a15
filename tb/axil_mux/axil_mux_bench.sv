// SPDX-License-Identifier: SHL-2.1
// Bench only: three masters with ports of their own names.
module axil_mux_bench (
  input logic clk,
  input logic rst,

`define AXIL_SLAVE(P) \
  input  logic [17:0] P``_awaddr, \
  input  logic [2:0]  P``_awprot, \
  input  logic        P``_awvalid, \
  output logic        P``_awready, \
  input  logic [31:0] P``_wdata, \
  input  logic [3:0]  P``_wstrb, \
  input  logic        P``_wvalid, \
  output logic        P``_wready, \
  output logic [1:0]  P``_bresp, \
  output logic        P``_bvalid, \
  input  logic        P``_bready, \
  input  logic [17:0] P``_araddr, \
  input  logic [2:0]  P``_arprot, \
  input  logic        P``_arvalid, \
  output logic        P``_arready, \
  output logic [31:0] P``_rdata, \
  output logic [1:0]  P``_rresp, \
  output logic        P``_rvalid, \
  input  logic        P``_rready

  `AXIL_SLAVE(s0_axil),
  `AXIL_SLAVE(s1_axil),
  `AXIL_SLAVE(s2_axil),

  output logic [17:0] m_axil_awaddr,
  output logic [2:0]  m_axil_awprot,
  output logic        m_axil_awvalid,
  input  logic        m_axil_awready,
  output logic [31:0] m_axil_wdata,
  output logic [3:0]  m_axil_wstrb,
  output logic        m_axil_wvalid,
  input  logic        m_axil_wready,
  input  logic [1:0]  m_axil_bresp,
  input  logic        m_axil_bvalid,
  output logic        m_axil_bready,
  output logic [17:0] m_axil_araddr,
  output logic [2:0]  m_axil_arprot,
  output logic        m_axil_arvalid,
  input  logic        m_axil_arready,
  input  logic [31:0] m_axil_rdata,
  input  logic [1:0]  m_axil_rresp,
  input  logic        m_axil_rvalid,
  output logic        m_axil_rready
);
`define ALL(S) .s_axil_``S``({s2_axil_``S``, s1_axil_``S``, s0_axil_``S``})
  axil_mux #(.N(3)) u_mux (
    `ALL(awaddr), `ALL(awprot), `ALL(awvalid), `ALL(awready),
    `ALL(wdata), `ALL(wstrb), `ALL(wvalid), `ALL(wready),
    `ALL(bresp), `ALL(bvalid), `ALL(bready),
    `ALL(araddr), `ALL(arprot), `ALL(arvalid), `ALL(arready),
    `ALL(rdata), `ALL(rresp), `ALL(rvalid), `ALL(rready),
    .*
  );
endmodule
