// SPDX-License-Identifier: Apache-2.0
//! The state of a board from one read of its registers, and the requests that a board accepts.
//! Source: regs/destination.rdl, and the rows of queue pairs in regs/penstock.rdl.

use std::net::Ipv4Addr;

/// `qp.state` of a queue pair that takes messages.
pub const READY_TO_SEND: u8 = 3;
/// `qp.state` of a queue pair whose peer does not answer.
pub const IN_ERROR: u8 = 6;
/// `qp.state` of a queue pair that was closed.
pub const CLOSED: u8 = 0;
/// State of a queue pair that takes messages for a receiver that is gone; no register has it.
pub(crate) const UNCLAIMED: u8 = 7;
/// Row of a server that has no queue pair at a board: a queue pair that no build has, unless it has 256.
pub const NO_QUEUE_PAIR: u8 = 255;

/// Whether a queue pair is the one that its server has now, by the server's heartbeat.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Claim {
    /// The server has another one, or has not been heard of and must be.
    Foreign,
    /// Its heartbeat does not have it.
    #[default]
    Unknown,
    Matching,
}

/// A queue pair of a board.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueuePair {
    pub state: u8,
    /// Where its messages go, and the number of the queue pair there.
    pub peer: Ipv4Addr,
    pub number: u32,
    /// Kept by the coordinator.
    pub claim: Claim,
    /// Receiver-not-ready NAKs received, modulo 2^32.
    pub rnr_naks: u32,
    /// It has packets that are not acknowledged.
    pub outstanding: bool,
}

impl QueuePair {
    /// Its state for the server that it sends to.
    fn state_for_server(&self) -> u8 {
        match (self.state, self.claim) {
            (READY_TO_SEND, Claim::Foreign) => UNCLAIMED,
            (state, _) => state,
        }
    }
}

/// A board's registers at one time.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BoardView {
    /// `destination.owner`; 0 after a reset.
    pub owner: u16,
    /// Lowest event number above all that have gone; 0: none has.
    pub next_event: u64,
    /// `destination.announced`.
    pub announced: u64,
    /// Servers in the table last put into force.
    pub live: u8,
    pub prepared: bool,
    pub pending: bool,
    pub busy: bool,
    /// The last command was refused.
    pub refused: bool,
    /// An event waits for confirm or cancel.
    pub held: bool,
    /// An event waits for its server.
    pub waits: bool,
    /// It gives no queue pair to a server that asks (`connection.control.engaged`).
    pub engaged: bool,
    /// Its queue pairs belong to the addresses that opened them (`connection.control.keep_peer`).
    pub keeps: bool,
    /// Queue pairs of the live servers in table order, as last written.
    pub rows: Vec<u8>,
    pub queue_pairs: Vec<QueuePair>,
}

impl BoardView {
    /// The queue pair to a server: the one that the server names, else one that takes messages, else one that did.
    pub(crate) fn queue_pair(&self, server: Ipv4Addr) -> Option<(u8, u8)> {
        let to_it = self.queue_pairs.iter().zip(0..).filter(|(qp, _)| qp.peer == server);
        let (qp, at) =
            to_it.max_by_key(|(qp, _)| (qp.claim == Claim::Matching, qp.state_for_server() == READY_TO_SEND))?;
        Some((at, qp.state_for_server()))
    }

    /// A row takes messages, or names no queue pair that anybody could be given.
    pub(crate) fn is_safe(&self, row: u8) -> bool {
        self.queue_pairs.get(usize::from(row)).is_none_or(|qp| qp.state == READY_TO_SEND)
    }

    /// No event of an older table than the last one can come any more.
    pub(crate) fn is_past(&self) -> bool {
        !self.pending || self.waits || self.next_event >= self.announced
    }

    /// No event has come since the last change was announced, and none is on its way to a server.
    pub(crate) fn rests(&self) -> bool {
        self.pending && !self.waits && !self.queue_pairs.iter().any(|qp| qp.state == READY_TO_SEND && qp.outstanding)
    }

    /// The rows of these servers; none if one cannot be found.
    pub(crate) fn rows_of(&self, servers: impl IntoIterator<Item = Ipv4Addr>) -> Option<Vec<u8>> {
        let none = (self.queue_pairs.len() <= usize::from(NO_QUEUE_PAIR)).then_some(NO_QUEUE_PAIR);
        let row = |server| self.queue_pair(server).filter(|(_, state)| *state != UNCLAIMED).map(|(at, _)| at);
        servers.into_iter().map(|server| row(server).or(none)).collect()
    }
}

/// What is asked of a board. Each is answered with the view after it, which alone says what became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    Look,
    /// Writes the owner, and has events wait for their server.
    Claim,
    /// Writes the tables again, as at the start of a run: `before` below event `first`, then `rows`.
    SetUp {
        before: Vec<u8>,
        first: u64,
        rows: Vec<u8>,
    },
    Prepare {
        first: u64,
        rows: Vec<u8>,
    },
    Confirm,
    /// Cancels, and writes the rows in force back.
    Cancel {
        rows: Vec<u8>,
    },
    /// A table for the events from here on, at once and without a coordinated change, in place of one that no event has
    /// reached. Without rows the events wait for a later table.
    Replace {
        first: u64,
        rows: Vec<u8>,
    },
    /// Whether servers that ask get a queue pair, and whether only one that is theirs or nobody's.
    Door {
        open: bool,
        keeps: bool,
    },
    /// Puts queue pairs into the error state: what waits in them for a server that takes nothing is flushed.
    Fail {
        queue_pairs: Vec<u8>,
    },
    /// Nobody commands it any more.
    Release,
}
