// SPDX-License-Identifier: Apache-2.0
//! An emulated consumer of events with a given rate: slots of stored events stay occupied until it has taken the
//! events.
//! Promise: without a rate no slot waits.

use std::collections::VecDeque;

use penstock_units::{Rate, Time};

use super::slots::Place;

/// A fragment that is stored, and waits for the consumer.
#[derive(Debug, Clone, Copy)]
struct Draining {
    until: Time,
    board: u16,
    place: Place,
}

#[derive(Debug)]
pub(super) struct Consumer {
    rate: Option<Rate>,
    /// When it will have taken all it was given.
    busy_until: Time,
    draining: VecDeque<Draining>,
}

impl Consumer {
    pub(super) fn new(rate: Option<Rate>) -> Consumer {
        Consumer { rate, busy_until: Time::ZERO, draining: VecDeque::new() }
    }

    /// Appends `bytes` to its queue. Returns the time when it will have taken them.
    pub(super) fn give(&mut self, now: Time, bytes: u64) -> Time {
        let from = self.busy_until.max(now);
        self.busy_until = from.saturating_add(self.rate.map_or(Time::ZERO, |rate| rate.whole_time_for(bytes)));
        self.busy_until
    }

    /// A fragment's place is held until then. In order of time.
    pub(super) fn hold(&mut self, until: Time, board: u16, place: Place) {
        self.draining.push_back(Draining { until, board, place });
    }

    /// The next place that is held no more.
    pub(super) fn taken(&mut self, now: Time) -> Option<(u16, Place)> {
        let &Draining { board, place, .. } = self.draining.front().filter(|first| first.until <= now)?;
        self.draining.pop_front();
        Some((board, place))
    }

    /// When [`Self::taken`] has the next one.
    pub(super) fn next_due(&self) -> Option<Time> {
        self.draining.front().map(|first| first.until)
    }

    pub(super) fn is_behind(&self) -> bool {
        !self.draining.is_empty()
    }
}
