// SPDX-License-Identifier: Apache-2.0
//! The READs of a responder: the requests it has executed, any part of which its peer may request again, and the
//! responses of one request, which are made one at a time.
//! Source: IBTA vol. 1, clauses 9.4.4 (RDMA READ) and 9.7.5 (responses, duplicate requests).

use crate::config::Mtu;
use crate::reply::Reply;
use penstock_wire::{AethRepr, Position, Psn, RethRepr};
use std::collections::VecDeque;

/// A READ request: its first PSN, which is also that of its first response, and what it reads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Read {
    pub(crate) first: Psn,
    reth: RethRepr,
    mtu: Mtu,
}

impl Read {
    pub(crate) fn new(first: Psn, reth: RethRepr, mtu: Mtu) -> Self {
        Read { first, reth, mtu }
    }

    /// PSNs of its responses; a READ of no bytes has one response.
    pub(crate) fn packets(&self) -> u32 {
        self.reth.dma_len.div_ceil(self.mtu.bytes() as u32).max(1)
    }

    /// Whether one of its responses has this PSN.
    pub(crate) fn contains(&self, psn: Psn) -> bool {
        psn.in_range(self.first, self.first.add(self.packets()))
    }

    /// Whether `part` requests bytes of this READ again, from one of its packets on, with the same PSNs.
    fn includes(&self, part: &Read) -> bool {
        if !self.contains(part.first) {
            return false;
        }
        let offset = part.first.distance_from(self.first) as u32 * self.mtu.bytes() as u32;
        let (whole, part) = (&self.reth, &part.reth);
        let is_at_its_place = part.rkey == whole.rkey && part.va == whole.va.wrapping_add(offset.into());
        is_at_its_place && part.dma_len <= whole.dma_len - offset && (part.dma_len > 0 || whole.dma_len == 0)
    }
}

/// The latest READs, as many as a peer may have outstanding: a correct peer never repeats an earlier one.
#[derive(Clone, Debug, Default)]
pub(crate) struct RecentReads(VecDeque<Read>);

impl RecentReads {
    /// The READ that `next` would displace, if there are `resources` already.
    pub(crate) fn oldest(&self, resources: u8) -> Option<&Read> {
        self.0.front().filter(|_| self.0.len() >= resources.into())
    }

    pub(crate) fn push(&mut self, read: Read, resources: u8) {
        if self.0.len() >= resources.into() {
            self.0.pop_front();
        }
        self.0.push_back(read);
    }

    /// The READ of which `part` is a repetition.
    pub(crate) fn whole_of(&self, part: &Read) -> Option<&Read> {
        self.0.iter().find(|read| read.includes(part))
    }

    /// The first PSN of the earliest of them after `psn` and before `end`.
    pub(crate) fn first_between(&self, psn: Psn, end: Psn) -> Option<Psn> {
        self.0.iter().map(|read| read.first).find(|first| first.in_range(psn.next(), end))
    }
}

/// The responses of a request that have not been sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Responses {
    pub(crate) read: Read,
    /// How many have been sent.
    sent: u32,
    aeth: AethRepr,
    /// The request is a repetition.
    pub(crate) is_repeated: bool,
}

impl Responses {
    pub(crate) fn new(read: Read, aeth: AethRepr, is_repeated: bool) -> Self {
        Responses { read, sent: 0, aeth, is_repeated }
    }

    /// The next response, and whether more follow.
    pub(crate) fn next(&mut self) -> (Reply, bool) {
        let Read { first, reth, mtu } = self.read;
        let offset = self.sent * mtu.bytes() as u32;
        let len = (reth.dma_len - offset).min(mtu.bytes() as u32);
        let (is_first, is_last) = (self.sent == 0, self.sent + 1 == self.read.packets());
        let position = match (is_first, is_last) {
            (true, true) => Position::Only,
            (true, false) => Position::First,
            (false, true) => Position::Last,
            (false, false) => Position::Middle,
        };
        let (psn, va) = (first.add(self.sent), reth.va.wrapping_add(offset.into()));
        self.sent += 1;
        (Reply::ReadResponse { psn, position, va, len, aeth: self.aeth }, !is_last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use penstock_wire::{Credits, Syndrome};

    fn read(psn: u32, va: u64, dma_len: u32) -> Read {
        Read::new(Psn::new(psn), RethRepr { va, rkey: 1, dma_len }, Mtu::B256)
    }

    #[test]
    fn a_repetition_lies_in_its_read_at_the_place_of_its_psn() {
        let whole = read(0xFF_FFFF, 1000, 700);
        assert_eq!(whole.packets(), 3);
        for part in [whole, read(0, 1256, 444), read(0, 1256, 256), read(1, 1512, 188)] {
            assert!(whole.includes(&part), "{part:?}");
        }
        let foreign = [
            read(0xFF_FFFE, 744, 956),
            read(0, 1257, 443),
            read(0, 1256, 445),
            read(1, 1512, 0),
            read(2, 1768, 1),
            read(0, 1000, 256),
        ];
        for part in foreign {
            assert!(!whole.includes(&part), "{part:?}");
        }
        assert!(!whole.includes(&Read { reth: RethRepr { rkey: 2, ..whole.reth }, ..whole }));
        assert!(read(5, 0, 0).includes(&read(5, 0, 0)));
    }

    #[test]
    fn the_longest_read_at_the_smallest_mtu_takes_half_of_all_psns() {
        let longest = read(7, 0, 1 << 31);
        assert_eq!(longest.packets(), 1 << 23);
        assert!(longest.includes(&read(6 + (1 << 23), (1 << 31) - 256, 256)));
    }

    #[test]
    fn responses_cover_the_read_without_gap_or_overlap() {
        let aeth = AethRepr { syndrome: Syndrome::Ack(Credits::UNLIMITED), msn: 4 };
        let mut responses = Responses::new(read(0xFF_FFFF, 1000, 600), aeth, false);
        let mut seen = Vec::new();
        loop {
            let (Reply::ReadResponse { psn, position, va, len, .. }, more) = responses.next() else { panic!() };
            seen.push((psn.value(), position, va, len));
            if !more {
                break;
            }
        }
        let expected =
            [(0xFF_FFFF, Position::First, 1000, 256), (0, Position::Middle, 1256, 256), (1, Position::Last, 1512, 88)];
        assert_eq!(seen, expected);
    }
}
