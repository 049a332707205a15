// SPDX-License-Identifier: SHL-2.1
// Promises of two AXI4 masters on one port: every transfer of every channel is one of exactly one master, unchanged but
// for the ID, at the same time on both sides; data of writes comes in the order of the addresses, of whole bursts, and
// is offered also while its address waits; a response comes only to a master that waits for one; what is offered stays;
// of two masters that offer addresses each gets every second one.
module axi_mux_props
  import axi_pkg::*;
#(
  parameter  int unsigned DATA_W = 8,
  parameter  int unsigned WRITES = 4,
  localparam int unsigned PtrW   = $clog2(WRITES)
) (
  input logic                   clk,
  input logic                   rst,
  input axi_req_t [1:0]         s_axi_req,
  input logic [1:0][DATA_W-1:0] s_axi_wdata,
  input axi_rsp_t [1:0]         s_axi_rsp,
  input axi_req_t               m_axi_req,
  input logic [DATA_W-1:0]      m_axi_wdata,
  input axi_rsp_t               m_axi_rsp,
  input logic                   ar_at_q,
  input logic                   ar_held_q,
  input logic                   aw_at_q,
  input logic                   aw_held_q,
  input logic [PtrW:0]          level,
  input logic [PtrW-1:0]        tail,
  input logic [WRITES-1:0]      stored
);
  localparam int unsigned CountW = 4;
  typedef logic [CountW-1:0] count_t;

  logic started_q = 1'b0;
  always_ff @(posedge clk) started_q <= 1'b1;
  always_comb if (!started_q) assume (rst);

  // ---- transfers of this cycle, on the side of the masters and on the other -------------------------------------
  logic [1:0] s_aw, s_w, s_b, s_ar, s_r;
  logic m_aw, m_w, m_b, m_ar, m_r;
  for (genvar i = 0; i < 2; i++) begin : gen_transfers
    assign s_aw[i] = s_axi_req[i].wr.awvalid && s_axi_rsp[i].wr.awready;
    assign s_w[i]  = s_axi_req[i].wr.wvalid && s_axi_rsp[i].wr.wready;
    assign s_b[i]  = s_axi_rsp[i].wr.bvalid && s_axi_req[i].wr.bready;
    assign s_ar[i] = s_axi_req[i].rd.arvalid && s_axi_rsp[i].rd.arready;
    assign s_r[i]  = s_axi_rsp[i].rd.rvalid && s_axi_req[i].rd.rready;
  end
  assign m_aw = m_axi_req.wr.awvalid && m_axi_rsp.wr.awready;
  assign m_w  = m_axi_req.wr.wvalid && m_axi_rsp.wr.wready;
  assign m_b  = m_axi_rsp.wr.bvalid && m_axi_req.wr.bready;
  assign m_ar = m_axi_req.rd.arvalid && m_axi_rsp.rd.arready;
  assign m_r  = m_axi_rsp.rd.rvalid && m_axi_req.rd.rready;

  function automatic axi_addr_t named(axi_addr_t address, logic id);
    named    = address;
    named.id = id;
  endfunction

  // ---- the masters keep what they offer (A3.2.1) -----------------------------------------------------------------
  axi_req_t [1:0] s_req_q;
  logic [1:0][DATA_W-1:0] s_wdata_q;
  logic [1:0] s_aw_waits_q, s_w_waits_q, s_ar_waits_q;
  for (genvar i = 0; i < 2; i++) begin : gen_masters
    always_comb begin
      if (s_aw_waits_q[i]) assume (s_axi_req[i].wr.awvalid && s_axi_req[i].wr.aw == s_req_q[i].wr.aw);
      if (s_w_waits_q[i])
        assume (s_axi_req[i].wr.wvalid && s_axi_req[i].wr.wlast == s_req_q[i].wr.wlast
                && s_axi_wdata[i] == s_wdata_q[i]);
      if (s_ar_waits_q[i]) assume (s_axi_req[i].rd.arvalid && s_axi_req[i].rd.ar == s_req_q[i].rd.ar);
    end
    always_ff @(posedge clk) begin
      s_aw_waits_q[i] <= s_axi_req[i].wr.awvalid && !s_aw[i] && !rst;
      s_w_waits_q[i]  <= s_axi_req[i].wr.wvalid && !s_w[i] && !rst;
      s_ar_waits_q[i] <= s_axi_req[i].rd.arvalid && !s_ar[i] && !rst;
    end
  end

  // ---- the memory answers what was requested -----------------------------------------------------------------------
  count_t [1:0] m_writes_q, m_reads_q, s_writes_q, s_reads_q;
  always_comb begin
    if (m_axi_rsp.wr.bvalid) assume (m_writes_q[m_axi_rsp.wr.bid] != '0);
    if (m_axi_rsp.rd.rvalid) assume (m_reads_q[m_axi_rsp.rd.rid] != '0);
  end
  for (genvar i = 0; i < 2; i++) begin : gen_counts
    always_comb begin
      if (m_writes_q[i] == '1) assume (!m_axi_rsp.wr.awready);
      if (m_reads_q[i] == '1) assume (!m_axi_rsp.rd.arready);
    end
    always_ff @(posedge clk) begin
      m_writes_q[i] <= m_writes_q[i] + count_t'(m_aw && m_axi_req.wr.aw.id == 1'(i))
                       - count_t'(m_b && m_axi_rsp.wr.bid == 1'(i));
      m_reads_q[i]  <= m_reads_q[i] + count_t'(m_ar && m_axi_req.rd.ar.id == 1'(i))
                       - count_t'(m_r && m_axi_rsp.rd.rlast && m_axi_rsp.rd.rid == 1'(i));
      s_writes_q[i] <= s_writes_q[i] + count_t'(s_aw[i]) - count_t'(s_b[i]);
      s_reads_q[i]  <= s_reads_q[i] + count_t'(s_ar[i]) - count_t'(s_r[i] && s_axi_rsp[i].rd.rlast);
      if (rst) {m_writes_q[i], m_reads_q[i], s_writes_q[i], s_reads_q[i]} <= '0;
    end
  end

  // ---- any address of a write is watched from its first cycle on, until its burst has gone ------------------------
  logic choose, aw_comes, w_ends, watching_q, who_q;
  logic [PtrW:0] bursts_q, ahead_q;  // whose address has come and whose data has not gone: all; before the watched one
  axi_req_t m_req_q;
  logic [DATA_W-1:0] m_wdata_q;
  logic m_aw_waits_q, m_w_waits_q, m_ar_waits_q;
  logic [1:0] aw_next_q, ar_next_q;  // this master waited while the other one's address was taken: it is next
  anything u_choose (.value(choose));
  assign aw_comes = m_axi_req.wr.awvalid && !m_aw_waits_q;
  assign w_ends   = m_w && m_axi_req.wr.wlast;
  always_ff @(posedge clk) begin
    {s_req_q, s_wdata_q, m_req_q, m_wdata_q} <= {s_axi_req, s_axi_wdata, m_axi_req, m_axi_wdata};
    m_aw_waits_q <= m_axi_req.wr.awvalid && !m_aw && !rst;
    m_w_waits_q  <= m_axi_req.wr.wvalid && !m_w && !rst;
    m_ar_waits_q <= m_axi_req.rd.arvalid && !m_ar && !rst;
    for (int i = 0; i < 2; i++) begin
      aw_next_q[i] <= aw_next_q[i] ? !s_aw[i] : s_axi_req[i].wr.awvalid && s_aw[1-i];
      ar_next_q[i] <= ar_next_q[i] ? !s_ar[i] : s_axi_req[i].rd.arvalid && s_ar[1-i];
    end
    bursts_q <= bursts_q + (PtrW + 1)'(aw_comes) - (PtrW + 1)'(w_ends);
    if (watching_q) begin
      ahead_q <= ahead_q - (PtrW + 1)'(w_ends);
      if (w_ends && ahead_q == '0) watching_q <= 1'b0;
    end else if (aw_comes && choose) begin
      {watching_q, who_q} <= {1'b1, m_axi_req.wr.aw.id};
      ahead_q <= bursts_q - (PtrW + 1)'(w_ends);
    end
    if (rst) {watching_q, bursts_q, aw_next_q, ar_next_q} <= '0;
  end

  // For each master: what holds of its transfers.
  logic [1:0] aw_good, w_good, b_good, ar_good, r_good, counts_good, aw_next_good, ar_next_good;
  logic [1:0] unrequested_writes, unrequested_reads;
  for (genvar i = 0; i < 2; i++) begin : gen_master
    assign aw_good[i] = m_aw && !s_aw[1-i] && m_axi_req.wr.aw == named(s_axi_req[i].wr.aw, 1'(i));
    assign w_good[i]  = m_w && !s_w[1-i] && m_axi_req.wr.wlast == s_axi_req[i].wr.wlast
                        && m_axi_req.wr.wstrb == s_axi_req[i].wr.wstrb
                        && m_axi_req.wr.wlanes == s_axi_req[i].wr.wlanes && m_axi_wdata == s_axi_wdata[i];
    assign b_good[i]  = m_b && !s_b[1-i] && s_axi_rsp[i].wr.bresp == m_axi_rsp.wr.bresp;
    assign ar_good[i] = m_ar && !s_ar[1-i] && m_axi_req.rd.ar == named(s_axi_req[i].rd.ar, 1'(i));
    assign r_good[i]  = m_r && !s_r[1-i] && s_axi_rsp[i].rd.rresp == m_axi_rsp.rd.rresp
                        && s_axi_rsp[i].rd.rlast == m_axi_rsp.rd.rlast;
    assign unrequested_writes[i] = s_axi_rsp[i].wr.bvalid && s_writes_q[i] == '0;
    assign unrequested_reads[i]  = s_axi_rsp[i].rd.rvalid && s_reads_q[i] == '0;
    assign counts_good[i]  = m_writes_q[i] == s_writes_q[i] && m_reads_q[i] == s_reads_q[i];
    assign aw_next_good[i] = s_axi_req[i].wr.awvalid && aw_at_q == (aw_held_q == 1'(i));
    assign ar_next_good[i] = s_axi_req[i].rd.arvalid && ar_at_q == (ar_held_q == 1'(i));
  end

  logic w_at;  // whose data is next
  assign w_at = stored[tail];
  always_comb if (started_q && !rst) begin
    // Invariants for the induction.
    a_0_counts : assert (counts_good == '1);
    a_0_next : assert ((aw_next_q & ~aw_next_good) == '0 && (ar_next_q & ~ar_next_good) == '0);
    a_0_level : assert (32'(level) <= WRITES && level == bursts_q);
    a_0_held : assert (aw_held_q == m_aw_waits_q && ar_held_q == m_ar_waits_q);
    if (aw_held_q)
      a_0_aw_stays : assert (s_aw_waits_q[aw_at_q] && m_req_q.wr.aw == named(s_req_q[aw_at_q].wr.aw, aw_at_q));
    if (ar_held_q)
      a_0_ar_stays : assert (s_ar_waits_q[ar_at_q] && m_req_q.rd.ar == named(s_req_q[ar_at_q].rd.ar, ar_at_q));
    if (m_w_waits_q)
      a_0_w_stays : assert (level != '0 && s_w_waits_q[w_at] && m_wdata_q == s_wdata_q[w_at]
                            && m_req_q.wr.wlast == s_req_q[w_at].wr.wlast);
    if (watching_q) a_0_place : assert (ahead_q < bursts_q && stored[tail+PtrW'(ahead_q)] == who_q);

    a_aw : assert ((s_aw & ~aw_good) == '0);
    a_w : assert ((s_w & ~w_good) == '0);
    a_b : assert ((s_b & ~b_good) == '0);
    a_ar : assert ((s_ar & ~ar_good) == '0);
    a_r : assert ((s_r & ~r_good) == '0);
    // Nothing is invented or lost: what the memory gets or gives is a master's.
    a_all : assert (m_aw == |s_aw && m_w == |s_w && m_b == |s_b && m_ar == |s_ar && m_r == |s_r);
    a_requested_write : assert (unrequested_writes == '0);
    a_requested_read : assert (unrequested_reads == '0);
    if (m_aw) a_aw_turns : assert ((aw_next_q & ~s_aw) == '0);
    if (m_ar) a_ar_turns : assert ((ar_next_q & ~s_ar) == '0);
    if (m_axi_req.wr.wvalid) a_has_address : assert (bursts_q != '0);
    if (watching_q && ahead_q == '0) begin
      a_order : assert (!s_w[!who_q]);
      a_w_goes : assert (m_axi_req.wr.wvalid == s_axi_req[who_q].wr.wvalid);
    end
    // An address goes unless the data of too many waits; the data waits for no address to be taken.
    if ((s_axi_req[0].wr.awvalid || s_axi_req[1].wr.awvalid) && 32'(bursts_q) < WRITES)
      a_aw_goes : assert (m_axi_req.wr.awvalid);
    if (s_axi_req[0].rd.arvalid || s_axi_req[1].rd.arvalid) a_ar_goes : assert (m_axi_req.rd.arvalid);
    if (m_aw_waits_q) a_aw_hold : assert (m_axi_req.wr.awvalid && m_axi_req.wr.aw == m_req_q.wr.aw);
    if (m_ar_waits_q) a_ar_hold : assert (m_axi_req.rd.arvalid && m_axi_req.rd.ar == m_req_q.rd.ar);
    if (m_w_waits_q)
      a_w_hold : assert (m_axi_req.wr.wvalid && m_axi_req.wr.wlast == m_req_q.wr.wlast && m_axi_wdata == m_wdata_q);

    c_full : cover (32'(bursts_q) == WRITES && watching_q && ahead_q == 3'd3 && w_ends);
    c_data_first : cover (w_ends && watching_q && ahead_q == '0 && m_aw_waits_q && bursts_q == 3'd1);
    c_turns : cover (aw_next_q[0] && ar_next_q[1] && aw_held_q && ar_held_q);
    c_answers : cover (s_b[0] && s_r[1] && s_writes_q[1] != '0 && s_reads_q[0] != '0);
  end
endmodule

bind axi_mux axi_mux_props #(.DATA_W(DATA_W), .WRITES(WRITES)) u_props (
  .level (u_order.level),
  .tail  (u_order.tail_q[1:0]),
  .stored({u_order.mem[3], u_order.mem[2], u_order.mem[1], u_order.mem[0]}),  // proved at WRITES 4
  .*
);
