// SPDX-License-Identifier: Apache-2.0
//! The receives of a pool: decides which board may take one.
//! Promise: a connected board without a slot of the pool gets one, provided that there are at least as many slots as
//! boards. Boards send in order, so the fragments that an event waits for come from boards without a slot, and the pool
//! never deadlocks.
//! Source: IBTA 9.7.5.2.8 (RNR NAK: a responder that cannot take a message now, without a reason). The shared receive
//! queue of a NIC (SRQ, IBTA 10.2.9) serves requests in order of arrival and cannot give this guarantee.

use std::collections::{BTreeMap, VecDeque};

use penstock_transport::RecvWr;

use super::PoolSpec;

/// Receives of one pool, and who has which.
#[derive(Debug, Default)]
pub(super) struct Lending {
    free: VecDeque<RecvWr>,
    /// The board that has a receive, by its number, until it is posted again.
    lent: BTreeMap<u64, u16>,
    /// The number of receives of each connected board.
    has: BTreeMap<u16, u32>,
    /// Connected boards that have none.
    without: usize,
    /// Receives that a board gets in advance.
    ahead: usize,
    /// The pool is low with fewer receives left.
    low: usize,
    is_low: bool,
    /// How often, since the last call.
    ran_low: u64,
}

impl Lending {
    pub(super) fn new(spec: &PoolSpec) -> Lending {
        let ahead = (spec.max_receives / (2 * u32::from(spec.boards).max(1))).max(1);
        // It is empty: not worth a word.
        Lending { ahead: ahead as usize, low: spec.low as usize, is_low: true, ..Lending::default() }
    }

    pub(super) fn post(&mut self, wr: RecvWr) {
        if let Some(board) = self.lent.remove(&wr.wr_id) {
            self.change(board, |has| has - 1);
        }
        self.free.push_back(wr);
        self.is_low &= self.free.len() < self.low;
    }

    /// A receive for the next message of `board`; none if what is left is kept for boards that have none.
    pub(super) fn lend(&mut self, board: u16) -> Option<RecvWr> {
        let has_one = self.has.get(&board).is_some_and(|has| *has > 0);
        if has_one && self.free.len() <= self.without {
            return None;
        }
        let wr = self.free.pop_front()?;
        self.lent.insert(wr.wr_id, board);
        self.change(board, |has| has + 1);
        if !self.is_low && self.free.len() < self.low {
            (self.is_low, self.ran_low) = (true, self.ran_low + 1);
        }
        Some(wr)
    }

    /// Receives that a board gets in advance, and that its ACKs report (end-to-end credits, IBTA 9.7.7.2): a
    /// board that sends without one sends in vain. All of them together are half of the pool, or one a board if that is
    /// more.
    pub(super) fn ahead(&self) -> usize {
        self.ahead
    }

    /// A board is connected. What it had before may still be held.
    pub(super) fn connect(&mut self, board: u16) {
        self.disconnect(board);
        let has = self.lent.values().filter(|of| **of == board).count();
        self.has.insert(board, has as u32);
        self.without += usize::from(has == 0);
    }

    pub(super) fn disconnect(&mut self, board: u16) {
        self.without -= usize::from(self.has.remove(&board) == Some(0));
    }

    pub(super) fn ran_low(&mut self) -> u64 {
        std::mem::take(&mut self.ran_low)
    }

    fn change(&mut self, board: u16, change: impl FnOnce(u32) -> u32) {
        if let Some(has) = self.has.get_mut(&board) {
            self.without -= usize::from(*has == 0);
            *has = change(*has);
            self.without += usize::from(*has == 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_receives_are_for_boards_that_have_none() {
        let mut pool = Lending { is_low: true, ..Lending::default() };
        (0..4).for_each(|slot| pool.post(RecvWr { wr_id: slot, ..RecvWr::default() }));
        (0..3).for_each(|board| pool.connect(board));
        let ids = |lent: Option<RecvWr>| lent.map(|wr| wr.wr_id);
        assert_eq!([ids(pool.lend(0)), ids(pool.lend(0)), ids(pool.lend(0))], [Some(0), Some(1), None]);
        assert_eq!([ids(pool.lend(1)), ids(pool.lend(1)), ids(pool.lend(2))], [Some(2), None, Some(3)]);
        pool.post(RecvWr { wr_id: 3, ..RecvWr::default() });
        assert_eq!(ids(pool.lend(0)), None, "it is kept for board 2");
        pool.disconnect(2);
        assert_eq!(ids(pool.lend(0)), Some(3), "board 2 is gone");
        pool.connect(1);
        pool.post(RecvWr { wr_id: 2, ..RecvWr::default() });
        assert_eq!((ids(pool.lend(0)), ids(pool.lend(1))), (None, Some(2)), "board 1 had one before");
    }
}
