// SPDX-License-Identifier: Apache-2.0
//! The messages of a send queue that have not completed, and the position of the next packet in them.
//! Promise: the cost of an operation does not depend on the length of the queue or of its messages. Packets are not
//! stored: a retransmitted packet is made from its message again.
//! Source: IBTA vol. 1, clause 9.7.2 (PSNs of messages).

use super::{SendWr, Verb};
use crate::config::Mtu;
use penstock_wire::Position;
use std::collections::VecDeque;

#[derive(Clone, Copy, Debug)]
struct Queued {
    wr: SendWr,
    /// Number of its first packet.
    first: u64,
    /// PSNs it takes: its packets, or the responses of a READ.
    packets: u64,
}

impl Queued {
    fn end(&self) -> u64 {
        self.first + self.packets
    }

    fn is_read(&self) -> bool {
        self.wr.verb == Verb::Read
    }
}

/// One request packet of a message.
pub(super) struct Place<'a> {
    pub(super) wr: &'a SendWr,
    pub(super) position: Position,
    /// First byte of the message in it.
    pub(super) offset: u32,
    /// Bytes of the message in it, or requested by it.
    pub(super) len: u32,
    /// PSNs it takes.
    pub(super) packets: u64,
}

/// The READ that waits for responses.
#[derive(Clone, Copy, Debug)]
pub(super) struct OpenRead {
    pub(super) wr: SendWr,
    /// Number of its first response.
    pub(super) first: u64,
    /// The number after its last response.
    pub(super) end: u64,
}

#[derive(Clone, Debug)]
pub(super) struct SendQueue {
    mtu: Mtu,
    messages: VecDeque<Queued>,
    /// Messages completed before the first of `messages`.
    done: u64,
    /// Packets of all messages ever posted.
    posted: u64,
    /// The next packet: its number, the index of its message, its place in that message.
    number: u64,
    index: usize,
    packet: u64,
    /// READs among `messages`, in order.
    reads: VecDeque<OpenRead>,
    /// How many of them lie before `index`: requested, without all their responses.
    reads_begun: usize,
}

impl SendQueue {
    pub(super) fn new(mtu: Mtu) -> Self {
        SendQueue {
            mtu,
            messages: VecDeque::new(),
            done: 0,
            posted: 0,
            number: 0,
            index: 0,
            packet: 0,
            reads: VecDeque::new(),
            reads_begun: 0,
        }
    }

    pub(super) fn post(&mut self, wr: SendWr) {
        let packets = u64::from(wr.len).div_ceil(self.mtu.bytes() as u64).max(1);
        let first = self.posted;
        self.posted += packets;
        self.messages.push_back(Queued { wr, first, packets });
        if wr.verb == Verb::Read {
            self.reads.push_back(OpenRead { wr, first, end: self.posted });
        }
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.messages.len()
    }

    #[inline]
    pub(super) fn posted(&self) -> u64 {
        self.posted
    }

    /// Number of the next packet's message, the first ever being 0.
    #[inline]
    pub(super) fn message_number(&self) -> u64 {
        self.done + self.index as u64
    }

    /// Whether the next packet's message takes a receive of the peer.
    #[inline]
    pub(super) fn consumes_receive(&self) -> bool {
        self.messages.get(self.index).is_some_and(|message| message.wr.verb.consumes_receive())
    }

    /// The first READ posted without all its responses.
    #[inline]
    pub(super) fn first_read(&self) -> Option<&OpenRead> {
        self.reads.front()
    }

    /// READs requested, without all their responses.
    #[inline]
    pub(super) fn reads_begun(&self) -> usize {
        self.reads_begun
    }

    /// If the next packet is a READ request, the number after its last response.
    #[inline]
    pub(super) fn end_of_next_read(&self) -> Option<u64> {
        self.messages.get(self.index).filter(|message| message.is_read()).map(Queued::end)
    }

    /// The next packet; there must be one.
    #[inline]
    pub(super) fn place(&self) -> Place<'_> {
        let message = &self.messages[self.index];
        let Queued { wr, packets, .. } = message;
        let mtu = self.mtu.bytes() as u32;
        let offset = self.packet as u32 * mtu;
        if message.is_read() {
            let (position, packets) = (Position::Only, packets - self.packet);
            return Place { wr, position, offset, len: wr.len - offset, packets };
        }
        let position = match (self.packet == 0, self.packet + 1 == *packets) {
            (true, true) => Position::Only,
            (true, false) => Position::First,
            (false, true) => Position::Last,
            (false, false) => Position::Middle,
        };
        Place { wr, position, offset, len: mtu.min(wr.len - offset), packets: 1 }
    }

    /// Goes on to the next packet.
    #[inline]
    pub(super) fn advance(&mut self) {
        let message = &self.messages[self.index];
        let is_read = message.is_read();
        let packets = if is_read { message.packets - self.packet } else { 1 };
        self.number += packets;
        self.packet += packets;
        if self.packet == message.packets {
            self.index += 1;
            self.packet = 0;
            self.reads_begun += usize::from(is_read);
        }
    }

    /// The first message, if it ends before packet `upto`.
    pub(super) fn take_done(&mut self, upto: u64) -> Option<SendWr> {
        self.messages.front().filter(|message| message.end() <= upto)?;
        self.take_first().map(|(wr, _)| wr)
    }

    /// The first message, done or not, and the number after its last packet.
    pub(super) fn take_first(&mut self) -> Option<(SendWr, u64)> {
        let message = self.messages.pop_front()?;
        if message.is_read() {
            self.reads.pop_front();
            self.reads_begun -= usize::from(self.index > 0);
        }
        self.done += 1;
        self.index = self.index.saturating_sub(1);
        Some((message.wr, message.end()))
    }

    /// Makes `number` the next packet if it is not: a packet of the first message, or of the next one posted.
    pub(super) fn skip_to(&mut self, number: u64) {
        if number != self.number {
            self.rewind(number);
        }
    }

    /// Makes `number`, a packet of the first message or of the next one posted, the next packet.
    pub(super) fn rewind(&mut self, number: u64) {
        self.number = number;
        self.index = 0;
        self.reads_begun = 0;
        self.packet = self.messages.front().map_or(0, |message| number - message.first);
    }

    /// The full count for a 24-bit MSN: the one nearest to the messages completed here.
    pub(super) fn unwrap_msn(&self, msn: u32) -> u64 {
        const BITS: u32 = 24;
        let ahead = ((u64::from(msn).wrapping_sub(self.done) << (64 - BITS)) as i64) >> (64 - BITS);
        self.done.saturating_add_signed(ahead)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::requester::Verb;

    fn message(wr_id: u64, len: u32) -> SendWr {
        SendWr { wr_id, verb: Verb::Write, va: 0, len, remote_va: 0, rkey: 0, solicited: false }
    }

    #[test]
    fn messages_are_cut_into_packets_of_one_mtu_and_a_rest() {
        let mut queue = SendQueue::new(Mtu::B256);
        for (wr_id, len) in [(0, 600), (1, 0), (2, 512)] {
            queue.post(message(wr_id, len));
        }
        let mut seen = Vec::new();
        while queue.number < queue.posted() {
            let place = queue.place();
            seen.push((place.wr.wr_id, place.position, place.offset, place.len));
            queue.advance();
        }
        use Position::*;
        let expected = [(0, First, 0, 256), (0, Middle, 256, 256), (0, Last, 512, 88), (1, Only, 0, 0)];
        assert_eq!(seen[..4], expected);
        assert_eq!(seen[4..], [(2, First, 0, 256), (2, Last, 256, 256)]);
    }

    #[test]
    fn a_rewind_finds_its_packet_whatever_has_completed() {
        let mut queue = SendQueue::new(Mtu::B256);
        (0..3).for_each(|wr_id| queue.post(message(wr_id, 600)));
        (0..8).for_each(|_| queue.advance());
        assert_eq!(queue.take_done(4).map(|wr| wr.wr_id), Some(0));
        assert!(queue.take_done(4).is_none());
        queue.rewind(4);
        assert_eq!((queue.place().wr.wr_id, queue.place().offset, queue.message_number()), (1, 256, 1));
    }

    #[test]
    fn the_message_count_of_an_acknowledgement_is_the_nearest() {
        let queue = SendQueue { done: (1 << 24) + 1, ..SendQueue::new(Mtu::B256) };
        assert_eq!(queue.unwrap_msn(5), (1 << 24) + 5);
        assert_eq!(queue.unwrap_msn(0xFF_FFFF), (1 << 24) - 1);
        assert_eq!(SendQueue::new(Mtu::B256).unwrap_msn(0xFF_FFFF), 0);
    }
}
