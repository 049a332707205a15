// SPDX-License-Identifier: Apache-2.0
//! The side of a queue pair that a server reads (`--pull`): announcements of messages, and answers to READs.
//! Promise: a message and its successors stay in their slot until the READ of them can never be repeated.
//! `penstock_pull::Announcements` decides what is announced.
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
    Announced, CmInfo, Payload, Psn, RocePacket, ANNOUNCEMENT_SLOTS, ANNOUNCEMENT_SLOT_LEN, PULL_READS, SUCCESSORS_LEN,
};
use std::collections::VecDeque;

/// First address of the ring of messages: a label.
const BASE: u64 = 0x2_0000_0000;

/// The ring that a server reads. Each message has its successors after it.
#[derive(Clone, Copy)]
pub struct Ring {
    pub slots: u32,
    pub slot_bytes: u32,
}

impl Ring {
    fn stride(&self) -> u32 {
        self.slot_bytes + SUCCESSORS_LEN as u32
    }

    fn slot(&self, place: u64) -> u64 {
        place % u64::from(self.slots)
    }

    fn address(&self, place: u64) -> u64 {
        BASE + self.slot(place) * u64::from(self.stride())
    }
}

/// What lies in the ring. Places are counted over one connection: a front end's other queue pairs have messages, too.
struct Held {
    ring: Ring,
    /// Places before this one are free again.
    first: u64,
    /// The message in each place from there on; none: it was read.
    messages: VecDeque<Option<u64>>,
}

impl Held {
    /// Takes the next place; its address.
    fn push(&mut self, n: u64) -> u64 {
        self.messages.push_back(Some(n));
        self.ring.address(self.first + self.messages.len() as u64 - 1)
    }

    /// The message in the slot of an address, and the byte in it.
    fn message_at(&self, va: u64) -> Option<(u64, usize)> {
        let offset = va.checked_sub(BASE)?;
        let (slots, slot) = (u64::from(self.ring.slots), offset / u64::from(self.ring.stride()));
        let ahead = (slot + slots - self.ring.slot(self.first)) % slots;
        let n = self.messages.get(ahead as usize).filter(|_| slot < slots)?;
        Some(((*n)?, (offset % u64::from(self.ring.stride())) as usize))
    }

    fn ended(&mut self, n: u64) {
        self.messages.iter_mut().filter(|held| **held == Some(n)).for_each(|held| *held = None);
        while self.messages.front().is_some_and(Option::is_none) {
            self.messages.pop_front();
            self.first += 1;
        }
    }
}

/// Messages as a server reads them.
struct Store<'a> {
    held: &'a Held,
    messages: &'a Messages,
    announcements: &'a mut Announcements,
    successors: &'a mut VecDeque<(u64, [u8; SUCCESSORS_LEN])>,
}

impl Store<'_> {
    /// Those of message `n`, the same ones whenever it is read.
    fn successors(&mut self, n: u64) -> [u8; SUCCESSORS_LEN] {
        let Some((_, bytes)) = self.successors.iter().rev().find(|(of, _)| *of == n) else {
            let bytes = self.announcements.poll_successors();
            self.successors.push_back((n, bytes));
            return bytes;
        };
        *bytes
    }
}

impl Memory for Store<'_> {
    fn write(&mut self, _va: u64, _data: &Payload) {}

    fn read(&mut self, va: u64, len: u32) -> Result<Payload, Unreadable> {
        let (n, at) = self.held.message_at(va).ok_or(Unreadable)?;
        let message = self.messages.bytes(n);
        let (length, end) = (message.len(), at + len as usize);
        if message.is_empty() || end > length + SUCCESSORS_LEN {
            return Err(Unreadable);
        }
        if end <= length {
            return Ok(Payload::Bytes(message.slice(at..end)));
        }
        let successors = self.successors(n);
        let mut whole = message[at.min(length)..].to_vec();
        whole.extend_from_slice(&successors[at.max(length) - length..end - length]);
        Ok(Payload::Bytes(whole.into()))
    }
}

pub struct Announcer {
    held: Held,
    responder: Responder,
    announcements: Announcements,
    /// Those that were read with messages which may be read again.
    successors: VecDeque<(u64, [u8; SUCCESSORS_LEN])>,
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
        let len = u64::from(ring.slots) * u64::from(ring.stride());
        let region = MemoryRegion { va: BASE, rkey, len, access: Access::RemoteRead };
        let mut config = ResponderConfig::new(local, peer, expected_psn, mtu).with_region(region);
        config.responder_resources = PULL_READS;
        Announcer {
            held: Held { ring, first: 0, messages: VecDeque::new() },
            responder: Responder::new(config),
            announcements: Announcements::new(rkey, ring.stride(), mtu.bytes()),
            successors: VecDeque::new(),
            sent: VecDeque::new(),
            first: 0,
            reads: VecDeque::new(),
            has_answers: false,
        }
    }

    /// A slot is free.
    pub fn has_room(&self) -> bool {
        self.held.messages.len() < self.held.ring.slots as usize
    }

    /// A slot is not free.
    pub fn holds_messages(&self) -> bool {
        !self.held.messages.is_empty()
    }

    /// Message `n` of this event waits for the server.
    pub fn push(&mut self, n: u64, event: u64, length: u32) {
        let address = self.held.push(n);
        self.announcements.push(Announced { event, address, length });
    }

    /// The messages that were not read; nothing is read from now on.
    pub fn take_unread(&mut self) -> impl Iterator<Item = u64> {
        std::mem::take(&mut self.held.messages).into_iter().flatten()
    }

    /// Posts what is to be sent as a message now.
    pub fn announce(&mut self, requester: &mut Requester, peer: &CmInfo) {
        let Some(message) = self.announcements.poll_message().map(Bytes::from) else { return };
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

    /// The oldest announcement is acknowledged.
    pub fn acknowledged(&mut self) {
        self.sent.pop_front();
        self.first += 1;
        self.announcements.acknowledged();
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
        let Announcer { held, responder, announcements, successors, .. } = self;
        responder.handle_packet(now, packet, &mut Store { held, messages, announcements, successors });
        if let Some(reth) = packet.reth.filter(|_| self.responder.counters().rx_read_requests > rx_read_requests) {
            self.reads.push_back((reth.va, reth.va + u64::from(reth.dma_len)));
            if self.reads.len() > PULL_READS.into() {
                self.free(messages, &mut ended);
            }
        }
        self.has_answers = true;
        self.responder.counters().rcvd_pkts > rcvd_pkts
    }

    /// The oldest READ cannot be repeated any more: its message has ended if it was read to its end.
    fn free(&mut self, messages: &mut Messages, ended: &mut impl FnMut(u32)) {
        let Some((va, end)) = self.reads.pop_front().filter(|(va, end)| end > va) else { return };
        let Some((n, at)) = self.held.message_at(va) else { return };
        let len = messages.bytes(n).len();
        if len > 0 && at as u64 + (end - va) == (len + SUCCESSORS_LEN) as u64 {
            self.successors.retain(|(of, _)| *of > n);
            self.held.ended(n);
            messages.ended(n);
            ended(len as u32);
        }
    }

    /// The next packet of the answers to READs.
    pub fn poll_transmit(&mut self, messages: &Messages) -> Option<RocePacket> {
        let Announcer { held, responder, announcements, successors, .. } = self;
        let answer = responder.poll_transmit(&mut Store { held, messages, announcements, successors });
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
    use penstock_wire::{successors_from_bytes, Announcement, Ipv4Addr, MacAddr, Qpn};

    /// Wire bytes of a packet besides its payload.
    const ANNOUNCEMENT_WIRE: usize = 102;
    const END: Endpoint = Endpoint { mac: MacAddr([2; 6]), ip: Ipv4Addr::new(10, 0, 0, 2), qpn: Qpn::new(5) };

    fn announcer(slots: u32) -> (Announcer, Requester) {
        let ring = Ring { slots, slot_bytes: 1000 };
        let requester = Requester::new(RequesterConfig::new(END, END, Psn::new(0), Mtu::B1024));
        (Announcer::new(ring, 7, (END, END), Psn::new(0), Mtu::B1024), requester)
    }

    /// Events and slots of the announcements that were posted.
    fn posted(announcer: &Announcer) -> Vec<Vec<(u64, u64)>> {
        let rows = announcer.sent.iter().map(|message| {
            let read = Announcement::parse(message).unwrap();
            read.iter().map(|one| (one.event, (one.address - BASE) / 1010)).collect()
        });
        rows.collect()
    }

    /// A server that acknowledges at once and has this number of READs outstanding reads messages of 1000 bytes from a
    /// board that always has more. Wire bytes of messages with announcements and of successors, in parts of those read.
    fn cost(slots: u32, outstanding: u64) -> f64 {
        let (mut board, mut requester) = announcer(slots);
        let (mut pushed, mut read, mut wire, mut announced) = (0_u64, 0_u64, 0, 0);
        while read < 100_000 {
            // A slot is free once 16 further READs have followed.
            while pushed < read.saturating_sub(16) + u64::from(slots) {
                board.push(pushed, pushed, 100);
                pushed += 1;
            }
            board.announce(&mut requester, &CmInfo::default());
            while let Some(message) = board.sent.front() {
                wire += ANNOUNCEMENT_WIRE + message.len();
                announced += Announcement::parse(message).unwrap().iter().count() as u64;
                board.acknowledged();
            }
            for _ in 0..outstanding.min(announced - read) {
                let named = successors_from_bytes(&board.announcements.poll_successors());
                announced += named.iter().filter(|entry| entry.length > 0).count() as u64;
                wire += SUCCESSORS_LEN;
                read += 1;
            }
        }
        wire as f64 / (read as f64 * (1000 + ANNOUNCEMENT_WIRE) as f64)
    }

    #[test]
    fn announcements_of_a_busy_board_cost_about_one_hundredth_of_its_messages() {
        for (slots, outstanding) in [(64, 1), (64, 16), (256, 1), (256, 16), (1000, 16)] {
            let cost = cost(slots, outstanding);
            // Each time around the ring begins with a message.
            assert!(cost < 0.0095 + 0.2 / f64::from(slots), "{slots} slots, {outstanding} READs: {cost}");
            assert!(cost > 0.009, "successors have ten bytes: {cost}");
        }
    }

    #[test]
    fn the_end_of_the_ring_begins_another_announcement() {
        let (mut board, mut requester) = announcer(20);
        board.held.first = 17;
        (17..23).for_each(|n| board.push(n, n, 100));
        board.announce(&mut requester, &CmInfo::default());
        assert_eq!(posted(&board), [[(17, 17), (18, 18), (19, 19)]], "up to slot 19");
        board.acknowledged();
        board.announce(&mut requester, &CmInfo::default());
        assert_eq!(posted(&board), [[(20, 0), (21, 1), (22, 2)]]);
    }

    #[test]
    fn an_address_is_that_of_the_message_in_its_slot() {
        let mut held = Held { ring: Ring { slots: 20, slot_bytes: 90 }, first: 0, messages: VecDeque::new() };
        // Another queue pair has the messages between them.
        let addresses = [3, 5, 9].map(|n| held.push(n));
        assert_eq!(addresses, [BASE, BASE + 100, BASE + 200]);
        assert_eq!(held.message_at(BASE + 299), Some((9, 99)));
        assert_eq!([BASE - 1, BASE + 300, BASE + 2000].map(|va| held.message_at(va)), [None; 3]);
        held.ended(5);
        assert_eq!((held.message_at(BASE + 100), held.first), (None, 0), "the first one may be read again");
        held.ended(3);
        let addresses = (10..28).map(|n| held.push(n)).collect::<Vec<_>>();
        assert_eq!(addresses[16..], [BASE + 1900, BASE], "around the ring");
        assert_eq!(held.message_at(BASE + 5), Some((27, 5)));
    }
}
