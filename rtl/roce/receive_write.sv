// SPDX-License-Identifier: SHL-2.1
// Writes the packets of WRITEs to an AXI4 memory: bursts of the words that hold their bytes, with strobes for those alone.
// Promise: the bursts of a packet are exactly its words, none crosses 4 KiB; data does not precede the offer of its
// address, and does not wait until that is taken (AMBA AXI4, A3.3.1). Each packet is reported once, when the memory has
// answered all of its bursts; an error response names it.
module receive_write
  import penstock_pkg::*;
#(
  parameter  int unsigned DATA_W = 64,
  parameter  int unsigned BURSTS = 16,  // without an answer
  localparam int unsigned Lanes  = DATA_W / 8,
  localparam int unsigned LaneW  = $clog2(Lanes),
  localparam int unsigned BeatW  = 13 - LaneW
) (
  input  logic                 clk,
  input  logic                 rst,

  input  logic                 job_valid,  // once the data of the one before has been taken
  input  logic [63:LaneW]      job_word,
  input  logic [BeatW-1:0]     job_last,   // words but one
  input  qp_t                  job_qp,
  input  psn_t                 job_psn,
  input  logic [LaneW-1:0]     s_first,    // lanes of a word that are written
  input  logic [LaneW-1:0]     s_last,
  input  logic                 s_ends,     // the last word of its packet
  input  logic                 s_valid,
  output logic                 s_ready,

  output logic                 done,       // one packet, the oldest
  output logic                 failed,     // an error response to a burst of it
  output qp_t                  failed_qp,
  output psn_t                 failed_psn,

  output axi_pkg::axi_wr_req_t m_axi_req,
  input  axi_pkg::axi_wr_rsp_t m_axi_rsp
);
  localparam int unsigned BurstWords = 4096 / Lanes > 256 ? 256 : 4096 / Lanes;
  localparam int unsigned BurstW     = $clog2(BurstWords);

  typedef struct packed {
    logic ends;  // the last burst of its packet
    qp_t  qp;
    psn_t psn;
  } burst_t;

  // ---- addresses: up to the next multiple of a whole burst -----------------------------------------------
  logic burst_room, active_q, last_burst, issues, awvalid_q;
  logic [63:LaneW]  at_q;
  logic [BeatW-1:0] left_q, to_boundary, requested;  // words after the next one
  qp_t  qp_q;
  psn_t psn_q;
  axi_pkg::axi_addr_t aw_q;
  assign to_boundary = BeatW'(BurstW'(~at_q[LaneW+:BurstW]));
  assign last_burst  = left_q <= to_boundary;
  assign requested   = last_burst ? left_q : to_boundary;
  assign issues      = active_q && burst_room && (!awvalid_q || m_axi_rsp.awready);

  always_ff @(posedge clk) begin
    if (issues) begin
      aw_q      <= axi_pkg::whole_words({at_q, LaneW'(0)}, 8'(requested), Lanes);
      awvalid_q <= 1'b1;
      at_q      <= at_q + (64-LaneW)'(requested) + 1'b1;
      left_q    <= left_q - requested - 1'b1;
    end else if (m_axi_rsp.awready) awvalid_q <= 1'b0;
    if (issues && last_burst) active_q <= 1'b0;
    if (job_valid) begin
      active_q <= 1'b1;
      at_q     <= job_word;
      left_q   <= job_last;
      qp_q     <= job_qp;
      psn_q    <= job_psn;
    end
    if (rst) begin
      awvalid_q <= 1'b0;
      active_q  <= 1'b0;
    end
  end

  // ---- data: of bursts whose address has been offered ----------------------------------------------------
  logic [1:0]        ahead_q;  // of them
  logic [BurstW-1:0] word_q;
  logic              burst_ends, taken;
  assign burst_ends = s_ends || word_q == '1;
  assign taken      = s_valid && s_ready;
  assign s_ready    = m_axi_rsp.wready && ahead_q != '0;
  always_ff @(posedge clk) begin
    if (taken) word_q <= word_q + 1'b1;
    if (job_valid) word_q <= job_word[LaneW+:BurstW];
    ahead_q <= ahead_q + 2'(issues) - 2'(taken && burst_ends);
    if (rst) ahead_q <= '0;
  end

  always_comb begin
    m_axi_req.aw      = aw_q;
    m_axi_req.awvalid = awvalid_q;
    m_axi_req.wlast   = burst_ends;
    m_axi_req.wlanes  = '{first: 6'(s_first), last: 6'(s_last)};
    m_axi_req.wstrb   = 1'b1;
    m_axi_req.wvalid  = s_valid && ahead_q != '0;
    m_axi_req.bready  = 1'b1;
  end

  // ---- answers, in the order of the bursts -----------------------------------------------------------------
  burst_t answered;
  logic   unused_answered;
  logic [$clog2(BURSTS):0] level;
  sync_fifo #(.W($bits(burst_t)), .DEPTH(BURSTS)) u_bursts (
    .clk, .rst,
    .s_data ({last_burst, qp_q, psn_q}),
    .s_valid(issues),
    .s_ready(burst_room),
    .m_data (answered),
    .m_valid(unused_answered),
    .m_ready(m_axi_rsp.bvalid),
    .level
  );
  always_ff @(posedge clk) begin
    done       <= m_axi_rsp.bvalid && answered.ends && !rst;
    failed     <= m_axi_rsp.bvalid && m_axi_rsp.bresp[1] && !rst;
    failed_qp  <= answered.qp;
    failed_psn <= answered.psn;
  end

  wire unused = &{1'b0, m_axi_rsp.bid, m_axi_rsp.bresp[0], unused_answered, level};

`ifndef SYNTHESIS
  a_job : assert property (@(posedge clk) disable iff (rst) job_valid |-> !active_q && ahead_q == 2'(taken));
  a_4k : assert property (@(posedge clk) disable iff (rst)
    m_axi_req.awvalid |-> 13'(m_axi_req.aw.addr[11:0]) + ((13'(m_axi_req.aw.len) + 13'd1) << LaneW) <= 13'd4096);
  a_due : assert property (@(posedge clk) disable iff (rst) m_axi_rsp.bvalid |-> level != '0);
`endif
endmodule
