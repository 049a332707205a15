// SPDX-License-Identifier: Apache-2.0
//! TCP streams of boards without a kernel: the caller passes segments in and takes segments out.
//! Promise: deterministic for a given order of segments; messages go to slots like those of a kernel's connection, with
//! the same code; a board without a free slot finds its window closed.
//! Source: `penstock_transport::TcpPassive`; docs/fragments.md, "In a TCP stream".

use std::collections::VecDeque;
use std::io::{self, Read};

use penstock_transport::{Memory, PassiveChange, RecvWr, TcpConfig, TcpPassive};
use penstock_units::Time;
use penstock_wire::TcpPacket;

use super::connection::{ByteSource, Connection, Turn};
use super::deframer::DeframerCounts;
use super::{sum, STAGE};
use crate::backend::{Completion, Counters};

/// Bytes in order that no message has taken.
#[derive(Default)]
struct Bytes {
    waiting: VecDeque<u8>,
    /// They are to be acknowledged at once.
    urgent: bool,
}

impl Read for Bytes {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self.waiting.is_empty() {
            true => Err(io::ErrorKind::WouldBlock.into()),
            false => self.waiting.read(into),
        }
    }
}

impl ByteSource for Bytes {
    fn acknowledge(&mut self) {
        self.urgent = true;
    }
}

/// One board.
struct End {
    tcp: TcpPassive,
    connection: Connection<Bytes>,
    slots: VecDeque<RecvWr>,
    opened: u64,
    reset: u64,
    /// Counts of closed connections.
    before: DeframerCounts,
    cut: u64,
}

/// The ends of all boards' streams.
pub struct TcpInProcess {
    ends: Vec<End>,
    slot_bytes: u32,
    stage: Box<[u8]>,
}

impl TcpInProcess {
    /// Listens for board i by `connections[i]`, as seen from this side; `slot_bytes` is the longest message.
    pub fn new(connections: &[TcpConfig], slot_bytes: u32) -> Self {
        let end = |config: &TcpConfig| End {
            tcp: TcpPassive::new(*config),
            connection: fresh(config, slot_bytes),
            slots: VecDeque::new(),
            opened: 0,
            reset: 0,
            before: DeframerCounts::default(),
            cut: 0,
        };
        TcpInProcess { ends: connections.iter().map(end).collect(), slot_bytes, stage: vec![0; STAGE].into() }
    }

    /// Gives slots to a board.
    pub fn post_receives(&mut self, board: u16, receives: &[RecvWr]) {
        self.ends[usize::from(board)].slots.extend(receives.iter().filter(|slot| slot.len > 0));
    }

    /// A segment of a board arrives at `now`; whole messages are appended to `out`. How many bytes of messages have gone
    /// into slots.
    pub fn arrive(
        &mut self,
        now: Time,
        board: u16,
        segment: &TcpPacket,
        memory: &mut dyn Memory,
        out: &mut Vec<Completion>,
    ) -> u64 {
        let end = &mut self.ends[usize::from(board)];
        match end.tcp.handle_packet(now, segment) {
            Some(PassiveChange::Opened) => end.opened += 1,
            Some(PassiveChange::Reset) => {
                end.reset += 1;
                end.over(self.slot_bytes);
            }
            None => {}
        }
        self.turn(now, board, memory, out)
    }

    /// Takes what a board has sent, as far as it has slots; as [`Self::arrive`].
    pub fn turn(&mut self, now: Time, board: u16, memory: &mut dyn Memory, out: &mut Vec<Completion>) -> u64 {
        let end = &mut self.ends[usize::from(board)];
        let before = end.connection.placed();
        end.pull();
        loop {
            // A connection is never over here: its source has no end.
            while end.connection.has_work(&end.slots)
                && matches!(end.connection.turn(board, &mut end.slots, memory, &mut self.stage, out), Turn::Busy)
            {
            }
            let reads = end.connection.has_place(&end.slots);
            end.tcp.set_reading(now, reads);
            if std::mem::take(&mut end.connection.stream.urgent) {
                end.tcp.acknowledge();
            }
            // The window was closed before: there may be more.
            if !reads || !end.pull() {
                break;
            }
        }
        end.connection.placed() - before
    }

    /// The earliest time at which an acknowledgement is due.
    pub fn next_timeout(&self) -> Option<Time> {
        self.ends.iter().filter_map(|end| end.tcp.next_timeout()).min()
    }

    /// Time has come to `now`.
    pub fn handle_timeout(&mut self, now: Time) {
        self.ends.iter_mut().for_each(|end| end.tcp.handle_timeout(now));
    }

    /// The next segment to a board.
    pub fn take_reply(&mut self) -> Option<TcpPacket> {
        self.ends.iter_mut().find_map(|end| end.tcp.poll_transmit())
    }

    /// Counts of one board's connections, all together.
    pub fn board_counters(&self, board: u16) -> Counters {
        let Some(end) = self.ends.get(usize::from(board)) else { return Vec::new() };
        let (tcp, framing) = (end.tcp.counters(), sum(end.before, end.connection.counts()));
        vec![
            ("connections_opened".into(), end.opened),
            ("connections_reset".into(), end.reset),
            ("segments".into(), tcp.segments),
            ("segments_out_of_order".into(), tcp.out_of_order),
            ("segments_again".into(), tcp.duplicates),
            ("segments_beyond_window".into(), tcp.beyond_window),
            ("acknowledgements".into(), tcp.acks),
            ("resynchronised".into(), framing.resynchronised),
            ("bytes_skipped".into(), framing.bytes_skipped),
            ("messages_refused".into(), framing.messages_refused),
            ("messages_cut".into(), end.cut),
        ]
    }
}

impl End {
    /// Moves what is in order to the connection. Whether there was anything.
    fn pull(&mut self) -> bool {
        let mut any = false;
        while let Some(bytes) = self.tcp.take() {
            self.connection.stream.waiting.extend(&bytes[..]);
            any = true;
        }
        if any {
            self.connection.became_readable();
        }
        any
    }

    /// The connection is over; the next one begins with a message.
    fn over(&mut self, slot_bytes: u32) {
        let ip = self.connection.ip;
        let next = Connection::new(Bytes::default(), ip, Time::ZERO, slot_bytes);
        let mut old = std::mem::replace(&mut self.connection, announced(next));
        if let Some(slot) = old.take_slot() {
            self.slots.push_front(slot);
        }
        self.cut += u64::from(old.is_cut());
        self.before = sum(self.before, old.counts());
    }
}

fn fresh(config: &TcpConfig, slot_bytes: u32) -> Connection<Bytes> {
    announced(Connection::new(Bytes::default(), config.peer.ip, Time::ZERO, slot_bytes))
}

fn announced(mut connection: Connection<Bytes>) -> Connection<Bytes> {
    connection.announced = true;
    connection
}
