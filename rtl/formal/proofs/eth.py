# SPDX-License-Identifier: Apache-2.0
"""Proofs of MACs and the port over them."""

from proof import Mutant, Proof

PROOFS = [
    Proof(
        "tx_mux",
        {"DATA_W": 16},
        mutants=(
            Mutant("if (!busy_q) begin", "if (1) begin", "a_no_other"),
            Mutant("tvalid = busy_q ? s_axis_roce_tvalid : roce_request;", "tvalid = s_axis_roce_tvalid;", "a_kept"),
            Mutant(
                "roce_request    = s_axis_roce_tvalid && !tx_paused", "roce_request    = s_axis_roce_tvalid", "a_held"
            ),
            Mutant(
                "service_request && (roce_was_last_q || !roce_request)", "service_request && !roce_request", "a_turns"
            ),
            Mutant(
                "if (s_axis_control_tvalid) kind", "if (s_axis_control_tvalid && !roce_request) kind", "a_control_first"
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
            Mutant("3'b000, 3'b011, 3'b101: columns = 3'd2", "3'b000, 3'b011, 3'b101: columns = 3'd1", "a_start"),
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
]
