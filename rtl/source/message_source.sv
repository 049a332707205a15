// SPDX-License-Identifier: SHL-2.1
// Makes messages without a detector: descriptors, and payloads of one word per cycle without gaps between messages.
// Payload is PRBS-31, a counter or a replay; the data of a run depends only on its settings, not on
// stalls or DATA_W. With a warm-up, the first messages are short and alone: the rest waits for their completions
// (FEROCE 2025: a network card then loads its context of the queue pair). A run ends after `count` messages or at
// `stop`, always at the end of a message.
module message_source
  import penstock_pkg::*;
  import source_pkg::*;
  import ctrl_pkg::*;
#(
  parameter  int unsigned DATA_W = 64,
  parameter  bit          PEERS  = 1'b0,  // peers fill the replay memory
  localparam int unsigned Lanes  = DATA_W / 8
) (
  input  logic                clk,
  input  logic                rst,

  input  source_cfg_t         cfg,
  input  logic                start,   // no effect while running
  input  logic                stop,
  input  logic                clear,   // of the counts in status
  output source_status_t      status,
  input  logic                cpl_valid,  // of any message
  input  cpl_t                cpl,
  input  reg_req_t            replay_req,
  output reg_rsp_t            replay_rsp,
  input  table_fill_t         replay_fill,
  input  logic [DATA_W-1:0]   fill_data,

  output logic [175:0]        m_axis_desc_tdata,
  output logic                m_axis_desc_tvalid,
  input  logic                m_axis_desc_tready,
  output logic [DATA_W-1:0]   m_axis_data_tdata,
  output logic [DATA_W/8-1:0] m_axis_data_tkeep,
  output logic                m_axis_data_tvalid,
  input  logic                m_axis_data_tready,
  output logic                m_axis_data_tlast
);
  localparam int unsigned LaneW = $clog2(Lanes);

  // ---- messages -------------------------------------------------------------------------------------
  logic begins, plans, plan_valid, plan_room, length_room, length_valid, length_ready;
  logic [1:0] unused_length_level, unused_plan_level;
  logic [31:0] length;
  logic active_q;
  desc_t plan, desc;

  assign status.running = plans || m_axis_desc_tvalid || length_valid || active_q || m_axis_data_tvalid;
  assign begins         = start && !status.running;

  message_planner u_planner (
    .clk, .rst, .cfg,
    .start(begins), .stop,
    .cpl_valid, .cpl_tag(cpl.tag),
    .running(plans), .event_number(status.event_number),
    .room(length_room),
    .desc(plan), .valid(plan_valid), .ready(plan_room)
  );

  // The planner does not wait for the answer of the descriptors' taker, which comes late in its cycle. What is not kept
  // follows from the settings, which stay while messages wait.
  localparam int unsigned KeptW = $bits({plan.raddr, plan.imm, plan.length, plan.series, plan.qp});
  logic [KeptW-1:0] kept;
  sync_fifo #(.W(KeptW), .DEPTH(2)) u_plans (
    .clk, .rst,
    .s_data ({plan.raddr, plan.imm, plan.length, plan.series, plan.qp}),
    .s_valid(plan_valid),
    .s_ready(plan_room),
    .m_data (kept),
    .m_valid(m_axis_desc_tvalid),
    .m_ready(m_axis_desc_tready),
    .level  (unused_plan_level)
  );
  always_comb begin
    desc = plan;
    {desc.raddr, desc.imm, desc.length, desc.series, desc.qp} = kept;
    desc.tag[23:0] = desc.imm[23:0];
  end
  assign m_axis_desc_tdata = desc;

  sync_fifo #(.W(32), .DEPTH(2)) u_lengths (
    .clk, .rst,
    .s_data (plan.length),
    .s_valid(plan_valid && plan_room),
    .s_ready(length_room),
    .m_data (length),
    .m_valid(length_valid),
    .m_ready(length_ready),
    .level  (unused_length_level)
  );

  // ---- beats: the next one is made while one is shown -----------------------------------------------
  logic [31:0] left_q;  // bytes of the message from this beat on
  logic [LaneW-1:0] tail_q, shown_tail_q;  // bytes of this beat, and of the one that is shown; 0 = all
  logic last_q, word_valid, free, take, ends, anew_q;
  logic [LaneW:0] n_bytes, shown_bytes;
  logic [DATA_W-1:0] word;

  assign n_bytes      = {tail_q == '0, tail_q};
  assign free         = !m_axis_data_tvalid || m_axis_data_tready;
  assign take         = active_q && word_valid && free;
  assign ends         = take && last_q;
  assign length_ready = !active_q || ends;

  always_ff @(posedge clk) begin
    if (take) begin
      left_q <= left_q - 32'(Lanes);
      last_q <= left_q <= 32'(2 * Lanes);
      tail_q <= left_q <= 32'(2 * Lanes) ? left_q[LaneW-1:0] : '0;
    end
    if (length_ready) begin
      active_q <= length_valid;
      left_q   <= length;
      last_q   <= length <= 32'(Lanes);
      tail_q   <= length <= 32'(Lanes) ? length[LaneW-1:0] : '0;
    end
    if (free) begin
      m_axis_data_tvalid <= active_q && word_valid;
      m_axis_data_tdata  <= word;
      m_axis_data_tlast  <= last_q;
      shown_tail_q       <= tail_q;
    end
    anew_q <= (begins && cfg.restart) || rst;  // the first length takes longer
    if (rst) begin
      active_q           <= 1'b0;
      m_axis_data_tvalid <= 1'b0;
    end
  end

  assign shown_bytes       = {shown_tail_q == '0, shown_tail_q};
  assign m_axis_data_tkeep = {Lanes{1'b1}} >> ((LaneW + 1)'(Lanes) - shown_bytes);

  // ---- payload --------------------------------------------------------------------------------------
  logic [DATA_W-1:0] prbs_word, counter_word, replay_word;
  logic replay_valid;

  prbs31 #(.DATA_W(DATA_W)) u_prbs (
    .clk,
    .load(anew_q), .seed(cfg.prbs_seed),
    .take(take && cfg.generator == GenPrbs), .n_bytes(tail_q),
    .word(prbs_word)
  );
  word_counter #(.DATA_W(DATA_W)) u_counter (
    .clk,
    .load(anew_q),
    .take(take && cfg.generator == GenCounter), .n_bytes,
    .word(counter_word)
  );
  replay_memory #(.DATA_W(DATA_W), .PEERS(PEERS)) u_replay (
    .clk, .rst,
    .blocks(cfg.replay_blocks),
    .load(anew_q),
    .take(take && cfg.generator == GenReplay), .last(last_q),
    .word(replay_word), .valid(replay_valid),
    .req(replay_req), .rsp(replay_rsp), .fill(replay_fill), .fill_data
  );

  always_comb begin
    word_valid = 1'b1;
    unique case (cfg.generator)
      GenCounter: word = counter_word;
      GenReplay: begin
        word       = replay_word;
        word_valid = replay_valid;
      end
      default: word = cfg.prbs_invert ? ~prbs_word : prbs_word;
    endcase
  end

  // ---- status ---------------------------------------------------------------------------------------
  always_ff @(posedge clk) begin
    if (m_axis_data_tvalid && m_axis_data_tready) begin
      if (m_axis_data_tlast) status.messages <= status.messages + 64'd1;
      status.bytes <= status.bytes + 64'(shown_bytes);
    end
    if (m_axis_data_tvalid && !m_axis_data_tready) status.stalled <= status.stalled + 64'd1;
    if (anew_q || clear) begin
      status.messages <= '0;
      status.bytes    <= '0;
      status.stalled  <= '0;
    end
  end

  wire unused = &{1'b0, cpl};  // of a completion its tag counts

`ifndef SYNTHESIS
  // A valid beat waits unchanged until it is taken (AMBA AXI-Stream 2.2.1), also while software uses the memory.
  a_hold : assert property (@(posedge clk) disable iff (rst)
    m_axis_data_tvalid && !m_axis_data_tready |=> m_axis_data_tvalid && $stable(m_axis_data_tdata));
`endif
endmodule
