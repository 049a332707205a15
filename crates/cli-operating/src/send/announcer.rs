// SPDX-License-Identifier: Apache-2.0
//! The side of a queue pair that a server reads (`--pull`): announcements of messages, and answers to READs.
//! Promise: a message stays in its slot until the READ of it can never be repeated. Announcements are due as
//! `penstock_pull::Announcements` says.
//! Source: docs/fragments.md; IBTA 9.7.5 (duplicate READs).

use super::payload::Messages;
use bytes::Bytes;
use penstock_pull::Announcements;
use penstock_transport::{
    Access, Endpoint, Memory, MemoryRegion, Mtu, PayloadSource, QpState, Requester, Responder, ResponderConfig,
    ResponderCounters, SendWr, Unreadable, Verb,
};
use penstock_units::Time;
use penstock_wire::{
    announcement, CmInfo, Payload, Psn, RethRepr, RocePacket, ANNOUNCEMENT_EVENTS, ANNOUNCEMENT_SLOTS,
    ANNOUNCEMENT_SLOT_LEN, PULL_READS,
};
use std::collections::VecDeque;

/// First address of the ring of messages: a label.
const BASE: u64 = 0x2_0000_0000;

/// The ring that a server reads: message n lies in slot n modulo the slots.
#[derive(Clone, Copy)]
pub struct Ring {
    pub slots: u32,
    pub slot_bytes: u32,
}

impl Ring {
    fn slot(&self, n: u64) -> u64 {
        n % u64::from(self.slots)
    }

    fn address(&self, n: u64) -> u64 {
        BASE + self.slot(n) * u64::from(self.slot_bytes)
    }

    /// The message in the slot of an address, and the byte in it; `done`: messages before this one have ended.
    fn message_at(&self, done: u64, va: u64) -> Option<(u64, usize)> {
        let offset = va.checked_sub(BASE)?;
        let (slots, slot) = (u64::from(self.slots), offset / u64::from(self.slot_bytes));
        let ahead = (slot + slots - self.slot(done)) % slots;
        (slot < slots).then_some((done + ahead, (offset % u64::from(self.slot_bytes)) as usize))
    }
}

/// Messages as a server reads them.
struct Store<'a> {
    ring: Ring,
    messages: &'a Messages,
}

impl Memory for Store<'_> {
    fn write(&mut self, _va: u64, _data: &Payload) {}

    fn read(&mut self, va: u64, len: u32) -> Result<Payload, Unreadable> {
        let (n, at) = self.ring.message_at(self.messages.done(), va).ok_or(Unreadable)?;
        let message = self.messages.bytes(n);
        let end = at + len as usize;
        match end <= message.len() {
            true => Ok(Payload::Bytes(message.slice(at..end))),
            false => Err(Unreadable),
        }
    }
}

/// A message that is to be announced.
#[derive(Clone, Copy)]
struct Entry {
    n: u64,
    event: u64,
    len: u32,
}

pub struct Announcer {
    ring: Ring,
    rkey: u32,
    responder: Responder,
    /// Not announced yet.
    entries: VecDeque<Entry>,
    /// Announced messages that the server has not begun to read.
    unread: VecDeque<u64>,
    /// Messages that were announced together, last.
    last: usize,
    /// The last announcement ended at a gap or at the end of the ring: the next one belongs to it.
    is_cut: bool,
    /// Announcements that are not acknowledged, and the number of the first one.
    sent: VecDeque<Bytes>,
    first: u64,
    /// READs that may still be repeated: first byte and the byte after the last one.
    reads: VecDeque<(u64, u64)>,
    /// Answers may wait that the link had no room for.
    pub has_answers: bool,
}

impl Announcer {
    pub fn new(ring: Ring, rkey: u32, (local, peer): (Endpoint, Endpoint), expected_psn: Psn, mtu: Mtu) -> Announcer {
        let len = u64::from(ring.slots) * u64::from(ring.slot_bytes);
        let region = MemoryRegion { va: BASE, rkey, len, access: Access::RemoteRead };
        let mut config = ResponderConfig::new(local, peer, expected_psn, mtu).with_region(region);
        config.responder_resources = PULL_READS;
        let responder = Responder::new(config);
        Announcer {
            ring,
            rkey,
            responder,
            entries: VecDeque::new(),
            unread: VecDeque::new(),
            last: 0,
            is_cut: false,
            sent: VecDeque::new(),
            first: 0,
            reads: VecDeque::new(),
            has_answers: false,
        }
    }

    /// Message `n` of this event waits for the server.
    pub fn push(&mut self, n: u64, event: u64, len: u32) {
        self.entries.push_back(Entry { n, event, len });
    }

    /// Posts what may be announced now.
    pub fn announce(&mut self, requester: &mut Requester, peer: &CmInfo) {
        loop {
            let row = self.row();
            let is_cut = row < self.entries.len() && row < ANNOUNCEMENT_EVENTS;
            let (outstanding, unread) = (requester.outstanding_messages(), self.unread.len());
            let announced = Announcements { outstanding, unread, last: self.last };
            let is_due = announced.is_next_due(is_cut || row == ANNOUNCEMENT_EVENTS);
            let Some(first) = self.entries.front().copied().filter(|_| is_due) else { return };
            self.last = if self.is_cut { self.last + row } else { row };
            self.is_cut = is_cut;
            self.unread.extend(self.entries.iter().take(row).map(|entry| entry.n));
            let lengths: Vec<u32> = self.entries.drain(..row).map(|entry| entry.len).collect();
            let from = (first.event, self.ring.address(first.n));
            let message = Bytes::from(announcement(from, self.rkey, self.ring.slot_bytes, &lengths));
            let number = self.first + self.sent.len() as u64;
            let slot = (number % u64::from(ANNOUNCEMENT_SLOTS)) as u32;
            let wr = SendWr {
                wr_id: number,
                verb: Verb::WriteImm(slot),
                va: number << 32,
                len: message.len() as u32,
                remote_va: peer.base + u64::from(slot) * ANNOUNCEMENT_SLOT_LEN as u64,
                rkey: peer.rkey,
                solicited: false,
            };
            self.sent.push_back(message);
            // It is far shorter than a message may be, which is the only refusal.
            let _ = requester.post_send(wr);
        }
    }

    /// Entries from the first one on that one announcement can name.
    fn row(&self) -> usize {
        let follows = |pair: (&Entry, &Entry)| {
            let (a, b) = pair;
            b.event == a.event + 1 && self.ring.slot(b.n) == self.ring.slot(a.n) + 1
        };
        let more = self.entries.iter().zip(self.entries.iter().skip(1)).take_while(|pair| follows(*pair));
        self.entries.len().min(1 + more.take(ANNOUNCEMENT_EVENTS - 1).count())
    }

    /// The oldest announcement is acknowledged.
    pub fn acknowledged(&mut self) {
        self.sent.pop_front();
        self.first += 1;
    }

    /// Takes a request of the server. Whether it was one of this connection; `ended` gets each message that was read
    /// and will not be read again.
    pub fn handle_request(
        &mut self,
        now: Time,
        packet: &RocePacket,
        messages: &mut Messages,
        mut ended: impl FnMut(u32),
    ) -> bool {
        let ResponderCounters { rcvd_pkts, rx_read_requests, .. } = *self.responder.counters();
        self.responder.handle_packet(now, packet, &mut Store { ring: self.ring, messages });
        if let Some(reth) = packet.reth.filter(|_| self.responder.counters().rx_read_requests > rx_read_requests) {
            self.read_begins(messages.done(), &reth);
            self.reads.push_back((reth.va, reth.va + u64::from(reth.dma_len)));
            if self.reads.len() > PULL_READS.into() {
                self.free(messages, &mut ended);
            }
        }
        self.has_answers = true;
        self.responder.counters().rcvd_pkts > rcvd_pkts
    }

    /// The server reads in the order of announcements.
    fn read_begins(&mut self, done: u64, reth: &RethRepr) {
        if let Some((n, _)) = self.ring.message_at(done, reth.va).filter(|_| reth.dma_len > 0) {
            let begun = self.unread.partition_point(|unread| *unread <= n);
            self.unread.drain(..begun);
        }
    }

    /// The oldest READ cannot be repeated any more: its message has ended if it was read to its end.
    fn free(&mut self, messages: &mut Messages, ended: &mut impl FnMut(u32)) {
        let Some((va, end)) = self.reads.pop_front().filter(|(va, end)| end > va) else { return };
        let Some((n, at)) = self.ring.message_at(messages.done(), va) else { return };
        let len = messages.bytes(n).len() as u64;
        if len > 0 && at as u64 + (end - va) == len {
            messages.ended(n);
            ended(len as u32);
        }
    }

    /// The next packet of the answers to READs.
    pub fn poll_transmit(&mut self, messages: &Messages) -> Option<RocePacket> {
        let answer = self.responder.poll_transmit(&mut Store { ring: self.ring, messages });
        self.has_answers = answer.is_some();
        answer
    }

    /// What the server has requested that cannot be answered.
    pub fn fault(&self) -> Option<String> {
        match self.responder.state() {
            QpState::Ready => None,
            QpState::Error(fault) => Some(fault.to_string()),
        }
    }

    pub fn counters(&self) -> &ResponderCounters {
        self.responder.counters()
    }
}

impl PayloadSource for Announcer {
    fn read(&mut self, va: u64, len: usize) -> Payload {
        let (number, at) = (va >> 32, (va & 0xFFFF_FFFF) as usize);
        // Numbers are compared as far as an address holds them.
        let index = number.wrapping_sub(self.first) & 0xFFFF_FFFF;
        let message = self.sent.get(index as usize).filter(|message| at + len <= message.len());
        message.map_or(Payload::Virtual(len as u32), |message| Payload::Bytes(message.slice(at..at + len)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use penstock_transport::RequesterConfig;
    use penstock_wire::{Announcement, Ipv4Addr, MacAddr, Qpn};

    /// Wire bytes of a packet besides its payload.
    const ANNOUNCEMENT_WIRE: usize = 102;
    const END: Endpoint = Endpoint { mac: MacAddr([2; 6]), ip: Ipv4Addr::new(10, 0, 0, 2), qpn: Qpn::new(5) };

    fn announcer(slots: u32) -> (Announcer, Requester) {
        let ring = Ring { slots, slot_bytes: 100 };
        let requester = Requester::new(RequesterConfig::new(END, END, Psn::new(0), Mtu::B1024));
        (Announcer::new(ring, 7, (END, END), Psn::new(0), Mtu::B1024), requester)
    }

    /// Events and slots of the announcements that were posted.
    fn posted(announcer: &Announcer) -> Vec<Vec<(u64, u64)>> {
        let rows = announcer.sent.iter().map(|message| {
            let read = Announcement::parse(message).unwrap();
            read.iter().map(|one| (one.event, (one.address - BASE) / 100)).collect()
        });
        rows.collect()
    }

    #[test]
    fn an_idle_board_announces_at_once_and_a_busy_one_joins_what_waits() {
        let (mut board, mut requester) = announcer(1000);
        board.push(0, 10, 100);
        board.announce(&mut requester, &CmInfo::default());
        assert_eq!(posted(&board), [[(10, 0)]]);
        (1..100).for_each(|n| board.push(n, 10 + n, 100));
        board.announce(&mut requester, &CmInfo::default());
        assert_eq!(posted(&board).len(), 1, "one is not acknowledged");
        (100..300).for_each(|n| board.push(n, 10 + n, 100));
        board.announce(&mut requester, &CmInfo::default());
        assert_eq!(posted(&board).iter().map(Vec::len).collect::<Vec<_>>(), [1, 120], "a full one goes, no third one");
        assert_eq!(board.entries.len(), 179);
    }

    /// A server that acknowledges at once and has this number of READs outstanding reads messages of 1000 bytes from a
    /// board that always has more. Wire bytes of announcements in parts of those of the messages.
    fn cost(slots: u32, outstanding: u64) -> f64 {
        let (mut board, mut announced) = (announcer(slots).0, 0);
        let (mut pushed, mut read, mut wire) = (0_u64, 0_u64, 0);
        while read < 100_000 {
            // A slot is free once 16 further READs have followed.
            while pushed < read.saturating_sub(16) + u64::from(slots) {
                board.push(pushed, pushed, 100);
                pushed += 1;
            }
            // Each has a requester without anything outstanding: all is acknowledged.
            let mut requester = announcer(slots).1;
            board.announce(&mut requester, &CmInfo::default());
            while let Some(message) = board.sent.front() {
                wire += ANNOUNCEMENT_WIRE + message.len();
                announced += Announcement::parse(message).unwrap().iter().count() as u64;
                board.acknowledged();
            }
            for _ in 0..outstanding.min(announced - read) {
                let reth = RethRepr { va: board.ring.address(read), rkey: 7, dma_len: 100 };
                board.read_begins(read, &reth);
                read += 1;
            }
        }
        wire as f64 / (read as f64 * (1000 + ANNOUNCEMENT_WIRE) as f64)
    }

    #[test]
    fn announcements_of_a_busy_board_cost_less_than_one_hundredth_of_its_messages() {
        for (slots, outstanding) in [(64, 1), (64, 16), (256, 1), (256, 16), (1000, 16)] {
            let cost = cost(slots, outstanding);
            assert!(cost < 0.01, "{slots} slots, {outstanding} READs: {cost}");
            assert!(cost > 0.004, "a length has four bytes: {cost}");
        }
    }

    #[test]
    fn a_board_whose_messages_wait_to_be_read_joins_those_that_follow() {
        let (mut board, _) = announcer(100);
        let announce = |board: &mut Announcer| {
            board.announce(&mut announcer(100).1, &CmInfo::default());
            let lengths: Vec<usize> = posted(board).iter().map(Vec::len).collect();
            (0..board.sent.len()).for_each(|_| board.acknowledged());
            lengths
        };
        let read = |board: &mut Announcer, n| {
            board.read_begins(n, &RethRepr { va: board.ring.address(n), rkey: 7, dma_len: 100 });
        };
        board.push(0, 0, 100);
        assert_eq!(announce(&mut board), [1]);
        (1..5).for_each(|n| board.push(n, n, 100));
        assert!(announce(&mut board).is_empty(), "message 0 is not being read");
        read(&mut board, 0);
        assert_eq!(announce(&mut board), [4]);
        board.push(5, 5, 100);
        read(&mut board, 1);
        assert!(announce(&mut board).is_empty());
        read(&mut board, 2);
        assert_eq!(announce(&mut board), [1], "half of the last ones are being read");
        (6..103).filter(|n| *n != 50).for_each(|n| board.push(n, n, 100));
        assert_eq!(announce(&mut board), [44, 49], "up to the gap, and up to the end of the ring");
        assert_eq!((board.last, board.entries.len()), (44 + 49, 3));
    }

    #[test]
    fn a_gap_and_the_end_of_the_ring_begin_another_announcement() {
        let (mut board, _) = announcer(20);
        (17..23).for_each(|n| board.push(n, n, 100));
        assert_eq!(board.row(), 3, "up to slot 19");
        let (mut board, _) = announcer(20);
        [0, 1, 5].into_iter().zip(0..).for_each(|(event, n)| board.push(n, event, 100));
        assert_eq!(board.row(), 2, "up to event 1");
    }

    #[test]
    fn an_address_is_that_of_the_message_in_its_slot() {
        let ring = Ring { slots: 20, slot_bytes: 100 };
        for (done, n, at) in [(0, 19, 99), (17, 17, 0), (17, 36, 5), (40, 40, 1)] {
            assert_eq!(ring.message_at(done, ring.address(n) + at), Some((n, at as usize)));
        }
        assert_eq!(ring.message_at(0, BASE - 1), None);
        assert_eq!(ring.message_at(0, BASE + 2000), None);
    }
}
