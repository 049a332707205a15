// SPDX-License-Identifier: SHL-2.1
// Black box: AMD's JTAG to AXI Master (PG174), PROTOCOL 2 (AXI4-Lite): registers from Vivado's Tcl console.
// Ports only. The address is 32 bits wide; the front end takes the low 18.
(* blackbox *)
  module jtag_axi_0 (
    input  logic        aclk,
    input  logic        aresetn,
    output logic [31:0] m_axi_awaddr,
    output logic [2:0]  m_axi_awprot,
    output logic        m_axi_awvalid,
    input  logic        m_axi_awready,
    output logic [31:0] m_axi_wdata,
    output logic [3:0]  m_axi_wstrb,
    output logic        m_axi_wvalid,
    input  logic        m_axi_wready,
    input  logic [1:0]  m_axi_bresp,
    input  logic        m_axi_bvalid,
    output logic        m_axi_bready,
    output logic [31:0] m_axi_araddr,
    output logic [2:0]  m_axi_arprot,
    output logic        m_axi_arvalid,
    input  logic        m_axi_arready,
    input  logic [31:0] m_axi_rdata,
    input  logic [1:0]  m_axi_rresp,
    input  logic        m_axi_rvalid,
    output logic        m_axi_rready
  );
  endmodule
