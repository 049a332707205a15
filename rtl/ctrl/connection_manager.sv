// SPDX-License-Identifier: SHL-2.1
// Opens and closes queue pairs over the network, asked by a server (listening) or asking one (opening).
// Every request gets one answer, a repeated one the same answer; nobody but the peer that opened a
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
  output cm_status_t  status,
  input  logic [31:0] local_ip,
  input  logic [23:0] qpn_base,

  // a queue pair has failed
  input logic qp_err_valid,
  input qp_t  qp_err_qp,

  // 64-byte UDP payloads, eight beats each, with the other side's address during all of them
  input  logic [63:0] s_axis_cm_tdata,
  input  logic        s_axis_cm_tvalid,
  output logic        s_axis_cm_tready,
  input  logic        s_axis_cm_tlast,
  input  logic [31:0] cm_rx_ip,
  output logic [63:0] m_axis_cm_tdata,
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
  output logic [17:0] m_axil_awaddr,
  output logic [2:0]  m_axil_awprot,
  output logic        m_axil_awvalid,
  input  logic        m_axil_awready,
  output logic [31:0] m_axil_wdata,
  output logic [3:0]  m_axil_wstrb,
  output logic        m_axil_wvalid,
  input  logic        m_axil_wready,
  input  logic [1:0]  m_axil_bresp,
  input  logic        m_axil_bvalid,
  output logic        m_axil_bready,
  output logic [17:0] m_axil_araddr,
  output logic [2:0]  m_axil_arprot,
  output logic        m_axil_arvalid,
  input  logic        m_axil_arready,
  input  logic [31:0] m_axil_rdata,
  input  logic [1:0]  m_axil_rresp,
  input  logic        m_axil_rvalid,
  output logic        m_axil_rready,

  output logic stat_request,    // served
  output logic stat_refused,    // answered with anything but ACK
  output logic stat_ignored,    // an answer that nobody waits for, or a request while not listening
  output logic stat_timeout,    // an answer did not come in time
  output logic stat_peer_lost   // an open queue pair has failed
);
  localparam int unsigned QpW = N_QP > 1 ? $clog2(N_QP) : 1;

  if (N_QP == 0 || N_QP > 256 || (N_QP & (N_QP - 1)) != 0) begin : gen_check
    $fatal(1, "%m: N_QP = %0d: allowed are 1, 2, 4 ... 256", N_QP);
  end

  typedef enum logic [3:0] {
    StClear,    // after reset: every entry closed
    StIdle,
    StLoad,     // a message comes
    StSort,     // what it is
    StScan,     // OPEN_QP: look for its sender, or a free queue pair
    StPick,
    StFetch,    // the entry of a queue pair that was named
    StDecide,
    StWork,     // run what is to do
    StLookup,
    StFound,
    StRunning,
    StStore,
    StSend
  } state_e;

  state_e    state_q, state_d;
  occasion_e occasion_q;
  qp_t       index_q;      // entry being read or worked on
  entry_t    entry;        // as the table has it
  phase_e    phase_q;      // what becomes of it
  logic [23:0] own_psn_q;
  todo_t     todo_q;
  message_t  msg_q;
  logic [31:0] from_ip_q;
  logic [2:0] beat_q;      // of the message that comes or goes
  logic      sent;         // its last beat
  logic      send_q;       // a message follows the work
  answer_e   answer_q;
  logic      opening;
  assign opening = occasion_q != OnRequest;

  // ---- time and chance --------------------------------------------------------------------------
  logic [$clog2(CLK_KHZ)-1:0] prescale_q;
  logic [15:0] timer_q;    // milliseconds until the opening side acts again
  logic [31:0] lfsr_q;
  logic expired, arm;

  assign expired = timer_q == '0;
  always_ff @(posedge clk) begin
    prescale_q <= prescale_q == '0 ? $bits(prescale_q)'(CLK_KHZ - 1) : prescale_q - 1'b1;
    if (prescale_q == '0 && !expired) timer_q <= timer_q - 1'b1;
    if (arm) timer_q <= cfg.timeout_ms;
    lfsr_q <= {lfsr_q[30:0], lfsr_q[31] ^ lfsr_q[21] ^ lfsr_q[1] ^ lfsr_q[0]};
    if (rst) begin
      prescale_q <= '0;
      timer_q    <= '0;
      lfsr_q     <= 32'h5053544B;
    end
  end

  // ---- the table ----------------------------------------------------------------------------------
  // The peer is written when it is decided on, the rest when all is done. What is written of it, but for its
  // address, is always the sender's of the message at hand: `heard` says that there was one.
  decision_t decision;  // of a request
  move_t     move;      // of ours
  change_t   change;
  info_t     peer;
  logic      clears, heard;
  logic [31:0] claimed_ip;
  assign clears = state_q == StClear;
  assign change = opening ? move.change : decision.change;

  always_comb begin
    claimed_ip = from_ip_q;  // the address that the sender really has
    if (clears) claimed_ip = '0;
    else if (change.open) claimed_ip = occasion_q == OnReopen ? entry.peer.ip : cfg.server_ip;
  end

  ram_sdp #(.W(1 + $bits(info_t)), .DEPTH(1 << QpW), .BLOCK(1'b1)) u_peers (
    .clk,
    .wr_en  (clears || (state_q == StDecide && (change.claim || change.open))),
    .wr_addr(index_q[QpW-1:0]),
    .wr_data({!clears && !change.open, msg_q.sender.qpn, 8'b0, msg_q.sender.psn, msg_q.sender.rkey,
              msg_q.sender.base, claimed_ip}),
    .rd_en  (1'b1),
    .rd_addr(index_q[QpW-1:0]),
    .rd_data({heard, peer})
  );
  always_comb begin
    entry.peer    = heard ? peer : '0;
    entry.peer.ip = peer.ip;
  end

  ram_sdp #(.W($bits(phase_e) + 24), .DEPTH(1 << QpW), .BLOCK(1'b1)) u_phases (
    .clk,
    .wr_en  (clears || state_q == StStore),
    .wr_addr(index_q[QpW-1:0]),
    .wr_data(clears ? '0 : {phase_q, own_psn_q}),
    .rd_en  (1'b1),
    .rd_addr(index_q[QpW-1:0]),
    .rd_data({entry.phase, entry.own_psn})
  );

  logic read_q, fetched_q;  // `entry` is that of read_index_q; of index_q
  qp_t  read_index_q;
  always_ff @(posedge clk) begin
    read_q       <= state_q == StScan;
    read_index_q <= index_q;
    fetched_q    <= state_q == StFetch;
  end

  // ---- what the opening side waits for ---------------------------------------------------------------
  step_e step_q;
  fail_e fail_q;
  logic  waiting_q, ask_open_q, ask_close_q;
  logic [3:0] retries_q;
  qp_t   ask_qp_q, own_qp_q, sweep_q;
  logic [31:0] server_ip_q;
  logic [N_QP-1:0] mine_q, lost_q;  // opened by us; failed since it was opened

  request_e asked;
  always_comb begin
    unique case (step_q)
      StepOpen: asked = ReqOpen;
      StepInfo: asked = ReqInfo;
      StepRts:  asked = ReqRts;
      default:  asked = ReqClose;
    endcase
  end

  logic is_ours, ask, again;
  // The server says whom it answers: our queue-pair number comes back as the other side's.
  assign is_ours = waiting_q && from_ip_q == server_ip_q && msg_q.request == asked
                   && msg_q.other.qpn == (qpn_base | 24'(own_qp_q));
  assign ask     = !waiting_q && (ask_open_q || ask_close_q);
  assign again   = !waiting_q && expired && cfg.reopen && mine_q[sweep_q[QpW-1:0]]
                   && lost_q[sweep_q[QpW-1:0]];

  // ---- what a request or an occasion means -----------------------------------------------------------------------
  logic hit_q, free_q;  // StScan found its sender, a closed entry
  qp_t  hit_index_q, free_index_q;
  logic named;          // the other side's number is one of ours
  assign named = msg_q.other.qpn[23:8] == qpn_base[23:8] && 32'(msg_q.other.qpn[7:0]) < N_QP;

  logic dead;           // this queue pair has failed since it was opened
  assign dead = lost_q[index_q[QpW-1:0]];


  cm_listener u_listener (
    .request(msg_q), .from_ip(from_ip_q), .phase(entry.phase), .peer(entry.peer), .dead, .decision
  );
  cm_opener u_opener (
    .occasion(occasion_q), .answer(msg_q), .phase(entry.phase),
    .step(step_q), .fail(fail_q), .waiting(waiting_q), .move
  );

  // ---- programs ----------------------------------------------------------------------------------------
  logic prog_start, prog_done, prog_ok, no_address, no_success;
  program_e prog;
  logic [47:0] mac_q;

  todo_t rest;  // when `prog` is done
  always_comb begin
    rest = todo_q;
    if (todo_q.open) {prog, rest.open} = {ProgOpen, 1'b0};
    else if (todo_q.info) {prog, rest.info} = {ProgInfo, 1'b0};
    else if (todo_q.rts) {prog, rest.rts} = {ProgRts, 1'b0};
    else if (todo_q.close) {prog, rest.close} = {ProgClose, 1'b0};
    else if (todo_q.error) {prog, rest.error} = {ProgError, 1'b0};
    else if (todo_q.start) {prog, rest.start} = {ProgStart, 1'b0};
    else {prog, rest.stop} = {ProgStop, 1'b0};
  end
  assign prog_start = state_q != StRunning && state_d == StRunning;
  assign no_address = state_q == StFound && found_valid && !found;
  assign no_success = state_q == StRunning && prog_done && !prog_ok;

  always_ff @(posedge clk) if (found_valid) mac_q <= found_mac;

  cm_program #(.CLK_KHZ(CLK_KHZ)) u_program (
    .clk, .rst,
    .start(prog_start), .program_id(prog), .qp(index_q),
    .peer(entry.peer), .peer_mac(mac_q), .own_psn(own_psn_q),
    .flow(cfg.flow), .transport(cfg.transport), .request(msg_q),
    .done(prog_done), .ok(prog_ok),
    .m_axil_awaddr, .m_axil_awprot, .m_axil_awvalid, .m_axil_awready,
    .m_axil_wdata, .m_axil_wstrb, .m_axil_wvalid, .m_axil_wready,
    .m_axil_bresp, .m_axil_bvalid, .m_axil_bready,
    .m_axil_araddr, .m_axil_arprot, .m_axil_arvalid, .m_axil_arready,
    .m_axil_rdata, .m_axil_rresp, .m_axil_rvalid, .m_axil_rready
  );

  assign lookup_valid = state_q == StLookup;
  assign lookup_ip    = entry.peer.ip;

  // ---- states -----------------------------------------------------------------------------------------
  logic take_request, take_answer;
  assign take_request = state_q == StSort && !msg_q.answer_valid && cfg.listen;
  assign take_answer  = state_q == StSort && msg_q.answer_valid && is_ours;
  assign s_axis_cm_tready = state_q == StLoad;

  always_comb begin
    state_d = state_q;
    unique case (state_q)
      StClear: if (index_q == qp_t'(N_QP - 1)) state_d = StIdle;
      StIdle:
        if (s_axis_cm_tvalid) state_d = StLoad;
        else if (ask || again || (waiting_q && expired)) state_d = StFetch;
      StLoad: if (s_axis_cm_tvalid && s_axis_cm_tlast) state_d = StSort;
      StSort:
        if (take_request) begin
          if (msg_q.request == ReqOpen) state_d = StScan;
          else state_d = named ? StFetch : StSend;
        end else state_d = take_answer ? StFetch : StIdle;
      StScan: if (read_q && read_index_q == qp_t'(N_QP - 1)) state_d = StPick;
      StPick: state_d = hit_q || free_q ? StFetch : StSend;
      StFetch: if (fetched_q) state_d = StDecide;
      StDecide: state_d = StWork;
      StWork:
        if (todo_q == '0) state_d = StStore;
        else state_d = prog == ProgInfo ? StLookup : StRunning;
      StLookup: if (lookup_ready) state_d = StFound;
      StFound: if (found_valid) state_d = found ? StRunning : StWork;
      StRunning: if (prog_done) state_d = StWork;
      StStore: state_d = send_q ? StSend : StIdle;
      default: if (sent) state_d = StIdle;  // StSend
    endcase
  end

  // The message: its first byte is in the lowest lane of the first beat.
  always_ff @(posedge clk) begin
    for (int unsigned i = 0; i < 8; i++)
      if (state_q == StLoad && beat_q == 3'(i)) msg_q[64*(7-i)+:64] <= {<<8{s_axis_cm_tdata}};
    if (state_q == StIdle) beat_q <= '0;
    else if ((s_axis_cm_tvalid && s_axis_cm_tready) || (m_axis_cm_tvalid && m_axis_cm_tready)) beat_q <= beat_q + 1'b1;
  end

  // Which entry is looked at.
  always_ff @(posedge clk) begin
    unique case (state_q)
      StClear: index_q <= index_q + 1'b1;
      StScan: index_q <= index_q == qp_t'(N_QP - 1) ? index_q : index_q + 1'b1;
      StPick: index_q <= hit_q ? hit_index_q : free_index_q;
      StIdle: index_q <= waiting_q ? own_qp_q : ask ? ask_qp_q : sweep_q;
      StSort:
        if (take_request) index_q <= msg_q.request == ReqOpen ? '0 : msg_q.other.qpn[7:0];
        else index_q <= own_qp_q;
      default: ;
    endcase
    if (state_q == StIdle) sweep_q <= sweep_q == qp_t'(N_QP - 1) ? '0 : sweep_q + 1'b1;
    if (rst) begin
      index_q <= '0;
      sweep_q <= '0;
    end
  end

  // The sender's own entry goes before a free one.
  always_ff @(posedge clk) begin
    if (state_q == StIdle) {hit_q, free_q} <= 2'b00;
    if (read_q) begin
      if (entry.phase != PhClosed && entry.peer.ip == from_ip_q && entry.peer.qpn == msg_q.sender.qpn) begin
        hit_q       <= 1'b1;
        hit_index_q <= read_index_q;
      end
      if (entry.phase == PhClosed && !free_q) begin
        free_q       <= 1'b1;
        free_index_q <= read_index_q;
      end
    end
  end

  always_ff @(posedge clk) begin
    state_q <= state_d;
    if (state_q == StIdle) begin
      answer_q <= AckNoQp;
      if (s_axis_cm_tvalid) occasion_q <= OnRequest;
      else if (waiting_q) occasion_q <= retries_q == '0 ? OnGiveUp : OnResend;
      else if (ask_open_q) occasion_q <= OnOpen;
      else if (ask_close_q) occasion_q <= OnClose;
      else occasion_q <= OnReopen;
    end
    if (state_q == StLoad) from_ip_q <= cm_rx_ip;
    if (take_answer) occasion_q <= OnAnswer;
    if (state_q == StDecide) begin
      phase_q  <= change.phase;
      if (change.fresh) own_psn_q <= lfsr_q[23:0];
      else own_psn_q <= entry.own_psn;
      todo_q   <= opening ? move.todo : decision.todo;
      send_q   <= opening ? move.send : 1'b1;
      answer_q <= decision.answer;
    end
    if (state_q == StRunning && prog_done) todo_q <= rest;
    if (no_address || no_success) begin
      // What was begun is undone; a failure to undo it is the end of it.
      todo_q        <= prog == ProgClose ? '0 : JustClose;
      phase_q       <= PhClosed;
      answer_q      <= AckError;
      if (opening) send_q <= 1'b0;
    end
    if (rst) state_q <= StClear;
  end

  // ---- the opening side's standing ------------------------------------------------------------------------
  always_ff @(posedge clk) begin
    if (cfg.open || cfg.close) begin
      if (32'(cfg.qp) >= N_QP) fail_q <= FailNoQp;
      else if (!ask_open_q && !ask_close_q) begin
        ask_open_q  <= cfg.open;
        ask_close_q <= !cfg.open;
        ask_qp_q    <= cfg.qp;
      end
    end
    if (state_q == StDecide && opening) begin
      step_q      <= move.step;
      fail_q      <= move.fail;
      waiting_q   <= move.waiting;
      own_qp_q    <= index_q;
      retries_q   <= occasion_q == OnResend ? retries_q - 1'b1 : cfg.retries;
      server_ip_q <= change.open || change.claim ? claimed_ip : entry.peer.ip;
      if (occasion_q == OnOpen) ask_open_q <= 1'b0;
      if (occasion_q == OnClose) ask_close_q <= 1'b0;
    end
    if (opening && (no_address || no_success)) begin
      waiting_q <= 1'b0;
      fail_q    <= no_address ? FailAddress : FailState;
    end
    if (rst) begin
      step_q <= StepNone;
      fail_q <= FailNone;
      {waiting_q, ask_open_q, ask_close_q} <= '0;
    end
  end

  always_ff @(posedge clk) begin
    if (state_q == StDecide) begin
      if (opening && move.step == StepDone) mine_q[index_q[QpW-1:0]] <= 1'b1;
      if (occasion_q == OnClose) mine_q[index_q[QpW-1:0]] <= 1'b0;
    end
    if (state_q == StWork && todo_q.open) begin
      lost_q[index_q[QpW-1:0]] <= 1'b0;
      if (!opening) mine_q[index_q[QpW-1:0]] <= 1'b0;
    end
    if (qp_err_valid) lost_q[qp_err_qp[QpW-1:0]] <= 1'b1;
    // The next attempt has begun with OPEN_QP; where it fails there is another.
    if (opening && state_q == StStore && fail_q != FailNone && mine_q[index_q[QpW-1:0]])
      lost_q[index_q[QpW-1:0]] <= 1'b1;
    if (rst) begin
      mine_q <= '0;
      lost_q <= '0;
    end
  end

  assign arm    = opening && (state_q == StStore || sent);
  assign status = '{busy: waiting_q || ask_open_q || ask_close_q || (opening && state_q != StIdle),
                    step: step_q, fail: fail_q, qp: own_qp_q};

  // ---- what is sent ------------------------------------------------------------------------------------------
  info_t own;
  logic accepted;
  message_t reply;
  assign own      = '{qpn: qpn_base | 24'(index_q), psn: own_psn_q, ip: local_ip, default: '0};
  assign accepted = answer_q == AckAck;

  assign m_axis_cm_tvalid = state_q == StSend;
  assign m_axis_cm_tlast  = beat_q == '1;
  assign sent             = m_axis_cm_tvalid && m_axis_cm_tready && m_axis_cm_tlast;
  assign cm_tx_ip    = opening ? entry.peer.ip : from_ip_q;
  assign cm_tx_sport = opening ? ReplyPort : RequestPort;
  assign cm_tx_dport = opening ? cfg.server_port : msg_q.port != '0 ? msg_q.port : ReplyPort;

  always_comb begin
    reply            = '0;
    reply.info_valid = 1'b1;
    reply.sender     = own;
    if (opening) begin
      reply.request = asked;
      reply.other   = entry.peer;
      reply.port    = ReplyPort;
    end else begin
      reply.request      = msg_q.request;
      reply.answer       = answer_q;
      reply.answer_valid = 1'b1;
      reply.other        = msg_q.sender;
      reply.info_valid   = accepted;
      if (!accepted) reply.sender = '0;
    end
    m_axis_cm_tdata = '0;
    for (int unsigned i = 0; i < 8; i++) if (beat_q == 3'(i)) m_axis_cm_tdata = {<<8{reply[64*(7-i)+:64]}};
  end

  // ---- what is counted ---------------------------------------------------------------------------------------
  assign stat_request   = take_request;
  assign stat_refused   = sent && !opening && !accepted;
  assign stat_ignored   = state_q == StSort && !take_request && !take_answer;
  assign stat_timeout   = state_q == StDecide && (occasion_q == OnResend || occasion_q == OnGiveUp);
  assign stat_peer_lost = qp_err_valid && mine_q[qp_err_qp[QpW-1:0]];

  // Reserved fields are read by nobody.
  wire unused = &{1'b0, msg_q, qp_err_qp, cfg};

endmodule
