# SPDX-License-Identifier: Apache-2.0
"""Proofs of the event path."""

from proof import Mutant, Proof

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
            Mutant("(scan_ends && !begins) || !evaluates", "!evaluates", "a_0_has"),
            Mutant("if (part_ends && !(take && last)) drops_q[at_q] <= 1'b1;", "", "a_0_drops"),
            Mutant("length_q + (take ? 32'(n_bytes) : '0)", "length_q", "a_entry"),
            Mutant("flags.cut             = take && full && !last;", "", "a_cut"),
            Mutant("drop_head && again", "1'b0", "a_what"),
            Mutant("(ahead & high_q) != '0 &&", "(ahead & high_q) == '1 &&", "a_near"),
            Mutant("(is_far && (by_trigger || purges_q))", "is_far", "a_0_drops"),
            Mutant("stops || (take && last && s_axis_tbroken[at_q])", "stops", "a_broken"),
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
]
