// SPDX-License-Identifier: Apache-2.0
//! Messages to queue pair 1 that wait until their connection manager has its turn.
//! Promise: memory and answers of a turn are bounded whatever comes; strangers take no place from peers, and no peer
//! takes those of all others.

use crate::by_name::by_name;
use penstock_wire::{Ipv4Addr, MacAddr, RdmaCmMad, RocePacket};
use std::collections::VecDeque;

/// Messages that may wait: of all, of one peer, and of all strangers together.
const MOST: usize = 256;
const OF_A_PEER: usize = 8;
const OF_STRANGERS: usize = 4;

/// A message, and where its packet came from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RdmaCmArrival {
    /// Its sender.
    pub from: Ipv4Addr,
    /// MAC of the sender, or of the last hop.
    pub mac: MacAddr,
    /// The message.
    pub mad: RdmaCmMad,
}

/// Counts of packets to queue pair 1.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RdmaCmInboxCounters {
    /// No messages of the connection manager: another length, service or class.
    pub malformed: u64,
    /// Messages of addresses that are no peer's, answered or not.
    pub strangers: u64,
    /// Messages without an answer, because too many of their senders waited.
    pub dropped: u64,
}

by_name!(RdmaCmInboxCounters: malformed, strangers, dropped);

/// What waits.
pub struct RdmaCmInbox {
    /// Sorted.
    peers: Vec<Ipv4Addr>,
    waiting: VecDeque<RdmaCmArrival>,
    counters: RdmaCmInboxCounters,
}

impl RdmaCmInbox {
    /// Nothing waits. All addresses but those of `peers` are strangers.
    pub fn new(mut peers: Vec<Ipv4Addr>) -> Self {
        peers.sort_unstable();
        RdmaCmInbox { peers, waiting: VecDeque::new(), counters: RdmaCmInboxCounters::default() }
    }

    /// Whether an address is a peer's.
    pub fn has_peer(&self, ip: Ipv4Addr) -> bool {
        self.peers.binary_search(&ip).is_ok()
    }

    /// Takes a packet to queue pair 1.
    pub fn push(&mut self, packet: &RocePacket) {
        let Some(Ok(mad)) = RdmaCmMad::of_packet(packet) else {
            self.counters.malformed += 1;
            return;
        };
        let (from, mac, is_peer) = (packet.ip_src, packet.eth_src, self.has_peer(packet.ip_src));
        self.counters.strangers += u64::from(!is_peer);
        let (held, most) = match is_peer {
            true => (self.waiting.iter().filter(|other| other.from == from).count(), OF_A_PEER),
            false => (self.waiting.iter().filter(|other| !self.has_peer(other.from)).count(), OF_STRANGERS),
        };
        if held < most && self.waiting.len() < MOST {
            self.waiting.push_back(RdmaCmArrival { from, mac, mad });
        } else {
            self.counters.dropped += 1;
        }
    }

    /// The next message.
    pub fn pop(&mut self) -> Option<RdmaCmArrival> {
        self.waiting.pop_front()
    }

    /// Whether messages wait.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// What came.
    pub fn counters(&self) -> &RdmaCmInboxCounters {
        &self.counters
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use penstock_wire::{MadIds, RdmaCmMessage};

    const OURS: (MacAddr, Ipv4Addr) = (MacAddr([1; 6]), Ipv4Addr::new(10, 0, 0, 1));
    const RTU: RdmaCmMad = RdmaCmMad { transaction: 1, message: RdmaCmMessage::Rtu(MadIds { local: 1, remote: 2 }) };

    fn address(n: u32) -> Ipv4Addr {
        Ipv4Addr::from_bits(0x0A00_0100 + n)
    }

    fn packet(from: Ipv4Addr) -> RocePacket {
        RTU.to_packet((MacAddr([2; 6]), from), OURS)
    }

    #[test]
    fn strangers_and_one_peer_leave_room_for_the_others() {
        let mut inbox = RdmaCmInbox::new((0..100).map(address).collect());
        for n in 0..10_000 {
            inbox.push(&packet(Ipv4Addr::from_bits(0x0B00_0000 + n)));
            inbox.push(&packet(address(3)));
        }
        inbox.push(&packet(address(99)));
        let senders: Vec<Ipv4Addr> = std::iter::from_fn(|| inbox.pop()).map(|arrival| arrival.from).collect();
        let of_peers = senders.iter().filter(|from| inbox.has_peer(**from));
        assert_eq!((senders.len(), of_peers.count()), (4 + 8 + 1, 8 + 1));
        assert_eq!(senders.last(), Some(&address(99)));
        let expected = RdmaCmInboxCounters { malformed: 0, strangers: 10_000, dropped: 20_000 - 12 };
        assert_eq!(*inbox.counters(), expected);
        inbox.push(&packet(address(3)));
        assert!(inbox.pop().is_some(), "each turn has the same room");
    }

    #[test]
    fn all_peers_at_once_hold_bounded_memory() {
        let mut inbox = RdmaCmInbox::new((0..1000).map(address).collect());
        (0..10_000).for_each(|n| inbox.push(&packet(address(n % 1000))));
        assert_eq!(std::iter::from_fn(|| inbox.pop()).count(), 256);
    }

    #[test]
    fn packets_that_are_no_messages_are_counted() {
        let mut inbox = RdmaCmInbox::new(vec![address(0)]);
        let good = RTU.to_datagram();
        for len in 0..good.len() {
            let payload = penstock_wire::Payload::Bytes(bytes::Bytes::copy_from_slice(&good[..len]));
            inbox.push(&RocePacket { payload, ..packet(address(0)) });
        }
        assert_eq!((inbox.counters().malformed, inbox.is_empty()), (good.len() as u64, true));
    }
}
