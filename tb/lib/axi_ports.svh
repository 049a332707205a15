// SPDX-License-Identifier: SHL-2.1
// Benches only: AXI buses as the flat ports that cocotbext-axi expects, and their fields in the structs of axi_pkg.
// `P` is the prefix: `AXIL_MASTER_PORTS(m_axil)` declares m_axil_awaddr ..., `AXIL_MASTER(m_axil)` declares the structs
// m_axil_req and m_axil_rsp and joins them to those ports. The same for AXI4, whose addresses are of AW bits here and
// whose data are ports already.

`define AXIL_MASTER_PORTS(P) \
  output logic [17:0] P``_awaddr, \
  output logic [2:0]  P``_awprot, \
  output logic        P``_awvalid, \
  input  logic        P``_awready, \
  output logic [31:0] P``_wdata, \
  output logic [3:0]  P``_wstrb, \
  output logic        P``_wvalid, \
  input  logic        P``_wready, \
  input  logic [1:0]  P``_bresp, \
  input  logic        P``_bvalid, \
  output logic        P``_bready, \
  output logic [17:0] P``_araddr, \
  output logic [2:0]  P``_arprot, \
  output logic        P``_arvalid, \
  input  logic        P``_arready, \
  input  logic [31:0] P``_rdata, \
  input  logic [1:0]  P``_rresp, \
  input  logic        P``_rvalid, \
  output logic        P``_rready

`define AXIL_SLAVE_PORTS(P) \
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

// The fields in the order of the structs.
`define AXIL_REQ(P) \
  {P``_awaddr, P``_awprot, P``_awvalid, P``_wdata, P``_wstrb, P``_wvalid, P``_bready, P``_araddr, P``_arprot, \
   P``_arvalid, P``_rready}
`define AXIL_RSP(P) \
  {P``_awready, P``_wready, P``_bresp, P``_bvalid, P``_arready, P``_rdata, P``_rresp, P``_rvalid}

`define AXIL_MASTER(P) \
  axi_pkg::axil_req_t P``_req; \
  axi_pkg::axil_rsp_t P``_rsp; \
  assign `AXIL_REQ(P) = P``_req; \
  assign P``_rsp = `AXIL_RSP(P);

`define AXIL_SLAVE(P) \
  axi_pkg::axil_req_t P``_req; \
  axi_pkg::axil_rsp_t P``_rsp; \
  assign P``_req = `AXIL_REQ(P); \
  assign `AXIL_RSP(P) = P``_rsp;

`define AXI_MASTER_PORTS(P, AW, DW) \
  output logic [0:0]      P``_awid, \
  output logic [AW-1:0]   P``_awaddr, \
  output logic [7:0]      P``_awlen, \
  output logic [2:0]      P``_awsize, \
  output logic [1:0]      P``_awburst, \
  output logic            P``_awlock, \
  output logic [3:0]      P``_awcache, \
  output logic [2:0]      P``_awprot, \
  output logic            P``_awvalid, \
  input  logic            P``_awready, \
  output logic [DW-1:0]   P``_wdata, \
  output logic [DW/8-1:0] P``_wstrb, \
  output logic            P``_wlast, \
  output logic            P``_wvalid, \
  input  logic            P``_wready, \
  input  logic [0:0]      P``_bid, \
  input  logic [1:0]      P``_bresp, \
  input  logic            P``_bvalid, \
  output logic            P``_bready, \
  output logic [0:0]      P``_arid, \
  output logic [AW-1:0]   P``_araddr, \
  output logic [7:0]      P``_arlen, \
  output logic [2:0]      P``_arsize, \
  output logic [1:0]      P``_arburst, \
  output logic            P``_arlock, \
  output logic [3:0]      P``_arcache, \
  output logic [2:0]      P``_arprot, \
  output logic            P``_arvalid, \
  input  logic            P``_arready, \
  input  logic [0:0]      P``_rid, \
  input  logic [DW-1:0]   P``_rdata, \
  input  logic [1:0]      P``_rresp, \
  input  logic            P``_rlast, \
  input  logic            P``_rvalid, \
  output logic            P``_rready

`define AXI_MASTER(P, AW) \
  axi_pkg::axi_req_t P``_req; \
  axi_pkg::axi_rsp_t P``_rsp; \
  logic P``_wstrb_all; \
  logic [63:0] P``_awaddr_all, P``_araddr_all; \
  assign {P``_awid, P``_awaddr_all, P``_awlen, P``_awsize, P``_awburst, P``_awlock, P``_awcache, P``_awprot, \
          P``_awvalid, P``_wlast, P``_wstrb_all, P``_wvalid, P``_bready, \
          P``_arid, P``_araddr_all, P``_arlen, P``_arsize, P``_arburst, P``_arlock, P``_arcache, P``_arprot, \
          P``_arvalid, P``_rready} = P``_req; \
  assign P``_rsp = {P``_awready, P``_wready, P``_bid, P``_bresp, P``_bvalid, \
                    P``_arready, P``_rid, P``_rresp, P``_rlast, P``_rvalid}; \
  assign P``_awaddr = P``_awaddr_all[AW-1:0]; \
  assign P``_araddr = P``_araddr_all[AW-1:0]; \
  assign P``_wstrb  = {$bits(P``_wstrb){P``_wstrb_all}}; \
  wire P``_unused = &{1'b0, P``_awaddr_all, P``_araddr_all};
