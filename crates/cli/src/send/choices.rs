// SPDX-License-Identifier: Apache-2.0
//! The words that options of `penstock send` take.

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum PayloadName {
    /// PRBS-31, one sequence over all messages of a board
    Prbs,
    /// 64-bit words that count on over all messages of a board
    Counter,
    /// Recorded camera events, by --events-file
    Recorded,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum LawName {
    Off,
    Dcqcn,
}
