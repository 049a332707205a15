// SPDX-License-Identifier: SHL-2.1
// The responder's operations: requests of all queue pairs in, packets to send and placements of payloads out, one
// operation at a time.
// Promise: a packet's bytes are in its queue pair's window, as it is set in that moment, and its PSN in the range of a
// READ that was accepted; answers leave in the order of their requests, a NAK after those of earlier requests; a
// request in order is answered or refused, one that is repeated is answered again (IBTA volume 1, 9.7.4, 9.7.5, 9.4.4;
// the checks are those of crates/transport, responder.rs). Payload is placed only of an accepted packet, and in the
// window; each packet with AckReq and each message's end is acknowledged. What the build does not serve is invalid.
//
//   request: idle, row --------------------------> inside, decide (search) -> commit
//   packet:  idle, row, pick, load, subject, measure ^
//
// The first packet of an answer leaves with its request if nothing is before it.
module read_engine
  import penstock_pkg::*;
  import roce_read_pkg::*;
#(
  parameter int unsigned N_QP = 4,
  parameter bit WITH_READ = 1'b1,
  parameter bit WITH_RECEIVE = 1'b0  // SENDs and WRITEs
) (
  input  logic              clk,
  input  logic              rst,
  input  logic [23:0]       qpn_base,

  // requests, of which the queue pair may come a cycle early; queue pairs that have been granted a packet
  input  logic              arriving,
  input  qp_t               arriving_qp,
  input  read_request_t     request,
  input  logic              request_valid,
  output logic              request_taken,
  input  qp_t               grant_qp,
  input  logic              grant_valid,
  output logic              grant_ready,
  output logic [N_QP-1:0]   work,       // has a packet to send
  output logic              sending,    // an operation that may send one is under way
  input  logic [N_QP-1:0]   eligible,
  input  logic              may_send,   // the line is not paused, and there is room for a packet of any length

  // the tables: rows come a cycle after cfg_rd, and stay
  output logic              cfg_rd,
  output qp_t               cfg_qp,
  input  qp_cfg_t           cfg,
  input  read_cfg_t         window,
  input  logic [N_QP-1:0]   ready,      // a queue pair begins anew each time that it becomes ready
  input  logic              drained,    // all packets chosen before a queue pair was closed have left

  // a packet, the address of its payload, and its bytes on the wire from preamble to gap
  output read_reply_t       reply,
  output logic [63:0]       reply_addr,
  output logic [15:0]       reply_wire_bytes,
  output logic              reply_valid,
  input  logic              reply_ready,

  // payloads of SENDs and WRITEs: one placement for each such request
  input  logic              room,       // the stream has a place for a packet of any length
  input  logic [N_QP-1:0]   lost,       // the memory has failed a WRITE: what comes next is not served
  output placement_t        placement,  // but its fence
  output logic              placement_valid,
  output logic              opens,      // queue pair `opens_qp` begins anew
  output qp_t               opens_qp,

  output logic              reading,        // a request is under way; from the cycle after it was taken
  output logic              taken_valid,    // in the last of these, a READ that is executed
  output pull_pkg::read_taken_t taken,
  output read_stat_t        stat            // all but nak_operational
);
  import roce_tx_pkg::valid_mtu, roce_tx_pkg::mtu_bytes, roce_tx_pkg::hashed_port;

  localparam int unsigned QpW = (N_QP == 1) ? 1 : $clog2(N_QP);
  localparam int unsigned PlaceW = $clog2(N_QP * Entries);

  typedef enum logic [3:0] {
    StIdle,
    StRow,      // the row comes
    StPick,     // the answers that may be continued, oldest first
    StLoad,     // the oldest of them is read
    StSubject,  // it comes
    StMeasure,  // its bytes against the window; those of a request with its row
    StInside,
    StDecide,
    StSearch,   // the READ that is repeated
    StCommit
  } state_e;

  state_e state_q, state_d;
  logic   is_request_q;
  qp_t    qp_q;
  mtu_e   mtu;
  wire [QpW-1:0] index = qp_q[QpW-1:0];
  logic   executes_q, repeats_q, sends_q, is_nak_q, drops_q;  // what the operation does
  logic   is_ack_q, is_ack, accepts_q, acknowledges_q;
  assign is_ack = WITH_RECEIVE && is_ack_q;
  assign mtu = valid_mtu(cfg.mtu);

  // ---- a row begins anew if its queue pair was closed; until its packets have left, requests wait ------
  logic [N_QP-1:0] fresh_q;
  logic            begins, row_here, closed;
  assign begins   = fresh_q[index];
  assign row_here = state_q == StRow && (!begins || drained);
  assign closed   = fresh_q[index] || !ready[index];  // meanwhile: the operation has no effect
  always_ff @(posedge clk) begin
    fresh_q <= fresh_q | ~ready;
    if (row_here && ready[index]) fresh_q[index] <= 1'b0;
    if (rst) fresh_q <= '1;
  end

  assign opens    = row_here && begins && ready[index];
  assign opens_qp = qp_q;

  // ---- which operation: requests and packets take turns ------------------------------------------
  logic takes, takes_request, leaves, any_request;
  assign any_request   = request_valid || arriving;
  assign takes_request = any_request && !(grant_valid && may_send && is_request_q);
  assign takes         = state_q == StIdle && (any_request || (grant_valid && may_send));
  assign cfg_rd        = takes;
  assign cfg_qp        = !takes_request ? grant_qp : request_valid ? request.qp : arriving_qp;
  assign grant_ready   = takes && !takes_request;
  assign request_taken = leaves && is_request_q;
  assign sending       = state_q != StIdle && (!is_request_q || sends_q);

  // ---- rows ----------------------------------------------------------------------------------------
  read_row_t kept, first_row, row_q, ruled, written;
  always_comb begin
    first_row          = '0;
    first_row.expected = window.psn;
  end
  ram_sdp #(.W($bits(read_row_t)), .DEPTH(1 << QpW)) u_rows (
    .clk,
    .wr_en  (leaves && !closed),
    .wr_addr(index),
    .wr_data(written),
    .rd_en  (takes),
    .rd_addr(cfg_qp[QpW-1:0]),
    .rd_data(kept)
  );

  // ---- of SENDs and WRITEs: the message that has begun, and the ACK that waits ---------------------------
  receive_row_t kept_receive, receive_q, received, receive;
  assign receive = WITH_RECEIVE ? receive_q : '0;
  receive_t     packet;
  assign packet = WITH_RECEIVE ? request.receive : '0;
  if (WITH_RECEIVE) begin : gen_receive_rows
    ram_sdp #(.W($bits(receive_row_t)), .DEPTH(1 << QpW)) u_rows (
      .clk,
      .wr_en  (leaves && !closed),
      .wr_addr(index),
      .wr_data(received),
      .rd_en  (takes),
      .rd_addr(cfg_qp[QpW-1:0]),
      .rd_data(kept_receive)
    );
  end else begin : gen_no_receive_rows
    assign kept_receive = '0;
    wire unused_received = &{1'b0, received};
  end

  // ---- entries: READs that were executed, and what is left of their answers -------------------------
  executed_t executed, executing;
  answer_t   answer, answer_q, answer_after;
  entry_t    entry_q, search_entry, found_entry, load_entry, oldest;
  logic [23:0] psns_q;
  logic      search_rd, search_start, search_done, found;
  logic      is_data;  // a packet of an answer is sent
  assign executing = '{first: request.psn, packets: psns_q, reth: request.reth};
  assign is_data   = sends_q && !is_nak_q && !is_ack;
  ram_sdp #(.W($bits(executed_t)), .DEPTH(N_QP * Entries)) u_executed (
    .clk,
    .wr_en  (leaves && !closed && executes_q),
    .wr_addr(PlaceW'({index, entry_q})),
    .wr_data(executing),
    .rd_en  (search_rd || state_q == StLoad),
    .rd_addr(PlaceW'({index, state_q == StLoad ? load_entry : search_entry})),
    .rd_data(executed)
  );
  ram_sdp #(.W($bits(answer_t)), .DEPTH(N_QP * Entries)) u_answers (
    .clk,
    .wr_en  (leaves && !closed && (executes_q || repeats_q || is_data)),
    .wr_addr(PlaceW'({index, entry_q})),
    .wr_data(sends_q ? answer_after : answer_q),
    .rd_en  (state_q == StLoad),
    .rd_addr(PlaceW'({index, load_entry})),
    .rd_data(answer)
  );
  read_search u_search (
    .clk, .rst,
    .start   (search_start),
    .oldest  (oldest),
    .count   (row_q.count),
    .psn     (request.psn),
    .reth    (request.reth),
    .mtu,
    .rd_en   (search_rd),
    .rd_entry(search_entry),
    .rd_data (executed),
    .done    (search_done),
    .found, .found_entry
  );

  // ---- pick: the oldest answer that may be continued ------------------------------------------------
  logic [Entries-1:0] continued, rotated_q;
  assign oldest      = row_q.next - entry_t'(row_q.count);
  assign continued   = row_q.nak.valid ? row_q.pending & ~row_q.nak.later
                     : receive.ack.valid ? row_q.pending & ~receive.ack.later : row_q.pending;
  always_ff @(posedge clk) if (state_q == StPick) rotated_q <= Entries'({continued, continued} >> oldest);
  always_comb begin
    load_entry = oldest;
    for (int i = int'(Entries) - 1; i >= 0; i--) if (rotated_q[i]) load_entry = oldest + entry_t'(i);
  end

  // ---- the subject: bytes that are requested, or those that are left of an answer or a WRITE ------------
  roce_pkg::reth_t        subject, subject_q;
  logic                   measures;
  read_row_t              row;
  logic [64:0]            offset_q, slack_q;  // from the window's start; of places for as many bytes
  logic                   key_q, inside_q, is_last_q, too_long_q, permitted;
  logic [PayloadLenW-1:0] len_q;
  psn_t                   distance_q;
  assign subject   = !is_request_q ? subject_q
                   : packet.valid && !packet.starts ? kept_receive.message.rest : request.reth;
  assign row       = begins ? first_row : kept;
  assign measures  = is_request_q ? row_here : state_q == StMeasure;
  assign permitted = subject.dma_len == '0 || (key_q && inside_q);
  always_ff @(posedge clk) begin
    if (state_q == StSubject) subject_q <= '{va: answer.va, rkey: executed.reth.rkey, dma_len: answer.left};
    if (measures) begin
      offset_q   <= {1'b0, subject.va} - {1'b0, window.base};
      slack_q    <= {1'b0, window.length} - 65'(subject.dma_len);
      key_q      <= subject.rkey == window.rkey
                    && (is_request_q && packet.valid ? window.write : window.resources != '0);
      is_last_q  <= subject.dma_len <= 32'(mtu_bytes(mtu));
      len_q      <= subject.dma_len <= 32'(mtu_bytes(mtu)) ? PayloadLenW'(subject.dma_len) : mtu_bytes(mtu);
      too_long_q <= subject.dma_len > 32'h8000_0000;
      distance_q <= request.psn - row.expected;
      psns_q     <= packets(subject.dma_len, mtu);
    end
    if (state_q == StInside) inside_q <= !offset_q[64] && !slack_q[64] && offset_q[63:0] <= slack_q[63:0];
  end

  // ---- decide ---------------------------------------------------------------------------------------
  logic rule_executes, rule_searches, rule_refuses, rule_accepts, rule_repeats, at_once;
  logic packet_accepted, packet_invalid, not_ready, is_lost;
  message_t message;
  read_row_t row_before;
  assign is_lost = WITH_RECEIVE && lost[index];
  always_comb begin
    row_before        = row_q;
    row_before.failed = row_q.failed || is_lost;
  end
  read_rules u_rules (
    .row(row_before), .is_read(request.is_read && WITH_READ), .is_whole(request.is_whole), .resources(window.resources),
    .distance(distance_q), .psns(psns_q), .too_long(too_long_q), .permitted, .in_message(receive.message.begun),
    .packet, .packet_accepted, .packet_invalid, .not_ready, .rnr_timer(window.rnr_timer),
    .next(ruled), .executes(rule_executes), .searches(rule_searches), .refuses(rule_refuses),
    .accepts(rule_accepts), .repeats(rule_repeats)
  );
  assign search_start = state_q == StDecide && is_request_q && rule_searches;
  assign at_once      = rule_executes && row_q.pending == '0 && !row_q.nak.valid && !receive.ack.valid
                      && eligible[index] && may_send;

  // The latest packet that an ACK names: of a repeated one not beyond a READ, which would pass for answered.
  psn_t acknowledged;
  logic is_behind;  // an ACK that waits goes further
  assign acknowledged = !is_lost && (rule_accepts || row_q.count != '0) ? request.psn : row_q.expected - 1'b1;

  if (WITH_RECEIVE) begin : gen_receive
    logic full_q, fits_q, is_last_packet_q, is_more_q;
    logic [63:0] va_q;
    psn_t ack_distance;
    always_ff @(posedge clk) begin
      if (measures) begin
        full_q           <= packet.len == 16'(mtu_bytes(mtu));
        fits_q           <= packet.len <= 16'(mtu_bytes(mtu));
        is_last_packet_q <= subject.dma_len == 32'(packet.len);
        is_more_q        <= subject.dma_len < 32'(packet.len);
      end
      if (state_q == StDecide) va_q <= subject.va;
    end
    receive_rules u_receive_rules (
      .packet, .message(receive.message), .rest(subject), .room, .full(full_q), .fits(fits_q),
      .is_last(is_last_packet_q), .is_more(is_more_q), .too_long(too_long_q), .permitted,
      .invalid(packet_invalid), .not_ready, .accepts(packet_accepted), .next(message)
    );
    assign ack_distance = receive.ack.psn - acknowledged;
    assign is_behind    = !rule_accepts && receive.ack.valid && !ack_distance[$bits(psn_t)-1];
    wire unused_distance = &{1'b0, ack_distance};

    assign placement_valid = leaves && is_request_q && packet.valid;
    always_comb begin
      placement = '{
        places: 1'b0, streams: 1'b0, notifies: 1'b0,
        has_reth: packet.starts && !packet.is_send, has_imm: packet.has_imm,
        starts: packet.starts, ends: packet.ends, qp: qp_q, psn: request.psn, imm: packet.imm,
        len: PayloadLenW'(packet.len), va: va_q, length: receive.message.length, fence: '0
      };
      if (accepts_q && !closed) begin
        placement.places   = !packet.is_send && packet.len != '0;
        placement.streams  = packet.is_send;
        placement.notifies = !packet.is_send && packet.has_imm;
      end
    end
  end else begin : gen_no_receive
    assign {packet_accepted, packet_invalid, not_ready, is_behind, message} = '0;
    assign {placement, placement_valid} = '0;
    wire unused_receive = &{1'b0, room, message, acknowledged, is_behind};
  end

  always_ff @(posedge clk) begin
    if (takes) begin
      is_request_q <= takes_request;
      qp_q         <= cfg_qp;
    end
    if (row_here) begin
      row_q     <= row;
      receive_q <= begins ? '0 : kept_receive;
      {executes_q, repeats_q, sends_q, is_nak_q, drops_q, is_ack_q, accepts_q, acknowledges_q} <= '0;
    end
    if (state_q == StLoad) begin
      entry_q  <= load_entry;
      sends_q  <= rotated_q == '0 && (row_q.nak.valid || receive.ack.valid);
      is_nak_q <= rotated_q == '0 && row_q.nak.valid;
      is_ack_q <= rotated_q == '0 && !row_q.nak.valid && receive.ack.valid;
    end
    if (state_q == StSubject) answer_q <= answer;
    if (state_q == StDecide) begin
      if (is_request_q) begin
        row_q      <= ruled;
        entry_q    <= row_q.next;
        answer_q   <= '{
          psn: request.psn, va: request.reth.va, left: request.reth.dma_len, begun: 1'b0, msn: ruled.msn
        };
        executes_q <= rule_executes;
        sends_q    <= at_once;
        drops_q    <= !(rule_executes || rule_refuses || rule_searches || rule_accepts || rule_repeats);
        accepts_q  <= rule_accepts;
        acknowledges_q <= rule_repeats;
        if (rule_accepts) receive_q.message <= message;
        // A lost WRITE's NAK takes the place of the next ACK.
        if (rule_repeats || is_lost || (rule_accepts && (packet.ack_req || packet.ends))) begin
          receive_q.ack <= '{
            valid: 1'b1, psn: is_behind ? receive.ack.psn : acknowledged, msn: ruled.msn, later: '0
          };
        end
        if (rule_executes) receive_q.ack.later[row_q.next] <= 1'b1;
        if (rule_refuses) receive_q.ack.valid <= 1'b0;
      end else if (permitted) sends_q <= 1'b1;
      else begin
        // The window was changed meanwhile.
        row_q.failed  <= 1'b1;
        row_q.pending <= '0;
        row_q.nak     <= '{
          valid: 1'b1, syndrome: SyndromeNakAccess, psn: answer_q.psn, msn: row_q.msn, later: '0
        };
        receive_q.ack.valid <= 1'b0;
      end
    end
    if (state_q == StSearch && search_done) begin
      repeats_q <= found;
      drops_q   <= !found;
      entry_q   <= found_entry;
      if (found) begin
        row_q.pending[found_entry]  <= 1'b1;
        row_q.repeated[found_entry] <= 1'b1;
      end
    end
    if (rst) is_request_q <= 1'b0;
  end

  always_comb begin
    state_d = state_q;
    unique case (state_q)
      StIdle:    if (takes) state_d = StRow;
      StRow:     state_d = !row_here ? StIdle : is_request_q ? StInside : StPick;
      StPick:    state_d = StLoad;
      StLoad:    state_d = rotated_q == '0 ? StCommit : StSubject;
      StSubject: state_d = StMeasure;
      StMeasure: state_d = StInside;
      StInside:  state_d = StDecide;
      StDecide:  state_d = search_start ? StSearch : StCommit;
      StSearch:  if (search_done) state_d = StCommit;
      default:   if (leaves) state_d = StIdle;
    endcase
  end
  always_ff @(posedge clk) state_q <= rst ? StIdle : state_d;

  // ---- commit: the packet leaves, the state is written ------------------------------------------------
  logic with_packet, whole_answer;
  assign with_packet  = sends_q && !closed;
  assign whole_answer = is_data && is_last_q;
  assign leaves       = state_q == StCommit && (!with_packet || reply_ready);
  assign reply_valid  = state_q == StCommit && with_packet;
  assign answer_after = '{
    psn: answer_q.psn + 1'b1, va: answer_q.va + 64'(len_q), left: answer_q.left - 32'(len_q), begun: 1'b1,
    msn: answer_q.msn
  };
  always_comb begin
    written = row_q;
    if (whole_answer) written.pending[entry_q] = 1'b0;
    if (is_nak_q) written.nak.valid = 1'b0;
    received = receive;
    if (is_ack) received.ack.valid = 1'b0;
  end

  assign reading     = state_q != StIdle && is_request_q;
  assign taken_valid = leaves && !closed && executes_q;
  assign taken       = '{qp: qp_q, va: request.reth.va, bytes: request.reth.dma_len};

  logic [N_QP-1:0] work_q;
  assign work = work_q & ready & ~fresh_q;
  always_ff @(posedge clk) begin
    if (leaves) work_q[index] <= !closed && (written.pending != '0 || written.nak.valid || received.ack.valid);
    if (rst) work_q <= '0;
  end

  always_comb begin
    reply = '{
      qp: qp_q, is_fatal: is_nak_q && is_fatal(row_q.nak.syndrome),
      dst_mac: cfg.dst_mac, dst_ip: cfg.dst_ip, tos: cfg.tos, dest_qpn: cfg.dest_qpn,
      udp_sport: cfg.udp_sport == '0 ? hashed_port(qpn_base + 24'(qp_q), cfg.dest_qpn) : cfg.udp_sport,
      opcode: OpcodeAck, has_aeth: 1'b1, syndrome: row_q.nak.syndrome, psn: row_q.nak.psn, msn: row_q.nak.msn, len: '0
    };
    if (is_ack) begin
      reply.syndrome = SyndromeAck;
      reply.psn      = receive.ack.psn;
      reply.msn      = receive.ack.msn;
    end else if (!is_nak_q) begin
      unique case ({answer_q.begun, is_last_q})
        2'b00: reply.opcode = OpcodeReadFirst;
        2'b10: reply.opcode = OpcodeReadMiddle;
        2'b11: reply.opcode = OpcodeReadLast;
        2'b01: reply.opcode = OpcodeReadOnly;
      endcase
      reply.has_aeth = !answer_q.begun || is_last_q;
      reply.syndrome = SyndromeAck;
      reply.psn      = answer_q.psn;
      reply.msn      = answer_q.msn;
      reply.len      = len_q;
    end
  end
  assign reply_addr = answer_q.va;

  // preamble 8, Ethernet 14, IPv4 20, UDP 8, BTH 12, ICRC 4, FCS 4, gap 12; AETH 4; payload, padded
  localparam int unsigned FixedBytes = 82;
  logic [13:0] words;
  assign words = 14'(FixedBytes / 4) + 14'(reply.has_aeth) + 14'((reply.len + PayloadLenW'(3)) >> 2);
  assign reply_wire_bytes = {words, 2'(FixedBytes % 4)};

  always_ff @(posedge clk) begin
    stat <= '0;
    if (leaves && !rst) begin
      stat.write        <= !closed && accepts_q && packet.ends && !packet.is_send;
      stat.send         <= !closed && accepts_q && packet.ends && packet.is_send;
      stat.out_of_buffer <= !closed && is_nak_q && row_q.nak.syndrome[7:5] == SyndromeRnr;
      stat.read         <= !closed && executes_q;
      stat.repeated     <= !closed && (repeats_q || acknowledges_q);
      stat.dropped      <= is_request_q && (closed || drops_q);
      stat.nak_sequence <= !closed && is_nak_q && row_q.nak.syndrome == SyndromeNakSequence;
      stat.nak_invalid  <= !closed && is_nak_q && row_q.nak.syndrome == SyndromeNakInvalid;
      stat.nak_access   <= !closed && is_nak_q && row_q.nak.syndrome == SyndromeNakAccess;
    end
  end

  wire unused = &{1'b0, cfg, qp_q, packet.imm};
endmodule
