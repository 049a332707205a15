// SPDX-License-Identifier: SHL-2.1
// The send rings of packet_store in any AXI4 memory: N_QP * RING_BYTES from `base_addr` on (4 KiB aligned).
// A slot is `written` when the memory has confirmed it; only then may it be sent. Packets leave whole, without gaps.
// Bursts stay within 4 KiB and 256 beats, one ID each way, at most 16 reads and 16 writes outstanding.
module packet_store_axi
  import penstock_pkg::*;
#(
  parameter  int unsigned DATA_W     = 64,
  parameter  int unsigned N_QP       = 4,
  parameter  int unsigned RING_BYTES = 4194304,
  parameter  int unsigned ADDR_W     = 64,
  localparam int unsigned Lanes      = DATA_W / 8,
  localparam int unsigned SlotW      = $clog2(RING_BYTES / 256)
) (
  input  logic                   clk,
  input  logic                   rst,
  input  logic [ADDR_W-1:0]      base_addr,
  input  logic                   wr_en,
  input  logic                   wr_end,     // the slot is complete: with its last word, or without any
  input  qp_t                    wr_qp,
  input  logic [SlotW-1:0]       wr_slot,    // low bits of the PSN
  input  mtu_e                   wr_mtu,
  input  logic [DATA_W-1:0]      wr_data,
  output logic                   wr_ready,
  output logic                   written,    // in order, one for each wr_end
  output logic                   written_bad,
  output logic                   job_room,
  input  logic                   job_valid,
  input  qp_t                    job_qp,
  input  logic [SlotW-1:0]       job_slot,
  input  mtu_e                   job_mtu,
  input  logic [PayloadLenW-1:0] job_len,    // bytes, 1 .. MTU
  output logic                   job_done,
  output logic                   packet_valid,  // the oldest packet whose header waits is whole ...
  output logic                   packet_bad,    // ... or could not be read: its header must go too
  input  logic                   packet_taken,
  output logic [DATA_W-1:0]      m_axis_tdata,
  output logic [DATA_W/8-1:0]    m_axis_tkeep,
  output logic                   m_axis_tvalid,
  input  logic                   m_axis_tready,
  output logic                   m_axis_tlast,
  output logic                   stat_write_error,  // slots
  output logic                   stat_read_error,   // packets

  output axi_pkg::axi_req_t      m_axi_req,
  output logic [DATA_W-1:0]      m_axi_wdata,
  input  axi_pkg::axi_rsp_t      m_axi_rsp,
  input  logic [DATA_W-1:0]      m_axi_rdata
);
  localparam int unsigned RingW = $clog2(RING_BYTES);
  // One BRAM is 512 words deep: wide memories get more than they need.
  localparam int unsigned WriteBytes = 512 * Lanes > 8192 ? 512 * Lanes : 8192;
  localparam int unsigned ReadBytes = 512 * Lanes > 16384 ? 512 * Lanes : 16384;

  if (ADDR_W < RingW + $clog2(N_QP) || ADDR_W > 64) begin : gen_bad_addr_w
    $fatal(1, "%m: AXI_ADDR_W is %0d; it must be %0d to 64 for %0d rings of %0d bytes", ADDR_W,
      RingW + $clog2(N_QP), N_QP, RING_BYTES);
  end

  // The ring wraps because both sizes are powers of two.
  function automatic logic [ADDR_W-1:0] slot_address(logic [ADDR_W-13:0] page, qp_t qp, logic [SlotW-1:0] slot,
                                                     mtu_e mtu);
    logic [RingW-1:0] offset;
    offset = RingW'(slot) << (4'd7 + 4'(mtu));
    return {page, 12'b0} + (ADDR_W'(qp) << RingW) + ADDR_W'(offset);
  endfunction

  packet_store_axi_wr #(
    .DATA_W(DATA_W), .ADDR_W(ADDR_W), .BYTES(WriteBytes)
  ) u_wr (
    .clk, .rst,
    .wr_en, .wr_end, .wr_addr(slot_address(base_addr[ADDR_W-1:12], wr_qp, wr_slot, wr_mtu)), .wr_data, .wr_ready,
    .written, .written_bad,
    .m_axi_req(m_axi_req.wr), .m_axi_wdata, .m_axi_rsp(m_axi_rsp.wr)
  );

  packet_store_axi_rd #(
    .DATA_W(DATA_W), .ADDR_W(ADDR_W), .BYTES(ReadBytes)
  ) u_rd (
    .clk, .rst,
    .job_room, .job_valid, .job_addr(slot_address(base_addr[ADDR_W-1:12], job_qp, job_slot, job_mtu)), .job_len, .job_done,
    .packet_valid, .packet_bad, .packet_taken,
    .m_axis_tdata, .m_axis_tkeep, .m_axis_tvalid, .m_axis_tready, .m_axis_tlast,
    .m_axi_req(m_axi_req.rd), .m_axi_rsp(m_axi_rsp.rd), .m_axi_rdata
  );

  assign stat_write_error = written && written_bad;
  assign stat_read_error  = packet_valid && packet_bad && packet_taken;

  wire unused = &{1'b0, base_addr[11:0]};
endmodule
