// SPDX-License-Identifier: Apache-2.0
//! A board: its destination table and its queue pairs.

use penstock_farm::{BoardView, Claim, Command, DestinationTable, QueuePair, Request, Route, IN_ERROR, READY_TO_SEND};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

pub const QPS: usize = 6;

/// SplitMix64 (G. L. Steele, D. Lea, C. H. Flood, 2014).
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    pub fn happens(&mut self, per_mille: u64) -> bool {
        self.below(1000) < per_mille
    }
}

pub fn address(server: u16) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 1, server as u8 + 1)
}

/// A board's gateware and its queue pairs.
pub struct Board {
    pub table: DestinationTable,
    /// The rows as edited.
    pub edited: Vec<u8>,
    pub qps: Vec<QueuePair>,
    /// Queue pairs that were opened; each has its number at the server.
    pub opened: u32,
    /// The next event that it has, and where each that has gone went; none: flushed without a server.
    pub event: u64,
    pub went: BTreeMap<u64, Option<Ipv4Addr>>,
    pub flushed: u64,
    /// The youngest coordinator that has written.
    pub epoch: u64,
    pub silent_until: u64,
    /// It has no power.
    pub is_off: bool,
    /// Its inputs are disabled: it has no events.
    pub is_idle: bool,
    /// The detector has no event for it now.
    pub rests: bool,
    /// It gives no queue pairs to servers that ask.
    pub engaged: bool,
    /// A queue pair that has had a peer is for that one alone.
    pub keeps: bool,
    /// Queue pairs whose server takes so many messages more; none: as many as come.
    pub room: BTreeMap<u8, u64>,
    /// The server that has refused an event last.
    pub refused_by: Option<Ipv4Addr>,
    /// It answers as ever, and carries out no command.
    pub is_deaf: bool,
}

impl Board {
    pub fn new(event: u64) -> Self {
        let none = QueuePair {
            state: 0,
            peer: Ipv4Addr::UNSPECIFIED,
            number: 0,
            claim: Claim::Unknown,
            rnr_naks: 0,
            outstanding: false,
        };
        let (qps, mut table) = (vec![none; QPS], DestinationTable::default());
        table.waits_for_server = true;
        Board {
            table,
            edited: vec![],
            qps,
            opened: 0,
            event,
            went: BTreeMap::new(),
            flushed: 0,
            epoch: 0,
            silent_until: 0,
            is_off: false,
            is_idle: false,
            rests: false,
            engaged: false,
            keeps: false,
            room: BTreeMap::new(),
            refused_by: None,
            is_deaf: false,
        }
    }

    /// Sends the next event, if it may.
    pub fn send(&mut self) -> bool {
        let event = self.event;
        let is_ready = |qp: u8| self.qps.get(usize::from(qp)).map(|qp| qp.state == READY_TO_SEND);
        let ready = match self.table.route(event, is_ready) {
            Route::Wait => return false,
            Route::To(qp) => Some(usize::from(qp)).filter(|_| is_ready(qp) == Some(true)),
            Route::Nowhere => None,
        };
        if let Some(room) = ready.and_then(|qp| self.room.get_mut(&(qp as u8))) {
            if *room == 0 {
                self.qps[ready.unwrap_or_default()].rnr_naks += 1;
                return false; // in the queue pair's line, and all others behind it
            }
            *room -= 1;
        }
        self.table.passes(event);
        self.flushed += u64::from(ready.is_none());
        self.went.insert(event, ready.map(|qp| self.qps[qp].peer));
        self.event += 1;
        true
    }

    pub fn carry_out(&mut self, owner: u16, request: &Request) -> BoardView {
        match request {
            _ if self.is_deaf => {}
            Request::Look => {}
            Request::Claim => self.table.owner = owner,
            Request::SetUp { before, first, rows } => {
                if *first > 0 {
                    // Two packets: an event may come between them, unless the inputs of a reset board are disabled.
                    let sends = !self.rests && self.table.view().next_event > 0;
                    self.table.command(owner, Command::Commit { first: 0 }, before);
                    _ = sends && self.send();
                }
                self.edited.clone_from(rows);
                self.table.command(owner, Command::Commit { first: *first }, rows);
            }
            Request::Prepare { first, rows } => {
                self.edited.clone_from(rows);
                self.table.command(owner, Command::Prepare { first: *first }, rows);
            }
            Request::Confirm => self.table.command(owner, Command::Confirm, &[]),
            Request::Cancel { rows } => {
                self.edited.clone_from(rows);
                self.table.command(owner, Command::Cancel, &[]);
            }
            Request::Replace { first, rows } => {
                self.edited.clone_from(rows);
                self.table.command(owner, Command::Commit { first: *first }, rows);
            }
            Request::Door { open, keeps } => (self.engaged, self.keeps) = (!open, *keeps),
            Request::Fail { queue_pairs } => {
                for qp in queue_pairs {
                    self.qps[usize::from(*qp)].state = IN_ERROR;
                    self.room.remove(qp);
                }
            }
            Request::Release => self.table.owner = 0,
        }
        BoardView {
            engaged: self.engaged,
            keeps: self.keeps,
            rows: self.edited.clone(),
            queue_pairs: self.qps.iter().zip(0..).map(|(qp, at)| self.seen(*qp, at)).collect(),
            ..self.table.view()
        }
    }

    /// A queue pair as its registers show it.
    fn seen(&self, qp: QueuePair, at: u8) -> QueuePair {
        QueuePair { outstanding: self.room.get(&at) == Some(&0), ..qp }
    }

    /// The server to which an event has gone refuses it, and the queue pair fails.
    pub fn refused(&mut self, event: u64) {
        let to = self.went.insert(event, None).flatten();
        self.qps.iter_mut().filter(|qp| Some(qp.peer) == to).for_each(|qp| qp.state = IN_ERROR);
        self.refused_by = to;
        self.flushed += 1;
    }

    /// A server's `recv` opens its queue pair.
    pub fn open(&mut self, server: u16, at: usize) {
        for qp in self.qps.iter_mut().filter(|qp| qp.peer == address(server)) {
            qp.state = if qp.state == READY_TO_SEND { IN_ERROR } else { qp.state };
        }
        self.opened += 1;
        let new = QueuePair { state: READY_TO_SEND, peer: address(server), number: self.opened, ..self.qps[at] };
        self.qps[at] = QueuePair { rnr_naks: 0, ..new };
    }

    /// A server asks for a queue pair: this one, or the one that the gateware's connection manager gives it: its own
    /// where they are kept, else the first that is closed or else has failed. Whether it got one.
    pub fn give_queue_pair(&mut self, server: u16, at: Option<usize>) -> bool {
        if self.engaged || self.is_off {
            return false;
        }
        let of = |peer: Ipv4Addr| self.qps.iter().position(|qp| qp.peer == peer && qp.state != READY_TO_SEND);
        let with = |state: u8| self.qps.iter().position(|qp| qp.state == state);
        let given = match self.keeps {
            true => of(address(server)).or_else(|| of(Ipv4Addr::UNSPECIFIED)),
            false => with(0).or_else(|| with(IN_ERROR)),
        };
        let Some(at) = at.or(given) else { return false };
        self.open(server, at);
        true
    }
}
