// SPDX-License-Identifier: Apache-2.0
//! The announcements of a board that is read by its server: which messages it has, where and how long they are.
//! Promise: that of `penstock_pull::Announcements`.
//! Source: `penstock_wire::announcement`; IBTA vol. 1 clause 9.7 through the requester.

use std::collections::VecDeque;

use bytes::Bytes;
use penstock_pull::Announcements;
use penstock_transport::{PayloadSource, RequestFault, Requester, RequesterConfig, RequesterState, SendWr, Verb};
use penstock_wire::{
    announcement, Payload, RocePacket, ANNOUNCEMENT_EVENTS, ANNOUNCEMENT_HEADER_LEN, ANNOUNCEMENT_SLOTS,
    ANNOUNCEMENT_SLOT_LEN,
};

use crate::units::Time;

/// Addresses from one message to the next: the longest message. The memory is as long as it needs to be, because nobody
/// looks at it; what a board may hold is limited by its slots.
const STRIDE: u32 = 1 << 31;

/// The number of the message at an address.
pub(super) fn number_at(address: u64) -> u64 {
    address / u64::from(STRIDE)
}

/// The address of the message of a number.
pub(super) fn address_of(number: u64) -> u64 {
    number * u64::from(STRIDE)
}

/// The announcements that may have to be sent again.
#[derive(Default)]
struct Written {
    kept: VecDeque<(u64, Bytes)>,
}

impl PayloadSource for Written {
    fn read(&mut self, va: u64, len: usize) -> Payload {
        match self.kept.iter().find(|(first, _)| *first == va) {
            Some((_, bytes)) => Payload::Bytes(bytes.slice(..len)),
            None => Payload::Virtual(len as u32),
        }
    }
}

/// The sending half of a board's queue pair.
pub(super) struct Announcer {
    requester: Requester,
    /// Number and length of the messages that are not announced.
    waiting: VecDeque<(u64, u32)>,
    /// Messages of one announcement: it is one packet, and fits into a slot.
    most_events: usize,
    written: Written,
    /// First address and key of the server's ring.
    ring: (u64, u32),
    announced: u64,
    /// Messages of the last announcement.
    last: usize,
    /// The most wire bytes of announcements that were outstanding at a time.
    highest_outstanding: u64,
}

impl Announcer {
    /// `ring`: first address and key of the announcements' ring at the server.
    pub(super) fn new(request: RequesterConfig, ring: (u64, u32)) -> Self {
        let most_events = (request.mtu.bytes() - ANNOUNCEMENT_HEADER_LEN) / 4;
        Announcer {
            requester: Requester::new(request),
            waiting: VecDeque::new(),
            most_events: most_events.min(ANNOUNCEMENT_EVENTS),
            written: Written::default(),
            ring,
            announced: 0,
            last: 0,
            highest_outstanding: 0,
        }
    }

    pub(super) fn requester(&self) -> &Requester {
        &self.requester
    }

    /// The most wire bytes of announcements that were outstanding at a time.
    pub(super) fn highest_outstanding(&self) -> u64 {
        self.highest_outstanding
    }

    /// Why it has given up, if it has.
    pub(super) fn fault(&self) -> Option<RequestFault> {
        match self.requester.state() {
            RequesterState::Ready => None,
            RequesterState::Error(fault) => Some(fault),
        }
    }

    /// A message is there. Numbers rise.
    pub(super) fn push(&mut self, number: u64, length: u32) {
        self.waiting.push_back((number, length));
    }

    /// Messages that are not announced.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Posts what may be announced now. `unread` messages are announced, and the server has not begun to read them: it
    /// reads those first, so others can wait.
    pub(super) fn settle(&mut self, mut unread: usize) {
        while self.requester.poll_completion().is_some() {
            self.written.kept.pop_front();
        }
        while let Some((first, _)) = self.waiting.front().copied() {
            let span = self.most_events as u64;
            let is_full = self.waiting.back().is_some_and(|(last, _)| *last >= first + span - 1);
            let outstanding = self.requester.outstanding_messages();
            let announced = Announcements { outstanding, unread, last: self.last };
            if !announced.is_next_due(is_full) || self.fault().is_some() {
                return;
            }
            self.post(first, first + span);
            unread += self.last;
        }
    }

    /// Announces the messages from `first` on, before `end`. Numbers in between that the board does not have are of no
    /// bytes.
    fn post(&mut self, first: u64, end: u64) {
        let (mut lengths, before) = (Vec::new(), self.waiting.len());
        while let Some((number, length)) = self.waiting.front().copied().filter(|(number, _)| *number < end) {
            lengths.resize((number - first) as usize, 0);
            lengths.push(length);
            self.waiting.pop_front();
        }
        self.last = before - self.waiting.len();
        let bytes = Bytes::from(announcement((first, address_of(first)), 0, STRIDE, &lengths));
        let slot = (self.announced % u64::from(ANNOUNCEMENT_SLOTS)) as u32;
        let (va, len) = (self.announced, bytes.len() as u32);
        let (base, rkey) = self.ring;
        let remote_va = base + u64::from(slot) * ANNOUNCEMENT_SLOT_LEN as u64;
        self.announced += 1;
        self.written.kept.push_back((va, bytes));
        let wr = SendWr { wr_id: va, verb: Verb::WriteImm(slot), va, len, remote_va, rkey, solicited: false };
        let posted = self.requester.post_send(wr);
        debug_assert!(posted.is_ok(), "an announcement is short");
        let wire = |bytes: &Bytes| (bytes.len() + WIRE) as u64;
        let outstanding = self.written.kept.iter().map(|(_, bytes)| wire(bytes)).sum();
        self.highest_outstanding = self.highest_outstanding.max(outstanding);
    }

    pub(super) fn poll_transmit(&mut self, now: Time) -> Option<RocePacket> {
        self.requester.poll_transmit(now, &mut self.written)
    }

    pub(super) fn handle_packet(&mut self, now: Time, packet: &RocePacket) {
        self.requester.handle_packet(now, packet);
    }

    pub(super) fn handle_timeout(&mut self, now: Time) {
        self.requester.handle_timeout(now);
    }
}

/// What surrounds an announcement on the wire: Ethernet 14, IPv4 20, UDP 8, BTH 12, RETH 16, immediate 4, ICRC 4, and 24
/// of preamble, FCS and gap.
const WIRE: usize = 102;

#[cfg(test)]
mod tests {
    use super::*;
    use penstock_transport::{Access, Endpoint, Memory, MemoryRegion, Mtu, RecvWr, Responder, ResponderConfig};
    use penstock_wire::{Announcement, Ipv4Addr, MacAddr, Psn, Qpn};

    /// A board and its server, which acknowledges when the test says so.
    struct Pair {
        announcer: Announcer,
        server: Responder,
        unread: usize,
    }

    struct Nowhere;

    impl Memory for Nowhere {
        fn write(&mut self, _va: u64, _data: &Payload) {}
    }

    impl Pair {
        fn new(mtu: Mtu) -> Self {
            let end = |n: u8| Endpoint {
                mac: MacAddr([2, 0, 0, 0, 0, n]),
                ip: Ipv4Addr::new(10, 0, 0, n),
                qpn: Qpn::new(n.into()),
            };
            let region = MemoryRegion { va: 0, rkey: 0, len: 1 << 20, access: Access::RemoteWrite };
            let server = ResponderConfig::new(end(2), end(1), Psn::new(5), mtu).with_region(region);
            let mut server = Responder::new(server);
            (0..100).for_each(|_| server.post_receive(RecvWr { wr_id: 0, va: 0, len: 512 }));
            let request = RequesterConfig::new(end(1), end(2), Psn::new(5), mtu);
            Pair { announcer: Announcer::new(request, (0, 0)), server, unread: 0 }
        }

        fn push(&mut self, numbers: impl IntoIterator<Item = u64>) {
            for number in numbers {
                self.announcer.push(number, 100 + number as u32);
                self.announcer.settle(self.unread);
            }
        }

        /// The announcements that leave now, as first number and lengths.
        fn sent(&mut self) -> Vec<(u64, Vec<u32>)> {
            let mut sent = Vec::new();
            while let Some(packet) = self.announcer.poll_transmit(Time::ZERO) {
                let announcement = Announcement::parse(packet.payload.as_bytes().unwrap()).unwrap();
                assert_eq!(number_at(announcement.address), announcement.first_event);
                sent.push((announcement.first_event, announcement.iter().map(|one| one.length).collect()));
                self.server.handle_packet(Time::ZERO, &packet, &mut Nowhere);
            }
            sent
        }

        fn acknowledge(&mut self) {
            while let Some(packet) = self.server.poll_transmit(&mut Nowhere) {
                self.announcer.handle_packet(Time::ZERO, &packet);
            }
            self.announcer.settle(self.unread);
        }
    }

    #[test]
    fn an_idle_board_announces_at_once_and_a_busy_one_joins_what_follows() {
        let mut pair = Pair::new(Mtu::B4096);
        pair.push([0]);
        assert_eq!(pair.sent(), [(0, vec![100])]);
        pair.push(1..4);
        assert_eq!(pair.sent(), []);
        pair.acknowledge();
        assert_eq!(pair.sent(), [(1, vec![101, 102, 103])]);
        assert_eq!(pair.announcer.highest_outstanding(), (32 + 3 * 4 + 102) as u64);
    }

    #[test]
    fn a_full_announcement_leaves_while_another_is_outstanding_but_not_a_third_one() {
        for (mtu, full) in [(Mtu::B4096, 120), (Mtu::B256, 56)] {
            let mut pair = Pair::new(mtu);
            pair.push(0..=3 * full);
            let sent = pair.sent();
            assert_eq!(
                sent.iter().map(|(first, lengths)| (*first, lengths.len())).collect::<Vec<_>>(),
                [(0, 1), (1, full as usize)]
            );
            pair.acknowledge();
            assert_eq!(pair.sent().len(), 2, "both are acknowledged");
        }
    }

    #[test]
    fn a_board_whose_messages_wait_to_be_read_joins_those_that_follow() {
        let mut pair = Pair::new(Mtu::B4096);
        pair.push([0]);
        pair.unread = 1;
        assert_eq!(pair.sent().len(), 1);
        pair.push(1..5);
        pair.acknowledge();
        assert_eq!(pair.sent(), [], "message 0 is not being read");
        pair.unread = 0;
        pair.acknowledge();
        assert_eq!(pair.sent(), [(1, vec![101, 102, 103, 104])]);
        (pair.unread, _) = (3, pair.push([5]));
        pair.acknowledge();
        assert_eq!(pair.sent(), []);
        pair.unread = 2;
        pair.acknowledge();
        assert_eq!(pair.sent(), [(5, vec![105])], "half of the last announcement is being read");
    }

    #[test]
    fn numbers_that_a_board_does_not_have_are_of_no_bytes_and_a_long_gap_begins_another() {
        let mut pair = Pair::new(Mtu::B4096);
        pair.push([7]);
        pair.push([9, 12, 500]);
        assert_eq!(pair.sent(), [(7, vec![107]), (9, vec![109, 0, 0, 112])]);
        pair.acknowledge();
        assert_eq!(pair.sent(), [(500, vec![600])]);
    }
}
