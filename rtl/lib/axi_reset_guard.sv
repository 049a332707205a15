// SPDX-License-Identifier: SHL-2.1
// The AXI4 port of masters that may be reset while the memory is not: `rst` resets them, and not what is here.
// Promise: the memory sees whole bursts of AXI4, and offers that stay until they are taken (AMBA AXI4, A3.2.1, A3.4.1),
// at whatever moment `rst` comes. A write burst that it cuts is completed without strobes, which changes no byte. The
// responses to all bursts that began before are taken here; only then may a new burst begin, so no master gets the
// response to a burst that it did not request. `m_axi_rst` is the reset of the memory's side: that forgets all bursts.
//
//   s_axi --> [AW][W][AR] --> m_axi      one register each, and the lengths of the bursts whose data has not gone
//   s_axi <----(B, R)-------- m_axi      none while the port is closed
module axi_reset_guard
  import axi_pkg::*;
#(
  parameter  int unsigned DATA_W      = 64,
  parameter  int unsigned BURSTS      = 16,  // whose address has come and whose data has not gone
  parameter  int unsigned OUTSTANDING = 32,  // bursts each way without their last response
  localparam int unsigned CountW      = $clog2(OUTSTANDING + 1)
) (
  input  logic clk,
  input  logic rst,        // of the masters; 1 while m_axi_rst is
  input  logic m_axi_rst,  // of the memory's side, synchronous to clk

  input  axi_req_t          s_axi_req,
  input  logic [DATA_W-1:0] s_axi_wdata,
  output axi_rsp_t          s_axi_rsp,

  output axi_req_t          m_axi_req,
  output logic [DATA_W-1:0] m_axi_wdata,
  input  axi_rsp_t          m_axi_rsp
);
  typedef logic [CountW-1:0] count_t;

  // ---- closed from a reset of the masters on until the memory owes nothing of before --------------------------------
  logic closed, draining_q;
  count_t writes_q, reads_q;  // bursts from their address, taken here, to their last response
  logic aw_taken, ar_taken, b_taken, r_ends;
  assign closed   = rst || draining_q;
  assign aw_taken = s_axi_req.wr.awvalid && s_axi_rsp.wr.awready;
  assign ar_taken = s_axi_req.rd.arvalid && s_axi_rsp.rd.arready;
  assign b_taken  = m_axi_rsp.wr.bvalid && m_axi_req.wr.bready;
  assign r_ends   = m_axi_rsp.rd.rvalid && m_axi_req.rd.rready && m_axi_rsp.rd.rlast;

  always_ff @(posedge clk) begin
    draining_q <= rst || (draining_q && (writes_q != '0 || reads_q != '0));
    writes_q   <= writes_q + count_t'(aw_taken) - count_t'(b_taken);
    reads_q    <= reads_q + count_t'(ar_taken) - count_t'(r_ends);
    if (m_axi_rst) {writes_q, reads_q} <= '0;
  end

  // ---- addresses ----------------------------------------------------------------------------------------------------
  axi_addr_t aw_q, ar_q;
  logic aw_valid_q, ar_valid_q, aw_free, ar_free, lens_room;
  assign aw_free = (!aw_valid_q || m_axi_rsp.wr.awready) && lens_room && writes_q != count_t'(OUTSTANDING);
  assign ar_free = (!ar_valid_q || m_axi_rsp.rd.arready) && reads_q != count_t'(OUTSTANDING);

  always_ff @(posedge clk) begin
    if (aw_taken) aw_q <= s_axi_req.wr.aw;
    if (ar_taken) ar_q <= s_axi_req.rd.ar;
    aw_valid_q <= aw_taken || (aw_valid_q && !m_axi_rsp.wr.awready);
    ar_valid_q <= ar_taken || (ar_valid_q && !m_axi_rsp.rd.arready);
    if (m_axi_rst) {aw_valid_q, ar_valid_q} <= '0;
  end

  // ---- data of writes: not before its address, as an address that the masters withdrew would leave it alone ---------
  logic w_due, w_free, w_loads, at_end, w_valid_q, wlast_q, wstrb_q;
  lanes_t wlanes_q;
  logic [7:0] len, sent_q;  // of the oldest burst whose data has not gone: its beats - 1, and those that have
  logic [$clog2(BURSTS):0] unused_level;
  sync_fifo #(.W(8), .DEPTH(BURSTS)) u_lens (
    .clk,
    .rst    (m_axi_rst),
    .s_data (s_axi_req.wr.aw.len),
    .s_valid(aw_taken),
    .s_ready(lens_room),
    .m_data (len),
    .m_valid(w_due),
    .m_ready(w_loads && at_end),
    .level  (unused_level)
  );
  assign w_free  = w_due && (!w_valid_q || m_axi_rsp.wr.wready);
  assign w_loads = w_free && (closed || s_axi_req.wr.wvalid);
  assign at_end  = sent_q == len;

  always_ff @(posedge clk) begin
    if (w_loads) begin
      m_axi_wdata <= s_axi_wdata;
      wlast_q     <= at_end;
      wlanes_q    <= s_axi_req.wr.wlanes;
      wstrb_q     <= !closed;
      sent_q      <= at_end ? '0 : sent_q + 1'b1;
    end
    w_valid_q <= w_loads || (w_valid_q && !m_axi_rsp.wr.wready);
    if (m_axi_rst) begin
      w_valid_q <= 1'b0;
      sent_q    <= '0;
    end
  end

  // ---- both sides ---------------------------------------------------------------------------------------------------
  always_comb begin
    m_axi_req.wr.aw      = aw_q;
    m_axi_req.wr.awvalid = aw_valid_q;
    m_axi_req.wr.wlast   = wlast_q;
    m_axi_req.wr.wlanes  = wlanes_q;
    m_axi_req.wr.wstrb   = wstrb_q;
    m_axi_req.wr.wvalid  = w_valid_q;
    m_axi_req.wr.bready  = closed || s_axi_req.wr.bready;
    m_axi_req.rd.ar      = ar_q;
    m_axi_req.rd.arvalid = ar_valid_q;
    m_axi_req.rd.rready  = closed || s_axi_req.rd.rready;

    s_axi_rsp            = m_axi_rsp;
    s_axi_rsp.wr.awready = aw_free && !closed;
    s_axi_rsp.wr.wready  = w_free && !closed;
    s_axi_rsp.wr.bvalid  = m_axi_rsp.wr.bvalid && !closed;
    s_axi_rsp.rd.arready = ar_free && !closed;
    s_axi_rsp.rd.rvalid  = m_axi_rsp.rd.rvalid && !closed;
  end

  wire unused = &{1'b0, s_axi_req, unused_level};

`ifndef SYNTHESIS
  a_rst : assert property (@(posedge clk) m_axi_rst |-> rst);
  a_wlast : assert property (@(posedge clk) disable iff (closed)
    s_axi_req.wr.wvalid && s_axi_rsp.wr.wready |-> s_axi_req.wr.wlast == at_end);
  a_b_due : assert property (@(posedge clk) disable iff (m_axi_rst) m_axi_rsp.wr.bvalid |-> writes_q != '0);
  a_r_due : assert property (@(posedge clk) disable iff (m_axi_rst) m_axi_rsp.rd.rvalid |-> reads_q != '0);
`endif
endmodule
