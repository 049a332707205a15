// SPDX-License-Identifier: SHL-2.1
// fragment_keeper with its memory, descriptors and READs as flat ports.
`include "axi_ports.svh"
module fragment_keeper_bench
  import penstock_pkg::*;
  import pull_pkg::*;
#(
  parameter int unsigned DATA_W = 64,
  parameter int unsigned N_QP   = 4,
  parameter int unsigned SLOTS  = 64
) (
  input  logic                        clk,
  input  logic                        rst,
  input  logic [31:0]                 stride,
  input  logic [239:0]                s_axis_desc_tdata,  // the event's number, the descriptor
  input  logic                        s_axis_desc_tvalid,
  output logic                        s_axis_desc_tready,
  input  logic [DATA_W-1:0]           s_axis_data_tdata,
  input  logic [DATA_W/8-1:0]         s_axis_data_tkeep,
  input  logic                        s_axis_data_tvalid,
  output logic                        s_axis_data_tready,
  input  logic                        s_axis_data_tlast,
  output logic [175:0]                m_axis_desc_tdata,
  output logic                        m_axis_desc_tvalid,
  input  logic                        m_axis_desc_tready,
  output logic [DATA_W-1:0]           m_axis_data_tdata,
  output logic [DATA_W/8-1:0]         m_axis_data_tkeep,
  output logic                        m_axis_data_tvalid,
  input  logic                        m_axis_data_tready,
  output logic                        m_axis_data_tlast,
  input  logic                        cpl_valid,
  input  logic [63:0]                 cpl,
  output logic                        cpl_room,
  input  logic                        read_valid,
  input  logic [$bits(read_taken_t)-1:0] read_taken,
  input  logic                        reading,
  output logic                        hold,
  output logic                        cfg_rd,
  output qp_t                         cfg_qp,
  input  logic [$bits(roce_read_pkg::read_cfg_t)-1:0] window,
  input  logic [N_QP-1:0]             ready,
  output logic                        fault_valid,
  output qp_t                         fault_qp,
  output logic                        stat_announced,
  output logic                        stat_dropped,
  output logic                        stat_refused,
  `AXI_MASTER_PORTS(m_axi, 32, DATA_W)
);
  `AXI_MASTER(m_axi, 32)

  fragment_keeper #(.DATA_W(DATA_W), .N_QP(N_QP), .SLOTS(SLOTS)) u_dut (
    .s_axis_desc_tdata(s_axis_desc_tdata[175:0]),
    .s_event_number   (s_axis_desc_tdata[239:176]),
    .m_axi_req        (m_axi_req.wr),
    .m_axi_wdata,
    .m_axi_rsp        (m_axi_rsp.wr),
    .*
  );
  assign m_axi_req.rd = '0;
  wire unused = &{1'b0, m_axi_rsp.rd, m_axi_rdata};
endmodule
