// SPDX-License-Identifier: SHL-2.1
// Promises of the split of one AXI4 master between two slaves: each transfer of each channel is the master's, unchanged, and
// at the slave of its address; while transactions of a direction are at one slave, none is at the other, so words go to
// the slave of their burst and responses come in the order of the requests; nothing is lost or invented; what is offered
// stays; an address goes once there is nothing at the other slave.
// Assumed: the master keeps what it offers, and offers words only of bursts whose address it has offered; slaves answer
// what has come.
module axi_split_props
  import axi_pkg::*;
#(
  parameter int unsigned PENDING = 3
) (
  input logic           clk,
  input logic           rst,
  input axi_req_t       s_axi_req,
  input axi_rsp_t       s_axi_rsp,
  input logic           s_axi_rd_at,
  input axi_req_t [1:0] m_axi_req,
  input axi_rsp_t [1:0] m_axi_rsp,
  // inside
  input logic [$clog2(PENDING + 1)-1:0] wr_open_q, rd_open_q, ahead_q,
  input logic           wr_at_q, rd_at_q, aw_held_q, ar_held_q
);
  typedef logic [3:0] count_t;

  logic started_q = 1'b0;
  always_ff @(posedge clk) started_q <= 1'b1;
  always_comb assume (rst == !started_q);

  // ---- transfers ---------------------------------------------------------------------------------------------
  logic s_aw, s_w, s_b, s_ar, s_r, aw_at, ar_at;
  logic [1:0] m_aw, m_w, m_b, m_ar, m_r;
  assign s_aw  = s_axi_req.wr.awvalid && s_axi_rsp.wr.awready;
  assign s_w   = s_axi_req.wr.wvalid && s_axi_rsp.wr.wready;
  assign s_b   = s_axi_rsp.wr.bvalid && s_axi_req.wr.bready;
  assign s_ar  = s_axi_req.rd.arvalid && s_axi_rsp.rd.arready;
  assign s_r   = s_axi_rsp.rd.rvalid && s_axi_req.rd.rready;
  assign aw_at = s_axi_req.wr.aw.addr[63];
  assign ar_at = s_axi_req.rd.ar.addr[63];
  for (genvar i = 0; i < 2; i++) begin : gen_transfers
    assign m_aw[i] = m_axi_req[i].wr.awvalid && m_axi_rsp[i].wr.awready;
    assign m_w[i]  = m_axi_req[i].wr.wvalid && m_axi_rsp[i].wr.wready;
    assign m_b[i]  = m_axi_rsp[i].wr.bvalid && m_axi_req[i].wr.bready;
    assign m_ar[i] = m_axi_req[i].rd.arvalid && m_axi_rsp[i].rd.arready;
    assign m_r[i]  = m_axi_rsp[i].rd.rvalid && m_axi_req[i].rd.rready;
  end

  // ---- what is under way at each slave ------------------------------------------------------------------------
  // Bursts whose address was taken; whose last word was taken; reads.
  count_t [1:0] aw_q, w_q, ar_q;
  axi_req_t s_q;
  axi_req_t [1:0] m_q;
  logic s_aw_waits_q, s_w_waits_q, s_ar_waits_q;
  logic [1:0] m_aw_waits_q, m_w_waits_q, m_ar_waits_q;
  for (genvar i = 0; i < 2; i++) begin : gen_counts
    always_ff @(posedge clk) begin
      aw_q[i] <= aw_q[i] + count_t'(m_aw[i]) - count_t'(m_b[i]);
      w_q[i]  <= w_q[i] + count_t'(m_w[i] && m_axi_req[i].wr.wlast) - count_t'(m_b[i]);
      ar_q[i] <= ar_q[i] + count_t'(m_ar[i]) - count_t'(m_r[i] && m_axi_rsp[i].rd.rlast);
      if (rst) {aw_q[i], w_q[i], ar_q[i]} <= '0;
      m_aw_waits_q[i] <= m_axi_req[i].wr.awvalid && !m_aw[i] && !rst;
      m_w_waits_q[i]  <= m_axi_req[i].wr.wvalid && !m_w[i] && !rst;
      m_ar_waits_q[i] <= m_axi_req[i].rd.arvalid && !m_ar[i] && !rst;
    end
    always_comb begin
      if (m_axi_rsp[i].wr.bvalid) assume (aw_q[i] != '0 && w_q[i] != '0);
      if (m_axi_rsp[i].rd.rvalid) assume (ar_q[i] != '0);
    end
  end
  always_ff @(posedge clk) begin
    s_aw_waits_q <= s_axi_req.wr.awvalid && !s_aw && !rst;
    s_w_waits_q  <= s_axi_req.wr.wvalid && !s_w && !rst;
    s_ar_waits_q <= s_axi_req.rd.arvalid && !s_ar && !rst;
    {s_q, m_q}   <= {s_axi_req, m_axi_req};
  end
  always_comb begin
    if (s_aw_waits_q) assume (s_axi_req.wr.awvalid && s_axi_req.wr.aw == s_q.wr.aw);
    if (s_w_waits_q) assume (s_axi_req.wr.wvalid && s_axi_req.wr.wlast == s_q.wr.wlast);
    if (s_ar_waits_q) assume (s_axi_req.rd.arvalid && s_axi_req.rd.ar == s_q.rd.ar);
  end

  // Open bursts of a slave: taken, or offered before this cycle.
  count_t [1:0] writes, reads;
  for (genvar i = 0; i < 2; i++) begin : gen_open
    assign writes[i] = aw_q[i] + count_t'(aw_held_q && wr_at_q == 1'(i));
    assign reads[i]  = ar_q[i] + count_t'(ar_held_q && rd_at_q == 1'(i));
  end

  logic [1:0] aw_good, ar_good, w_good, b_good, r_good, aw_held, ar_held, w_held;
  for (genvar i = 0; i < 2; i++) begin : gen_good
    assign aw_good[i] = aw_at == 1'(i) && m_axi_req[i].wr.aw == s_axi_req.wr.aw && writes[1-i] == '0;
    assign ar_good[i] = ar_at == 1'(i) && m_axi_req[i].rd.ar == s_axi_req.rd.ar && reads[1-i] == '0;
    assign w_good[i]  = m_axi_req[i].wr.wlast == s_axi_req.wr.wlast && m_axi_req[i].wr.wlanes == s_axi_req.wr.wlanes
                        && m_axi_req[i].wr.wstrb == s_axi_req.wr.wstrb && writes[1-i] == '0 && w_q[i] < writes[i];
    assign b_good[i]  = s_axi_rsp.wr.bresp == m_axi_rsp[i].wr.bresp;
    assign r_good[i]  = s_axi_rsp.rd.rresp == m_axi_rsp[i].rd.rresp && s_axi_rsp.rd.rlast == m_axi_rsp[i].rd.rlast
                        && s_axi_rd_at == 1'(i);
    assign aw_held[i] = m_axi_req[i].wr.awvalid && m_axi_req[i].wr.aw == m_q[i].wr.aw;
    assign ar_held[i] = m_axi_req[i].rd.arvalid && m_axi_req[i].rd.ar == m_q[i].rd.ar;
    assign w_held[i]  = m_axi_req[i].wr.wvalid;
  end

  always_comb if (started_q && !rst) begin
    // Invariants for the induction.
    a_0_writes : assert (writes[wr_at_q] == count_t'(wr_open_q) && writes[!wr_at_q] == '0 && 32'(wr_open_q) <= PENDING);
    a_0_reads : assert (reads[rd_at_q] == count_t'(rd_open_q) && reads[!rd_at_q] == '0 && 32'(rd_open_q) <= PENDING);
    a_0_taken : assert (32'(aw_q[wr_at_q]) <= PENDING && 32'(ar_q[rd_at_q]) <= PENDING && ahead_q <= wr_open_q);
    a_0_words : assert (w_q[!wr_at_q] == '0 && w_q[wr_at_q] + count_t'(ahead_q) == writes[wr_at_q]);
    if (aw_held_q) a_0_aw_held : assert (s_aw_waits_q && s_q.wr.aw.addr[63] == wr_at_q);
    if (ar_held_q) a_0_ar_held : assert (s_ar_waits_q && s_q.rd.ar.addr[63] == rd_at_q);
    a_0_aw_waits : assert (m_aw_waits_q == (2'(aw_held_q) << wr_at_q));
    a_0_ar_waits : assert (m_ar_waits_q == (2'(ar_held_q) << rd_at_q));
    if (m_aw_waits_q != '0) a_0_aw : assert (m_q[wr_at_q].wr.aw == s_q.wr.aw);
    if (m_ar_waits_q != '0) a_0_ar : assert (m_q[rd_at_q].rd.ar == s_q.rd.ar);
    a_0_w_waits : assert (m_w_waits_q == '0 || (m_w_waits_q == (2'd1 << wr_at_q) && s_w_waits_q && ahead_q != '0));

    // Each transfer is the master's and of one slave, of the one that has all that is under way.
    a_aw : assert ((m_aw & ~aw_good) == '0 && s_aw == |m_aw);
    a_w : assert ((m_w & ~w_good) == '0 && s_w == |m_w);
    a_b : assert ((m_b & ~b_good) == '0 && s_b == |m_b);
    a_ar : assert ((m_ar & ~ar_good) == '0 && s_ar == |m_ar);
    a_r : assert ((m_r & ~r_good) == '0 && s_r == |m_r);
    a_one : assert (m_aw != '1 && m_w != '1 && m_b != '1 && m_ar != '1 && m_r != '1);
    // What is offered stays.
    a_aw_hold : assert ((m_aw_waits_q & ~aw_held) == '0);
    a_w_hold : assert ((m_w_waits_q & ~w_held) == '0);
    a_ar_hold : assert ((m_ar_waits_q & ~ar_held) == '0);
    // An address goes at once to the slave that has room, words once their address has been offered, whatever the
    // slave takes first.
    if (s_axi_req.wr.awvalid && writes[!aw_at] == '0 && 32'(writes[aw_at]) < PENDING)
      a_aw_goes : assert (m_axi_req[aw_at].wr.awvalid);
    if (s_axi_req.rd.arvalid && reads[!ar_at] == '0 && 32'(reads[ar_at]) < PENDING)
      a_ar_goes : assert (m_axi_req[ar_at].rd.arvalid);
    if (s_axi_req.wr.wvalid && w_q[wr_at_q] < writes[wr_at_q]) a_w_goes : assert (m_axi_req[wr_at_q].wr.wvalid);

    c_turn : cover (m_aw[1] && wr_open_q == '0 && !wr_at_q && s_axi_req.wr.wvalid);
    c_full : cover (32'(wr_open_q) == PENDING && 32'(rd_open_q) == PENDING && s_axi_req.wr.awvalid && !aw_held_q);
    c_waits : cover (s_axi_req.rd.arvalid && !ar_held_q && ar_at != rd_at_q && rd_open_q != '0);
    c_data_first : cover (aw_held_q && ahead_q == '0 && s_axi_req.wr.awvalid && w_q[1] != '0);
  end
endmodule

bind axi_split axi_split_props #(.PENDING(PENDING)) u_props (.*);
