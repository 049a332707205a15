// SPDX-License-Identifier: SHL-2.1
// DCQCN for a transport that has none: put it into the AXI-Stream of frames between a RoCE engine and its MAC, give it a
// pulse for each CNP that the engine's receiver sees, set it by AXI4-Lite (stream_registers has the addresses). All frames
// of the stream share one rate, as in AdvCam's module for SURF: use one for each flow. AdvCam section V.
// With WITH_QCN its law may be QCN, too (IEEE 802.1Qau): cnm_receiver finds the notifications in the frames of a MAC.
`include "axi_ports.svh"

module penstock_dcqcn #(
  parameter int unsigned DATA_W    = 64,
  parameter int unsigned USER_W    = 1,
  parameter int unsigned CLK_KHZ   = 156250,
  parameter int unsigned LINE_MBPS = 10000,
  parameter int unsigned WITH_QCN  = 0       // 1: QCN may be chosen, and has its parameters from 0x60 on
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

  input logic       cnp_valid,     // a CNP of this flow has come
  input logic       cnm_valid,     // a QCN notification has come; tie to 0 if there is none
  input logic [5:0] cnm_feedback,  // its |F_b|, above 0

  input logic paused,  // pause or PFC holds the transmitter; tie to 0 if unknown

  `AXIL_SLAVE_PORTS(s_axil, 7)
);
  if (DATA_W < 8 || DATA_W > 1024 || DATA_W != 2 ** $clog2(DATA_W)) begin : gen_check_data_w
    $fatal(1, "%m: DATA_W is %0d; it must be a power of two, 8 to 1024", DATA_W);
  end
  if (64'(CLK_KHZ) * DATA_W < 64'(LINE_MBPS) * 1000) begin : gen_check_clock
    $fatal(1, "%m: CLK_KHZ is %0d; it must be %0d or more to carry %0d Mb/s in %0d bits", CLK_KHZ,
      (64'(LINE_MBPS) * 1000 + DATA_W - 1) / DATA_W, LINE_MBPS, DATA_W);
  end
  if (WITH_QCN > 1) begin : gen_check_qcn
    $fatal(1, "%m: WITH_QCN is %0d; it must be 0 or 1", WITH_QCN);
  end

  penstock_regs_pkg::cc_params_t params;
  penstock_regs_pkg::qcn_params_t qcn_params;
  penstock_pkg::cc_status_t status;
  logic [15:0] overhead;
  logic frame;

  `AXIL_SLAVE(s_axil)

  stream_registers #(
    .CLK_KHZ(CLK_KHZ),
    .LINE_MBPS(LINE_MBPS),
    .WITH_QCN(WITH_QCN)
  ) u_registers (
    .notified(cnp_valid || WITH_QCN == 1 && cnm_valid),
    .*
  );

  stream_limiter #(
    .DATA_W(DATA_W),
    .WITH_QCN(WITH_QCN)
  ) u_limiter (
    .cnp(cnp_valid),
    .*
  );

  assign m_axis_tdata = s_axis_tdata;
  assign m_axis_tkeep = s_axis_tkeep;
  assign m_axis_tuser = s_axis_tuser;
  assign m_axis_tlast = s_axis_tlast;
endmodule
