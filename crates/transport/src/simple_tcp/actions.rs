// SPDX-License-Identifier: Apache-2.0
//! The actions that a step requests from its caller.

use penstock_wire::TcpFlags;

/// The outcome of one step.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Actions {
    /// A segment to send now; only a step of `Transmit` has one.
    pub send: Option<Outgoing>,
    /// The connection came up.
    pub opened: bool,
    /// The connection ended; all messages that are not acknowledged fail.
    pub ended: Option<End>,
    /// Bytes of the user's that are acknowledged with this step.
    pub acknowledged: u32,
    /// What happened.
    pub counts: Counts,
    /// Another `Transmit` would send a segment.
    pub transmit_pending: bool,
}

/// A segment, but for addresses, ports and payload.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Outgoing {
    /// Sequence number.
    pub seq: u32,
    /// Acknowledgement number.
    pub ack: u32,
    /// Control bits; with SYN it carries the options MSS and window scale.
    pub flags: TcpFlags,
    /// Payload bytes, from `seq` on.
    pub len: u16,
}

/// Why a connection ended.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum End {
    /// The peer answered the SYN with RST: nothing listens there.
    Refused = 1,
    /// The peer sent RST.
    Reset = 2,
    /// The peer sent FIN: its user closes the stream.
    Finished = 3,
    /// No answer after the allowed number of timeouts.
    TimedOut = 4,
    /// The user aborted it.
    Aborted = 5,
}

impl std::fmt::Display for End {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            End::Refused => "refused (RST): no program listens on this port",
            End::Reset => "reset by the receiver (RST): its program ended or gave up the stream",
            End::Finished => "closed by the receiver (FIN)",
            End::TimedOut => "no answer: the receiver or the network is gone",
            End::Aborted => "aborted by us",
        })
    }
}

/// One bit for each thing that can happen in a step; a counter of each is kept by the caller.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Counts(pub u16);

impl Counts {
    /// A segment was sent.
    pub const SEGMENT: Counts = Counts(1 << 0);
    /// It carried data that was sent before.
    pub const RETRANSMITTED: Counts = Counts(1 << 1);
    /// The retransmission timer expired.
    pub const TIMEOUT: Counts = Counts(1 << 2);
    /// Three duplicate acknowledgements: a fast retransmit.
    pub const FAST_RETRANSMIT: Counts = Counts(1 << 3);
    /// A duplicate acknowledgement.
    pub const DUPLICATE_ACK: Counts = Counts(1 << 4);
    /// A probe of a closed window, or of one too small for a segment.
    pub const PROBE: Counts = Counts(1 << 5);
    /// A challenge ACK was due (RFC 5961).
    pub const CHALLENGE: Counts = Counts(1 << 6);
    /// A segment outside the receive window, or after a gap (RFC 9293 section 3.10.7.4).
    pub const OUT_OF_WINDOW: Counts = Counts(1 << 7);
    /// An acknowledgement of data never sent, or older than the largest window (RFC 5961 section 5.2).
    pub const BAD_ACK: Counts = Counts(1 << 8);
    /// An option of a SYN was wrong: MSS below 64, window scale above 14, or a length cut short.
    pub const BAD_OPTION: Counts = Counts(1 << 9);
    /// Data of the peer, dropped.
    pub const PEER_DATA: Counts = Counts(1 << 10);
    /// A segment, a call or a router's message that the state has no use for.
    pub const IGNORED: Counts = Counts(1 << 11);
    /// Segments became shorter: one timed out after a router's message.
    pub const PATH_MTU: Counts = Counts(1 << 12);
    /// The peer's window closed.
    pub const WINDOW_CLOSED: Counts = Counts(1 << 13);
    /// How many there are.
    pub const KINDS: usize = 14;

    /// Adds `other`.
    pub(super) fn add(&mut self, other: Counts) {
        self.0 |= other.0;
    }

    /// Whether `other` is there.
    pub fn has(self, other: Counts) -> bool {
        self.0 & other.0 != 0
    }
}
