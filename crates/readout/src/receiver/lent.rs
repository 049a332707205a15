// SPDX-License-Identifier: Apache-2.0
//! Slots of stored events that the sink still reads, for example an accelerator that processes them in place.
//! Promise: slots are returned in the order in which they were lent. Source: [`crate::EventSink::settled`].

use std::collections::VecDeque;

use penstock_units::Time;

use super::slots::Place;

/// A fragment that is stored and still read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Loan {
    /// Number of the event among those that the sink has taken, from 0.
    event: u64,
    /// When the consumer will have taken it.
    pub(super) until: Time,
    pub(super) board: u16,
    pub(super) place: Place,
}

#[derive(Debug, Default)]
pub(super) struct Lent {
    events: u64,
    loans: VecDeque<Loan>,
}

impl Lent {
    /// The sink has taken one more event. Whether its places are free already.
    pub(super) fn stored(&mut self, settled: u64) -> bool {
        self.events += 1;
        self.events <= settled
    }

    /// A place of the last event that was stored.
    pub(super) fn lend(&mut self, until: Time, board: u16, place: Place) {
        self.loans.push_back(Loan { event: self.events - 1, until, board, place });
    }

    /// The next place that the sink reads no more.
    pub(super) fn given_back(&mut self, settled: u64) -> Option<Loan> {
        let first = *self.loans.front()?;
        (first.event < settled).then(|| self.loans.pop_front())?
    }
}
