// SPDX-License-Identifier: SHL-2.1
// Promises of an AXI4 port that outlives a reset of its masters. The memory: an offer stays as it is; a write burst has
// as many beats as its address announced, the last one and no other with WLAST; a beat that no master gave has no
// strobes. The masters: what they offer goes on unchanged; a response comes only to an address since their reset, their
// data only into such a burst. While the port is closed, bursts are completed and responses taken without a pause, and
// it opens as soon as the memory owes nothing. Assumed of the memory: it answers bursts that it has, writes when it
// has their data; of the masters: nothing.
module axi_reset_guard_props
  import axi_pkg::*;
#(
  parameter  int unsigned DATA_W      = 8,
  parameter  int unsigned BURSTS      = 4,
  parameter  int unsigned OUTSTANDING = 5,
  localparam int unsigned PtrW        = $clog2(BURSTS)
) (
  input logic                   clk,
  input logic                   rst,
  input logic                   m_axi_rst,
  input axi_req_t               s_axi_req,
  input logic [DATA_W-1:0]      s_axi_wdata,
  input axi_rsp_t               s_axi_rsp,
  input axi_req_t               m_axi_req,
  input logic [DATA_W-1:0]      m_axi_wdata,
  input axi_rsp_t               m_axi_rsp,
  input logic                   closed,
  input logic                   draining_q,
  input logic [7:0]             sent_q,
  input logic [3:0]             writes_q,
  input logic [3:0]             reads_q,
  input logic [PtrW:0]          level,
  input logic [PtrW-1:0]        tail,
  input logic [BURSTS-1:0][7:0] stored
);
  typedef logic [3:0] count_t;

  logic started_q = 1'b0;
  always_ff @(posedge clk) started_q <= 1'b1;
  always_comb begin
    if (!started_q) assume (m_axi_rst);
    if (m_axi_rst) assume (rst);
  end

  // ---- transfers of this cycle ----------------------------------------------------------------------------------------
  logic s_aw, s_w, s_b, s_ar, s_r, m_aw, m_w, m_b, m_ar, m_r;
  assign s_aw = s_axi_req.wr.awvalid && s_axi_rsp.wr.awready;
  assign s_w  = s_axi_req.wr.wvalid && s_axi_rsp.wr.wready;
  assign s_b  = s_axi_rsp.wr.bvalid && s_axi_req.wr.bready;
  assign s_ar = s_axi_req.rd.arvalid && s_axi_rsp.rd.arready;
  assign s_r  = s_axi_rsp.rd.rvalid && s_axi_req.rd.rready;
  assign m_aw = m_axi_req.wr.awvalid && m_axi_rsp.wr.awready;
  assign m_w  = m_axi_req.wr.wvalid && m_axi_rsp.wr.wready;
  assign m_b  = m_axi_rsp.wr.bvalid && m_axi_req.wr.bready;
  assign m_ar = m_axi_req.rd.arvalid && m_axi_rsp.rd.arready;
  assign m_r  = m_axi_rsp.rd.rvalid && m_axi_req.rd.rready;

  // ---- what the memory has: addresses and data of writes, addresses of reads, that it has not answered ---------------
  count_t m_aw_q, m_wlast_q, m_ar_q;
  always_comb begin
    if (m_axi_rsp.wr.bvalid) assume (m_aw_q != '0 && m_wlast_q != '0);
    if (m_axi_rsp.rd.rvalid) assume (m_ar_q != '0);
  end
  always_ff @(posedge clk) begin
    m_aw_q    <= m_aw_q + count_t'(m_aw) - count_t'(m_b);
    m_wlast_q <= m_wlast_q + count_t'(m_w && m_axi_req.wr.wlast) - count_t'(m_b);
    m_ar_q    <= m_ar_q + count_t'(m_ar) - count_t'(m_r && m_axi_rsp.rd.rlast);
    if (m_axi_rst) {m_aw_q, m_wlast_q, m_ar_q} <= '0;
  end

  // ---- what the masters wait for since their reset, and how far their data is ----------------------------------------
  count_t s_writes_q, s_reads_q, s_due_q;
  logic [7:0] s_beats_q;
  logic s_ends;
  assign s_ends = s_w && s_beats_q == stored[tail];
  always_ff @(posedge clk) begin
    s_writes_q <= s_writes_q + count_t'(s_aw) - count_t'(s_b);
    s_reads_q  <= s_reads_q + count_t'(s_ar) - count_t'(s_r && s_axi_rsp.rd.rlast);
    s_due_q    <= s_due_q + count_t'(s_aw) - count_t'(s_ends);
    s_beats_q  <= s_ends ? '0 : s_beats_q + 8'(s_w);
    if (rst) {s_writes_q, s_reads_q, s_due_q, s_beats_q} <= '0;
  end

  // ---- any write burst is watched from its address on, until its last beat is taken ------------------------------------
  logic choose, watching_q, w_ends;
  logic [7:0] len_q, beats_q;      // of the watched one; beats of the oldest one that are taken
  logic [PtrW+1:0] bursts_q, ahead_q;  // whose data is not taken: all; those before the watched one
  anything u_choose (.value(choose));
  assign w_ends = m_w && m_axi_req.wr.wlast;
  always_ff @(posedge clk) begin
    bursts_q <= bursts_q + (PtrW + 2)'(s_aw) - (PtrW + 2)'(w_ends);
    if (m_w) beats_q <= w_ends ? '0 : beats_q + 1'b1;
    if (watching_q) begin
      ahead_q <= ahead_q - (PtrW + 2)'(w_ends);
      if (w_ends && ahead_q == '0) watching_q <= 1'b0;
    end else if (s_aw && choose) begin
      {watching_q, len_q} <= {1'b1, s_axi_req.wr.aw.len};
      ahead_q <= bursts_q - (PtrW + 2)'(w_ends);
    end
    if (m_axi_rst) {watching_q, bursts_q, beats_q} <= '0;
  end

  // ---- the cycle before ----------------------------------------------------------------------------------------------
  axi_req_t s_req_q, m_req_q;
  logic [DATA_W-1:0] s_wdata_q, m_wdata_q;
  logic forgot_q, s_aw_q, s_w_q, s_ar_q, aw_waits_q, w_waits_q, ar_waits_q, closed_q, w_due_q, idle_q;
  always_ff @(posedge clk) begin
    {s_req_q, m_req_q, s_wdata_q, m_wdata_q} <= {s_axi_req, m_axi_req, s_axi_wdata, m_axi_wdata};
    {s_aw_q, s_w_q, s_ar_q, closed_q} <= {s_aw, s_w, s_ar, closed};
    forgot_q   <= m_axi_rst;
    aw_waits_q <= m_axi_req.wr.awvalid && !m_aw;
    w_waits_q  <= m_axi_req.wr.wvalid && !m_w;
    ar_waits_q <= m_axi_req.rd.arvalid && !m_ar;
    w_due_q    <= level != '0;
    idle_q     <= !rst && m_aw_q == '0 && m_ar_q == '0 && !m_axi_req.wr.awvalid && !m_axi_req.rd.arvalid;
  end

  logic w_here, w_last_here;  // in the register
  assign w_here      = m_axi_req.wr.wvalid;
  assign w_last_here = w_here && m_axi_req.wr.wlast;

  always_comb if (started_q && forgot_q) begin
    a_forgotten : assert (!m_axi_req.wr.awvalid && !m_axi_req.wr.wvalid && !m_axi_req.rd.arvalid && level == '0
                          && writes_q == '0 && reads_q == '0 && sent_q == '0);
  end

  always_comb if (started_q && !m_axi_rst) begin
    // Invariants for the induction.
    a_0_writes : assert (32'(writes_q) == 32'(m_aw_q) + 32'(m_axi_req.wr.awvalid) && 32'(writes_q) <= OUTSTANDING
                         && 32'(writes_q) == 32'(m_wlast_q) + 32'(level) + 32'(w_last_here));
    a_0_reads : assert (32'(reads_q) == 32'(m_ar_q) + 32'(m_axi_req.rd.arvalid) && 32'(reads_q) <= OUTSTANDING);
    a_0_bursts : assert (32'(level) <= BURSTS && 32'(bursts_q) == 32'(level) + 32'(w_last_here));
    a_0_beats : assert (w_last_here ? sent_q == '0 : sent_q == beats_q + 8'(w_here));
    if (w_here && !w_last_here) a_0_more : assert (level != '0);
    if (level == '0) a_0_none : assert (sent_q == '0);
    else a_0_sent : assert (sent_q <= stored[tail]);
    if (draining_q) a_0_none_since : assert ({s_writes_q, s_reads_q, s_due_q, s_beats_q} == '0);
    if (watching_q) a_0_place : assert (ahead_q < bursts_q);
    if (watching_q && !(w_last_here && ahead_q == '0))
      a_0_len : assert (stored[tail+PtrW'(ahead_q)-PtrW'(w_last_here)] == len_q);
    if (watching_q && w_last_here && ahead_q == '0) a_0_last : assert (beats_q == len_q);

    // ---- the memory
    if (!forgot_q && aw_waits_q) a_aw_hold : assert (m_axi_req.wr.awvalid && m_axi_req.wr.aw == m_req_q.wr.aw);
    if (!forgot_q && ar_waits_q) a_ar_hold : assert (m_axi_req.rd.arvalid && m_axi_req.rd.ar == m_req_q.rd.ar);
    if (!forgot_q && w_waits_q)
      a_w_hold : assert (m_axi_req.wr.wvalid && m_axi_wdata == m_wdata_q && m_axi_req.wr.wlast == m_req_q.wr.wlast
                         && m_axi_req.wr.wstrb == m_req_q.wr.wstrb && m_axi_req.wr.wlanes == m_req_q.wr.wlanes);
    if (w_here) a_has_address : assert (bursts_q != '0);
    if (watching_q && ahead_q == '0 && w_here) a_wlast : assert (m_axi_req.wr.wlast == (beats_q == len_q));
    if (!forgot_q && w_here && !w_waits_q && !s_w_q) a_no_strobes : assert (!m_axi_req.wr.wstrb && closed_q);
    // ---- the masters
    if (s_aw_q) a_aw : assert (m_axi_req.wr.awvalid && m_axi_req.wr.aw == s_req_q.wr.aw);
    if (s_ar_q) a_ar : assert (m_axi_req.rd.arvalid && m_axi_req.rd.ar == s_req_q.rd.ar);
    if (s_w_q) a_w : assert (w_here && m_axi_req.wr.wstrb && m_axi_req.wr.wlanes == s_req_q.wr.wlanes
                                && m_axi_wdata == s_wdata_q);
    if (!s_aw_q && !aw_waits_q) a_no_aw : assert (!m_axi_req.wr.awvalid);
    if (!s_ar_q && !ar_waits_q) a_no_ar : assert (!m_axi_req.rd.arvalid);
    if (!closed) a_since : assert (s_writes_q == writes_q && s_reads_q == reads_q && s_due_q == count_t'(level)
                                   && s_beats_q == sent_q);
    if (s_axi_rsp.wr.bvalid) a_b_due : assert (s_writes_q != '0 && m_axi_rsp.wr.bvalid);
    if (s_axi_rsp.rd.rvalid) a_r_due : assert (s_reads_q != '0 && m_axi_rsp.rd.rvalid);
    if (s_w) a_w_due : assert (s_due_q != '0);
    if (rst) a_in_reset : assert (!s_aw && !s_w && !s_ar && !s_axi_rsp.wr.bvalid && !s_axi_rsp.rd.rvalid);
    // ---- closed: without a pause; open: as if it were not here
    if (closed) a_takes : assert (m_axi_req.wr.bready && m_axi_req.rd.rready);
    if (!forgot_q && closed_q && w_due_q) a_completes : assert (w_here);
    if (!rst && idle_q) a_opens : assert (!closed);
    if (!closed) begin
      a_responses : assert (m_b == s_b && m_r == s_r && s_axi_rsp.wr.bresp == m_axi_rsp.wr.bresp
                            && s_axi_rsp.rd.rresp == m_axi_rsp.rd.rresp && s_axi_rsp.rd.rlast == m_axi_rsp.rd.rlast
                            && s_axi_rsp.wr.bid == m_axi_rsp.wr.bid && s_axi_rsp.rd.rid == m_axi_rsp.rd.rid);
      if (32'(level) < BURSTS && 32'(writes_q) < OUTSTANDING && (m_aw || !m_axi_req.wr.awvalid))
        a_aw_goes : assert (s_axi_rsp.wr.awready);
      if (32'(reads_q) < OUTSTANDING && (m_ar || !m_axi_req.rd.arvalid)) a_ar_goes : assert (s_axi_rsp.rd.arready);
      if (level != '0 && (m_w || !w_here)) a_w_goes : assert (s_axi_rsp.wr.wready);
    end

    c_cut : cover (watching_q && ahead_q == '0 && w_ends && !m_axi_req.wr.wstrb && len_q == 8'd3 && closed);
    c_two : cover (closed && w_ends && !m_axi_req.wr.wstrb && watching_q && ahead_q == 3'd1 && len_q == 8'd1);
    c_late : cover (closed && !rst && m_r && m_axi_rsp.rd.rlast && m_b);
    c_again : cover (!closed && s_b && s_r && closed_q == 1'b0 && started_q && s_reads_q == 4'd1);
    c_full : cover (32'(level) == BURSTS && m_aw);
    c_most : cover (32'(writes_q) == OUTSTANDING && 32'(reads_q) == OUTSTANDING);
  end

  wire unused = &{1'b0, s_axi_req, m_axi_req, s_axi_rsp, m_axi_rsp, s_req_q, m_req_q};
endmodule

bind axi_reset_guard axi_reset_guard_props #(.DATA_W(DATA_W), .BURSTS(BURSTS), .OUTSTANDING(OUTSTANDING)) u_props (
  .writes_q(4'(writes_q)),
  .reads_q (4'(reads_q)),
  .level   (u_lens.level),
  .tail    (u_lens.tail_q[1:0]),
  .stored  ({u_lens.mem[3], u_lens.mem[2], u_lens.mem[1], u_lens.mem[0]}),  // proved at BURSTS 4
  .*
);
