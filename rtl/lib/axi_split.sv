// SPDX-License-Identifier: SHL-2.1
// One AXI4 master on two slaves, chosen by bit 63 of the address; slave 1 gets those with the bit set.
// Promise: each transaction goes to the slave of its address alone, and responses come in the order of the requests,
// whatever their IDs (AMBA AXI4, A5.3): an address for the other slave waits until all responses to earlier ones of its
// direction have come. Data of writes follows the offer of its address, and does not wait until that is taken (A3.3.1).
module axi_split
  import axi_pkg::*;
#(
  parameter int unsigned PENDING = 64  // transactions of a direction without a last response, at most
) (
  input  logic           clk,
  input  logic           rst,

  input  axi_req_t       s_axi_req,
  output axi_rsp_t       s_axi_rsp,
  output logic           s_axi_rd_at,  // the slave whose words are read; those that are written go to both

  output axi_req_t [1:0] m_axi_req,
  input  axi_rsp_t [1:0] m_axi_rsp
);
  localparam int unsigned CountW = $clog2(PENDING + 1);

  // ---- addresses: the slave of the transactions under way, or that of the address that begins -----------------
  logic [CountW-1:0] wr_open_q, rd_open_q, ahead_q;  // without a last response; ahead: without their last word
  logic wr_at_q, rd_at_q, aw_to, ar_to, aw_goes, ar_goes, aw_held_q, ar_held_q, aw_comes, ar_comes;
  assign aw_to    = s_axi_req.wr.aw.addr[63];
  assign ar_to    = s_axi_req.rd.ar.addr[63];
  assign aw_goes  = s_axi_req.wr.awvalid && (aw_held_q || (wr_open_q != CountW'(PENDING) && (wr_open_q == '0 || wr_at_q == aw_to)));
  assign ar_goes  = s_axi_req.rd.arvalid && (ar_held_q || (rd_open_q != CountW'(PENDING) && (rd_open_q == '0 || rd_at_q == ar_to)));
  assign aw_comes = aw_goes && !aw_held_q;
  assign ar_comes = ar_goes && !ar_held_q;

  // ---- words and responses: of the slave whose transactions are under way -------------------------------------
  logic w_goes, w_ends, b_comes, r_ends;
  assign w_goes  = s_axi_req.wr.wvalid && ahead_q != '0;
  assign w_ends  = w_goes && s_axi_rsp.wr.wready && s_axi_req.wr.wlast;
  assign b_comes = s_axi_rsp.wr.bvalid && s_axi_req.wr.bready;
  assign r_ends  = s_axi_rsp.rd.rvalid && s_axi_req.rd.rready && s_axi_rsp.rd.rlast;
  assign s_axi_rd_at = rd_at_q;

  always_comb begin
    for (int unsigned i = 0; i < 2; i++) begin
      m_axi_req[i]            = s_axi_req;
      m_axi_req[i].wr.awvalid = aw_goes && aw_to == 1'(i);
      m_axi_req[i].wr.wvalid  = w_goes && wr_at_q == 1'(i);
      m_axi_req[i].wr.bready  = s_axi_req.wr.bready && wr_at_q == 1'(i);
      m_axi_req[i].rd.arvalid = ar_goes && ar_to == 1'(i);
      m_axi_req[i].rd.rready  = s_axi_req.rd.rready && rd_at_q == 1'(i);
    end
    s_axi_rsp.wr         = m_axi_rsp[wr_at_q].wr;
    s_axi_rsp.wr.awready = aw_goes && m_axi_rsp[aw_to].wr.awready;
    s_axi_rsp.wr.wready  = m_axi_rsp[wr_at_q].wr.wready && ahead_q != '0;
    s_axi_rsp.rd         = m_axi_rsp[rd_at_q].rd;
    s_axi_rsp.rd.arready = ar_goes && m_axi_rsp[ar_to].rd.arready;
  end

  always_ff @(posedge clk) begin
    aw_held_q <= aw_goes && !s_axi_rsp.wr.awready;
    ar_held_q <= ar_goes && !s_axi_rsp.rd.arready;
    if (aw_comes) wr_at_q <= aw_to;
    if (ar_comes) rd_at_q <= ar_to;
    wr_open_q <= wr_open_q + CountW'(aw_comes) - CountW'(b_comes);
    rd_open_q <= rd_open_q + CountW'(ar_comes) - CountW'(r_ends);
    ahead_q   <= ahead_q + CountW'(aw_comes) - CountW'(w_ends);
    if (rst) begin
      {aw_held_q, ar_held_q, wr_at_q, rd_at_q} <= '0;
      {wr_open_q, rd_open_q, ahead_q}          <= '0;
    end
  end

`ifndef SYNTHESIS
  for (genvar i = 0; i < 2; i++) begin : gen_asserts
    a_aw_hold : assert property (@(posedge clk) disable iff (rst)
      m_axi_req[i].wr.awvalid && !m_axi_rsp[i].wr.awready
      |=> m_axi_req[i].wr.awvalid && $stable(m_axi_req[i].wr.aw));
    a_ar_hold : assert property (@(posedge clk) disable iff (rst)
      m_axi_req[i].rd.arvalid && !m_axi_rsp[i].rd.arready
      |=> m_axi_req[i].rd.arvalid && $stable(m_axi_req[i].rd.ar));
  end
`endif
endmodule
