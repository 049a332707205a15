# SPDX-License-Identifier: Apache-2.0
"""The list of proofs of `make formal`.

Every proof includes checks of itself: covers that must be reached, and mutants, faults planted in the module, each of
which must break the property that it names.
"""

from proof import Mutant, Proof

# requester_step: one proof an operation (op_kind_e), with the faults planted in it. It is combinational,
# so one cycle is all there is, and the row may be any that satisfies the invariant.
WINDOW = "op.ack.psn - row.una < row.sent_end - row.una"
OPERATIONS: dict[int, tuple[Mutant, ...]] = {
    0: (Mutant("if (fresh) begin\n      next.tail", "if (opens) begin\n      next.tail", "a_una"),),
    1: (Mutant("next.open_pending = before_rts;", "next.open_pending = 1'b1;", "a_state"),),
    2: (
        Mutant("next.sent_end = sends && !facts.again", "next.sent_end = sends", "a_sent_end"),
        Mutant(
            "sends   = op.kind == DoSend && facts.can_send && !blocked;",
            "sends   = op.kind == DoSend && !blocked;",
            "a_sent",
        ),
    ),
    3: (Mutant("next.poison   = poisons ? row.wr :", "next.poison   = poisons ? row.wr + 1'b1 :", "a_poison"),),
    4: (
        Mutant(
            "opens = may_open && (op.kind == DoLoad ||", "opens = (op.kind == DoLoad ? row.open_pending :", "a_freed"
        ),
    ),
    5: (
        Mutant("op.kind == DoVisit && facts.expired && !may_open;", "op.kind == DoVisit && !may_open;", "a_rewound"),
        Mutant("retry_left - 3'(retries && rewinds)", "retry_left", "a_retries"),
    ),
    6: (
        Mutant(WINDOW, "op.ack.psn < row.sent_end", "a_ack_window", "requester_facts"),  # wrong where it wraps
        Mutant(WINDOW, WINDOW.replace("<", "<="), "a_ack_window", "requester_facts"),
        Mutant(
            "sends ? after_nxt : rewinds || (acks && facts.passes_nxt) ? base",
            "sends ? after_nxt : rewinds ? base",
            "a_nxt",
        ),
        Mutant(
            "rewinds || (acks && facts.passes_nxt) ? base : row.nxt",
            "rewinds ? row.tail : (acks && facts.passes_nxt) ? base : row.nxt",
            "a_nxt",
        ),
    ),
    7: (
        Mutant("next.tail     = frees ? after_tail", "next.tail     = frees ? row.wr", "a_freed"),
        Mutant("next.una      = frees && !facts.acked ? after_tail : base;", "next.una      = base;", "a_una"),
        Mutant("facts.can_release && !tail_in_use", "facts.can_release", "a_in_use_stays"),
    ),
}

# tcp_step: one proof an event (tcp_event_e), likewise.
TCP_EVENTS: dict[int, tuple[Mutant, ...]] = {
    0: (Mutant("next.max      = first;", "next.max      = event_in.seq;", "a_opening"),),
    1: (Mutant("if (aborts) actions.ended = TcpAborted;", "", "a_ended"),),
    2: (
        Mutant("held <= 33'(TcpMaxHeld);", "held <= 33'(TcpMaxHeld) + 33'd1;", "a_written", "tcp_facts"),
        Mutant("(writes && facts.una_is_written && event_in.ack != '0)", "1'b0", "a_timer"),
    ),
    3: (
        Mutant("!tcp_before(row.max, event_in.ack)", "1'b1", "a_7_una", "tcp_facts"),
        Mutant("assign acks      = takes && facts.ack_reaches_una;", "assign acks      = takes;", "a_7_una"),
        Mutant(
            "resets    = in_window && flags.rst && facts.at_rcv_nxt;", "resets    = in_window && flags.rst;", "a_reset"
        ),
        Mutant("if (advances && facts.ack_passes_nxt) next.nxt = event_in.ack;", "", "a_nxt"),
        Mutant("if (empties || comes_up) next.timer_on = 1'b0;", "", "a_timer"),
        Mutant("(advances && !empties)", "1'b0", "a_restarts"),
        Mutant("(comes_up && !facts.max_is_written)", "1'b0", "a_timer"),
        Mutant("rewinds    = loses_more && !params.back_off;", "rewinds    = loses_more;", "a_back"),
    ),
    4: (Mutant("&& event_in.options.mss >= TcpMinMss", "", "a_mss", "tcp_facts"),),
    5: (
        Mutant("if (loses || probes || prods) next.resend", "if (loses || prods) next.resend", "a_sends"),
        Mutant("params.give_up != '0 && ", "", "a_gives_up", "tcp_facts"),
        Mutant("next.tries = row.tries + 8'd1;", "next.tries = row.tries;", "a_tries"),
    ),
    6: (
        Mutant("has_room ? 32'(row.window) - sent : '0;", "32'(row.window);", "a_3_window", "tcp_pick"),
        Mutant("row.window == '0 ? 32'd1 : 32'(row.window)", "full", "a_3_window", "tcp_pick"),
        Mutant("held <= full ? least(held, probe) : least(full, probe)", "least(full, probe)", "a_2_to", "tcp_pick"),
        Mutant("if (sends_data && tcp_before(row.max, seg_end)) next.max", "if (sends_data) next.max", "a_4_max"),
    ),
}

# roce_tx: from which cover the next one is reached.
STORE_PATHS = {
    "c_asks": "c_open",
    "c_fills": "c_asks",
    "c_begun": "c_fills",
    "c_cut_through": "c_begun",
    "c_filled": "c_fills",
    "c_sent": "c_filled",
    "c_held": "c_fills",
    "c_leaves": "c_held",
    "c_read": "c_sent",
    "c_back": "c_sent",
    "c_again": "c_back",
    "c_freed": "c_sent",
    "c_next": "c_freed",
    "c_wraps": "c_next",
    "c_stale": "c_open",
}

# destination: its other half.
TABLE = "destination_table"

# fragment_builder: the same faults with and without a table of parts.
BUILDER_FAULTS = (
    Mutant("piece_valid = beat_valid && !drops_q;", "piece_valid = beat_valid;", "a_header"),
    Mutant("ends     = beat.last || at_limit", "ends     = beat.last", "a_0_ended"),
    Mutant("payload_q <= filled_q + 32'(beat.n_bytes);", "payload_q <= filled_q + 32'(Bytes);", "a_length"),
    Mutant("drops_q     <= 1'b1;", "", "a_0_rest"),
    Mutant("beat_valid && beat.n_bytes != '0;", "beat_valid && beat.n_bytes > (LaneW + 1)'(1);", "a_kept"),
    Mutant("stat_cut     <= take && at_limit && !beat.last", "stat_cut     <= take && at_limit", "a_counted"),
)

PROOFS = [
    Proof(
        "sync_fifo",
        {"W": 4, "DEPTH": 4},
        mutants=(
            Mutant("s_ready = !level[PtrW]", "s_ready = 1'b1", "a_level"),
            Mutant("m_data  = mem[tail_q[PtrW-1:0]]", "m_data  = mem[head_q[PtrW-1:0]]", "a_out"),
            Mutant("tail_q + 1'b1", "tail_q + 2'd2", "a_inside"),
        ),
    ),
    Proof(
        "axi_mux",
        {"DATA_W": 8, "WRITES": 4},
        mutants=(
            Mutant(".s_valid(aw_comes)", ".s_valid(m_axi_req.wr.awvalid && m_axi_rsp.wr.awready)", "a_w_goes"),
            Mutant("ar_at = ar_held_q ? ar_at_q : ", "ar_at = ", "a_ar_hold"),
            Mutant("if (m_axi_req.wr.awvalid) aw_at_q <= aw_at;", "", "a_aw_turns"),
            Mutant("m_axi_req.wr.aw.id   = aw_at;", "", "a_aw"),
            Mutant("awvalid && (order_room || aw_held_q);", "awvalid;", "a_0_level"),
            Mutant("awvalid && (order_room || aw_held_q);", "awvalid && order_room;", "a_aw_hold"),
            Mutant("m_axi_wdata = s_axi_wdata[w_at]", "m_axi_wdata = s_axi_wdata[aw_at]", "a_w"),
            Mutant(" && w_there && w_at == 1'(i)", " && w_there", "a_order"),
            Mutant("s_axi_req[w_at].wr.wvalid && w_there", "s_axi_req[w_at].wr.wvalid", "a_has_address"),
            Mutant("bvalid && m_axi_rsp.wr.bid == 1'(i)", "bvalid", "a_asked_write"),
            Mutant("s_axi_req[m_axi_rsp.rd.rid]", "s_axi_req[ar_at]", "a_all"),
        ),
    ),
    Proof(
        "axis_register",
        {"W": 4},
        mutants=(
            Mutant("s_axis_tready = !skid_valid_q", "s_axis_tready = 1'b1", "a_kept"),
            Mutant("skid_valid_q ? skid_q : s_axis_tdata", "s_axis_tdata", "a_data"),
            Mutant("m_axis_tready || !out_valid_q", "m_axis_tready", "a_no_bubble"),
            Mutant("s_axis_tready = !skid_valid_q", "s_axis_tready = !skid_valid_q && !out_valid_q", "a_room"),
        ),
    ),
    Proof(
        "block_fifo",
        {"W": 8, "DEPTH": 4},
        mutants=(
            Mutant("s_ready = !level[PtrW]", "s_ready = 1'b1", "a_level"),
            Mutant("(m_ready || !valid_q)", "1'b1", "a_hold"),
            Mutant("(m_ready || !valid_q)", "!valid_q", "a_no_bubble"),
            Mutant(".rd_addr(tail_q[PtrW-1:0])", ".rd_addr(head_q[PtrW-1:0])", "a_data"),
        ),
    ),
    Proof(
        "word_packer",
        {"DATA_W": 128},
        mutants=(
            Mutant("<< {waiting_q, 6'd0}", "<< {s_count, 6'd0}", "a_word"),
            Mutant("s_ready = free && !rest_q", "s_ready = free", "a_inside"),
            Mutant("take && s_last && count > (CountW + 1)'(Words)", "1'b0", "a_0_open"),
            Mutant("(take && (full || s_last))", "(take && full)", "a_inside"),
            Mutant("free    = m_ready || !m_valid", "free    = 1'b1", "a_hold"),
        ),
    ),
    *(
        Proof(
            "fragment_builder",
            {"DATA_W": 64, "TABLE": table},
            cycles=16,
            free=("crc32_word", "crc32_end"),
            mutants=BUILDER_FAULTS,
        )
        for table in (0, 1)
    ),
    Proof(
        "event_merger",
        {"DATA_W": 64, "N_IN": 2},
        cycles=20,
        mutants=(
            Mutant("s_axis_tready = drops_q;", "s_axis_tready = drops_q | {N_IN{resync}};", "a_none_lost"),
            Mutant("!forgets && ahead <= 0", "!forgets && ahead < 0", "a_rises"),
            Mutant("here    = shown_q[at_q] && enabled;", "here    = enabled;", "a_0_first"),
            Mutant("(scan_ends && !begins) || !judges", "!judges", "a_0_has"),
            Mutant("if (part_ends && !(take && last)) drops_q[at_q] <= 1'b1;", "", "a_0_drops"),
            Mutant("length_q + (take ? 32'(n_bytes) : '0)", "length_q", "a_entry"),
            Mutant("flags.cut             = take && full && !last;", "", "a_cut"),
            Mutant("drop_head && again", "1'b0", "a_what"),
            Mutant("(enabled || at_top) && entry_room", "entry_room", "a_entry"),
            Mutant(
                "m_axis_tvalid = state_q == StEnd ||",
                "m_axis_tvalid = state_q == StEnd || state_q == StPart ||",
                "a_not_made_up",
            ),
        ),
    ),
    Proof(
        "event_merger",
        {"DATA_W": 64, "N_IN": 2, "TRIGGERED": 1},
        props="event_merger_triggered",
        cycles=20,
        mutants=(
            Mutant("by_trigger && state_q == StEnd && m_axis_tready;", "by_trigger && state_q == StEnd;", "a_one_each"),
            Mutant("if (by_trigger) event_q <= about.event_number;", "", "a_0_event"),
            Mutant("shown_q[look_q.at] <= beyond == 0;", "shown_q[look_q.at] <= 1'b1;", "a_number"),
            Mutant("beyond < 0 ||", "beyond <= 0 ||", "a_kept"),
            Mutant("state_q == StScan && s_axis_trigger_tvalid && cfg", "state_q == StScan && cfg", "a_one_each"),
            Mutant("type_differs = 1'b0;", "type_differs = any_q;", "a_same_type"),
            Mutant("about        = s_axis_trigger_tdata;", "about = head;", "a_about"),
        ),
    ),
    Proof(
        "trigger_input",
        {},
        cycles=24,
        mutants=(
            Mutant("owed >= 33'(cfg.event_high)", "owed > 33'(cfg.event_high)", "a_overflow"),
            Mutant("owed       = 33'(event_fill) + reserved_q", "owed       = 33'(event_fill)", "a_overflow"),
            Mutant("done       = event_done && pending != '0", "done       = event_done", "a_reserved"),
            Mutant("vetoed:   trigger_valid && vetoed", "vetoed:   trigger_valid && vetoed && !full", "a_once"),
            Mutant("gate_q - 32'(gate_q != '0)", "gate_q - 32'(gate_q != '0 && !vetoed)", "a_gate"),
            Mutant("trigger_valid && !vetoed && !full && !dead;", "trigger_valid && !full && !dead;", "a_open"),
            Mutant("ring_busy || event_busy || !room", "ring_busy || event_busy", "a_room"),
        ),
    ),
    Proof(
        "stream_slicer",
        {"DATA_W": 64},
        cycles=40,
        mutants=(
            Mutant("cut_valid ? free && waiting == 5'd1", "cut_valid ? free", "a_after"),
            Mutant("free || !held_q);", "free || held_q);", "a_held"),
            Mutant("if (ends || passes) held_q <= 1'b0;", "if (passes) held_q <= 1'b0;", "a_all"),
            Mutant("free   = !m_axis_tvalid || m_axis_tready", "free   = 1'b1", "a_hold"),
            Mutant("m_axis_tkeep <= {Bytes{held_q}}", "m_axis_tkeep <= '1", "a_all"),
            Mutant("(full || stops)", "(full || stops || marks)", "a_why"),
            Mutant("stat_lost <= marks && !room", "stat_lost <= marks && room", "a_counted"),
            Mutant("number_q <= cut_valid ? cut.number : ", "number_q <= ", "a_number"),
        ),
    ),
    Proof(
        "zero_suppression",
        {"DATA_W": 64, "ROWS": 4},
        cycles=20,
        mutants=(
            Mutant("total_q + 32'(bytes3_q)", "total_q + 32'd8", "a_bytes"),
            Mutant("if (go && state_q == StTrailer) total_q <= '0;", "", "a_bytes"),
            Mutant("ends_block && !with_mask ? StMask :", "", "a_0_mask"),
            Mutant("last3_q ? StTrailer : StBeat;\n        StMask", "StBeat;\n        StMask", "a_last"),
            Mutant("if (ends_block && with_mask) mask_q <= '0;", "", "a_0_mask"),
            Mutant("if (room2) valid2_q <= valid1_q && !accessed;", "if (room2) valid2_q <= valid1_q;", "a_beats"),
            Mutant("count = kept3_q + CountW'(with_mask);", "count = kept3_q;", "a_mask"),
            Mutant("assign room2 = room3 || !valid2_q;", "assign room2 = 1'b1;", "a_beats"),
            Mutant("m_axis_tkeep  = s_axis_tkeep;", "m_axis_tkeep  = '1;", "a_pass"),
        ),
    ),
    Proof(
        "arbiter_rr",
        {"N": 16},
        cycles=20,
        mutants=(
            Mutant("above  = req & above_q", "above  = '0", "a_round"),  # fixed priority starves
            Mutant("chosen = pool", "chosen = above_q", "a_asked"),
        ),
    ),
    Proof(
        "arbiter_rr_wide",
        {"N": 32},
        depth=2,
        mutants=(
            Mutant("rest_q.any ? last_q : in_later.any", "in_later.any", "a_same"),
            Mutant("later_q <= 16'hfffe << group;", "later_q <= 16'hffff << group;", "a_group"),
            Mutant("groups[last_q] & above_q", "groups[last_q]", "a_same"),
        ),
    ),
    Proof(
        "pacer",
        {"N_QP": 2, "RoundLog2": 8, "TurnLog2": 10},
        cycles=16,
        mutants=(
            Mutant("paid_for_grant_q ? last_spent_q : spent_for_grant", "spent_for_grant", "a_00_account"),
            Mutant("if (paid_with_grant_q) spent_now = last_spent_q;", "", "a_00_judged"),
            Mutant("+= ($bits(grant_t))'(grant_rate)", "+= ($bits(grant_t))'(grant_rate >> 1)", "a_1_credit"),
            Mutant("(!waits_q || ", "(", "a_2_restart"),
            Mutant("grant_unlimited || !known_q", "grant_unlimited", "a_1_credit"),
            Mutant("if (sent_valid) eligible_q[index(sent_qp)] <= unlimited_q[index(sent_qp)];", "", "a_may"),
            Mutant("!paid_credit[ByteCountW-1] && ", "", "a_no_more"),
            Mutant("unlimited_q[last_grant_index_q] || !credit_now[ByteCountW-1]", "1'b0", "a_must"),
        ),
    ),
    Proof(
        "cc_step",
        {"WITH_QCN": 0, "N_GROUPS": 1},
        bounded=True,
        depth=12,
        mutants=(
            Mutant(
                "s5_q.c.rate_current < s5_min_q ? s5_min_q : s5_q.c.rate_current", "s5_q.c.rate_current", "a_bounds"
            ),
            Mutant("s6_q.c.rate_target <= s5_fixed_q ? s5_line_q :", "s6_q.c.rate_target <=", "a_bounds"),
            Mutant("else if (s2_follow_q) s3_q.c.rate_target", "else if (0) s3_q.c.rate_target", "a_clamp"),
            Mutant("out_unlimited <= line;", "out_unlimited <= s5_fixed_q;", "a_unlimited"),
            Mutant("product[48:17]", "product[47:16]", "a_half"),
            Mutant("gain(s3_g_shift_q, ", "gain(params[3].g_shift, ", "a_alpha"),
            Mutant("g_shift == '0 ? FactorOne : params[0].g_factor", "params[0].g_factor", "a_alpha"),
            Mutant("(s3_q.own.alpha & ~below_resolution(s3_alpha_bits_q))", "s3_q.own.alpha", "a_coarse"),
            Mutant("on_tick && due && !cut;", "on_tick && s1_notified_q && !cut;", "a_due"),
            Mutant("rate_min > s4_line_q", "rate_min >= s4_line_q", "a_clamped"),
            Mutant(
                "s4_q.cut ? ~s4_reduction_q : above && !s4_q.reduce ? s4_line_q : s4_raised_q[31:0]",
                "s4_q.cut ? ~s4_reduction_q : s4_raised_q[31:0]",
                "a_half_way",
            ),
        ),
    ),
    Proof(
        "cc_step",
        {"WITH_QCN": 1, "N_GROUPS": 1},
        bounded=True,
        depth=12,
        mutants=(
            Mutant("s2_q.c.rate_target >> 3", "s2_q.c.rate_target >> 5", "a_order"),
            Mutant("s6_q.c.limited <= !line ||", "s6_q.c.limited <= s5_q.qcn ||", "a_limited"),
            Mutant("s2_q.qcn || s2_q.off ? '1 : params[2].rate_start", "params[2].rate_start", "a_idle"),
        ),
    ),
    Proof(
        "cc_engine",
        {"N_QP": 2, "WITH_QCN": 0},
        depth=26,
        cycles=26,
        mutants=(
            Mutant("32'(slot_q) < N_QP", "32'(slot_q) < N_QP && !(paused && slot_q == 1)", "a_visits"),
            Mutant(".in_valid       (fetched_q)", ".in_valid       (fetched_q && !fetched_paused_q)", "a_grants"),
            Mutant("slot_q <= slot_q + 1'b1;", "slot_q <= slot_q + 1'b1 + RoundLog2'(cnp_valid);", "a_visits"),
            Mutant("init_q <= '1;", "init_q <= '0;", "a_fresh"),
        ),
    ),
    Proof(
        "tx_mux",
        {"DATA_W": 16},
        mutants=(
            Mutant("if (!busy_q) begin", "if (1) begin", "a_no_other"),
            Mutant("tvalid = busy_q ? s_axis_roce_tvalid : roce_asks;", "tvalid = s_axis_roce_tvalid;", "a_kept"),
            Mutant("roce_asks    = s_axis_roce_tvalid && !tx_paused", "roce_asks    = s_axis_roce_tvalid", "a_held"),
            Mutant("service_asks && (roce_was_last_q || !roce_asks)", "service_asks && !roce_asks", "a_turns"),
            Mutant(
                "if (s_axis_control_tvalid) kind", "if (s_axis_control_tvalid && !roce_asks) kind", "a_control_first"
            ),
            Mutant("free = m_axis_tready || !m_axis_tvalid", "free = 1'b1", "a_one"),
        ),
    ),
    Proof(
        "mac_rx_xgmii",
        {},
        depth=5,
        cycles=16,
        free=("crc32_word",),
        mutants=(
            Mutant("if (in_frame_q || !has_sfd)", "if (!has_sfd)", "a_verdict"),  # a frame that is cut goes unnoticed
            Mutant("kind_d = ends && !short_q && !over_d", "kind_d = ends && !over_d", "a_verdict"),
            Mutant("ends    = (first & word_term) != '0", "ends    = word_term != '0", "a_verdict"),  # data like a /T/
            Mutant("tail_q && (tail_bad_q || !fcs_right)", "tail_q && tail_bad_q", "a_last"),
            Mutant("8'h0F >> (4'd8 - a_count_q)", "8'hFF >> (4'd8 - a_count_q)", "a_last"),  # the FCS stays
            Mutant("held_valid_q && (tail_q || push)", "tail_q || push", "a_beat"),
            Mutant("if (push) held_q", "if (a_kind_q == KindData) held_q", "a_octets"),
        ),
    ),
    Proof(
        "mac_tx_xgmii",
        {},
        depth=5,
        cycles=22,
        free=("crc32_word", "crc32_end"),
        mutants=(
            Mutant("columns = 3'd2 + 3'(extra_column)", "columns = 3'd1 + 3'(extra_column)", "a_start"),
            Mutant("{extra_column, deficit_d} =", "{deficit_d, extra_column} =", "a_no_waste"),
            Mutant("lane4_d = columns[0];", "lane4_d = 1'b0;", "a_start"),
            Mutant("LastMinWord  = 13'd7", "LastMinWord  = 13'd6", "a_length"),
            Mutant("s_axis_tdata & keep_mask", "s_axis_tdata", "a_octets"),
            Mutant("{XgmiiTerm, {7{XgmiiError}}}", "{8{XgmiiError}}", "a_abort"),
            Mutant("kind_d  = KindError;", "kind_d  = KindIdle;", "a_control"),
            Mutant("? {line[31:0], upper_q} : line", "? line : line", "a_preamble"),
            Mutant("XgmiiTerm, ~crc}", "XgmiiTerm, crc}", "a_fcs"),
            Mutant("StDrop: if (s_axis_tvalid && s_axis_tlast)", "StDrop: if (s_axis_tvalid)", "a_not_merged"),
        ),
    ),
    Proof(
        "hard_mac_port",
        {"DATA_W": 512},
        mutants=(
            Mutant("inside_q || (s_axis_tx_tvalid && !rest_q)", "s_axis_tx_tvalid && !rest_q", "a_no_gap"),
            Mutant("(!s_axis_tx_tvalid || late_q)", "!s_axis_tx_tvalid", "a_kept"),
            Mutant("(m_axis_tx_tready && !late_q)", "m_axis_tx_tready", "a_marked"),
            Mutant("(s_axis_tx_tvalid && !rest_q)", "s_axis_tx_tvalid", "a_rest"),
            Mutant("m_axis_tx_tdata[7:0] = '0;", "", "a_kept"),
            Mutant("m_axis_tx_tkeep[i] = 1'b1;", "", "a_padded"),
            Mutant("m_axis_tx_tlast && !late,", "m_axis_tx_tlast,", "a_counted"),
        ),
    ),
    Proof(
        "destination",
        {"N_QP": 2, "SERVERS": 4},
        cycles=44,
        free=("ram_sdp",),
        after={
            "c_prepared": "c_walks",
            "c_held": "c_prepared",
            "c_forgotten": "c_held",
            "c_in_force": "c_held",
            "c_new": "c_in_force",
            "c_waits": "c_new",
        },
        mutants=(
            Mutant("staged_event_q <= last_event_q", "staged_event_q < last_event_q", "a_none_gone", TABLE),
            Mutant("passed_q <= passes;", "passed_q <= 1'b0;", "a_none_gone", TABLE),
            Mutant("{StWalk, StPrepared, StFinish}", "{StPrepared, StFinish}", "a_none_before", TABLE, "c_walks"),
            Mutant("{StWalk, StPrepared, StFinish}", "{StWalk, StPrepared}", "a_none_before", TABLE, "c_held"),
            Mutant("if (!pending_q || !commits_q) older_q", "if (!pending_q) older_q", "a_0_in_force", TABLE, "c_held"),
            Mutant("~(newer_q ^ older_q)", "~newer_q", "a_not_written", TABLE),
            Mutant("cfg.key == cfg.owner && ", "", "a_owner", TABLE),
            Mutant(
                "(state_q == StChoose && announced && is_staged_q) || waits",
                "waits",
                "a_none_before",
                after="c_prepared",
            ),
            Mutant("{StEvent, StDivide,", "{StDivide,", "a_0_new", after="c_held"),
            Mutant("kept_q ? StEvent : StIdle", "StIdle", "a_0_kept", after="c_held"),
            Mutant("if (changed) waits_q <= 1'b0;", "", "a_waiting", after="c_waits"),
            Mutant("desc_q.by_event <= 1'b1;", "", "a_0_by_event", after="c_waits"),
            Mutant("== newer && !announced", "== newer", "a_reason", after="c_new"),
            Mutant("assign waits = cfg.wait_for_server &&", "assign waits = 1'b0 &&", "a_kept_back", after="c_new"),
            Mutant("access_pending ? StFetch : StEvent", "StHeld", "a_looks_again", after="c_prepared"),
            Mutant("digit_q == '1", "digit_q == '1 && m_axis_desc_tready", "a_soon", after="c_in_force"),
        ),
    ),
    Proof(
        "packet_store_commits",
        {"N_QP": 2, "DEPTH": 4},
        cycles=16,
        mutants=(
            Mutant("m_commit_valid = waits && answered", "m_commit_valid = waits", "a_commit"),
            Mutant("m_commit_bad   = bad || answer_bad", "m_commit_bad   = bad", "a_commit"),
            Mutant("head_q - 1'b1 - number < waiting", "head_q - number < waiting", "a_load_waits"),
            Mutant("load_waits   = s_commit_valid || among", "load_waits   = among", "a_load_after"),
            Mutant("(s_commit_valid && s_commit_qp == op_qp) || among", "1'b0 && among", "a_op_waits"),
            Mutant(".s_valid(written)", ".s_valid(written && waits)", "a_lead"),
        ),
    ),
    Proof(
        "ring_fill",
        {"N_QP": 2},
        depth=10,
        cycles=20,
        mutants=(
            Mutant("here > best_q ? here : best_q", "here", "a_fill"),
            Mutant(
                "valid_q && now_q > (reads_q ? row : '0) ? now_q : reads_q ? row : '0", "reads_q ? row : '0", "a_fill"
            ),
            Mutant("best_q <= ends_q ? '0 : best;", "best_q <= best;", "a_falls"),
            Mutant("if (ends_q || best > fill_q)", "if (best > fill_q)", "a_falls"),
        ),
    ),
    Proof(
        "congestion_point",
        {},
        cycles=20,
        after={"c_silent": "c_empty"},
        mutants=(
            Mutant("if (fits) rest_q", "if (bit_q != '0 && fits) rest_q", "a_quantised", after="c_last_bit"),
            Mutant("clipped = divisor", "clipped = LowestW'(congestion)", "a_placed", after="c_long"),
            Mutant("if (until_d <= 0)", "if (until_d <= 60)", "a_interval"),
            Mutant("if (congestion < 0) clipped = '0;\n    else ", "", "a_nothing", after="c_empty"),
            Mutant("9'd256 - 9'(cfg.jitter)", "9'd255 - 9'(cfg.jitter)", "a_factor", after="c_last_bit"),
            Mutant("out_valid   <= feedback_q != '0;", "out_valid   <= 1'b1;", "a_range", after="c_silent"),
        ),
    ),
    Proof(
        "slots_in_use",
        {"N": 4},
        mutants=(
            Mutant("valid_q[tail_q] <= 1'b0;", "valid_q[head_q] <= 1'b0;", "a_in_use"),
            Mutant("&& qp_q[i] == qp ", "", "a_no_other"),
            Mutant("room = !valid_q[head_q]", "room = 1'b1", "a_room"),
            Mutant("place = place - 1'b1;", "place = place + 1'b1;", "a_oldest"),
            Mutant("&& qp_q[place] == reader", "", "a_reading"),
        ),
    ),
    Proof(
        "roce_tx",
        {"N_QP": 1, "RING_BYTES": 8192, "SLOTS": 2},
        depth=4,
        cycles=24,
        free=("ram_sdp", "requester_step"),
        after=STORE_PATHS,
        mutants=(
            Mutant("= ring_packets(mtu_q);", "= '1;", "a_not_overwritten", "segmenter", "c_filled"),
            # A message goes to the server that took its queue pair after its own had died.
            Mutant(
                "view.loaded && !keep_q && past_q && view.rts", "1'b0", "a_of_its_connection", "segmenter", "c_open"
            ),
            Mutant("!cached_q || waits_past_q ||", "!cached_q ||", "a_of_its_connection", "segmenter", "c_open"),
            Mutant("outlived && view.wr != view.tail", "1'b0", "a_behind_all", "segmenter", "c_sent"),
            Mutant(
                "tail_in_use  = tail_read || tail_filling",
                "tail_in_use  = tail_read",
                "a_03_committed",
                "requester",
                "c_begun",
            ),
            Mutant(
                "tail_in_use  = tail_read || tail_filling",
                "tail_in_use  = tail_filling",
                "a_04_read",
                "requester",
                "c_sent",
            ),
            Mutant("follows_q ? row3_q : ram_row", "ram_row", "a_00_row", "requester", "c_open"),
            # A row that is read before the operation in front of it has written it sends the same packet again.
            Mutant("follows_q ? row3_q : ram_row", "ram_row", "a_not_twice", "requester", "c_leaves"),
            Mutant(
                "= slot_address(job_qp, job_slot, job_mtu)",
                "= slot_address(job_qp, job_slot + 1'b1, job_mtu)",
                "a_05_job",
                "packet_store",
                "c_filled",
            ),
        ),
    ),
    Proof(
        "roce_tx",
        {"N_QP": 1, "RING_BYTES": 8192, "SLOTS": 4, "RETRANSMIT": 0},
        depth=4,
        cycles=24,
        free=("ram_sdp", "requester_step"),
        after={**STORE_PATHS, "c_refills": "c_sent"},
        mutants=(
            Mutant("reading_q ? oldest_q : nxt_q", "nxt_q", "a_not_overwritten", "segmenter", "c_sent"),
            Mutant("|| stored >= packets;", ";", "a_not_overwritten", "segmenter", "c_filled"),
        ),
    ),
    Proof(
        "requester_step",
        {},
        props="requester_progress",
        bounded=True,
        cycles=1,
        mutants=(
            Mutant("|| facts.last_ready\n", "\n", "a_asks"),
            Mutant("|| (facts.again && facts.last_again)", "", "a_asks"),
            Mutant("|| row.nxt[2:0] == '1 ", "", "a_never_rises"),
            Mutant("(sends && asks && !row.timer_on)", "(sends && asks)", "a_deadline_stays"),
            Mutant("!credited && !rewinds &&", "!credited &&", "a_credit"),
            Mutant(
                "if (leaves || (rewinds && !waits)) next.timer_on", "if (leaves || rewinds) next.timer_on", "a_timer"
            ),
            Mutant("retry_left - 3'(retries && rewinds)", "retry_left", "a_retries"),
            Mutant("progress ? cfg.retry_cnt : row.retry_left", "row.retry_left", "a_retries"),
            Mutant("(progress && facts.asked_beyond) || ", "", "a_timer"),
            Mutant(WINDOW, WINDOW.replace(" <", " + 1'b1 <"), "a_heard", "requester_facts"),
            Mutant("retry_spent = retries && retry_left == '0;", "retry_spent = 1'b0;", "a_ends"),
        ),
    ),
    Proof(
        "requester_step",
        {},
        props="requester_once",
        bounded=True,
        cycles=1,
        mutants=(
            Mutant("next.sent_end = sends && !facts.again ? after_nxt :", "next.sent_end =", "a_once"),
            Mutant("retry_spent = retries && retry_left == '0;", "retry_spent = 1'b0;", "a_ends"),
            Mutant("rnr_spent    = told_to_wait && rnr_left == '0;", "rnr_spent    = 1'b0;", "a_ends"),
            Mutant("rewinds = resumes || waits ||", "rewinds = resumes || waits || progress ||", "a_once"),
            Mutant(WINDOW, WINDOW.replace("<", "<="), "a_nothing_rewound", "requester_facts"),
        ),
    ),
    *(
        Proof("requester_step", {"KIND": kind}, bounded=True, cycles=1, mutants=mutants)
        for kind, mutants in OPERATIONS.items()
    ),
    Proof(
        "tcp_sender",
        {"N_STREAMS": 4, "CLK_KHZ": 10_000},
        depth=8,
        cycles=20,
        free=("ram_sdp", "tcp_engine"),
        mutants=(
            Mutant("&& !(valid3 && same(StreamW'(stream3_q), StreamW'(streams[i])));", ";", "a_read"),
            Mutant("!init_q && !valid1_q && ", "!init_q && ", "a_apart"),
            Mutant("if (tick_q && !valid1_q)", "if (tick_q)", "a_stays"),
            Mutant("if (!valid1_q) event1_q <=", "event1_q <=", "a_stays"),
            Mutant("asks[i] && !init_q && ", "asks[i] && ", "a_after_init"),
            Mutant("ByArrival: event0 = arrival.what;", "ByArrival: event0 = '0;", "a_arrival"),
            Mutant("stream1_q <= streams[turn[2:0]];", "stream1_q <= streams[ByCommand];", "a_write"),
            Mutant("if (gap_q != '0) gap_q <= gap_q - 1'b1;", "gap_q <= '0;", "a_one_segment", "tx_scheduler"),
        ),
    ),
    Proof(
        "tcp_ring_writer",
        {"DATA_W": 64, "N_STREAMS": 2, "RING_BYTES": 128},
        cycles=16,
        after={"c_acknowledged": "c_chunk", "c_half": "c_chunk", "c_full": "c_half"},
        mutants=(
            Mutant("32'(RING_BYTES - 4 * Bytes)", "32'(RING_BYTES + 4 * Bytes)", "a_free", after="c_full"),
            Mutant("&& !(opened && done_at == read_at);", ";", "a_continues"),
            Mutant("follows_q <= close_valid_q && close_at == read_at;", "follows_q <= 1'b0;", "a_continues"),
            Mutant("end_q   <= end_q + 32'(count);", "end_q   <= end_q + 32'(Bytes);", "a_continues"),
            Mutant("if (!heard_q && !concerns) una_q <= una_kept;", "una_q <= una_kept;", "a_una"),
            Mutant("31'(whole - told_q)", "31'(end_q - told_q)", "a_0_owed", after="c_chunk"),
            Mutant("= {end_q[31:ByteW], {ByteW{1'b0}}};", "= end_q;", "a_there", after="c_chunk"),
            Mutant("close_told_q   <= told_q;", "close_told_q   <= end_q;", "a_0_owed"),
            Mutant("if (close_concerns && (opened || ended)) close_dead_q <= 1'b1;", "", "a_0_alive"),
            Mutant("else if (concerns && (opened || ended)) dead_q <= 1'b1;", "", "a_closed"),
            Mutant("if (ended) live[done_at] <= 1'b0;", "", "a_closed", "tcp_ring_streams"),
            Mutant("fresh[done_at] <= 1'b1;", "", "a_continues", "tcp_ring_streams"),
            Mutant(".wr_data(done.written)", ".wr_data(done.una)", "a_continues", "tcp_ring_streams"),
            Mutant(".wr_en(done_valid)", ".wr_en(opened)", "a_una", "tcp_ring_streams"),
        ),
    ),
    Proof(
        "tcp_ring_reader_axi",
        {"DATA_W": 64, "RING_BYTES": 16384, "ADDR_W": 32},
        cycles=10,
        free=("ram_sdp", "sync_fifo"),
        mutants=(
            Mutant("PlaceW'(asked) + 1'b1;", "PlaceW'(asked);", "a_0_ask"),
            Mutant("last_burst ? ask_left_q : to_boundary;", "ask_left_q;", "a_within"),
            Mutant("ask_left_q <= to_boundary;", "ask_left_q < to_boundary;", "a_all"),
            Mutant("15'(job.segment.len) - 15'd1;", "15'(job.segment.len);", "a_0_ask"),
            Mutant("(ADDR_W'(ask_stream_q) << RingW)", "ADDR_W'(ask_stream_q)", "a_address"),
            Mutant("(!arvalid_q || m_axi_rsp.arready)", "1'b1", "a_hold"),
            Mutant("(PtrW + 1)'(Words - MaxWords)", "(PtrW + 1)'(Words)", "a_room"),
            Mutant("ends        = moves && left_q <=", "ends        = moves && left_q <", "a_0_left"),
            Mutant("~({Bytes{1'b1}} << left_q[ByteW-1:0])", "'1", "a_length"),
            Mutant("drops       = sum_taken && sum.bad;", "drops       = 1'b0;", "a_bad"),
            Mutant("if (out_taken && !drops) hdr_due_q", "if (out_taken) hdr_due_q", "a_not_sent"),
        ),
    ),
    Proof(
        "tcp_ring_guard",
        {"N_STREAMS": 2, "WRITES_W": 3, "READS_W": 3},
        mutants=(
            Mutant("counted_q && writes_left_q == '0 && reads", "counted_q && reads", "a_apart"),
            Mutant("writes_left_q == '0 && reads_left_q == '0;", "writes_left_q == '0;", "a_apart"),
            Mutant("quiet = counted_q && ", "quiet = ", "a_apart"),
            Mutant(" && !(of_opening && (ended || s_done.reset_due))", "", "a_apart"),
            Mutant("(of_opening && (ended || s_done.reset_due))", "(of_opening && ended)", "a_told"),
            Mutant(" && !due_q[opens_at] && !rst", " && !rst", "a_told"),
            Mutant("s_command_ready && !live_q[opens_at];", "s_command_ready;", "a_closed"),
            Mutant("peer_epoch = !epoch_q", "peer_epoch = epoch_q", "a_peer"),
            Mutant("opens && !live_q[opens_at] && arrives", "opens && arrives", "a_stale"),
            Mutant("(peer_wr) epoch_q", "(0) epoch_q", "a_stale"),
            Mutant("unread - READS_W'(read);", "unread;", "a_soon"),
            Mutant("if (!counted_q) begin", "if (1'b1) begin", "a_soon"),
            Mutant("(!s_command.opens || quiet)", "quiet", "a_aborts"),
            Mutant("m_command_ready && state_q != StAsk && ", "m_command_ready && ", "a_taken"),
            Mutant("if (rd_fault_valid && live_q", "if (0 && live_q", "a_failed"),
            Mutant("if (ended) fault_q[done_at] <= 1'b0;", "", "a_failed"),
            Mutant("fault_q[i]) next = index_t'(i)", "fault_q[i]) next = ~index_t'(i)", "a_guilty"),
            Mutant("over && s_done.actions.ended ==", "s_done.actions.ended ==", "a_named"),
        ),
    ),
    *(
        Proof("tcp_step", {"KIND": kind}, bounded=True, cycles=1, mutants=mutants)
        for kind, mutants in TCP_EVENTS.items()
    ),
]
