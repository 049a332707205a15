// SPDX-License-Identifier: Apache-2.0
// Plays a history printed by the example `history` of crates/cc to the congestion-control engine.
// Compares every bit of every queue pair's state, its credit and its eligibility, at every visit.
module cc_replay
  import penstock_pkg::*;
  import penstock_regs_pkg::*;
  import cc_pkg::*;
#(
  parameter int unsigned N_QP = 4
) (
  input  logic          clk,
  input  logic          play,
  input  logic [2047:0] path,    // of the history, as ASCII
  output logic          done,
  output logic [31:0]   visits,  // compared
  output logic [31:0]   errors
);

  localparam int unsigned Round = N_QP > 16 ? N_QP : 16;
  localparam int unsigned Latency = 7;       // from a visit's start to its end
  localparam int unsigned ParamsAt = 12;     // cycle of the round in which no visit is in flight
  localparam int unsigned MaxRounds = 1024;
  localparam int unsigned FractionW = 24 - $clog2(Round);
  localparam int unsigned AccountW = 2 * ByteCountW + FractionW;

  // verilator lint_off UNUSEDSIGNAL
  typedef struct packed {
    logic         init;
    law_choice_e  law;      // chosen with init
    logic         cnp;
    feedback_t    feedback;
    logic [15:0]  bytes;
    logic         waits;
    logic         ignored;
    logic         eligible;
    logic [63:0]  credit;   // in 2^-24 bytes
    state_t state;
  } record_t;

  // ---- the history ------------------------------------------------------------------------------
  int file;
  int rounds, offset;
  cc_params_t round_params[MaxRounds];
  qcn_params_t round_qcn[MaxRounds];
  logic round_paused[MaxRounds];
  record_t records[MaxRounds*N_QP];

  // The next number of the history; 0 at its end.
  function automatic logic [63:0] word();
    logic [63:0] value;
    return $fscanf(file, " %h", value) == 1 ? value : '0;
  endfunction

  function automatic cc_params_t read_params();
    cc_words_t words;
    for (int unsigned w = 0; w < CcWords; w++) words[w] = 32'(word());
    return cc_params_of(words);
  endfunction

  function automatic qcn_params_t read_qcn_params();
    qcn_words_t words;
    for (int unsigned w = 0; w < QcnWords; w++) words[w] = 32'(word());
    return qcn_params_of(words);
  endfunction

  // The words of Flow::words of crates/cc.
  function automatic state_t read_state();
    state_t state;
    logic [31:0] flags;
    state.c.rate_current = 32'(word());
    state.c.rate_target = 32'(word());
    state.c.timer_elapsed = 32'(word());
    state.c.bytes_sent = 32'(word());
    flags = 32'(word());
    {state.c.rise_due, state.c.cut_due, state.c.qcn, state.c.limited, state.c.stage_bytes, state.c.stage_timer} = flags[19:0];
    state.c.cnp_handled = 32'(word());
    state.dcqcn.alpha = 32'(word());
    state.dcqcn.since_cut = 32'(word());
    state.dcqcn.alpha_elapsed = 32'(word());
    return state;
  endfunction

  function automatic record_t read_record();
    record_t r;
    law_e law;
    r.init = 1'(word());
    law = law_e'(2'(word()));
    r.law = law == LawDcqcn ? ChooseDcqcn : law == LawQcn ? ChooseQcn : ChooseOff;
    r.cnp = 1'(word());
    r.feedback = 6'(word());
    r.bytes = 16'(word());
    r.waits = 1'(word());
    r.ignored = 1'(word());
    r.eligible = 1'(word());
    r.credit = word();
    r.state = read_state();
    return r;
  endfunction

  function automatic logic read_episode();
    rounds = 32'(word());
    offset = 32'(word());
    if (rounds == 0) return 1'b0;  // end of file
    for (int r = 0; r < rounds; r++) begin
      round_paused[r] = 1'(word());
      round_params[r] = read_params();
      round_qcn[r] = read_qcn_params();
      for (int q = 0; q < int'(N_QP); q++) records[r*int'(N_QP)+q] = read_record();
    end
    return 1'b1;
  endfunction

  // ---- the engine -------------------------------------------------------------------------------
  logic rst, init_valid, cnp_valid, cnm_valid, sent_valid, cnp_ignored, paused;
  law_choice_e event_law;
  feedback_t event_feedback;
  logic [1:0] event_group;
  qp_t event_qp;
  logic [15:0] sent_bytes;
  logic [N_QP-1:0] eligible, backlog;
  cc_params_t params;
  qcn_params_t qcn_params;
  cc_status_t st;

  // verilator lint_off PINCONNECTEMPTY
  // (the sampling port has its own bench)
  cc_engine #(
    .N_QP(N_QP)
  ) dut (
    .clk,
    .rst,
    .law_group(),
    .law       (law_e'(params.law)),
    .select(),
    .params    ({CcStages{params}}),
    .qcn_params({CcStages{qcn_params}}),
    .choice_valid(init_valid),
    .choice_qp   (event_qp),
    .choice      ('{group: event_group, law: event_law}),
    .init_valid,
    .init_qp(event_qp),
    .cnp_valid,
    .cnp_qp (event_qp),
    .cnm_valid,
    .cnm_qp      (event_qp),
    .cnm_feedback(event_feedback),
    .cnp_ignored,
    .cnp_clamped    (),
    .visit_valid(), .visit_qp(), .floor('0), .visited_valid(), .visited_qp(), .visited_low(),
    .sent_valid,
    .sent_qp(event_qp),
    .sent_bytes,
    .backlog,
    .paused,
    .eligible,
    .st_qp  ('0),
    .st,
    .sampling            ('0),
    .m_axis_sample_tdata (),
    .m_axis_sample_tvalid(),
    .m_axis_sample_tready(1'b1),
    .sample_dropped      ()
  );

  // ---- playing ----------------------------------------------------------------------------------
  // The first round only puts the engine into its first state; record r is visit r + 1.
  typedef enum logic [1:0] {StWait, StReset, StPlay, StDone} state_e;
  state_e state;
  int cycle;  // of the episode
  assign done = state == StDone;

  // The record of the visit that lies `back` cycles before this one; -1 if there is none.
  function automatic int record_at(input int back);
    int at;
    at = cycle - back;
    if (at < int'(Round) || at % int'(Round) >= int'(N_QP) || at / int'(Round) > rounds) return -1;
    return (at / int'(Round) - 1) * int'(N_QP) + at % int'(Round);
  endfunction

  task automatic check(input logic equal, input string what, input int record);
    if (equal) return;
    errors <= errors + 1;
    if (errors < 5)
      $display("cycle %0d: qp %0d, round %0d: %s differs", cycle, record % int'(N_QP), record / int'(N_QP), what);
  endtask

  // verilator lint_off BLKSEQ
  always @(posedge clk) begin
    automatic int expected;
    automatic record_t r;
    init_valid <= 1'b0;
    cnp_valid <= 1'b0;
    cnm_valid <= 1'b0;
    sent_valid <= 1'b0;
    case (state)
      StWait: if (play) begin
        visits <= '0;
        errors <= '0;
        file = $fopen($sformatf("%0s", path), "r");
        if (file == 0) $fatal(1, "cannot open %0s", path);
        state <= StReset;
      end
      StReset: begin
        rst <= 1'b1;
        cycle <= -2;
        if (read_episode()) begin
          params <= round_params[0];
          qcn_params <= round_qcn[0];
          paused <= round_paused[0];
          state <= StPlay;
        end else begin
          $fclose(file);
          state <= StDone;
        end
      end
      StPlay: begin
        cycle <= cycle + 1;
        if (cycle == -1) rst <= 1'b0;  // `cycle` 0 is the engine's slot 0

        // what happens to a queue pair before its next visit; it is seen one cycle from now
        expected = record_at(offset - int'(Round) - 1);
        if (expected >= 0) begin
          r = records[expected];
          event_qp <= qp_t'(expected % int'(N_QP));
          init_valid <= r.init;
          cnp_valid <= r.cnp;
          cnm_valid <= r.feedback != '0;
          event_feedback <= r.feedback;
          event_law <= r.law;
          event_group <= 2'(expected);  // all groups are alike
          sent_valid <= r.bytes != '0;
          sent_bytes <= r.bytes;
        end
        if (cycle >= 0 && cycle % int'(Round) == int'(ParamsAt) && cycle / int'(Round) < rounds)
          begin
            params <= round_params[cycle/int'(Round)];
            qcn_params <= round_qcn[cycle/int'(Round)];
          end
        // seen from the first visit of the next round on
        if (cycle >= 0 && cycle % int'(Round) == int'(Round) - 1 && cycle / int'(Round) < rounds)
          paused <= round_paused[cycle/int'(Round)];

        // what waits when the visit that begins now ends
        expected = record_at(-int'(Round));
        if (expected >= 0) backlog[expected % int'(N_QP)] <= records[expected].waits;

        expected = record_at(0);
        if (expected >= 0) begin
          automatic int q = expected % int'(N_QP);
          automatic logic [AccountW-1:0] account = dut.u_pacer.u_accounts.mem[q];
          automatic byte_count_t spent = dut.u_pacer.has_sent_q[q] ? dut.u_pacer.u_spent_for_grant.mem[q] : '0;
          automatic byte_count_t credit = account[FractionW+:ByteCountW] - spent;
          r = records[expected];
          check(eligible[q] == r.eligible, "eligible", expected);
          check({credit, account[FractionW-1:0]} == r.credit[24-FractionW+:ByteCountW+FractionW], "credit", expected);
        end

        expected = record_at(int'(Latency));
        if (expected >= 0) begin
          r = records[expected];
          visits <= visits + 1;
          check(dut.done && dut.done_qp == qp_t'(expected % int'(N_QP)), "the visit", expected);
          check(dut.done_state == r.state, "state", expected);
          check(cnp_ignored == r.ignored, "cnp_ignored", expected);
        end
        if (cycle == (rounds + 2) * int'(Round)) state <= StReset;
      end
      default: ;
    endcase
    if (!play) state <= StWait;
  end

endmodule
