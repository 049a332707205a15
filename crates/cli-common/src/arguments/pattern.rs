// SPDX-License-Identifier: Apache-2.0
//! The test patterns by the names that commands take: those of the gateware's message source.

use penstock_readout::Pattern;

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum PatternName {
    /// PRBS-31 as ITU-T O.150 has it, one sequence over all messages of a board
    Prbs,
    /// The same, not inverted
    PrbsPlain,
    /// 64-bit little-endian words that count up
    Counter,
}

impl PatternName {
    pub fn pattern(self) -> Pattern {
        match self {
            PatternName::Prbs => Pattern::Prbs31 { invert: true },
            PatternName::PrbsPlain => Pattern::Prbs31 { invert: false },
            PatternName::Counter => Pattern::Counter,
        }
    }
}
