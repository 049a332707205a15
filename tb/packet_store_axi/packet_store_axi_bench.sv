// SPDX-License-Identifier: Apache-2.0
// packet_store_axi with its slots, jobs and header verdicts as AXI-Streams, so that cocotbext-axi drives them.
`include "axi_ports.svh"

module packet_store_axi_bench
  import penstock_pkg::*;
#(
  parameter int unsigned DATA_W     = 64,
  parameter int unsigned N_QP       = 4,
  parameter int unsigned RING_BYTES = 32768
) (
  input  logic                clk,
  input  logic                rst,
  // a slot: tuser {empty, mtu, slot, qp}; empty: completed without a word
  input  logic [DATA_W-1:0]   s_axis_slot_tdata,
  input  logic [DATA_W/8-1:0] s_axis_slot_tkeep,
  input  logic [31:0]         s_axis_slot_tuser,
  input  logic                s_axis_slot_tvalid,
  output logic                s_axis_slot_tready,
  input  logic                s_axis_slot_tlast,
  output logic                written,
  output logic                written_bad,
  // {len, mtu, slot, qp}
  input  logic [47:0]         s_axis_job_tdata,
  input  logic                s_axis_job_tvalid,
  output logic                s_axis_job_tready,
  output logic                job_done,
  output logic [7:0]          m_axis_header_tdata,
  output logic                m_axis_header_tvalid,
  input  logic                m_axis_header_tready,
  output logic [DATA_W-1:0]   m_axis_tdata,
  output logic [DATA_W/8-1:0] m_axis_tkeep,
  output logic                m_axis_tvalid,
  input  logic                m_axis_tready,
  output logic                m_axis_tlast,
  output logic                stat_write_error,
  output logic                stat_read_error,
  `AXI_MASTER_PORTS(m_axi, 32, DATA_W)
);
  `AXI_MASTER(m_axi, 32)

  localparam int unsigned SlotW = $clog2(RING_BYTES / 256);

  logic packet_bad, slot_en;
  assign slot_en             = s_axis_slot_tvalid && s_axis_slot_tready;
  assign m_axis_header_tdata = 8'(packet_bad);

  packet_store_axi #(
    .DATA_W(DATA_W), .N_QP(N_QP), .RING_BYTES(RING_BYTES), .ADDR_W(32)
  ) u_dut (
    .base_addr   (32'h0001_0FFF),  // the bits below 4 KiB do not count
    .wr_en       (slot_en && !s_axis_slot_tuser[31]),
    .wr_end      (slot_en && s_axis_slot_tlast),
    .wr_qp       (s_axis_slot_tuser[7:0]),
    .wr_slot     (s_axis_slot_tuser[8+:SlotW]),
    .wr_mtu      (mtu_e'(s_axis_slot_tuser[30:28])),
    .wr_data     (s_axis_slot_tdata),
    .wr_ready    (s_axis_slot_tready),
    .job_room    (s_axis_job_tready),
    .job_valid   (s_axis_job_tvalid && s_axis_job_tready),
    .job_qp      (s_axis_job_tdata[7:0]),
    .job_slot    (s_axis_job_tdata[8+:SlotW]),
    .job_mtu     (mtu_e'(s_axis_job_tdata[30:28])),
    .job_len     (s_axis_job_tdata[32+:PayloadLenW]),
    .packet_valid(m_axis_header_tvalid),
    .packet_bad,
    .packet_taken(m_axis_header_tvalid && m_axis_header_tready),
    .*
  );

  wire unused = &{1'b0, s_axis_slot_tkeep, s_axis_slot_tuser, s_axis_job_tdata};
endmodule
