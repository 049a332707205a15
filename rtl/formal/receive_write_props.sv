// SPDX-License-Identifier: SHL-2.1
// Promises of the writer of WRITEs: the bursts of a packet are exactly its words, one after the other, and none crosses
// 4 KiB; an offer stays until it is taken; data goes only into a burst whose address has been offered, and ends each with
// WLAST at its last word; only the lanes that came with a word have strobes; an error is reported.
// Assumed: a packet of up to 4096 bytes begins when the data of the one before has been taken, and its words are offered
// until they are taken (the queue of answers may hold anything here).
module receive_write_props
  import penstock_pkg::*;
#(
  parameter  int unsigned DATA_W = 64,
  localparam int unsigned Lanes  = DATA_W / 8,
  localparam int unsigned LaneW  = $clog2(Lanes),
  localparam int unsigned BeatW  = 13 - LaneW
) (
  input logic                 clk,
  input logic                 rst,
  input logic                 job_valid,
  input logic [63:LaneW]      job_word,
  input logic [BeatW-1:0]     job_last,
  input logic [LaneW-1:0]     s_first, s_last,
  input logic                 s_ends,
  input logic                 s_valid,
  input logic                 s_ready,
  input logic                 failed,
  input axi_pkg::axi_wr_req_t m_axi_req,
  input axi_pkg::axi_wr_rsp_t m_axi_rsp,
  // inside
  input logic                 active_q, last_burst, issues, awvalid_q, burst_ends,
  input logic [63:LaneW]      at_q,
  input logic [BeatW-1:0]     left_q, requested,
  input logic [1:0]           ahead_q,
  input logic [$clog2(4096 / Lanes > 256 ? 256 : 4096 / Lanes)-1:0] word_q
);
  localparam int unsigned BurstWords = 4096 / Lanes > 256 ? 256 : 4096 / Lanes;
  localparam int unsigned BurstW     = $clog2(BurstWords);
  localparam int unsigned MaxWords   = 4096 / Lanes + 1;
  typedef logic [63:LaneW] word_t;

  logic started_q = 1'b0;
  always_ff @(posedge clk) started_q <= 1'b1;

  // ---- the packet: words whose address has not been issued; the next word of data, and words left ----------
  word_t next_q, data_q, offered_q;
  logic [15:0] rest_q, data_left_q, offered_words_q;
  logic taken, job_was_q, s_waits_q, aw_waits_q, w_waits_q, bad_q, ends_q;
  logic [LaneW-1:0] first_q, last_q;
  axi_pkg::axi_wr_req_t m_q;
  assign taken = s_valid && s_ready;
  always_ff @(posedge clk) begin
    if (issues) begin
      next_q          <= next_q + word_t'(requested) + 1'b1;
      rest_q          <= rest_q - 16'(requested) - 16'd1;
      offered_q       <= next_q;
      offered_words_q <= 16'(requested) + 16'd1;
    end
    if (taken) begin
      data_q      <= data_q + 1'b1;
      data_left_q <= data_left_q - 16'd1;
    end
    if (job_valid) begin
      {next_q, data_q} <= {job_word, job_word};
      rest_q      <= 16'(job_last) + 16'd1;
      data_left_q <= 16'(job_last) + 16'd1;
    end
    if (rst) {rest_q, data_left_q} <= '0;
    s_waits_q  <= s_valid && !s_ready && !rst;
    {first_q, last_q, ends_q} <= {s_first, s_last, s_ends};
    aw_waits_q <= m_axi_req.awvalid && !m_axi_rsp.awready && !rst;
    w_waits_q  <= m_axi_req.wvalid && !m_axi_rsp.wready && !rst;
    bad_q      <= m_axi_rsp.bvalid && m_axi_rsp.bresp[1] && !rst;
    m_q        <= m_axi_req;
  end
  always_comb begin
    assume (rst == !started_q);
    if (job_valid) assume (data_left_q == 16'(taken) && 32'(job_last) < MaxWords);
    if (s_valid) assume (data_left_q != '0 && s_ends == (data_left_q == 16'd1));
    if (s_waits_q) assume (s_valid && s_first == first_q && s_last == last_q && s_ends == ends_q);
  end

  // Bursts between the next word of data and the next address.
  word_t last, bursts;
  logic [63:LaneW+BurstW] boundaries;
  assign last       = next_q - 1'b1;
  assign boundaries = last[63:LaneW+BurstW] - data_q[63:LaneW+BurstW];
  assign bursts     = next_q == data_q ? '0 : word_t'(boundaries) + 1'b1;

  always_comb if (started_q && !rst) begin
    // Invariants for the induction.
    a_0_at : assert (active_q == (rest_q != '0) && m_axi_req.awvalid == awvalid_q);
    if (active_q) a_0_next : assert (at_q == next_q && 16'(left_q) + 16'd1 == rest_q);
    a_0_left : assert (32'(data_left_q) <= MaxWords && rest_q <= data_left_q);
    if (data_left_q != '0) a_0_word : assert (word_q == data_q[LaneW+:BurstW]
                                              && next_q - data_q == word_t'(data_left_q - rest_q));
    a_0_ahead : assert (data_left_q == '0 ? ahead_q == '0 && rest_q == '0 : word_t'(ahead_q) == bursts);
    if (active_q && data_left_q != rest_q) a_0_boundary : assert (next_q[LaneW+:BurstW] == '0);
    if (data_left_q != '0 && next_q == data_q) a_0_begins : assert (active_q);

    // ---- bursts
    if (issues) a_within : assert (16'(requested) < rest_q && 32'(requested) < 256
                                   && 32'(12'(next_q << LaneW)) + (32'(requested) + 32'd1) * Lanes <= 32'd4096);
    if (issues) a_all : assert (last_burst == (16'(requested) + 16'd1 == rest_q)
                                && (last_burst || (next_q + word_t'(requested) + 1'b1) % BurstWords == '0));
    if (m_axi_req.awvalid) a_address : assert (m_axi_req.aw.addr == {offered_q, LaneW'(0)}
                                               && 16'(m_axi_req.aw.len) + 16'd1 == offered_words_q);
    if (aw_waits_q) a_aw_hold : assert (m_axi_req.awvalid && m_axi_req.aw == m_q.aw);
    // ---- data
    if (m_axi_req.wvalid) a_offered : assert (next_q - data_q != '0 && next_q - data_q <= word_t'(MaxWords));
    if (m_axi_req.wvalid)
      a_wlast : assert (m_axi_req.wlast == (data_left_q == 16'd1 || (data_q + 1'b1) % BurstWords == '0));
    if (m_axi_req.wvalid) a_lanes : assert (m_axi_req.wstrb && m_axi_req.wlanes == {6'(s_first), 6'(s_last)});
    if (w_waits_q) a_w_hold : assert (m_axi_req.wvalid && m_axi_req.wlast == m_q.wlast && m_axi_req.wlanes == m_q.wlanes);
    if (m_axi_req.wvalid) a_taken : assert (s_valid && s_ready == m_axi_rsp.wready);
    // ---- answers
    if (bad_q) a_failed : assert (failed);
    a_never_stalls : assert (m_axi_req.bready);

    c_two : cover (issues && !last_burst);
    c_second : cover (taken && !s_ends && burst_ends && data_left_q > 16'd1);
    c_last : cover (taken && s_ends && s_last != '1);
    c_next : cover (job_valid && m_axi_req.awvalid);
    c_fails : cover (failed);
  end
  wire unused = &{1'b0, burst_ends};
endmodule

bind receive_write receive_write_props #(.DATA_W(DATA_W)) u_props (.*);
