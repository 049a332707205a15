// SPDX-License-Identifier: SHL-2.1
// DCQCN for a transport that has none: put it into the AXI-Stream of frames between a RoCE engine and its MAC, give it a
// pulse for each CNP that the engine's receiver sees, set it by AXI4-Lite (stream_registers has the addresses). All frames
// of the stream share one rate, as in AdvCam's module for SURF: use one for each flow. AdvCam section V.
module penstock_dcqcn #(
  parameter int unsigned DATA_W    = 64,
  parameter int unsigned USER_W    = 1,
  parameter int unsigned CLK_KHZ   = 156250,
  parameter int unsigned LINE_MBPS = 10000
) (
  input logic clk,
  input logic rst,

  // Frames; tkeep is ones from lane 0 on, without holes.
  input  logic [DATA_W-1:0]   s_axis_tdata,
  input  logic [DATA_W/8-1:0] s_axis_tkeep,
  input  logic [USER_W-1:0]   s_axis_tuser,
  input  logic                s_axis_tvalid,
  output logic                s_axis_tready,
  input  logic                s_axis_tlast,
  output logic [DATA_W-1:0]   m_axis_tdata,
  output logic [DATA_W/8-1:0] m_axis_tkeep,
  output logic [USER_W-1:0]   m_axis_tuser,
  output logic                m_axis_tvalid,
  input  logic                m_axis_tready,
  output logic                m_axis_tlast,

  input logic cnp_valid,  // a CNP of this flow has come
  input logic paused,     // pause or PFC holds the transmitter; tie to 0 if unknown

  input  logic [6:0]  s_axil_awaddr,
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
  input  logic [6:0]  s_axil_araddr,
  input  logic [2:0]  s_axil_arprot,
  input  logic        s_axil_arvalid,
  output logic        s_axil_arready,
  output logic [31:0] s_axil_rdata,
  output logic [1:0]  s_axil_rresp,
  output logic        s_axil_rvalid,
  input  logic        s_axil_rready
);
  if (DATA_W < 8 || DATA_W > 1024 || DATA_W != 2 ** $clog2(DATA_W)) begin : gen_check_data_w
    $fatal(1, "%m: DATA_W is %0d; it must be a power of two, 8 to 1024", DATA_W);
  end
  if (64'(CLK_KHZ) * DATA_W < 64'(LINE_MBPS) * 1000) begin : gen_check_clock
    $fatal(1, "%m: CLK_KHZ is %0d; it must be %0d or more to carry %0d Mb/s in %0d bits", CLK_KHZ,
      (64'(LINE_MBPS) * 1000 + DATA_W - 1) / DATA_W, LINE_MBPS, DATA_W);
  end

  axi_pkg::axil_req_t axil_req;
  axi_pkg::axil_rsp_t axil_rsp;
  penstock_regs_pkg::cc_params_t params;
  penstock_pkg::cc_status_t status;
  logic [15:0] overhead;
  logic frame;

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

  stream_registers #(
    .CLK_KHZ(CLK_KHZ),
    .LINE_MBPS(LINE_MBPS)
  ) u_registers (
    .s_axil_req(axil_req),
    .s_axil_rsp(axil_rsp),
    .cnp(cnp_valid),
    .*
  );

  stream_limiter #(
    .DATA_W(DATA_W)
  ) u_limiter (
    .cnp(cnp_valid),
    .*
  );

  assign m_axis_tdata = s_axis_tdata;
  assign m_axis_tkeep = s_axis_tkeep;
  assign m_axis_tuser = s_axis_tuser;
  assign m_axis_tlast = s_axis_tlast;
endmodule
