// SPDX-License-Identifier: SHL-2.1
// The send rings of packet_store in any AXI4 memory: N_QP * RING_BYTES from `base_addr` on (4 KiB aligned).
// A slot is `written` when the memory has said so; only then may it be sent. Packets leave whole, without gaps.
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

  output logic [0:0]             m_axi_awid,
  output logic [ADDR_W-1:0]      m_axi_awaddr,
  output logic [7:0]             m_axi_awlen,
  output logic [2:0]             m_axi_awsize,
  output logic [1:0]             m_axi_awburst,
  output logic                   m_axi_awlock,
  output logic [3:0]             m_axi_awcache,
  output logic [2:0]             m_axi_awprot,
  output logic                   m_axi_awvalid,
  input  logic                   m_axi_awready,
  output logic [DATA_W-1:0]      m_axi_wdata,
  output logic [DATA_W/8-1:0]    m_axi_wstrb,
  output logic                   m_axi_wlast,
  output logic                   m_axi_wvalid,
  input  logic                   m_axi_wready,
  input  logic [0:0]             m_axi_bid,
  input  logic [1:0]             m_axi_bresp,
  input  logic                   m_axi_bvalid,
  output logic                   m_axi_bready,
  output logic [0:0]             m_axi_arid,
  output logic [ADDR_W-1:0]      m_axi_araddr,
  output logic [7:0]             m_axi_arlen,
  output logic [2:0]             m_axi_arsize,
  output logic [1:0]             m_axi_arburst,
  output logic                   m_axi_arlock,
  output logic [3:0]             m_axi_arcache,
  output logic [2:0]             m_axi_arprot,
  output logic                   m_axi_arvalid,
  input  logic                   m_axi_arready,
  input  logic [0:0]             m_axi_rid,
  input  logic [DATA_W-1:0]      m_axi_rdata,
  input  logic [1:0]             m_axi_rresp,
  input  logic                   m_axi_rlast,
  input  logic                   m_axi_rvalid,
  output logic                   m_axi_rready
);
  localparam int unsigned RingW = $clog2(RING_BYTES);
  // One BRAM is 512 words deep: wide memories get more than they need.
  localparam int unsigned WriteBytes = 512 * Lanes > 8192 ? 512 * Lanes : 8192;
  localparam int unsigned ReadBytes = 512 * Lanes > 16384 ? 512 * Lanes : 16384;

  if (ADDR_W < RingW + $clog2(N_QP) || ADDR_W > 64) begin : g_bad_addr_w
    $fatal(1, "%m: ADDR_W %0d cannot address %0d rings of %0d bytes", ADDR_W, N_QP, RING_BYTES);
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
    .m_axi_awaddr, .m_axi_awlen, .m_axi_awvalid, .m_axi_awready,
    .m_axi_wdata, .m_axi_wlast, .m_axi_wvalid, .m_axi_wready,
    .m_axi_bresp, .m_axi_bvalid, .m_axi_bready
  );

  packet_store_axi_rd #(
    .DATA_W(DATA_W), .ADDR_W(ADDR_W), .BYTES(ReadBytes)
  ) u_rd (
    .clk, .rst,
    .job_room, .job_valid, .job_addr(slot_address(base_addr[ADDR_W-1:12], job_qp, job_slot, job_mtu)), .job_len, .job_done,
    .packet_valid, .packet_bad, .packet_taken,
    .m_axis_tdata, .m_axis_tkeep, .m_axis_tvalid, .m_axis_tready, .m_axis_tlast,
    .m_axi_araddr, .m_axi_arlen, .m_axi_arvalid, .m_axi_arready,
    .m_axi_rdata, .m_axi_rresp, .m_axi_rlast, .m_axi_rvalid, .m_axi_rready
  );

  assign stat_write_error = written && written_bad;
  assign stat_read_error  = packet_valid && packet_bad && packet_taken;

  assign m_axi_awid    = '0;
  assign m_axi_awsize  = 3'($clog2(Lanes));
  assign m_axi_awburst = 2'b01;    // INCR
  assign m_axi_awlock  = 1'b0;
  assign m_axi_awcache = 4'b0011;  // normal, not cached
  assign m_axi_awprot  = 3'b010;   // data, not secure
  assign m_axi_wstrb   = '1;       // what lies behind a packet's end is never read
  assign m_axi_arid    = '0;
  assign m_axi_arsize  = 3'($clog2(Lanes));
  assign m_axi_arburst = 2'b01;
  assign m_axi_arlock  = 1'b0;
  assign m_axi_arcache = 4'b0011;
  assign m_axi_arprot  = 3'b010;

  wire unused = &{1'b0, base_addr[11:0], m_axi_bid, m_axi_rid};
endmodule
