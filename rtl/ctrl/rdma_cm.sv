// SPDX-License-Identifier: SHL-2.1
// The passive side of the standard connection manager (RDMA CM): peers get queue pairs with windows by MADs to queue
// pair 1. Queue pairs are opened and closed by connection_manager, to which this module sends OPEN_QP and CLOSE_QP in the
// name of the peer; so registers, limits and the access list are those of FEROCE's connections, too.
// Promise: each connection has a queue pair with a window, in reset before and after; every message gets the answer of
// RdmaCm in crates/transport; REP and DREQ are repeated until they are answered or given up (IBTA volume 1, 12.9).
//
//   MADs -> rdma_cm_rx -> table, rdma_cm_rules -> rdma_cm_tx -> MADs
//                                    |                 +------> OPEN_QP, CLOSE_QP -> answers
//                                    +-> windows, from the registers
module rdma_cm
  import penstock_pkg::*;
  import penstock_regs_pkg::*;
  import rdma_cm_pkg::*;
#(
  parameter int unsigned N_QP    = 4,
  parameter int unsigned CLK_KHZ = 156250
) (
  input  logic        clk,
  input  logic        rst,

  input  logic [15:0] port,            // of TCP's space, at which we listen; 0: none, and connections end
  input  logic [47:0] local_mac,
  input  logic [31:0] local_ip,
  input  logic [23:0] qpn_base,
  input  logic [2:0]  mtu,             // the largest path MTU

  // datagrams with MADs, with the other side's address during all of them
  input  logic [15:0] s_axis_mad_tdata,
  input  logic        s_axis_mad_tvalid,
  output logic        s_axis_mad_tready,
  input  logic        s_axis_mad_tlast,
  input  logic [31:0] mad_rx_ip,
  output logic [15:0] m_axis_mad_tdata,
  output logic        m_axis_mad_tvalid,
  input  logic        m_axis_mad_tready,
  output logic        m_axis_mad_tlast,
  output logic [31:0] peer_ip,         // where a message goes, and in whose name a request is

  // requests to connection_manager; its answer comes before it takes the last word of one
  output logic [15:0] m_axis_cm_tdata,
  output logic        m_axis_cm_tvalid,
  input  logic        m_axis_cm_tready,
  output logic        m_axis_cm_tlast,
  output cm_pkg::proxied_t proxied,
  input  logic [15:0] s_axis_cm_tdata,
  input  logic        s_axis_cm_tvalid,

  // registers: read only
  output axi_pkg::axil_req_t m_axil_req,
  input  axi_pkg::axil_rsp_t m_axil_rsp,

  output rdma_cm_stat_t stat
);
  localparam int unsigned LinkW      = $clog2(N_QP + 1);
  localparam int unsigned TickCycles = int'(longint'(CLK_KHZ) * 64'd1_048_576 / 64'd1_000_000);  // 2^8 * 4.096 us
  localparam int unsigned TickW      = $clog2(TickCycles + 1);

  if (N_QP == 0 || N_QP > 256) begin : gen_check
    $fatal(1, "%m: N_QP = %0d: allowed are 1 to 256", N_QP);
  end

  typedef enum logic [3:0] {
    StClear,     // after reset: every row free
    StIdle,
    StSweep,     // a tick: the timer of each row
    StCount,
    StScan,      // a message: the rows that it names
    StWeigh,
    StRule,
    StAccess,    // a register of a queue pair that might be given
    StAnswer,
    StStore,
    StMark,
    StOpen,
    StSend,
    StClose,
    StReject,
    StEnd
  } state_e;

  typedef logic [LinkW-1:0] link_t;
  localparam link_t Stranger = link_t'(N_QP);
  localparam link_t Last     = link_t'(N_QP - 1);

  state_e  state_q, state_d;
  link_t   link_q;       // the row that is read or worked on
  logic [3:0] word_q;    // of a row, or which register
  action_t action_q;
  logic    sweeping_q;   // after the action the sweep goes on

  // ---- messages -----------------------------------------------------------------------------------------------------
  message_t message;
  logic     arrived, release_message;

  rdma_cm_rx u_rx (
    .clk, .rst, .local_ip, .port,
    .s_axis_tdata (s_axis_mad_tdata),
    .s_axis_tvalid(s_axis_mad_tvalid),
    .s_axis_tready(s_axis_mad_tready),
    .s_axis_tlast (s_axis_mad_tlast),
    .ip           (mad_rx_ip),
    .valid        (arrived),
    .message,
    .take         (release_message),
    .stat_malformed(stat.malformed)
  );

  // ---- the table ------------------------------------------------------------------------------------------------------
  logic        wr_en;
  row_e        wr_word, rd_word, tx_word;
  logic [31:0] wr_data, rd_data, lfsr_q, random;
  logic [23:0] qpn;
  assign qpn = {qpn_base[23:8], 8'(link_q)};

  ram_sdp #(.W(32), .DEPTH(16 << LinkW), .BLOCK(1'b1)) u_links (
    .clk,
    .wr_en,
    .wr_addr({link_q, wr_word}),
    .wr_data,
    .rd_en  (1'b1),
    .rd_addr({link_q, rd_word}),
    .rd_data
  );

  always_comb begin
    unique case (state_q)
      StScan:  rd_word = row_e'(word_q);
      StStore: rd_word = RowIp;
      StOpen, StSend, StClose: rd_word = tx_word;
      default: rd_word = RowHead;
    endcase
  end

  // Free-running: its bits depend on when messages come.
  always_ff @(posedge clk) begin
    lfsr_q <= {lfsr_q[30:0], lfsr_q[31] ^ lfsr_q[21] ^ lfsr_q[1] ^ lfsr_q[0]};
    if (rst) lfsr_q <= 32'h52444D41;
  end
  assign random = lfsr_q;

  // ---- which row a message names: each word of a row against the message's ----------------------------------------------
  head_t       head_q, named_head_q;
  logic [7:1]  equal_q;
  logic [31:0] expected;
  row_e        read_q;     // the word that is being compared
  logic        by_guid, hits, holds;
  logic        named_q, stale_q, same_ends_q;
  link_t       named_link_q, stale_link_q;

  always_comb begin
    unique case (read_q)
      RowIp:       expected = message.ip;
      RowLocalId:  expected = message.remote_id;
      RowRemoteId: expected = message.local_id;
      RowGuidHigh: expected = message.guid[63:32];
      RowGuidLow:  expected = message.guid[31:0];
      RowQpn:      expected = {message.qpn, 8'h0};
      default:     expected = {message.psn, rd_data[7:0]};
    endcase
  end

  assign by_guid = message.is_timeout && message.remote_id == '0 && equal_q[RowGuidHigh] && equal_q[RowGuidLow];
  always_comb begin
    hits = head_q.state != LinkFree && equal_q[RowIp] && equal_q[RowRemoteId];
    unique case (message.kind)
      KindReq: hits = hits && equal_q[RowGuidHigh] && equal_q[RowGuidLow];
      KindRej: hits = hits && (equal_q[RowLocalId] || by_guid);
      default: hits = hits && equal_q[RowLocalId];
    endcase
    holds = message.kind == KindReq && head_q.state inside {LinkRepSent, LinkOpen} && equal_q[RowIp] && equal_q[RowQpn];
  end

  always_ff @(posedge clk) begin
    read_q <= rd_word;
    if (state_q == StScan) begin
      if (read_q == RowHead) head_q <= rd_data;
      else if (read_q <= RowPsn) equal_q[read_q[2:0]] <= rd_data == expected;
    end
    if (state_q == StCount) head_q <= rd_data;
    if (state_q == StIdle) {named_q, stale_q} <= '0;
    if (state_q == StWeigh) begin
      if (hits) begin
        {named_q, same_ends_q} <= {1'b1, equal_q[RowQpn] && equal_q[RowPsn]};
        named_head_q <= head_q;
        named_link_q <= link_q;
      end else if (holds && !stale_q) begin
        stale_q      <= 1'b1;
        stale_link_q <= link_q;
      end
    end
  end

  // ---- the rules --------------------------------------------------------------------------------------------------------
  action_t ruled, due;
  logic    unknown, ignored, repeated, established, disconnected;

  rdma_cm_rules u_rules (
    .message, .named(named_q), .head(named_head_q), .same_ends(same_ends_q),
    .is_our_qpn(message.qpn == {qpn_base[23:8], 8'(named_link_q)}),
    .stale(stale_q), .mtu,
    .action(ruled), .unknown, .ignored, .repeated, .established, .disconnected
  );

  // ---- timers -------------------------------------------------------------------------------------------------------------
  logic [TickW-1:0] prescale_q;
  logic tick_q, sweeps, listened_q, counts, hangs_up, expires, silent, times_out;
  head_t swept;
  assign sweeps    = tick_q && !(arrived && sweeping_q);  // a message has its turn after a sweep
  assign swept     = head_t'(rd_data);
  assign counts    = swept.state inside {LinkRepSent, LinkDreqSent, LinkTimeWait};
  assign hangs_up  = port == '0 && swept.state inside {LinkRepSent, LinkOpen};
  assign expires   = state_q == StCount && counts && !hangs_up && swept.ticks <= 16'd1;
  assign silent    = expires && swept.state == LinkRepSent && swept.left == '0;
  assign times_out = expires && swept.state == LinkDreqSent && swept.left == '0;

  always_ff @(posedge clk) begin
    prescale_q <= prescale_q == '0 ? TickW'(TickCycles - 1) : prescale_q - 1'b1;
    listened_q <= port != '0;
    if (prescale_q == '0 || (port == '0 && listened_q)) tick_q <= 1'b1;
    else if (state_q == StIdle && sweeps) tick_q <= 1'b0;
    if (rst) {prescale_q, tick_q, listened_q} <= '0;
  end

  always_comb begin
    due        = Nothing;
    due.answer = '{what: SendRep, reason: RejTimeout, answers: 2'd1};
    due.mark   = 1'b1;
    due.head   = swept;
    if (hangs_up) begin
      due.store       = StoreFresh;
      due.head        = DreqHead;
      due.send        = 1'b1;
      due.answer.what = SendDreq;
    end else if (!expires) due.head.ticks = swept.ticks - 1'b1;
    else if (swept.state == LinkTimeWait) due.head = '0;
    else if (swept.left != '0) begin
      due.head.left   = swept.left - 1'b1;
      due.head.ticks  = ticks_of(swept.wait_code, LongestWait);
      due.send        = 1'b1;
      due.answer.what = swept.state == LinkRepSent ? SendRep : SendDreq;
    end else begin
      due.close       = 1'b1;
      due.send        = swept.state == LinkRepSent;
      due.answer.what = SendRej;
      due.head        = swept.state == LinkRepSent ? '0 : '{ticks: TimeWait, state: LinkTimeWait, default: '0};
    end
  end

  // ---- the search for a queue pair: in reset, with a window -----------------------------------------------------------------
  typedef enum logic [2:0] {
    ReadState,
    ReadLengthHigh,
    ReadLengthLow,
    ReadBaseHigh,
    ReadBaseLow,
    ReadRkey,
    ReadDepth
  } read_e;

  read_e       reading;
  logic        read_done, unfit, has_high_q, arvalid_q;
  logic [7:0]  register;
  logic [7:0]  depth_q;
  logic [31:0] read_word;
  assign reading   = read_e'(word_q[2:0]);
  assign read_done = state_q == StAnswer && m_axil_rsp.rvalid;
  assign read_word = m_axil_rsp.rdata;

  always_comb begin
    unique case (reading)
      ReadState:      register = QpState;
      ReadLengthHigh: register = QpReadLengthHi;
      ReadLengthLow:  register = QpReadLengthLo;
      ReadBaseHigh:   register = QpReadBaseHi;
      ReadBaseLow:    register = QpReadBaseLo;
      ReadRkey:       register = QpReadRkey;
      default:        register = QpReadDepth;
    endcase
    unfit = m_axil_rsp.rresp != axi_pkg::RespOkay || (reading == ReadState && read_word[2:0] != QpReset)
            || (reading == ReadLengthLow && read_word == '0 && !has_high_q);
  end

  always_ff @(posedge clk) begin
    if (m_axil_rsp.arready) arvalid_q <= 1'b0;
    if (state_d == StAccess) arvalid_q <= 1'b1;
    if (read_done && reading == ReadLengthHigh) has_high_q <= read_word != '0;
    if (read_done && reading == ReadDepth)
      depth_q <= read_word[7:0] < message.initiator_depth ? read_word[7:0] : message.initiator_depth;
    if (rst) arvalid_q <= 1'b0;
  end

  always_comb begin
    m_axil_req         = '0;
    m_axil_req.araddr  = 18'(QpRows) | {2'b0, 8'(link_q), register};
    m_axil_req.arvalid = arvalid_q;
    m_axil_req.rready  = state_q == StAnswer;
  end

  // ---- what is written into the table ---------------------------------------------------------------------------------------
  logic last_stored;
  logic [31:0] stored;

  always_comb begin
    unique case (row_e'(word_q))
      RowIp:          stored = message.ip;
      RowLocalId:     stored = action_q.store == StoreLink ? {random[22:0], 1'b1, 8'(link_q)} :
                               message.kind == KindReq ? '0 : message.remote_id;
      RowRemoteId:    stored = message.local_id;
      RowGuidHigh:    stored = message.guid[63:32];
      RowGuidLow:     stored = message.guid[31:0];
      RowQpn:         stored = {message.qpn, 8'h0};
      RowPsn:         stored = {message.psn, depth_q};
      RowPeerPsn:     stored = {random[31:8], 8'h0};
      RowTransaction: stored = action_q.store == StoreFresh ? random : message.transaction[63:32];
      default:        stored = action_q.store == StoreFresh ? random : message.transaction[31:0];
    endcase
    last_stored  = word_q == 4'(RowTransaction) + 4'd1;
  end

  always_comb begin
    {wr_en, wr_word, wr_data} = {1'b0, RowHead, 32'h0};
    unique case (state_q)
      StClear: wr_en = 1'b1;
      StCount: {wr_en, wr_data} = {counts && !expires && !hangs_up, due.head};
      StMark:  {wr_en, wr_data} = {action_q.mark, action_q.head};
      StStore: {wr_en, wr_word, wr_data} = {action_q.store != StoreNone, row_e'(word_q), stored};
      StAnswer: begin
        wr_en   = read_done && reading inside {ReadLengthLow, ReadBaseHigh, ReadBaseLow, ReadRkey};
        wr_data = reading == ReadLengthLow && has_high_q ? '1 : read_word;
        unique case (reading)
          ReadBaseHigh: wr_word = RowBaseHigh;
          ReadBaseLow:  wr_word = RowBaseLow;
          ReadRkey:     wr_word = RowRkey;
          default:      wr_word = RowBytes;
        endcase
      end
      default: ;
    endcase
  end

  // ---- messages out ---------------------------------------------------------------------------------------------------------
  answer_t tx_answer;
  logic    tx_start, tx_done, tx_busy_q, accepted_q, full_q;
  logic [1:0] beat_q;  // of connection_manager's answer

  always_comb begin
    tx_answer = action_q.answer;
    if (state_q == StOpen) tx_answer.what = SendOpen;
    if (state_q == StClose) tx_answer.what = SendClose;
  end
  assign tx_start = !tx_busy_q && ((state_q == StOpen && action_q.open) || (state_q == StSend && action_q.send)
                                   || (state_q == StClose && action_q.close));

  rdma_cm_tx u_tx (
    .clk, .rst,
    .start(tx_start), .answer(tx_answer), .done(tx_done),
    .local_ip, .peer_ip, .qpn, .guid({local_mac[31:0], local_ip}), .mtu,
    .row_word(tx_word), .row_data(rd_data),
    .m_axis_mad_tdata, .m_axis_mad_tvalid, .m_axis_mad_tready, .m_axis_mad_tlast,
    .m_axis_cm_tdata, .m_axis_cm_tvalid, .m_axis_cm_tready, .m_axis_cm_tlast
  );

  // The row's address is read while nothing else is.
  logic ip_due_q;
  always_ff @(posedge clk) begin
    ip_due_q <= state_q == StStore;
    if (ip_due_q) peer_ip <= action_q.store inside {StoreLink, StoreStranger} ? message.ip : rd_data;
  end

  // The first words of an answer: the head, and the queue pair. There is none where the request is refused silently.
  always_ff @(posedge clk) begin
    tx_busy_q <= (tx_busy_q || tx_start) && !tx_done;
    if (state_q == StMark) {beat_q, accepted_q, full_q} <= '0;
    else if (s_axis_cm_tvalid) begin
      if (beat_q == 2'd0) begin
        accepted_q <= s_axis_cm_tdata[0];
        full_q     <= s_axis_cm_tdata[7:5] == cm_pkg::AckNoQp;
      end
      if (beat_q == 2'd2 && s_axis_cm_tdata[7:0] != 8'(link_q)) accepted_q <= 1'b0;
      if (beat_q != '1) beat_q <= beat_q + 1'b1;
    end
    if (rst) tx_busy_q <= 1'b0;
  end

  qp_transport_t transport;
  assign transport = '{
    mtu: message.mtu[2:0], ack_timeout: message.ack_timeout, retry_cnt: message.retry_count, rnr_retry: message.rnr_retry,
    default: '0
  };
  assign proxied = '{valid: 1'b1, qp: 8'(link_q), psn: message.psn, transport: transport};

  // ---- states -----------------------------------------------------------------------------------------------------------------
  logic fails, none_left;
  assign none_left = read_done && unfit && link_q == Last;
  assign fails     = state_q == StOpen && tx_done && !accepted_q;

  always_comb begin
    state_d = state_q;
    unique case (state_q)
      StClear: if (link_q == Last) state_d = StIdle;
      StIdle:
        if (sweeps) state_d = StSweep;
        else if (arrived) state_d = StScan;
      StSweep: state_d = StCount;
      StCount:
        if (expires || hangs_up) state_d = StStore;
        else state_d = link_q == Last ? StIdle : StSweep;
      StScan: if (word_q == 4'(RowPsn) + 4'd1) state_d = StWeigh;
      StWeigh: state_d = hits || link_q == Last ? StRule : StScan;
      StRule: state_d = ruled.pick ? StAccess : StStore;
      StAccess: if (m_axil_rsp.arready) state_d = StAnswer;
      StAnswer:
        if (read_done) begin
          if (none_left) state_d = StReject;
          else state_d = reading == ReadDepth && !unfit ? StStore : StAccess;
        end
      StStore: if (action_q.store == StoreNone || last_stored) state_d = StMark;
      StMark: state_d = StOpen;
      StOpen:
        if (!action_q.open) state_d = StSend;
        else if (tx_done) state_d = accepted_q ? StSend : StMark;
      StSend: if (!action_q.send || tx_done) state_d = StClose;
      StClose: if (!action_q.close || tx_done) state_d = StReject;
      StReject: state_d = action_q.reject != RejNone ? StStore : StEnd;
      StEnd: state_d = sweeping_q && link_q != Last ? StSweep : StIdle;
    endcase
  end

  always_ff @(posedge clk) begin
    state_q <= state_d;
    unique case (state_q)
      StClear: link_q <= link_q + 1'b1;
      StIdle: begin
        link_q     <= '0;
        word_q     <= '0;
        sweeping_q <= sweeps;
      end
      StCount: begin
        if (!expires && !hangs_up) link_q <= link_q + 1'b1;
        action_q <= due;
        word_q   <= 4'(RowTransaction);
      end
      StScan: word_q <= word_q + 1'b1;
      StWeigh: begin
        link_q <= link_q + 1'b1;
        word_q <= '0;
      end
      StRule: begin
        action_q <= ruled;
        link_q   <= named_q ? named_link_q : stale_q ? stale_link_q : ruled.pick ? '0 : Stranger;
        word_q   <= ruled.pick ? 4'(ReadState) : ruled.store inside {StoreTransaction, StoreFresh} ?
                    4'(RowTransaction) : 4'(RowIp);
      end
      StAnswer:
        if (read_done) begin
          word_q <= word_q + 1'b1;
          if (unfit) begin
            link_q <= link_q + 1'b1;
            word_q <= 4'(ReadState);
          end else if (reading == ReadDepth) word_q <= 4'(RowIp);
          if (none_left) action_q.reject <= RejNoQp;
        end
      StStore: if (action_q.store != StoreNone) word_q <= word_q + 1'b1;
      StOpen:
        if (fails) begin  // the row is free again, and the REQ is rejected
          {action_q.open, action_q.send, action_q.head} <= '0;
          action_q.reject <= full_q ? RejNoQp : RejNoResources;
        end
      StReject: begin
        action_q        <= Nothing;
        action_q.store  <= StoreStranger;
        action_q.send   <= 1'b1;
        action_q.answer <= '{what: SendRej, reason: action_q.reject, answers: 2'(message.kind == KindRep)};
        if (action_q.reject != RejNone) link_q <= Stranger;
        word_q <= 4'(RowIp);
      end
      StEnd: link_q <= link_q + 1'b1;
      default: ;
    endcase
    if (rst) begin
      state_q <= StClear;
      link_q  <= '0;
    end
  end

  assign release_message = state_q == StEnd && !sweeping_q;

  // ---- counts -------------------------------------------------------------------------------------------------------------------
  logic rules;
  assign rules             = state_q == StRule;
  assign stat.request      = rules && ruled.pick;
  assign stat.refused      = state_q == StSend && tx_done && action_q.answer.what == SendRej;
  assign stat.repeated     = rules && repeated;
  assign stat.unknown      = rules && unknown;
  assign stat.ignored      = rules && ignored;
  assign stat.established  = rules && established;
  assign stat.disconnected = (rules && disconnected) || times_out;
  assign stat.silent       = silent;

  wire unused = &{1'b0, qpn_base[7:0], s_axis_cm_tdata, m_axil_rsp, local_mac[47:32], action_q};
endmodule
