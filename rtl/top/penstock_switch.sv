// SPDX-License-Identifier: SHL-2.1
// The QCN switch as a top: N_PORTS ports of 10 Gb/s on 64-bit XGMII at 156.25 MHz, its registers on AXI4-Lite, all in
// one clock. The register map is regs/qcn_switch.rdl. The rest is qcn_switch's.
module penstock_switch
  import switch_pkg::*;
#(
  parameter  int unsigned N_PORTS  = 4,
  parameter  int unsigned N_QUEUES = 2,
  parameter  int unsigned CELLS    = 4096,
  parameter  int unsigned ENTRIES  = 16,
  localparam int unsigned Queues   = N_PORTS * N_QUEUES
) (
  input  logic clk,
  input  logic rst,

  output logic [N_PORTS-1:0][63:0] xgmii_txd,
  output logic [N_PORTS-1:0][7:0]  xgmii_txc,
  input  logic [N_PORTS-1:0][63:0] xgmii_rxd,
  input  logic [N_PORTS-1:0][7:0]  xgmii_rxc,

  input  logic [11:0] s_axil_awaddr,
  input  logic [2:0]  s_axil_awprot,
  input  logic        s_axil_awvalid,
  output logic        s_axil_awready,
  input  logic [31:0] s_axil_wdata,
  input  logic [3:0]  s_axil_wstrb,
  input  logic        s_axil_wvalid,
  output logic        s_axil_wready,
  output logic [1:0]  s_axil_bresp,
  output logic        s_axil_bvalid,
  input  logic        s_axil_bready,
  input  logic [11:0] s_axil_araddr,
  input  logic [2:0]  s_axil_arprot,
  input  logic        s_axil_arvalid,
  output logic        s_axil_arready,
  output logic [31:0] s_axil_rdata,
  output logic [1:0]  s_axil_rresp,
  output logic        s_axil_rvalid,
  input  logic        s_axil_rready,

  // for lamps and benches; the registers have them, too
  output eth_pkg::mac_status_t [N_PORTS-1:0] status,
  output switch_stat_t         [N_PORTS-1:0] stat,
  output queue_bytes_t         [Queues-1:0]  level
);
  axi_pkg::axil_req_t axil_req;
  axi_pkg::axil_rsp_t axil_rsp;
  switch_cfg_t cfg;
  mac_entry_t  table_entry;
  logic        table_valid;
  logic [$clog2(ENTRIES)-1:0] table_index;

  assign axil_req = '{
    awaddr: 18'(s_axil_awaddr), awprot: s_axil_awprot, awvalid: s_axil_awvalid,
    wdata: s_axil_wdata, wstrb: s_axil_wstrb, wvalid: s_axil_wvalid, bready: s_axil_bready,
    araddr: 18'(s_axil_araddr), arprot: s_axil_arprot, arvalid: s_axil_arvalid, rready: s_axil_rready
  };
  assign s_axil_awready = axil_rsp.awready;
  assign s_axil_wready  = axil_rsp.wready;
  assign s_axil_bresp   = axil_rsp.bresp;
  assign s_axil_bvalid  = axil_rsp.bvalid;
  assign s_axil_arready = axil_rsp.arready;
  assign s_axil_rdata   = axil_rsp.rdata;
  assign s_axil_rresp   = axil_rsp.rresp;
  assign s_axil_rvalid  = axil_rsp.rvalid;

  qcn_switch_registers #(
    .N_PORTS (N_PORTS),
    .N_QUEUES(N_QUEUES),
    .ENTRIES (ENTRIES)
  ) u_registers (
    .s_axil_req(axil_req),
    .s_axil_rsp(axil_rsp),
    .*
  );

  qcn_switch_xgmii #(
    .N_PORTS (N_PORTS),
    .N_QUEUES(N_QUEUES),
    .CELLS   (CELLS),
    .ENTRIES (ENTRIES)
  ) u_switch (
    .*
  );
endmodule
