// SPDX-License-Identifier: Apache-2.0
//! Whoever uses the events, played at a given rate: slots of stored events wait until it has taken them.
//! Promise: without a rate nothing waits.

use std::collections::VecDeque;
use std::num::NonZeroU64;

use crate::slots::Place;

/// A fragment that is stored, and waits for the consumer.
#[derive(Debug, Clone, Copy)]
struct Draining {
    until_ps: u64,
    board: u16,
    place: Place,
}

#[derive(Debug)]
pub(super) struct Consumer {
    bytes_per_s: Option<NonZeroU64>,
    /// When it will have taken all it was given.
    busy_until_ps: u64,
    draining: VecDeque<Draining>,
}

impl Consumer {
    pub(super) fn new(bytes_per_s: Option<NonZeroU64>) -> Consumer {
        Consumer { bytes_per_s, busy_until_ps: 0, draining: VecDeque::new() }
    }

    /// Gives it `bytes` behind all it has. Returns when it will have taken them, ps.
    pub(super) fn give(&mut self, now_ps: u64, bytes: u64) -> u64 {
        const PS_PER_S: u128 = 1_000_000_000_000;
        let from_ps = self.busy_until_ps.max(now_ps);
        let ps = self.bytes_per_s.map_or(0, |rate| u128::from(bytes) * PS_PER_S / u128::from(rate.get()));
        self.busy_until_ps = from_ps.saturating_add(u64::try_from(ps).unwrap_or(u64::MAX));
        self.busy_until_ps
    }

    /// A fragment's place is held until then. In order of time.
    pub(super) fn hold(&mut self, until_ps: u64, board: u16, place: Place) {
        self.draining.push_back(Draining { until_ps, board, place });
    }

    /// The next place that is held no more.
    pub(super) fn taken(&mut self, now_ps: u64) -> Option<(u16, Place)> {
        let &Draining { board, place, .. } = self.draining.front().filter(|first| first.until_ps <= now_ps)?;
        self.draining.pop_front();
        Some((board, place))
    }

    /// When [`Self::taken`] has the next one.
    pub(super) fn next_ps(&self) -> Option<u64> {
        self.draining.front().map(|first| first.until_ps)
    }

    pub(super) fn is_behind(&self) -> bool {
        !self.draining.is_empty()
    }
}
