# SPDX-License-Identifier: Apache-2.0
"""Proofs of the PCS."""

from proof import Mutant, Proof

PROOFS = [
    Proof(
        "pcs_encoder",
        {},
        depth=3,
        cycles=30,
        mutants=(
            Mutant("reversed(encode(line_q.even, even_plus_q))}", "encode(line_q.even, even_plus_q)}", "a_even"),
            Mutant("encode(line_q.odd, odd_plus_q)", "encode(line_q.even, odd_plus_q)", "a_odd"),
            Mutant("encode(line_q.odd, odd_plus_q)", "encode(line_q.odd, !odd_plus_q)", "a_run"),
            Mutant("odd_plus_q  <= plus_q ^ flips_even_q;", "odd_plus_q  <= plus_q;", "a_disparity"),
            Mutant("plus_q <= !is_idle_q && (plus_q", "plus_q <= (plus_q", "a_disparity"),
            Mutant("if (is_idle_q && plus_q) line_q", "if (is_idle_q) line_q", "a_idle"),
            Mutant("line_q.odd.octet <= OctetIdle1", "line_q.odd <= special(OctetComma)", "a_comma"),
            Mutant("encode(line_q.even, even_plus_q)", "{6'b111110, 4'(line_q.even)}", "a_ones"),
        ),
    ),
]
