# SPDX-License-Identifier: Apache-2.0
"""Proofs of the ways to registers and tables."""

from proof import Mutant, Proof

PROOFS = [
    Proof(
        "peer_tables",
        {"DATA_W": 64, "HOOKS": 1},
        mutants=(
            Mutant("32'(addr) < ReplayBase + ReplayBytes;", "32'(addr) <= ReplayBase + ReplayBytes;", "a_replay"),
            Mutant("32'(addr) >= HooksBase && ", "", "a_hooks"),
            Mutant("wr_far_q || !(", "!(", "a_replay"),
            Mutant("(wr_addr_q)) || part != '0;", "(wr_addr_q));", "a_replay"),
            Mutant("replay_fill.words  <= 16'(whole);", "replay_fill.words  <= '1;", "a_replay_at"),
            Mutant("16'(wr_addr_q - addr_t'(HooksBase))", "16'(wr_addr_q)", "a_hooks_at"),
            Mutant("wr_bad_q  <= wr_bad_q || word_bad;", "wr_bad_q  <= word_bad;", "a_response"),
            Mutant("!rd_far_q && (", "(", "a_access"),
            Mutant("rd_addr_q | (addr_t'(part_q) << 2)", "rd_addr_q", "a_access"),
            Mutant("rd_bad_q || m_axil_rsp.rresp[1]", "m_axil_rsp.rresp[1]", "a_beat"),
            Mutant("rlast: rd_left_q == '0", "rlast: 1'b1", "a_beat"),
        ),
    ),
]
