// SPDX-License-Identifier: SHL-2.1
// Moves the rows of all queue pairs through one pipeline: choose an operation; read its row; read the
// packet concerned and compare (requester_facts); apply requester_step, write back. One operation per cycle, the same
// queue pair at most every second cycle, so that a row is never read while it is about to change.
module requester
  import penstock_pkg::*;
  import roce_tx_pkg::*;
#(
  parameter  int unsigned N_QP     = 4,
  parameter  int unsigned SLOTS    = 256,
  parameter  int unsigned CLK_KHZ  = 156250,
  parameter  int unsigned MAX_READS = 4,        // packets that the store reads at once
  parameter  bit          RETRANSMIT = 1'b1,
  parameter  int unsigned STORED   = SLOTS,     // packets of a queue pair in the store at most, a power of two
  localparam int unsigned SlotW    = $clog2(SLOTS)
) (
  input  logic            clk,
  input  logic            rst,
  // requests of operations
  input  logic            cmd_valid,
  input  qp_t             cmd_qp,
  input  qp_state_e       cmd_state,
  output logic            cmd_ready,
  input  ack_event_t      ack,
  input  logic            ack_valid,
  output logic            ack_ready,
  input  logic            commit_valid,
  input  qp_t             commit_qp,
  input  logic            commit_bad,
  output logic            commit_ready,
  input  logic            load_valid,
  input  qp_t             load_qp,
  output logic            load_ready,
  input  logic            in_message,   // the segmenter is inside a message of load_qp
  input  logic            op_waits,     // a commit of op_qp may be in flight, after those of others
  input  logic [N_QP-1:0] cc_eligible,
  output logic [N_QP-1:0] backlog,      // has a packet that could start
  input  logic            send_room,    // there is place for one more header
  input  logic            cpl_room,     // there is place for a few completions
  input  logic            tx_paused,
  input  logic [23:0]     qpn_base,
  input  logic [31:0]     keep_alive_ticks,  // silence before an empty message probes the peer; 0: never
  input  logic            keep_room,
  // slots filled by the segmenter, in the ring of load_qp
  input  logic            meta_wr_en,
  input  logic [SlotW-1:0] meta_wr_slot,
  input  tx_meta_t        meta_wr_tx,
  input  cpl_meta_t       meta_wr_cpl,
  input  logic            filling,      // meta_wr_slot has been committed, its data still come
  output logic            reading,      // the store reads packets of load_qp, this one first
  output psn_t            oldest_read,
  // queue-pair table
  output logic            cfg_rd,
  output qp_t             cfg_qp,
  input  qp_cfg_t         cfg,
  // packet to send: header, and read job of the store (in the same cycle)
  output logic            send_valid,
  output tx_hdr_t         send_hdr,
  output mtu_e            send_mtu,
  output logic [15:0]     send_wire_bytes,
  input  logic            read_done,    // the store has finished its oldest read job
  // completion, valid in the cycle of the release
  output logic            cpl_valid,
  output cpl_t            cpl,
  // the results of the operation, in the same cycle and (for other modules) one later
  output qp_t             op_qp,
  output logic            op_valid,
  output logic            op_init,
  output outcome_t        op_outcome,
  output psn_t            op_tail,         // of the packet that it frees, if it does
  output logic [PayloadLenW-1:0] op_acked_bytes,  // of the acknowledged packet that this operation freed
  output ring_status_t    op_status,     // after it, one cycle later
  output ring_view_t      view
);
  localparam int unsigned QpW = N_QP > 1 ? $clog2(N_QP) : 1;
  localparam int unsigned MetaDepth = N_QP * SLOTS;
  localparam int unsigned MetaW = $clog2(MetaDepth);
  localparam int unsigned StoredW = $clog2(STORED);
  localparam int unsigned HeaderW = $clog2(N_QP * STORED);
  // A ring of a few packets would be LUT RAM with as many registers.
  localparam bit InBlocks = !RETRANSMIT && CLK_KHZ <= BlockRowKhz;
  localparam int unsigned VisitCycles = 8;
  localparam int unsigned CyclesPerTick = (CLK_KHZ * 1024 + 999_999) / 1_000_000;

  function automatic logic [MetaW-1:0] meta_address(qp_t qp, logic [SlotW-1:0] slot);
    return MetaW'({qp, slot});
  endfunction

  // What is sent of a packet is kept as long as its payload.
  function automatic logic [HeaderW-1:0] header_address(qp_t qp, logic [StoredW-1:0] slot);
    return HeaderW'({qp, slot});
  endfunction

  // ---- time: stops while the MAC may not send ---------------------------------------------------
  logic [$clog2(CyclesPerTick+1)-1:0] prescale_q;
  tick_t now_q;
  always_ff @(posedge clk) begin
    if (!tx_paused) begin
      if (prescale_q == '0) begin
        prescale_q <= $bits(prescale_q)'(CyclesPerTick - 1);
        now_q      <= now_q + 1'b1;
      end else prescale_q <= prescale_q - 1'b1;
    end
    if (rst) begin
      prescale_q <= '0;
      now_q      <= '0;
    end
  end

  // ---- who needs an operation ---------------------------------------------------------------------
  logic [N_QP-1:0] can_send_q, can_release_q;
  assign backlog = can_send_q;
  logic grant_valid, grant_ready, release_valid, release_ready, visit_ready, reads_room;
  qp_t grant_qp, release_qp, visit_qp_q;
  logic [$clog2(VisitCycles)-1:0] visit_timer_q;
  logic visit_due_q, init_q;

  tx_scheduler #(.N_QP(N_QP)) u_scheduler (
    .clk, .rst,
    .ready   (can_send_q),
    .eligible(cc_eligible),
    .room    (send_room && reads_room),
    .grant_valid, .grant_qp, .grant_ready
  );

  logic release_chosen;
  qp_t release_choice;
  if (N_QP <= 16) begin : gen_few
    logic any;
    arbiter_rr #(.N(N_QP)) u_release (
      .clk, .rst,
      .req  (can_release_q),
      .take (!release_valid),
      .valid(any),
      .index(release_choice)
    );
    assign release_chosen = any && !release_valid;
  end else begin : gen_many
    logic choosing;
    arbiter_rr_wide #(.N(N_QP)) u_release (
      .clk, .rst,
      .req    (can_release_q),
      .start  (!release_valid && !choosing),
      .started(choosing),
      .valid  (release_chosen),
      .index  (release_choice)
    );
  end
  always_ff @(posedge clk) begin
    if (release_chosen) release_qp <= release_choice;
    release_valid <= !rst && (release_chosen || (release_valid && !release_ready));
  end

  // Every VisitCycles one queue pair has its timer looked at.
  always_ff @(posedge clk) begin
    visit_timer_q <= visit_timer_q + 1'b1;
    if (visit_timer_q == '1) visit_due_q <= 1'b1;
    if (visit_ready || init_q) begin
      visit_due_q <= 1'b0;
      visit_qp_q  <= visit_qp_q == qp_t'(N_QP - 1) ? '0 : visit_qp_q + 1'b1;
    end
    if (init_q && visit_qp_q == qp_t'(N_QP - 1)) init_q <= 1'b0;
    if (rst) begin
      visit_timer_q <= '0;
      visit_due_q   <= 1'b0;
      visit_qp_q    <= '0;
      init_q        <= 1'b1;
    end
  end

  // ---- stage 0: choose --------------------------------------------------------------------------
  op_t op0, op1_q, op2_q;
  logic issue, valid1_q, valid2_q;
  qp_t [7:0] qps;
  logic [7:0] requests, first, goes, follows;  // by op_kind_e, which is their order

  // One after the other would be deep: for all at once, whether each is first and whether its queue pair is free.
  assign requests = {release_valid && cpl_room, ack_valid, visit_due_q, load_valid, commit_valid, grant_valid, cmd_valid, init_q};
  assign qps  = {release_qp, ack.qp, visit_qp_q, load_qp, commit_qp, grant_qp, cmd_qp, visit_qp_q};

  always_comb begin
    op0       = '0;
    op0.state = cmd_state;
    op0.bad   = commit_bad;
    op0.ack   = ack;
    for (int unsigned i = 0; i < 8; i++) begin
      first[i]   = requests[i] && (requests & 8'((1 << i) - 1)) == '0;
      goes[i]    = first[i] && !(valid1_q && op1_q.qp == qps[i]);
      follows[i] = first[i] && valid2_q && op2_q.qp == qps[i];
      op0.kind   = op_kind_e'(op0.kind | (first[i] ? 3'(i) : '0));
      op0.qp     = op0.qp | (first[i] ? qps[i] : '0);
    end
    issue = |goes;
  end

  assign cmd_ready     = goes[DoCmd];
  assign grant_ready   = goes[DoSend];
  assign commit_ready  = goes[DoCommit];
  assign load_ready    = goes[DoLoad];
  assign visit_ready   = goes[DoVisit];
  assign ack_ready     = goes[DoAck];
  assign release_ready = goes[DoRelease];

  // ---- stage 1: the row, and with it the packet -----------------------------------------------------
  qp_row_t ram_row, row1, row2_q, row3_q, next;
  logic [QpW-1:0] qp3_q;
  logic valid3_q, follows_q;
  outcome_t outcome;
  tx_meta_t tx_meta;
  cpl_meta_t cpl_meta;

  ram_sdp #(.W($bits(qp_row_t)), .DEPTH(N_QP), .BLOCK(CLK_KHZ <= BlockRowKhz)) u_rows (
    .clk,
    .wr_en  (valid2_q),
    .wr_addr(QpW'(op2_q.qp)),
    .wr_data(next),
    .rd_en  (issue),
    .rd_addr(QpW'(op0.qp)),
    .rd_data(ram_row)
  );

  // The operation two ahead wrote its row in the cycle in which this one read it.
  qp_row_t read_row;
  assign read_row = follows_q ? row3_q : ram_row;
  assign row1     = RETRANSMIT ? read_row : sent_once(read_row);

  assign cfg_rd = valid1_q;
  assign cfg_qp = op1_q.qp;

  logic sends1, releases1;
  assign sends1    = op1_q.kind == DoSend;
  assign releases1 = op1_q.kind == DoRelease;
  ram_sdp #(.W($bits(tx_meta_t)), .DEPTH(N_QP * STORED), .BLOCK(InBlocks)) u_tx_meta (
    .clk,
    .wr_en  (meta_wr_en),
    .wr_addr(header_address(load_qp, StoredW'(meta_wr_slot))),
    .wr_data(meta_wr_tx),
    .rd_en  (valid1_q && (sends1 || (RETRANSMIT && releases1))),
    .rd_addr(header_address(op1_q.qp, StoredW'(sends1 || !RETRANSMIT ? row1.nxt : row1.tail))),
    .rd_data(tx_meta)
  );
  ram_sdp #(.W($bits(cpl_meta_t)), .DEPTH(MetaDepth), .BLOCK(InBlocks)) u_cpl_meta (
    .clk,
    .wr_en  (meta_wr_en),
    .wr_addr(meta_address(load_qp, meta_wr_slot)),
    .wr_data(meta_wr_cpl),
    .rd_en  (valid1_q && releases1),
    .rd_addr(meta_address(op1_q.qp, SlotW'(row1.tail))),
    .rd_data(cpl_meta)
  );

  // The header of a packet that has left is gone, but the bytes that it frees must be available.
  logic [PayloadLenW-1:0] freed_len;
  if (RETRANSMIT) begin : gen_header_kept
    assign freed_len = tx_meta.len;
  end else begin : gen_length_kept
    ram_sdp #(.W(PayloadLenW), .DEPTH(MetaDepth)) u_lengths (
      .clk,
      .wr_en  (meta_wr_en),
      .wr_addr(meta_address(load_qp, meta_wr_slot)),
      .wr_data(meta_wr_tx.len),
      .rd_en  (valid1_q && releases1),
      .rd_addr(meta_address(op1_q.qp, SlotW'(row1.tail))),
      .rd_data(freed_len)
    );
  end

  facts_t facts1, facts2_q;
  requester_facts u_facts (
    .op   (op1_q),
    .row  (row1),
    .now  (now_q),
    .keep_alive_ticks,
    .facts(facts1)
  );

  always_ff @(posedge clk) begin
    facts2_q <= RETRANSMIT ? facts1 : facts_sent_once(facts1);
    op1_q    <= op0;
    op2_q    <= op1_q;
    qp3_q    <= QpW'(op2_q.qp);
    row2_q   <= row1;
    row3_q   <= next;
    valid1_q <= issue;
    valid2_q <= valid1_q;
    valid3_q <= valid2_q;
    follows_q <= |follows;
    if (rst) begin
      valid1_q <= 1'b0;
      valid2_q <= 1'b0;
      valid3_q <= 1'b0;
    end
  end

  // ---- stage 2: the step ----------------------------------------------------------------------------
  logic tail_in_use, tail_in_use_q, tail_read, tail_filling, in_message_q, in_message1, in_message2_q, in_message2;

  // Sampled in stage 1; a message that begins then may be of any queue pair.
  assign in_message1 = (in_message && load_qp == op1_q.qp) || (commit_valid && commit_qp == op1_q.qp);
  assign in_message2 = in_message2_q || (in_message && !in_message_q) || op_waits;
  always_ff @(posedge clk) begin
    in_message_q  <= in_message;
    in_message2_q <= in_message1;
  end

  // A slot that is being filled may still change what it completes. Sampled in stage 1, when the metadata of this
  // operation are read; what begins in stage 2 then is of another queue pair.
  assign tail_filling = filling && load_qp == op1_q.qp && meta_wr_slot == SlotW'(row1.tail);
  assign tail_in_use  = tail_read || tail_filling;
  always_ff @(posedge clk) tail_in_use_q <= tail_in_use;

  requester_step u_step (
    .op          (op2_q),
    .row         (row2_q),
    .facts       (facts2_q),
    .cfg         (RETRANSMIT ? cfg : without_retries(cfg)),
    .now         (now_q),
    .keep_room,
    .nxt_is_first(tx_meta.first),
    .nxt_is_last (tx_meta.last),
    .nxt_consumes(tx_meta.verb == OpSend || tx_meta.with_imm),
    .tail_is_last(cpl_meta.last),
    .tail_in_use (tail_in_use_q),
    .in_message  (in_message2),
    .next,
    .outcome
  );

  packet_header u_header (
    .cfg,
    .local_qpn (qpn_base + 24'(op2_q.qp)),
    .meta      (tx_meta),
    .psn       (row2_q.nxt),
    .ack_req   (outcome.ack_req),
    .hdr       (send_hdr),
    .wire_bytes(send_wire_bytes)
  );

  slots_in_use #(.N(MAX_READS)) u_in_use (
    .clk, .rst,
    .begin_valid(send_valid && tx_meta.len != '0),
    .begin_qp   (op2_q.qp),
    .begin_psn  (row2_q.nxt),
    .end_valid  (read_done),
    .qp         (op1_q.qp),
    .psn        (row1.tail),
    .in_use     (tail_read),
    .reader     (load_qp),
    .reading,
    .oldest     (oldest_read),
    .room       (reads_room)
  );

  assign op_valid   = valid2_q;
  assign op_init    = op2_q.kind == DoInit;
  assign op_qp      = op2_q.qp;
  assign op_outcome = valid2_q ? outcome : '0;
  assign op_status  = '{state: row3_q.state, drained: is_drained(row3_q), una: row3_q.una, nxt: row3_q.nxt, wr: row3_q.wr};
  assign op_tail    = row2_q.tail;
  assign op_acked_bytes = op_outcome.freed && outcome.status == WcSuccess ? freed_len : '0;
  assign send_valid = op_outcome.send;
  assign send_mtu   = row2_q.mtu;
  assign cpl_valid  = op_outcome.complete;
  assign cpl        = '{tag: cpl_meta.tag, reserved: '0, status: outcome.status, qp: op2_q.qp};

  always_ff @(posedge clk) begin
    view <= '{
      loaded:   valid2_q && op2_q.kind == DoLoad && !next.open_pending,
      again:    valid2_q && op2_q.kind == DoLoad && next.open_pending,
      freed:    op_outcome.freed,
      left_rts: op_outcome.left_rts,
      rts:      is_live(next.state),
      qp:       op2_q.qp,
      tail:     next.tail,
      wr:       next.wr,
      mtu:      next.mtu
    };
    // A cycle after the row: an operation due to the old value has no effect.
    if (valid3_q) begin
      can_send_q[qp3_q]    <= can_send(row3_q);
      can_release_q[qp3_q] <= can_release(row3_q);
    end
    if (rst) begin
      view          <= '0;
      can_send_q    <= '0;
      can_release_q <= '0;
    end
  end

`ifndef SYNTHESIS
  // The five PSNs of a ring keep their order.
  psn_t to_una, to_nxt, to_sent_end, to_wr;
  assign to_una      = next.una - next.tail;
  assign to_nxt      = next.nxt - next.tail;
  assign to_sent_end = next.sent_end - next.tail;
  assign to_wr       = next.wr - next.tail;
  a_ring_order : assert property (@(posedge clk) disable iff (rst)
    valid2_q && is_live(next.state) |->
      to_una <= to_nxt && to_nxt <= to_sent_end && to_sent_end <= to_wr && 32'(to_wr) <= SLOTS);
  a_drained : assert property (@(posedge clk) disable iff (rst) valid2_q |-> to_una <= to_wr);
`endif
endmodule
