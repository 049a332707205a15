// SPDX-License-Identifier: SHL-2.1
// Promises of two masters that write as one: every transfer of every channel is one of exactly one master, unchanged but
// for the ID, at the same time on both sides; data comes in the order of the addresses, of whole bursts, and is offered
// also while its address waits; a response goes to the master whose address is the oldest one without a response; what
// is offered stays; of two masters that offer addresses each gets every second one.
module axi_write_mux_props
  import axi_pkg::*;
#(
  parameter  int unsigned DATA_W = 8,
  parameter  int unsigned WRITES = 4,
  localparam int unsigned PtrW   = $clog2(WRITES)
) (
  input logic                    clk,
  input logic                    rst,
  input axi_wr_req_t [1:0]       s_axi_req,
  input logic [1:0][DATA_W-1:0]  s_axi_wdata,
  input axi_wr_rsp_t [1:0]       s_axi_rsp,
  input axi_wr_req_t             m_axi_req,
  input logic [DATA_W-1:0]       m_axi_wdata,
  input axi_wr_rsp_t             m_axi_rsp,
  input logic                    aw_at_q,
  input logic                    aw_held_q,
  // the queues of those whose data (0) and whose response (1) has not come
  input logic [1:0][PtrW:0]      level,
  input logic [1:0][PtrW-1:0]    tail,
  input logic [1:0][WRITES-1:0]  stored
);
  typedef logic [PtrW:0] count_t;

  logic started_q = 1'b0;
  always_ff @(posedge clk) started_q <= 1'b1;
  always_comb if (!started_q) assume (rst);

  // ---- transfers of this cycle, on the side of the masters and on the other -------------------------------------
  logic [1:0] s_aw, s_w, s_b;
  logic m_aw, m_w, m_b;
  for (genvar i = 0; i < 2; i++) begin : gen_transfers
    assign s_aw[i] = s_axi_req[i].awvalid && s_axi_rsp[i].awready;
    assign s_w[i]  = s_axi_req[i].wvalid && s_axi_rsp[i].wready;
    assign s_b[i]  = s_axi_rsp[i].bvalid && s_axi_req[i].bready;
  end
  assign m_aw = m_axi_req.awvalid && m_axi_rsp.awready;
  assign m_w  = m_axi_req.wvalid && m_axi_rsp.wready;
  assign m_b  = m_axi_rsp.bvalid && m_axi_req.bready;

  function automatic axi_addr_t without_id(axi_addr_t address);
    without_id    = address;
    without_id.id = '0;
  endfunction

  // ---- the masters keep what they offer (A3.2.1); the memory answers addresses that it has taken --------------------
  axi_wr_req_t [1:0] s_req_q;
  logic [1:0][DATA_W-1:0] s_wdata_q;
  logic [1:0] s_aw_waits_q, s_w_waits_q;
  count_t m_writes_q;
  count_t [1:0] s_writes_q;  // of each master: addresses taken that have no response
  for (genvar i = 0; i < 2; i++) begin : gen_masters
    always_comb begin
      if (s_aw_waits_q[i]) assume (s_axi_req[i].awvalid && s_axi_req[i].aw == s_req_q[i].aw);
      if (s_w_waits_q[i])
        assume (s_axi_req[i].wvalid && s_axi_req[i].wlast == s_req_q[i].wlast && s_axi_wdata[i] == s_wdata_q[i]);
    end
    always_ff @(posedge clk) begin
      s_aw_waits_q[i] <= s_axi_req[i].awvalid && !s_aw[i] && !rst;
      s_w_waits_q[i]  <= s_axi_req[i].wvalid && !s_w[i] && !rst;
      s_writes_q[i]   <= s_writes_q[i] + count_t'(s_aw[i]) - count_t'(s_b[i]);
      if (rst) s_writes_q[i] <= '0;
    end
  end
  always_comb if (m_axi_rsp.bvalid) assume (m_writes_q != '0);

  // ---- any address is watched from its first cycle on, until its burst has gone and until its response has come -------
  logic choose, aw_comes, comes_of, who_q;
  logic [1:0] ends, watching_q;       // of data and of responses
  count_t [1:0] bursts_q, ahead_q;    // addresses that wait for it: all; before the watched one
  axi_wr_req_t m_req_q;
  logic [DATA_W-1:0] m_wdata_q;
  logic m_aw_waits_q, m_w_waits_q;
  logic [1:0] aw_next_q;  // this master waited while the other one's address was taken: it is next
  anything u_choose (.value(choose));
  assign aw_comes = m_axi_req.awvalid && !m_aw_waits_q;
  assign comes_of = s_axi_req[!aw_at_q].awvalid ? !aw_at_q : aw_at_q;  // the other master's turn, if it offers one
  assign ends     = {m_b, m_w && m_axi_req.wlast};
  always_ff @(posedge clk) begin
    {s_req_q, s_wdata_q, m_req_q, m_wdata_q} <= {s_axi_req, s_axi_wdata, m_axi_req, m_axi_wdata};
    m_aw_waits_q <= m_axi_req.awvalid && !m_aw && !rst;
    m_w_waits_q  <= m_axi_req.wvalid && !m_w && !rst;
    m_writes_q   <= m_writes_q + count_t'(m_aw) - count_t'(m_b);
    if (aw_comes && choose && watching_q == '0) who_q <= comes_of;
    for (int i = 0; i < 2; i++) begin
      aw_next_q[i] <= aw_next_q[i] ? !s_aw[i] : s_axi_req[i].awvalid && s_aw[1-i];
      bursts_q[i]  <= bursts_q[i] + count_t'(aw_comes) - count_t'(ends[i]);
      if (watching_q[i]) begin
        ahead_q[i] <= ahead_q[i] - count_t'(ends[i]);
        if (ends[i] && ahead_q[i] == '0) watching_q[i] <= 1'b0;
      end else if (aw_comes && choose && watching_q == '0) begin
        watching_q[i] <= 1'b1;
        ahead_q[i]    <= bursts_q[i] - count_t'(ends[i]);
      end
    end
    if (rst) {watching_q, bursts_q, aw_next_q, m_writes_q} <= '0;
  end

  // For each master: what holds of its transfers.
  logic [1:0] aw_good, w_good, b_good, aw_next_good, counts_good, unrequested, levels_good, places_good;
  for (genvar i = 0; i < 2; i++) begin : gen_master
    assign aw_good[i] = m_aw && !s_aw[1-i] && m_axi_req.aw == without_id(s_axi_req[i].aw);
    assign w_good[i]  = m_w && !s_w[1-i] && m_axi_req.wlast == s_axi_req[i].wlast
                        && m_axi_req.wstrb == s_axi_req[i].wstrb
                        && m_axi_req.wlanes == s_axi_req[i].wlanes && m_axi_wdata == s_axi_wdata[i];
    assign b_good[i]  = m_b && !s_b[1-i] && s_axi_rsp[i].bresp == m_axi_rsp.bresp;
    assign unrequested[i]  = s_axi_rsp[i].bvalid && s_writes_q[i] == '0;
    assign aw_next_good[i] = s_axi_req[i].awvalid && aw_at_q == (aw_held_q == 1'(i));
    count_t count;
    always_comb begin
      count = '0;
      for (int unsigned j = 0; j < WRITES; j++)
        if (count_t'(j) < level[1] && stored[1][tail[1]+PtrW'(j)] == 1'(i)) count = count + 1'b1;
    end
    assign counts_good[i] = count == s_writes_q[i] + count_t'(aw_held_q && aw_at_q == 1'(i));
    // of data and of responses
    assign levels_good[i] = 32'(level[i]) <= WRITES && level[i] == bursts_q[i];
    assign places_good[i] = ahead_q[i] < bursts_q[i] && stored[i][tail[i]+PtrW'(ahead_q[i])] == who_q;
  end

  logic w_at;             // whose data is next
  logic [PtrW-1:0] last;  // address in the queue of responses
  assign w_at = stored[0][tail[0]];
  assign last = tail[1] + PtrW'(level[1] - 1'b1);
  always_comb if (started_q && !rst) begin
    // Invariants for the induction.
    a_0_next : assert ((aw_next_q & ~aw_next_good) == '0);
    a_0_level : assert (levels_good == '1);
    a_0_writes : assert (bursts_q[1] == m_writes_q + count_t'(aw_held_q));
    a_0_counts : assert (counts_good == '1);
    a_0_held : assert (aw_held_q == m_aw_waits_q);
    if (aw_held_q)
      a_0_aw_stays : assert (s_aw_waits_q[aw_at_q] && m_req_q.aw == without_id(s_req_q[aw_at_q].aw)
                             && bursts_q[1] != '0 && stored[1][last] == aw_at_q);
    if (m_w_waits_q)
      a_0_w_stays : assert (level[0] != '0 && s_w_waits_q[w_at] && m_wdata_q == s_wdata_q[w_at]
                            && m_req_q.wlast == s_req_q[w_at].wlast);
    a_0_place : assert ((watching_q & ~places_good) == '0);

    a_aw : assert ((s_aw & ~aw_good) == '0);
    a_w : assert ((s_w & ~w_good) == '0);
    a_b : assert ((s_b & ~b_good) == '0);
    // Nothing is invented or lost: what the memory gets or gives is a master's.
    a_all : assert (m_aw == |s_aw && m_w == |s_w && m_b == |s_b);
    a_requested : assert (unrequested == '0);
    if (m_aw) a_aw_turns : assert ((aw_next_q & ~s_aw) == '0);
    if (m_axi_req.wvalid) a_has_address : assert (bursts_q[0] != '0);
    if (watching_q[0] && ahead_q[0] == '0) begin
      a_order : assert (!s_w[!who_q]);
      a_w_goes : assert (m_axi_req.wvalid == s_axi_req[who_q].wvalid);
    end
    if (watching_q[1] && ahead_q[1] == '0)
      a_answer : assert (!s_axi_rsp[!who_q].bvalid && s_axi_rsp[who_q].bvalid == m_axi_rsp.bvalid);
    // An address goes unless too many wait; the data waits for no address to be taken.
    if ((s_axi_req[0].awvalid || s_axi_req[1].awvalid) && 32'(bursts_q[0]) < WRITES && 32'(bursts_q[1]) < WRITES)
      a_aw_goes : assert (m_axi_req.awvalid);
    if (m_aw_waits_q) a_aw_hold : assert (m_axi_req.awvalid && m_axi_req.aw == m_req_q.aw);
    if (m_w_waits_q)
      a_w_hold : assert (m_axi_req.wvalid && m_axi_req.wlast == m_req_q.wlast && m_axi_wdata == m_wdata_q);

    c_full : cover (32'(bursts_q[0]) == WRITES && watching_q == '1 && ahead_q[0] == 3'd3 && ends[0]);
    c_data_first : cover (ends[0] && watching_q[0] && ahead_q[0] == '0 && m_aw_waits_q && bursts_q[0] == 3'd1);
    c_turns : cover (aw_next_q[0] && aw_held_q);
    c_answers : cover (s_b[0] && s_writes_q[1] != '0 && watching_q == 2'b10 && ahead_q[1] == 3'd2);
  end
endmodule

bind axi_write_mux axi_write_mux_props #(.DATA_W(DATA_W), .WRITES(WRITES)) u_props (
  .level ({u_answers.level, u_data.level}),
  .tail  ({u_answers.tail_q[1:0], u_data.tail_q[1:0]}),
  .stored({u_answers.mem[3], u_answers.mem[2], u_answers.mem[1], u_answers.mem[0],  // proved at WRITES 4
           u_data.mem[3], u_data.mem[2], u_data.mem[1], u_data.mem[0]}),
  .*
);
