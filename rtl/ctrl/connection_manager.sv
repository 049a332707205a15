// SPDX-License-Identifier: SHL-2.1
// Opens and closes queue pairs over the network, on request of a server (listening) or by requests to one (opening).
// Every request gets one answer, a repeated one the same answer; only the peer that opened a
// queue pair can change it. Messages of the FEROCE connection manager (cm_pkg); states of IBTA 10.3.1.
module connection_manager
  import penstock_pkg::*;
  import cm_pkg::*;
#(
  parameter int unsigned N_QP    = 4,
  parameter int unsigned CLK_KHZ = 156250
) (
  input logic clk,
  input logic rst,

  input  cm_cfg_t     cfg,
  input  proxied_t    proxied,
  output cm_status_t  status,
  input  logic [31:0] local_ip,
  input  logic [23:0] qpn_base,

  // a queue pair has failed; software has put one into the error state
  input logic qp_err_valid,
  input qp_t  qp_err_qp,
  input logic qp_stop_valid,
  input qp_t  qp_stop_qp,

  // 64-byte UDP payloads, 32 beats each, with the other side's address during all of them
  input  logic [15:0] s_axis_cm_tdata,
  input  logic        s_axis_cm_tvalid,
  output logic        s_axis_cm_tready,
  input  logic        s_axis_cm_tlast,
  input  logic [31:0] cm_rx_ip,
  output logic [15:0] m_axis_cm_tdata,
  output logic        m_axis_cm_tvalid,
  input  logic        m_axis_cm_tready,
  output logic        m_axis_cm_tlast,
  output logic [31:0] cm_tx_ip,
  output logic [15:0] cm_tx_dport,
  output logic [15:0] cm_tx_sport,

  // MAC address of the next hop
  output logic        lookup_valid,
  input  logic        lookup_ready,
  output logic [31:0] lookup_ip,
  input  logic        found_valid,
  input  logic        found,
  input  logic [47:0] found_mac,

  // registers
  output axi_pkg::axil_req_t m_axil_req,
  input  axi_pkg::axil_rsp_t m_axil_rsp,

  output logic stat_request,    // served
  output logic stat_refused,    // answered with anything but ACK
  output logic stat_ignored,    // an unexpected answer, a request while not listening, another life of a peer
  output logic stat_timeout,    // an answer did not come in time
  output logic stat_peer_lost   // an open queue pair has failed
);
  localparam int unsigned QpW = N_QP > 1 ? $clog2(N_QP) : 1;

  if (N_QP == 0 || N_QP > 256 || (N_QP & (N_QP - 1)) != 0) begin : gen_check
    $fatal(1, "%m: N_QP = %0d: allowed are 1, 2, 4 ... 256", N_QP);
  end

  typedef enum logic [4:0] {
    StClear,    // after reset: every entry closed
    StIdle,
    StReceive,  // a message comes
    StFields,
    StRead,     // the entry it names, for StSort
    StSort,     // what it is
    StScan,     // OPEN_QP: look for its sender, or a free queue pair
    StCompare,
    StChoose,   // what it gets
    StFetch,    // the entry of the queue pair
    StWeigh,    // the rules, for StDecide
    StDecide,
    StWork,     // which script comes next
    StRun,
    StStore,
    StSend,
    StRelease   // the message may go
  } state_e;

  typedef logic [QpW-1:0] index_t;  // of a queue pair

  state_e    state_q, state_d;
  occasion_e occasion_q;
  index_t    index_q;      // entry being read or worked on
  phase_e    phase_q;      // what becomes of it
  todo_t     todo_q;
  logic [3:0] next_q;      // the script of the highest bit of todo_q
  logic      send_q;       // a message follows the work
  answer_e   answer_q;
  logic      opening;
  assign opening = occasion_q != OnRequest;

  // ---- scripts ------------------------------------------------------------------------------------------
  logic    run, done, failed, no_address;
  script_e script;
  fields_t  fields;
  match_t  match;
  phase_e  phase;      // of the entry that was fetched
  logic    counts;
  logic    accepted;
  logic [7:0] head;
  request_e   sent_request;

  logic full_q;  // there is no entry that OPEN_QP may take
  always_comb begin
    run = 1'b1;
    unique case (state_q)
      StClear:   script = ScrClear;
      StReceive: script = ScrReceive;
      StFields:  script = ScrFields;
      StScan:    script = ScrMatch;
      StFetch:   script = ScrFetch;
      StRun:     script = script_e'({1'b1, next_q});
      StStore:   script = ScrPhase;
      StSend:    script = opening ? ScrRequest : accepted ? ScrAccept : full_q ? ScrFull : ScrRefuse;
      default:   {run, script} = {1'b0, ScrClear};
    endcase
  end

  assign accepted = answer_q == AckAck;
  assign head     = opening ? {4'b0, sent_request, 1'b1} : {answer_q, 1'b1, fields.request, accepted};

  cm_engine #(
    .N_QP(N_QP)
  ) u_engine (
    .clk, .rst,
    .run, .script,
    .index(qp_t'(index_q)),
    .head, .phase(phase_q), .cfg, .proxied, .local_ip, .qpn_base,
    .done, .failed, .no_address, .fields, .match,
    .found_phase(phase),
    .counts,
    .let_go(state_q == StRelease),
    .s_axis_cm_tdata, .s_axis_cm_tvalid, .s_axis_cm_tready, .cm_rx_ip,
    .m_axis_cm_tdata, .m_axis_cm_tvalid, .m_axis_cm_tready, .m_axis_cm_tlast,
    .lookup_valid, .lookup_ready, .lookup_ip, .found_valid, .found, .found_mac,
    .m_axil_req,
    .m_axil_rsp
  );

  assign cm_tx_ip    = fields.ip;
  assign cm_tx_sport = RequestPort;
  // Answers go to the port that the request names, our requests to the one that the peer has named.
  always_ff @(posedge clk) cm_tx_dport <= fields.port != '0 ? fields.port : opening ? RequestPort : ReplyPort;

  // ---- time -----------------------------------------------------------------------------------------------
  logic [$clog2(CLK_KHZ)-1:0] prescale_q;
  logic [15:0] timer_q;    // milliseconds until the opening side acts again
  logic expired, arm;

  assign expired = timer_q == '0;
  always_ff @(posedge clk) begin
    prescale_q <= prescale_q == '0 ? $bits(prescale_q)'(CLK_KHZ - 1) : prescale_q - 1'b1;
    if (prescale_q == '0 && !expired) timer_q <= timer_q - 1'b1;
    if (arm) timer_q <= cfg.timeout_ms;
    if (rst) begin
      prescale_q <= '0;
      timer_q    <= '0;
    end
  end

  // ---- the event that the opening side waits for -----------------------------------------------------
  step_e step_q;
  fail_e fail_q;
  logic  waiting_q, open_due_q, close_due_q;
  logic [3:0] retries_q;
  index_t due_qp_q, active_qp_q, sweep_q;
  logic [N_QP-1:0] mine_q, lost_q;  // opened by us; failed, or stopped by software, since it was opened

  always_comb begin
    sent_request = step_q == StepOpen ? ReqOpen : ReqClose;
  end

  logic named, named_q;  // the other side's number is one of ours
  logic may_be_ours_q, is_ours_q, commanded, again;
  assign named = fields.qpn[23:8] == qpn_base[23:8] && 32'(fields.qpn[7:0]) < N_QP;
  always_ff @(posedge clk) begin
    named_q       <= named;
    // The answer contains our queue-pair number as the other side's.
    may_be_ours_q <= waiting_q && fields.request == sent_request && named && fields.qpn[QpW-1:0] == active_qp_q;
    is_ours_q     <= occasion_q != OnAnswer || match.ip;
  end
  assign commanded       = !waiting_q && (open_due_q || close_due_q);
  assign again           = !waiting_q && expired && cfg.reopen && mine_q[sweep_q]
                       && lost_q[sweep_q];

  // ---- the meaning of a request or an occasion -------------------------------------------------------------------
  decision_t decision, decision_q;  // of a request
  move_t     move, move_q;          // of ours
  logic      is_hit, is_held, is_half, is_last;
  logic      is_kept;     // for another address
  logic      unanswered;  // the request is not answered: another life of a queue pair that lives
  logic      is_last_offered_q;  // of those that OPEN_QP may take
  // ---- the entry that OPEN_QP may take, of those examined
  take_e     offer, take, best_q, held_q, given;  // held_q: of those that the sender's address holds
  index_t    best_index_q, held_index_q;
  logic [8:0] owned_q;  // queue pairs of the sender's address
  logic      at_bound;
  logic      dead, dead_q;  // this queue pair has failed since it was opened
  always_ff @(posedge clk) dead_q <= lost_q[index_q];
  assign is_hit  = proxied.valid ? 1'b0 : phase != PhClosed && match.ip && match.qpn;
  assign is_held = phase != PhClosed && match.ip;
  assign is_kept = cfg.keep_peer && !match.ip && !match.no_peer;
  // One that we are opening ourselves is not for others.
  assign is_half = (phase == PhInit || phase == PhRtr) && !(waiting_q && index_q == active_qp_q);
  assign given   = at_bound ? held_q : best_q;
  assign at_bound = cfg.per_address != '0 && owned_q >= 9'(cfg.per_address);
  always_comb begin
    if (cfg.engaged || is_kept) offer = TakeNone;
    else if (phase == PhClosed) offer = cfg.keep_peer && !match.ip ? TakeNew : TakeFree;
    else if (dead_q && !mine_q[index_q]) offer = TakeDead;
    else if (is_half) offer = TakeHalf;
    else offer = TakeNone;
  end
  // The standard connection manager has found the queue pair in reset.
  assign take = !proxied.valid ? offer : proxied.qp != 8'(index_q) || cfg.engaged || is_kept ? TakeNone : TakeFree;
  assign dead = proxied.valid ? 1'b1 : dead_q;
  assign unanswered = occasion_q == OnRequest && decision_q.probe;
  assign is_last = index_q == index_t'(N_QP - 1);
  always_ff @(posedge clk) is_last_offered_q <= is_last || 8'(index_q) == cfg.offered - 8'd1;

  cm_listener u_listener (
    .request(fields), .counts, .phase, .match, .dead(dead), .engaged(cfg.engaged), .decision
  );
  cm_opener u_opener (
    .occasion(occasion_q), .answer(fields), .phase,
    .step(step_q), .fail(fail_q), .waiting(waiting_q), .move
  );

  always_ff @(posedge clk) begin
    decision_q <= decision;
    move_q     <= move;
  end

  // ---- states -----------------------------------------------------------------------------------------
  logic take_request, take_answer, decides, opens, sent;
  assign take_request = state_q == StSort && !fields.answer_valid && (proxied.valid ? 1'b1 : cfg.listen);
  assign take_answer  = state_q == StSort && fields.answer_valid && may_be_ours_q;
  assign decides      = state_q == StDecide && is_ours_q;
  assign opens        = state_q == StWork && todo_q[$high(todo_q)] && next_q == 4'(ScrOpen);
  assign sent         = state_q == StSend && done;

  function automatic state_e ended(input occasion_e occasion);
    return occasion == OnRequest || occasion == OnAnswer ? StRelease : StIdle;
  endfunction

  always_comb begin
    state_d = state_q;
    unique case (state_q)
      StClear: if (done && is_last) state_d = StIdle;
      StIdle:
        if (s_axis_cm_tvalid) state_d = StReceive;
        else if (commanded || again || (waiting_q && expired)) state_d = StFetch;
      StReceive: if (done) state_d = StFields;
      StFields: if (done) state_d = StRead;
      StRead: state_d = StSort;
      StSort:
        if (take_request) begin
          if (fields.request == ReqOpen) state_d = StScan;
          else state_d = named_q ? StFetch : StSend;
        end else state_d = take_answer ? StFetch : StRelease;
      StScan: if (done) state_d = StCompare;
      StCompare:
        if (is_hit) state_d = StFetch;
        else state_d = is_last_offered_q ? StChoose : StScan;
      StChoose: state_d = given == TakeNone ? StSend : StFetch;
      StFetch: if (done) state_d = StWeigh;
      StWeigh: state_d = StDecide;
      StDecide: state_d = is_ours_q && !unanswered ? StWork : StRelease;
      StWork:
        if (todo_q == '0) state_d = StStore;
        else if (todo_q[$high(todo_q)]) state_d = StRun;
      StRun: if (done) state_d = StWork;
      StStore: if (done) state_d = send_q ? StSend : ended(occasion_q);
      StSend: if (done) state_d = ended(occasion_q);
      default: state_d = StIdle;
    endcase
  end

  // The entry that is examined.
  always_ff @(posedge clk) begin
    unique case (state_q)
      StClear: if (done) index_q <= index_q + 1'b1;
      // The sender's own queue pair goes before another one.
      StCompare:
        if (!is_hit && !is_last_offered_q) index_q <= index_q + 1'b1;
      StChoose: if (given != TakeNone) index_q <= at_bound ? held_index_q : best_index_q;
      StIdle: index_q <= waiting_q ? active_qp_q : commanded ? due_qp_q : sweep_q;
      StSort: index_q <= take_request && fields.request == ReqOpen ? '0 : fields.qpn[QpW-1:0];
      default: ;
    endcase
    if (state_q == StIdle) begin
      {best_q, held_q} <= {TakeNone, TakeNone};
      owned_q          <= '0;
    end
    if (state_q == StCompare) begin
      if (take > best_q) {best_q, best_index_q} <= {take, index_q};
      if (is_held) begin
        owned_q <= owned_q + 1'b1;
        if (take > held_q) {held_q, held_index_q} <= {take, index_q};
      end
    end
    if (state_q == StIdle || state_q == StChoose) full_q <= state_q == StChoose && given == TakeNone;
    if (state_q == StIdle) sweep_q <= sweep_q == index_t'(N_QP - 1) ? '0 : sweep_q + 1'b1;
    if (rst) begin
      index_q <= '0;
      sweep_q <= '0;
    end
  end

  always_ff @(posedge clk) begin
    state_q <= state_d;
    if (state_q == StIdle) begin
      answer_q <= AckNoQp;
      if (s_axis_cm_tvalid) occasion_q <= OnRequest;
      else if (waiting_q) occasion_q <= retries_q == '0 ? OnGiveUp : OnResend;
      else if (open_due_q) occasion_q <= OnOpen;
      else if (close_due_q) occasion_q <= OnClose;
      else occasion_q <= OnReopen;
    end
    if (take_answer) occasion_q <= OnAnswer;
    if (decides) begin
      phase_q  <= opening ? move_q.phase : decision_q.phase;
      todo_q   <= opening ? move_q.todo : decision_q.todo;
      next_q   <= '0;
      send_q   <= opening ? move_q.send : 1'b1;
      answer_q <= decision_q.answer;
    end
    if ((state_q == StWork && todo_q != '0 && !todo_q[$high(todo_q)]) || (state_q == StRun && done)) begin
      todo_q <= todo_q << 1;
      next_q <= next_q + 1'b1;
    end
    if (state_q == StRun && failed) begin
      // Started steps are undone; if that fails, the procedure ends.
      todo_q   <= script == ScrClose ? '0 : JustClose;
      next_q   <= '0;
      phase_q  <= PhClosed;
      answer_q <= AckError;
      // A server that has agreed already has a queue pair for us: send the error.
      if (opening) send_q <= occasion_q == OnAnswer;
    end
    if (rst) begin
      state_q    <= StClear;
      occasion_q <= OnRequest;
    end
  end

  // ---- the opening side's standing ------------------------------------------------------------------------
  always_ff @(posedge clk) begin
    if (cfg.open || cfg.close) begin
      if (32'(cfg.qp) >= N_QP) fail_q <= FailNoQp;
      else if (!open_due_q && !close_due_q) begin
        open_due_q  <= cfg.open;
        close_due_q <= !cfg.open;
        due_qp_q    <= cfg.qp[QpW-1:0];
      end
    end
    if (decides && opening) begin
      step_q        <= move_q.step;
      fail_q        <= move_q.fail;
      waiting_q     <= move_q.waiting;
      active_qp_q   <= index_q;
      retries_q     <= occasion_q == OnResend ? retries_q - 1'b1 : cfg.retries;
      if (occasion_q == OnOpen) open_due_q <= 1'b0;
      if (occasion_q == OnClose) close_due_q <= 1'b0;
    end
    if (opening && state_q == StRun && failed) begin
      waiting_q <= occasion_q == OnAnswer;
      fail_q    <= no_address ? FailAddress : FailState;
      if (occasion_q == OnAnswer) step_q <= StepShut;
    end
    if (rst) begin
      step_q <= StepNone;
      fail_q <= FailNone;
      {waiting_q, open_due_q, close_due_q} <= '0;
    end
  end

  always_ff @(posedge clk) begin
    if (decides) begin
      if (opening && move_q.step == StepDone) mine_q[index_q] <= 1'b1;
      if (occasion_q == OnClose) mine_q[index_q] <= 1'b0;
    end
    if (opens) begin
      lost_q[index_q] <= 1'b0;
      if (!opening) mine_q[index_q] <= 1'b0;
    end
    if (qp_err_valid) lost_q[qp_err_qp[QpW-1:0]] <= 1'b1;
    if (qp_stop_valid) lost_q[qp_stop_qp[QpW-1:0]] <= 1'b1;
    // The next attempt has begun with OPEN_QP; where it fails there is another.
    if (opening && state_q == StStore && fail_q != FailNone && mine_q[index_q])
      lost_q[index_q] <= 1'b1;
    if (rst) begin
      mine_q <= '0;
      lost_q <= '0;
    end
  end

  // ---- whether the holders of queue pairs are alive ------------------------------------------------------------
  // A request may have a forged address, or come from a peer that has restarted, or find no free queue pair: the
  // keep-alive then probes at once, for some round trips, and not again for a while. A peer that does not answer fails
  // after its retries, and its queue pair is free.
  localparam int unsigned ProbeCycles = 4096, RestMs = 100;
  logic silent, suspect;
  logic [$clog2(ProbeCycles)-1:0] probe_q;
  logic [$clog2(RestMs+1)-1:0] rest_q;
  assign silent   = state_q == StDecide && unanswered;
  assign suspect   = silent || (state_q == StChoose && given == TakeNone && !cfg.engaged);
  always_ff @(posedge clk) begin
    if (probe_q != '0) probe_q <= probe_q - 1'b1;
    if (prescale_q == '0 && rest_q != '0) rest_q <= rest_q - 1'b1;
    if (suspect && rest_q == '0) begin
      probe_q <= '1;
      rest_q  <= $bits(rest_q)'(RestMs);
    end
    if (rst) {probe_q, rest_q} <= '0;
  end

  assign arm    = opening && (state_q == StStore || sent);
  assign status = '{probe: probe_q != '0, busy: waiting_q || open_due_q || close_due_q || (opening && state_q != StIdle),
                    step: step_q, fail: fail_q, qp: qp_t'(active_qp_q)};

  // ---- counters ----------------------------------------------------------------------------------------------
  assign stat_request   = take_request;
  assign stat_refused   = sent && !opening && !accepted;
  assign stat_ignored   = (state_q == StSort && !take_request && !take_answer) || (state_q == StDecide && !is_ours_q)
                          || silent;
  assign stat_timeout   = state_q == StDecide && (occasion_q == OnResend || occasion_q == OnGiveUp);
  assign stat_peer_lost = qp_err_valid && mine_q[qp_err_qp[QpW-1:0]];

  wire unused = &{1'b0, fields, match, s_axis_cm_tlast, qp_err_qp, qp_stop_qp, cfg};

endmodule
