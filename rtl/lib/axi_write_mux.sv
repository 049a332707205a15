// SPDX-License-Identifier: SHL-2.1
// Two masters that write by AXI4 as one, with the ID 0: their responses are told apart by the order of the addresses, in
// which those of one ID come (AMBA AXI4, A5.3).
// Promise: addresses alternate between masters that both offer one; an address that is offered stays; data comes in the
// order of the addresses (A5.2.2) and does not wait until its address is taken (A3.3.1). Each master takes its responses
// when they come.
module axi_write_mux
  import axi_pkg::*;
#(
  parameter int unsigned DATA_W = 64,
  parameter int unsigned WRITES = 32  // without a response
) (
  input  logic clk,
  input  logic rst,

  input  axi_wr_req_t [1:0]      s_axi_req,
  input  logic [1:0][DATA_W-1:0] s_axi_wdata,
  output axi_wr_rsp_t [1:0]      s_axi_rsp,

  output axi_wr_req_t            m_axi_req,
  output logic [DATA_W-1:0]      m_axi_wdata,
  input  axi_wr_rsp_t            m_axi_rsp
);
  // ---- addresses: the one that waits, or the other master's turn ---------------------------------------------------
  logic aw_at, aw_at_q, aw_held_q, aw_comes, data_room, answer_room, may_offer;
  assign aw_at     = aw_held_q ? aw_at_q : s_axi_req[!aw_at_q].awvalid ? !aw_at_q : aw_at_q;
  assign aw_comes  = m_axi_req.awvalid && !aw_held_q;
  assign may_offer = (data_room && answer_room) || aw_held_q;
  always_ff @(posedge clk) begin
    aw_held_q <= m_axi_req.awvalid && !m_axi_rsp.awready && !rst;
    if (m_axi_req.awvalid) aw_at_q <= aw_at;
    if (rst) aw_at_q <= 1'b0;
  end

  // ---- data and responses, in the order of the addresses -----------------------------------------------------------
  logic w_at, w_there, w_ends, b_at, unused_there;
  logic [$clog2(WRITES):0] unused_w_level, unused_b_level;
  assign w_ends = m_axi_req.wvalid && m_axi_rsp.wready && m_axi_req.wlast;
  sync_fifo #(.W(1), .DEPTH(WRITES)) u_data (
    .clk, .rst,
    .s_data (aw_at),
    .s_valid(aw_comes),
    .s_ready(data_room),
    .m_data (w_at),
    .m_valid(w_there),
    .m_ready(w_ends),
    .level  (unused_w_level)
  );
  sync_fifo #(.W(1), .DEPTH(WRITES)) u_answers (
    .clk, .rst,
    .s_data (aw_at),
    .s_valid(aw_comes),
    .s_ready(answer_room),
    .m_data (b_at),
    .m_valid(unused_there),
    .m_ready(m_axi_rsp.bvalid && m_axi_req.bready),
    .level  (unused_b_level)
  );
  assign m_axi_wdata = s_axi_wdata[w_at];

  always_comb begin
    m_axi_req         = s_axi_req[w_at];
    m_axi_req.aw      = s_axi_req[aw_at].aw;
    m_axi_req.aw.id   = '0;
    m_axi_req.awvalid = s_axi_req[aw_at].awvalid && may_offer;
    m_axi_req.wvalid  = s_axi_req[w_at].wvalid && w_there;
    m_axi_req.bready  = s_axi_req[b_at].bready;
    for (int unsigned i = 0; i < 2; i++) begin
      s_axi_rsp[i]         = m_axi_rsp;
      s_axi_rsp[i].awready = m_axi_rsp.awready && aw_at == 1'(i) && may_offer;
      s_axi_rsp[i].wready  = m_axi_rsp.wready && w_there && w_at == 1'(i);
      s_axi_rsp[i].bvalid  = m_axi_rsp.bvalid && b_at == 1'(i);
    end
  end

  wire unused = &{1'b0, s_axi_req, unused_there, unused_w_level, unused_b_level};

`ifndef SYNTHESIS
  a_aw_hold : assert property (@(posedge clk) disable iff (rst)
    m_axi_req.awvalid && !m_axi_rsp.awready |=> m_axi_req.awvalid && $stable(m_axi_req.aw));
  a_w_hold : assert property (@(posedge clk) disable iff (rst)
    m_axi_req.wvalid && !m_axi_rsp.wready |=> m_axi_req.wvalid && $stable(m_axi_wdata) && $stable(m_axi_req.wlast));
  a_due : assert property (@(posedge clk) disable iff (rst) m_axi_rsp.bvalid |-> unused_there);
`endif
endmodule
