# SPDX-License-Identifier: Apache-2.0
"""Proofs of the RoCE transport."""

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

# roce_tx: from which cover the next one is reached.
STORE_PATHS = {
    "c_loads": "c_open",
    "c_fills": "c_loads",
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

PROOFS = [
    Proof(
        "destination",
        {"N_QP": 2, "SERVERS": 4},
        cycles=44,
        window=8,
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
            Mutant("(number < tail_q)", "(number <= tail_q)", "a_load_waits"),
            Mutant("load_waits   = s_commit_valid || load", "load_waits   = load", "a_load_after"),
            Mutant("|| load_after_q || among", "|| among", "a_load_waits"),
            Mutant("last[QpW'(s_load_next_qp)];", "last[QpW'(s_load_qp)];", "a_load_last"),
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
        depth=2,
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
        depth=3,
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
            Mutant("|| facts.last_ready\n", "\n", "a_ack_req"),
            Mutant("|| (facts.again && facts.last_again)", "", "a_ack_req"),
            Mutant("|| row.nxt[2:0] == '1 ", "", "a_never_rises"),
            Mutant("(sends && ack_request && !row.timer_on)", "(sends && ack_request)", "a_deadline_stays"),
            Mutant("!credited && !rewinds &&", "!credited &&", "a_credit"),
            Mutant(
                "if (leaves || (rewinds && !rnr_wait_start)) next.timer_on",
                "if (leaves || rewinds) next.timer_on",
                "a_timer",
            ),
            Mutant("retry_left - 3'(retries && rewinds)", "retry_left", "a_retries"),
            Mutant("progress ? cfg.retry_cnt : row.retry_left", "row.retry_left", "a_retries"),
            Mutant("(progress && facts.requested_beyond) || ", "", "a_timer"),
            Mutant(WINDOW, WINDOW.replace(" <", " + 1'b1 <"), "a_acknowledged", "requester_facts"),
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
            Mutant("rnr_spent    = rnr_nak_new && rnr_left == '0;", "rnr_spent    = 1'b0;", "a_ends"),
            Mutant(
                "rewinds = resumes || rnr_wait_start ||", "rewinds = resumes || rnr_wait_start || progress ||", "a_once"
            ),
            Mutant(WINDOW, WINDOW.replace("<", "<="), "a_nothing_rewound", "requester_facts"),
        ),
    ),
    Proof(
        "request_parser",
        {"DATA_W": 64, "RECEIVE": 1},
        cycles=20,
        mutants=(
            Mutant("if (ended_q) hdr <= fields;", "hdr <= fields;", "a_kept"),
            Mutant("beat_q >= BeatW'(LeastBeats - 1)", "1'b1", "a_once"),
            Mutant("ext_q[8*(ExtBytes-1-i)+:8]", "ext_q[8*i+:8]", "a_reth"),
            Mutant("s_axis_tlast ? '0 : beat_q", "beat_q", "a_beat"),
        ),
    ),
    Proof(
        "read_fetch",
        {"DATA_W": 64},
        cycles=16,
        free=("ram_sdp", "sync_fifo"),
        mutants=(
            Mutant("len_minus_1 + PayloadLenW'(job_addr[LaneW-1:0]);", "len_minus_1;", "a_words"),
            Mutant("last_burst ? request_left_q : to_boundary;", "request_left_q;", "a_within"),
            Mutant("request_left_q <= to_boundary;", "request_left_q < to_boundary;", "a_all"),
            Mutant("(64-LaneW)'(requested) + 1'b1;", "(64-LaneW)'(requested);", "a_0_request"),
            Mutant("(!arvalid_q || m_axi_rsp.arready)", "1'b1", "a_hold"),
            Mutant("(PtrW + 1)'(Words - MaxWords)", "(PtrW + 1)'(Words)", "a_room"),
            Mutant("LaneW'(Lanes - 1) - packet.shape.last_lane", "LaneW'(Lanes - 1)", "a_0_last"),
            Mutant("whole && !packet.bad;", "whole;", "a_not_bad"),
            Mutant("(m_axis_tready || !m_axis_tvalid);", "1'b1;", "a_0_more"),
        ),
    ),
    Proof(
        "read_search",
        {},
        cycles=12,
        mutants=(
            Mutant("distance_q.psns < distance_q.packets && ", "", "a_0_place"),
            Mutant("reth.dma_len != '0 || rd_data.reth.dma_len == '0", "1'b1", "a_0_distance"),
            Mutant("psn - rd_data.first", "rd_data.first - psn", "a_0_distance"),
            Mutant("left_q == '0 && valid_q == '0;", "left_q == '0;", "a_ends"),
            Mutant("if (hit && !found) begin", "if (hit && !found && left_q != '0) begin", "a_0_passed"),
            Mutant("hit_entry_q[2] <= entry_q[1];", "hit_entry_q[2] <= entry_q[0];", "a_0_second"),
        ),
    ),
    Proof(
        "read_engine",
        {"N_QP": 1},
        cycles=16,
        apart=True,
        free=("ram_sdp", "read_search"),
        after={
            "c_last": "c_at_once",
            "c_repeats": "c_at_once",
            "c_turned": "c_whole",
            "c_follows": "c_waits",
            "c_behind": "c_ahead",
            "c_nak": "c_behind",
            "c_refused": "c_denied",
        },
        mutants=(
            Mutant("(key_q && inside_q)", "inside_q", "a_key"),
            Mutant("!offset_q[64] && !slack_q[64] &&", "!slack_q[64] &&", "a_0_inside"),
            Mutant("psn: answer_q.psn + 1'b1,", "psn: answer_q.psn,", "a_0_written"),
            Mutant("if (whole_answer) written", "if (sends_q && is_nak_q) written", "a_0_written"),
            Mutant("sends_q && !closed;", "sends_q;", "a_open"),
            Mutant("(!begins || drained)", "1'b1", "a_apart"),
            Mutant("row_q.pending == '0 && !row_q.nak.valid", "row_q.pending == '0", "a_at_once", after="c_ahead"),
            Mutant(
                "row_q.nak.valid ? row_q.pending & ~row_q.nak.later",
                "row_q.nak.valid ? '0",
                "a_after",
                after="c_follows",
            ),
            Mutant("load_entry = oldest + entry_t'(i);", "load_entry = entry_t'(i);", "a_oldest", after="c_turned"),
            Mutant(
                "if (full) next.pending[oldest] = 1'b0;",
                "if (full) next.count = row.count;",
                "a_0_written",
                "read_rules",
                "c_repeats",
            ),
        ),
    ),
    Proof(
        "read_engine",
        {"N_QP": 1, "WITH_RECEIVE": 1},
        props="receive_engine",
        cycles=24,
        apart=True,
        free=("ram_sdp", "read_search"),
        after={"c_middle": "c_begins", "c_last": "c_begins"},
        mutants=(
            Mutant("packet.valid ? window.write :", "packet.valid ? 1'b1 :", "a_0_key"),
            Mutant("(packet.is_send || permitted)", "1'b1", "a_0_before", "receive_rules"),
            Mutant(
                "packet.ends ? is_last : !is_last && !is_more",
                "packet.ends ? is_last : !is_more",
                "a_whole",
                "receive_rules",
            ),
            Mutant("(packet.is_send || packet.has_imm) && !room", "1'b0", "a_room", "receive_rules"),
            Mutant(
                "in_order && packet.valid && packet_accepted",
                "packet.valid && packet_accepted",
                "a_0_before",
                "read_rules",
            ),
            Mutant("next.expected = row.expected + 1'b1;", "next.expected = row.expected;", "a_order", "read_rules"),
            Mutant("rest.va + 64'(packet.len)", "rest.va", "a_next", "receive_rules"),
            Mutant("if (rule_accepts) receive_q.message", "receive_q.message", "a_unchanged"),
            Mutant("(packet.ack_req || packet.ends)", "packet.ack_req", "a_acknowledged"),
            Mutant("!row_q.nak.valid && receive.ack.valid;", "receive.ack.valid;", "a_after"),
            Mutant("&& !row_q.nak.valid && !receive.ack.valid\n", "&& !row_q.nak.valid\n", "a_at_once"),
        ),
    ),
    Proof(
        "fragment_rows",
        {"N_QP": 1, "SLOTS": 64},
        cycles=28,
        apart=True,
        free=("ram_sdp",),
        after={
            "c_two": "c_pair",
            "c_second": "c_message",
            "c_due": "c_second",
            "c_named": "c_due",
            "c_third": "c_named",
            "c_filled": "c_third",
            "c_read": "c_message",
            "c_4_reads": "c_read",
            "c_8_reads": "c_4_reads",
            "c_12_reads": "c_8_reads",
            "c_freed": "c_12_reads",
            "c_broken": "c_message",
        },
        mutants=(
            Mutant("{row_q.recent[Reads-2:0], ends_fragment}", "{row_q.recent[Reads-2:0], 1'b1}", "a_0_row"),
            Mutant("row_q.recent[Reads-1];", "row_q.recent[Reads-2];", "a_freed", after="c_12_reads"),
            Mutant("end_of_read_q == end_of_list_q && ", "", "a_end", after="c_message"),
            Mutant(" && row_q.read != row_q.named;", ";", "a_end"),
            Mutant(
                "if (row_q.carrier == row_q.read) begin", "if (row_q.entries != '0) begin", "a_0_row", after="c_message"
            ),
            Mutant("stored = row_q.stored + 1'b1;", "stored = row_q.taken;", "a_once", after="c_pair"),
            Mutant(" && ready[index];", ";", "a_open"),
            Mutant("&& !is_over && fits_q && !is_full_q", "&& fits_q && !is_full_q", "a_open"),
            Mutant("!= row_q.stored && !row_q.outstanding;", "!= row_q.stored;", "a_alone", after="c_message"),
            Mutant("!= row_q.stored && !row_q.outstanding;", "!= row_q.taken && !row_q.outstanding;", "a_once"),
            Mutant("if (acked_tag == row_q.tag) row_after", "row_after", "a_0_unacked", after="c_message"),
            Mutant("&& !fragment.is_first && entries_q", "&& entries_q", "a_after", after="c_apart"),
            Mutant("&& !fragment_q.is_first;", ";", "a_0_listed", after="c_due"),
            Mutant("skipped: fragment.skipped};", "skipped: '0};", "a_entry", after="c_pair"),
            Mutant("entries_q <= 8'd1;", "entries_q <= 8'd0;", "a_0_message"),
            Mutant("parked && !reading && !read_waits;", "parked && !read_waits;", "a_hold", after="c_second"),
            Mutant("due_q && (parked || hold) && !rst;", "due_q && parked && !rst;", "a_hold", after="c_due"),
            Mutant("(written_q || state_q == StName);", "(written_q || may_name);", "a_parked", after="c_second"),
            Mutant("StCarrier ? row_q.carrier", "StCarrier ? row_q.named", "a_list", after="c_due"),
            Mutant("(row_q.entries[0] ?", "(1'b0 ?", "a_list", after="c_third"),
            Mutant("2'(Successors - 1)", "2'(Successors)", "a_0_row", after="c_third"),
            Mutant("if (row_q.entries != '0) begin", "if (1'b0) begin", "a_0_entries", after="c_third"),
            Mutant("if (op_q != OpAnnounce) pending", "if (op_q == OpTake) pending", "a_pending"),
            Mutant("writer_idle && !stored_waits ? StClear", "writer_idle ? StClear", "a_0_clear"),
            Mutant("= state_q == StClear && !clears;", "= state_q == StClear;", "a_counted"),
        ),
    ),
    Proof(
        "receive_store",
        {"DATA_W": 64, "FRAMES": 2},
        cycles=28,
        free=("ram_sdp", "sync_fifo"),
        mutants=(
            Mutant("= beat_q == BeatW'(First) &&", "= beat_q != '0 &&", "a_first"),
            Mutant("words_q != WordW'(MaxWords)", "words_q != WordW'(2)", "a_all"),
            Mutant("(begins ? '0 : words_q)", "words_q", "a_words"),
            Mutant("frames_q != CountW'(FRAMES)", "1'b1", "a_frames"),
            Mutant("tail_q <= tail_q + PtrW'(m_words)", "tail_q <= tail_q + 1'b1", "a_0_place"),
        ),
    ),
    Proof(
        "receive_mover",
        {"DATA_W": 64},
        cycles=20,
        mutants=(
            Mutant("= source - target;", "= target - source;", "a_0_shift"),
            Mutant(" - WORD_W'(source < target);", ";", "a_place"),
            Mutant("beat_q == '0 ? target_q : '0;", "'0;", "a_start"),
            Mutant("at_end ? last_lane_q : '1;", "'1;", "a_bytes"),
            Mutant("= !m_valid || m_ready;", "= 1'b1;", "a_hold"),
            Mutant("placement_valid && ready_now;", "placement_valid;", "a_after"),
        ),
    ),
    Proof(
        "receive_write",
        {"DATA_W": 64},
        cycles=16,
        free=("sync_fifo",),
        mutants=(
            Mutant("last_burst ? left_q : to_boundary;", "left_q;", "a_within"),
            Mutant("left_q <= to_boundary;", "left_q < to_boundary;", "a_all"),
            Mutant("(64-LaneW)'(requested) + 1'b1;", "(64-LaneW)'(requested);", "a_0_next"),
            Mutant("(!awvalid_q || m_axi_rsp.awready)", "1'b1", "a_aw_hold"),
            Mutant("= s_valid && ahead_q != '0;", "= s_valid;", "a_offered"),
            Mutant("= s_ends || word_q == '1;", "= s_ends;", "a_wlast"),
            Mutant("first: 6'(s_first),", "first: '0,", "a_lanes"),
        ),
    ),
    *(
        Proof("requester_step", {"KIND": kind}, bounded=True, cycles=1, mutants=mutants)
        for kind, mutants in OPERATIONS.items()
    ),
]
