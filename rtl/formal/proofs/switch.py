# SPDX-License-Identifier: Apache-2.0
"""Proofs of the QCN switch."""

from proof import Mutant, Proof

PROOFS = [
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
]
