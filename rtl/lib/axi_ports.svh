// SPDX-License-Identifier: SHL-2.1
// AXI buses as flat ports, for tops and benches, and their fields in the structs of axi_pkg. P is the prefix, AW the bits
// of an address, DW those of data: AXIL_SLAVE_PORTS(s_axil, 18) declares s_axil_awaddr ..., AXIL_SLAVE(s_axil) the structs
// s_axil_req and s_axil_rsp, joined to those ports. Data of AXI4 are ports alone, in no struct.
`ifndef AXI_PORTS
`define AXI_PORTS

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

`define AXIL_SLAVE_PORTS(P, AW) \
  input  logic [AW-1:0] P``_awaddr, \
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
  input  logic [AW-1:0] P``_araddr, \
  input  logic [2:0]  P``_arprot, \
  input  logic        P``_arvalid, \
  output logic        P``_arready, \
  output logic [31:0] P``_rdata, \
  output logic [1:0]  P``_rresp, \
  output logic        P``_rvalid, \
  input  logic        P``_rready

// The fields in the order of the structs.
`define AXIL_RSP(P) \
  {P``_awready, P``_wready, P``_bresp, P``_bvalid, P``_arready, P``_rdata, P``_rresp, P``_rvalid}

`define AXIL_MASTER(P) \
  axi_pkg::axil_req_t P``_req; \
  axi_pkg::axil_rsp_t P``_rsp; \
  assign {P``_awaddr, P``_awprot, P``_awvalid, P``_wdata, P``_wstrb, P``_wvalid, P``_bready, \
          P``_araddr, P``_arprot, P``_arvalid, P``_rready} = P``_req; \
  assign P``_rsp = `AXIL_RSP(P);

`define AXIL_SLAVE(P) \
  axi_pkg::axil_req_t P``_req; \
  axi_pkg::axil_rsp_t P``_rsp; \
  assign P``_req = {18'(P``_awaddr), P``_awprot, P``_awvalid, P``_wdata, P``_wstrb, P``_wvalid, P``_bready, \
                    18'(P``_araddr), P``_arprot, P``_arvalid, P``_rready}; \
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
  logic P``_wstrb_lanes; \
  axi_pkg::lanes_t P``_wlanes; \
  logic [63:0] P``_awaddr_all, P``_araddr_all; \
  assign {P``_awid, P``_awaddr_all, P``_awlen, P``_awsize, P``_awburst, P``_awlock, P``_awcache, P``_awprot, \
          P``_awvalid, P``_wlast, P``_wlanes, P``_wstrb_lanes, P``_wvalid, P``_bready, \
          P``_arid, P``_araddr_all, P``_arlen, P``_arsize, P``_arburst, P``_arlock, P``_arcache, P``_arprot, \
          P``_arvalid, P``_rready} = P``_req; \
  assign P``_rsp = {P``_awready, P``_wready, P``_bid, P``_bresp, P``_bvalid, \
                    P``_arready, P``_rid, P``_rresp, P``_rlast, P``_rvalid}; \
  assign P``_awaddr = P``_awaddr_all[AW-1:0]; \
  assign P``_araddr = P``_araddr_all[AW-1:0]; \
  assign P``_wstrb  = {$bits(P``_wstrb){P``_wstrb_lanes}} & $bits(P``_wstrb)'(axi_pkg::strobes(P``_wlanes)); \
  wire P``_unused = &{1'b0, P``_awaddr_all, P``_araddr_all};

`endif
