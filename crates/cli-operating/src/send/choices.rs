// SPDX-License-Identifier: Apache-2.0
//! The keyword values of options of `penstock send`.

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum PayloadName {
    /// PRBS-31, one sequence over all messages of a board
    Prbs,
    /// 64-bit words that count on over all messages of a board
    Counter,
    /// Recorded camera events, by --data
    Recorded,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum LawName {
    Off,
    Dcqcn,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum ProtocolName {
    /// Queue pairs of RoCEv2
    Rc,
    /// Streams of the simplified TCP
    Tcp,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum StackName {
    /// The front end's simplified TCP, in this process, on a packet socket
    Emulator,
    /// The kernel's TCP, for comparison; the addresses must be the kernel's
    Sockets,
}
