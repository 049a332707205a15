// SPDX-License-Identifier: SHL-2.1
// Two AXI4 masters on one port, distinguished by the ID: that of their transactions is 0 or 1 there, whatever it was.
// Promise: addresses alternate between masters that both offer one; an address that is offered stays; data of writes comes in
// the order of the addresses (AMBA AXI4, A5.2.2: AXI4 has no interleaving of write data), and does not wait until its
// address is taken, as a slave may wait for the data first (A3.3.1). Each master's responses come in its own order, as
// those of one ID do (A5.3); it takes them when it can, and the other's wait after them.
module axi_mux
  import axi_pkg::*;
#(
  parameter int unsigned DATA_W = 64,
  parameter int unsigned WRITES = 32  // whose data has not gone yet
) (
  input  logic clk,
  input  logic rst,

  input  axi_req_t [1:0]         s_axi_req,
  input  logic [1:0][DATA_W-1:0] s_axi_wdata,
  output axi_rsp_t [1:0]         s_axi_rsp,  // the words that are read go to both

  output axi_req_t               m_axi_req,
  output logic [DATA_W-1:0]      m_axi_wdata,
  input  axi_rsp_t               m_axi_rsp
);
  // ---- addresses: the one that waits, or the other master's turn ---------------------------------------------------
  logic ar_at, ar_at_q, ar_held_q, aw_at, aw_at_q, aw_held_q, aw_comes, order_room;
  assign ar_at = ar_held_q ? ar_at_q : s_axi_req[!ar_at_q].rd.arvalid ? !ar_at_q : ar_at_q;
  assign aw_at = aw_held_q ? aw_at_q : s_axi_req[!aw_at_q].wr.awvalid ? !aw_at_q : aw_at_q;
  assign aw_comes = m_axi_req.wr.awvalid && !aw_held_q;
  always_ff @(posedge clk) begin
    ar_held_q <= m_axi_req.rd.arvalid && !m_axi_rsp.rd.arready && !rst;
    aw_held_q <= m_axi_req.wr.awvalid && !m_axi_rsp.wr.awready && !rst;
    if (m_axi_req.rd.arvalid) ar_at_q <= ar_at;
    if (m_axi_req.wr.awvalid) aw_at_q <= aw_at;
    if (rst) begin
      ar_at_q <= 1'b0;
      aw_at_q <= 1'b0;
    end
  end

  // ---- data of writes, in the order of their addresses -------------------------------------------------------------
  logic w_at, w_there, w_ends;
  logic [$clog2(WRITES):0] unused_level;
  assign w_ends = m_axi_req.wr.wvalid && m_axi_rsp.wr.wready && m_axi_req.wr.wlast;
  sync_fifo #(.W(1), .DEPTH(WRITES)) u_order (
    .clk, .rst,
    .s_data (aw_at),
    .s_valid(aw_comes),
    .s_ready(order_room),
    .m_data (w_at),
    .m_valid(w_there),
    .m_ready(w_ends),
    .level  (unused_level)
  );
  assign m_axi_wdata = s_axi_wdata[w_at];

  always_comb begin
    m_axi_req.wr.aw      = s_axi_req[aw_at].wr.aw;
    m_axi_req.wr.aw.id   = aw_at;
    m_axi_req.wr.awvalid = s_axi_req[aw_at].wr.awvalid && (order_room || aw_held_q);
    m_axi_req.wr.wlast   = s_axi_req[w_at].wr.wlast;
    m_axi_req.wr.wlanes  = s_axi_req[w_at].wr.wlanes;
    m_axi_req.wr.wstrb   = s_axi_req[w_at].wr.wstrb;
    m_axi_req.wr.wvalid  = s_axi_req[w_at].wr.wvalid && w_there;
    m_axi_req.wr.bready  = s_axi_req[m_axi_rsp.wr.bid].wr.bready;
    m_axi_req.rd.ar      = s_axi_req[ar_at].rd.ar;
    m_axi_req.rd.ar.id   = ar_at;
    m_axi_req.rd.arvalid = s_axi_req[ar_at].rd.arvalid;
    m_axi_req.rd.rready  = s_axi_req[m_axi_rsp.rd.rid].rd.rready;
    for (int unsigned i = 0; i < 2; i++) begin
      s_axi_rsp[i]            = m_axi_rsp;
      s_axi_rsp[i].wr.awready = m_axi_rsp.wr.awready && aw_at == 1'(i) && (order_room || aw_held_q);
      s_axi_rsp[i].wr.wready  = m_axi_rsp.wr.wready && w_there && w_at == 1'(i);
      s_axi_rsp[i].wr.bvalid  = m_axi_rsp.wr.bvalid && m_axi_rsp.wr.bid == 1'(i);
      s_axi_rsp[i].rd.arready = m_axi_rsp.rd.arready && ar_at == 1'(i);
      s_axi_rsp[i].rd.rvalid  = m_axi_rsp.rd.rvalid && m_axi_rsp.rd.rid == 1'(i);
    end
  end

  wire unused = &{1'b0, s_axi_req, unused_level};

`ifndef SYNTHESIS
  a_aw_hold : assert property (@(posedge clk) disable iff (rst)
    m_axi_req.wr.awvalid && !m_axi_rsp.wr.awready |=> m_axi_req.wr.awvalid && $stable(m_axi_req.wr.aw));
  a_w_hold : assert property (@(posedge clk) disable iff (rst)
    m_axi_req.wr.wvalid && !m_axi_rsp.wr.wready
    |=> m_axi_req.wr.wvalid && $stable(m_axi_wdata) && $stable(m_axi_req.wr.wlast));
  a_ar_hold : assert property (@(posedge clk) disable iff (rst)
    m_axi_req.rd.arvalid && !m_axi_rsp.rd.arready |=> m_axi_req.rd.arvalid && $stable(m_axi_req.rd.ar));
`endif
endmodule
