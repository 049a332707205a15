# SPDX-License-Identifier: Apache-2.0
"""Proofs of congestion control."""

from proof import Mutant, Proof

PROOFS = [
    Proof(
        "pacer",
        {"N_QP": 2, "RoundLog2": 8, "TurnLog2": 10},
        cycles=16,
        mutants=(
            Mutant("paid_for_grant_q ? last_spent_q : has_sent", "has_sent", "a_00_account"),
            Mutant("has_sent_for_grant_q ? spent_for_grant : '0", "spent_for_grant", "a_00_account"),
            Mutant("has_sent_for_packet_q ? spent_for_packet : '0", "spent_for_packet", "a_00_spent"),
            Mutant("if (paid_with_grant_q) spent_now = last_spent_q;", "", "a_00_after_grant"),
            Mutant("+= ($bits(grant_t))'(grant_rate)", "+= ($bits(grant_t))'(grant_rate >> 1)", "a_1_credit"),
            Mutant("(!waits_q || ", "(", "a_2_restart"),
            Mutant("grant_unlimited || !had_grant_q", "grant_unlimited", "a_1_credit"),
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
        window=8,
        mutants=(
            Mutant(
                "s5_q.c.rate_current < s5_min_q ? s5_min_q : s5_q.c.rate_current", "s5_q.c.rate_current", "a_bounds"
            ),
            Mutant("s6_q.c.rate_target <= s5_fixed_q ? s5_line_q :", "s6_q.c.rate_target <=", "a_bounds"),
            Mutant("s4_floor_q > rate_min ? s4_floor_q : rate_min", "rate_min", "a_bounds"),
            Mutant("else if (s2_follow_q) s3_q.c.rate_target", "else if (0) s3_q.c.rate_target", "a_clamp"),
            Mutant("out_unlimited <= line;", "out_unlimited <= s5_fixed_q;", "a_unlimited"),
            Mutant("product[48:17]", "product[47:16]", "a_half"),
            Mutant("gain(s3_g_shift_q, ", "gain(params[3].g_shift, ", "a_alpha"),
            Mutant("g_shift == '0 ? GFactorOne : params[0].g_factor", "params[0].g_factor", "a_alpha"),
            Mutant("(s3_q.dcqcn.alpha & ~below_resolution(s3_alpha_bits_q))", "s3_q.dcqcn.alpha", "a_coarse"),
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
        window=8,
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
        window=8,
        mutants=(
            Mutant("32'(slot_q) < N_QP", "32'(slot_q) < N_QP && !(paused && slot_q == 1)", "a_visits"),
            Mutant(".in_valid       (fetched_q)", ".in_valid       (fetched_q && !fetched_paused_q)", "a_grants"),
            Mutant("slot_q <= slot_q + 1'b1;", "slot_q <= slot_q + 1'b1 + RoundLog2'(cnp_valid);", "a_visits"),
            Mutant("init_q <= '1;", "init_q <= '0;", "a_fresh"),
        ),
    ),
]
