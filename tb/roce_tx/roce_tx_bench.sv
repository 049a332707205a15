// SPDX-License-Identifier: Apache-2.0
// roce_tx with the parts that the bench would otherwise have to model every cycle: the queue-pair table, and
// headers as an AXI-Stream. With STORE = 1 the send rings are in the memory at m_axi.
`include "axi_ports.svh"

module roce_tx_bench
  import penstock_pkg::*;
#(
  parameter int unsigned DATA_W     = 64,
  parameter int unsigned N_QP       = 4,
  parameter int unsigned RING_BYTES = 32768,
  parameter int unsigned SLOTS      = 32,
  parameter int unsigned CLK_KHZ    = 7812,  // a tick of 8 cycles: timeouts within a short run
  parameter int unsigned STORE      = 0,
  parameter bit          RETRANSMIT = 1'b1
) (
  input  logic                clk,
  input  logic                rst,
  input  logic [23:0]         qpn_base,
  input  logic                cut_through,
  input  logic [31:0]         keep_alive_ticks,
  input  logic [175:0]        s_axis_desc_tdata,
  input  logic                s_axis_desc_tvalid,
  output logic                s_axis_desc_tready,
  input  logic [DATA_W-1:0]   s_axis_data_tdata,
  input  logic [DATA_W/8-1:0] s_axis_data_tkeep,
  input  logic                s_axis_data_tvalid,
  output logic                s_axis_data_tready,
  input  logic                s_axis_data_tlast,
  output logic [63:0]         m_axis_cpl_tdata,
  output logic                m_axis_cpl_tvalid,
  input  logic                m_axis_cpl_tready,
  output logic [343:0]        m_axis_hdr_tdata,
  output logic                m_axis_hdr_tvalid,
  input  logic                m_axis_hdr_tready,
  output logic [DATA_W-1:0]   m_axis_tdata,
  output logic [DATA_W/8-1:0] m_axis_tkeep,
  output logic                m_axis_tvalid,
  input  logic                m_axis_tready,
  output logic                m_axis_tlast,
  input  logic [63:0]         ack,
  input  logic                ack_valid,
  input  logic                table_wr,
  input  qp_t                 table_qp,
  input  logic [197:0]        table_row,
  input  logic                cmd_valid,
  input  qp_t                 cmd_qp,
  input  logic [2:0]          cmd_state,
  output logic                qp_err_valid,
  output qp_t                 qp_err_qp,
  output logic                stale,
  input  logic [N_QP-1:0]     cc_eligible,
  output logic                sent_valid,
  output qp_t                 sent_qp,
  output logic [15:0]         sent_bytes,
  input  logic                tx_paused,
  output logic                store_write_error,
  output logic                store_read_error,
  `AXI_MASTER_PORTS(m_axi, 32, DATA_W),
  input  qp_t                 st_qp,
  input  logic [3:0]          st_count,
  output logic [2:0]          st_state,
  output logic                st_drained,
  output psn_t                st_una,
  output psn_t                st_nxt,
  output psn_t                st_wr,
  output logic [31:0]         st_value,
  input  logic                clear_counters,
  input  logic                latency_rd,
  input  logic [15:0]         latency_addr,
  output logic                latency_ack,
  output logic [31:0]         latency_data
);
  `AXI_MASTER(m_axi, 32)

  tx_hdr_t hdr;
  qp_t unused_hdr_qp;
  logic cfg_rd;
  qp_t cfg_qp, stat_qp;
  qp_cfg_t rows[256], cfg;
  logic stat_valid, stat_init;
  psn_t stat_psn;
  logic [PayloadLenW-1:0] stat_bytes;
  roce_tx_pkg::outcome_t stat;
  roce_tx_pkg::ring_status_t stat_status;
  ctrl_pkg::reg_req_t latency_req;
  ctrl_pkg::reg_rsp_t latency_rsp;
  logic [N_QP-1:0] unused_backlog, ready;
  qp_state_e state;

  assign m_axis_hdr_tdata = 344'(hdr);
  assign st_state = state;

  always_ff @(posedge clk) begin
    if (table_wr) rows[table_qp] <= qp_cfg_t'(table_row);
    if (cfg_rd) cfg <= rows[cfg_qp];
    // As qp_table has it.
    if (qp_err_valid) ready[$clog2(N_QP)'(qp_err_qp)] <= 1'b0;
    if (cmd_valid && cmd_state inside {QpReset, QpRts, QpErr}) ready[$clog2(N_QP)'(cmd_qp)] <= cmd_state == QpRts;
    if (rst) ready <= '0;
  end

  roce_tx #(
    .DATA_W(DATA_W), .N_QP(N_QP), .RING_BYTES(RING_BYTES), .SLOTS(SLOTS), .CLK_KHZ(CLK_KHZ),
    .STORE(STORE), .AXI_ADDR_W(32), .RETRANSMIT(RETRANSMIT)
  ) u_dut (
    .clk, .rst,
    .qpn_base, .cut_through, .keep_alive_ticks,
    .s_axis_desc_tdata, .s_axis_desc_tvalid, .s_axis_desc_tready,
    .s_axis_data_tdata, .s_axis_data_tkeep, .s_axis_data_tvalid, .s_axis_data_tready, .s_axis_data_tlast,
    .m_axis_cpl_tdata, .m_axis_cpl_tvalid, .m_axis_cpl_tready,
    .hdr, .hdr_qp(unused_hdr_qp), .hdr_valid(m_axis_hdr_tvalid), .hdr_ready(m_axis_hdr_tready),
    .m_axis_tdata, .m_axis_tkeep, .m_axis_tvalid, .m_axis_tready, .m_axis_tlast,
    .ack(ack_event_t'(ack)), .ack_valid,
    .cfg_rd, .cfg_qp, .cfg,
    .cmd_valid, .cmd_qp, .cmd_state(qp_state_e'(cmd_state)),
    .qp_err_valid, .qp_err_qp, .ready, .stale,
    .cc_eligible, .backlog(unused_backlog), .sent_valid, .sent_qp, .sent_bytes, .tx_paused,
    .store_base(32'h0010_0000), .store_write_error, .store_read_error,
    .m_axi_req, .m_axi_wdata, .m_axi_rsp, .m_axi_rdata,
    .st_qp, .st_state(state), .st_drained, .st_una, .st_nxt, .st_wr, .st_count(roce_tx_pkg::qp_count_e'(st_count)),
    .st_value, .clear_counters,
    .stat_valid, .stat_init, .stat_qp, .stat_psn, .stat_bytes, .stat, .stat_status
  );

  latency_histogram #(.N_QP(N_QP)) u_latency (
    .clk, .rst, .clear(clear_counters),
    .stat_valid, .stat_init, .stat_qp, .stat_psn, .stat, .stat_status,
    .req(latency_req), .rsp(latency_rsp)
  );
  assign latency_req = '{valid: latency_rd, is_wr: 1'b0, addr: latency_addr, wr_data: '0, wr_biten: '0};
  assign latency_ack  = latency_rsp.rd_ack;
  assign latency_data = latency_rsp.rd_data;
  wire unused = &{1'b0, latency_rsp.wr_ack, stat_bytes};
endmodule
