// SPDX-License-Identifier: Apache-2.0
// tcp_ring_writer_axi and tcp_ring_reader_axi at one memory; the bench is the sender, and takes segments as the framer.
`include "axi_ports.svh"

module tcp_rings_axi_bench
  import tcp_pkg::*;
#(
  parameter int unsigned DATA_W     = 64,
  parameter int unsigned N_STREAMS  = 3,
  parameter int unsigned RING_BYTES = 16384
) (
  input  logic                clk,
  input  logic                rst,
  // messages; tuser is the stream
  input  logic [DATA_W-1:0]   s_axis_tdata,
  input  logic [DATA_W/8-1:0] s_axis_tkeep,
  input  logic [5:0]          s_axis_tuser,
  input  logic                s_axis_tvalid,
  output logic                s_axis_tready,
  input  logic                s_axis_tlast,
  // the sender
  output tcp_write_t          write,
  output logic                write_valid,
  input  logic                write_ready,
  input  tcp_done_t           done,
  input  logic                done_valid,
  output tcp_laid_t           laid,
  output logic                laid_valid,
  input  tcp_params_t         params,
  input  tcp_stream_t         s_stream,
  input  tcp_segment_t        s_segment,
  input  logic                s_valid,
  output logic                room,
  // faults, and accesses under way
  output logic                wr_fault_valid,
  output tcp_stream_t         wr_fault_stream,
  output logic                rd_fault_valid,
  output tcp_stream_t         rd_fault_stream,
  output logic                stat_error,
  output logic [7:0]          unconfirmed,
  output logic [6:0]          unread,
  // segments out
  output tcp_tx_hdr_t         hdr,
  output logic                hdr_valid,
  input  logic                hdr_ready,
  output logic [DATA_W-1:0]   m_axis_tdata,
  output logic [DATA_W/8-1:0] m_axis_tkeep,
  output logic                m_axis_tvalid,
  input  logic                m_axis_tready,
  output logic                m_axis_tlast,
  `AXI_MASTER_PORTS(m_axi, 32, DATA_W)
);
  `AXI_MASTER(m_axi, 32)

  localparam logic [31:0] Base = 32'h0001_0FFF;  // the bits below 4 KiB do not count

  logic confirmed, read, peer_rd;
  tcp_stream_t peer_stream;

  tcp_ring_writer_axi #(
    .DATA_W(DATA_W), .N_STREAMS(N_STREAMS), .RING_BYTES(RING_BYTES), .ADDR_W(32)
  ) u_writer (
    .base_addr   (Base),
    .s_stream    (s_axis_tuser),
    .fault_valid (wr_fault_valid),
    .fault_stream(wr_fault_stream),
    .m_axi_req   (m_axi_req.wr),
    .m_axi_rsp   (m_axi_rsp.wr),
    .*
  );

  tcp_ring_reader_axi #(
    .DATA_W(DATA_W), .RING_BYTES(RING_BYTES), .ADDR_W(32)
  ) u_reader (
    .base_addr   (Base),
    .port_base   (16'd40000),
    .peer        ('0),
    .fault_valid (rd_fault_valid),
    .fault_stream(rd_fault_stream),
    .m_axi_req   (m_axi_req.rd),
    .m_axi_rsp   (m_axi_rsp.rd),
    .*
  );

  wire unused = &{1'b0, confirmed, read, peer_rd, peer_stream};
endmodule
