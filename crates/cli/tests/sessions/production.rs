// SPDX-License-Identifier: Apache-2.0
//! The messages of a front end of either kind: the fragments of its events, each at its time or later.
//! Promise: messages not acknowledged over one connection are sent again over the next one, in order.

use std::collections::VecDeque;

use bytes::Bytes;
use penstock_units::Time;
use penstock_wire::FragmentHeader;

use super::ledger::payload;

/// Time from one event to the next.
pub const PERIOD: Time = Time::from_us(200);
/// Messages made ahead of their acknowledgement.
const UNDER_WAY: usize = 8;

/// The number of the event that is due at `now` where all are in step.
pub fn event_at(now: Time) -> u64 {
    now.as_ps().div_ceil(PERIOD.as_ps())
}

pub struct Production {
    board: u16,
    /// Its events count from `first` at `begun`.
    first: u64,
    begun: Time,
    pub next: u64,
    /// Made and not acknowledged.
    queue: VecDeque<(u64, Bytes)>,
    done: Vec<u64>,
    /// It makes no more events, though it lives.
    pub is_silent: bool,
    is_acknowledged: bool,
    /// The source that its fragments name.
    pub names: u16,
}

impl Production {
    pub fn new(board: u16) -> Production {
        let (queue, done) = (VecDeque::new(), Vec::new());
        let (first, begun, next) = (0, Time::ZERO, 0);
        Production { board, first, begun, next, queue, done, is_silent: false, is_acknowledged: false, names: board }
    }

    /// Its power was cut: it counts from `first` now, and what it held is gone.
    pub fn restart(&mut self, first: u64, begun: Time) {
        (self.first, self.begun, self.next, self.is_acknowledged) = (first, begun, first, false);
        self.queue.clear();
    }

    /// Makes it count with the others again from the next event on; what it has not sent is gone.
    pub fn resume(&mut self, now: Time) {
        let next = event_at(now);
        self.restart(next, Time(PERIOD.as_ps() * next));
        (self.is_silent, self.names) = (false, self.board);
    }

    /// Makes what is due.
    pub fn make(&mut self, now: Time) {
        while self.queue.len() < UNDER_WAY && !self.is_silent {
            let at = self.begun + Time(PERIOD.as_ps() * (self.next - self.first));
            if at > now {
                return;
            }
            let bytes = payload(self.next, self.board);
            let timestamp_ns = self.next * PERIOD.as_ps() / 1000;
            let header = FragmentHeader::for_payload(self.names, self.next, timestamp_ns, &bytes);
            self.queue.push_back((self.next, Bytes::from([&header.to_bytes()[..], &bytes].concat())));
            self.next += 1;
        }
    }

    /// The first event whose fragment has not been acknowledged; none before any was since its power was cut.
    pub fn unacknowledged(&self) -> Option<u64> {
        self.is_acknowledged.then(|| self.queue.front().map_or(self.next, |(event, _)| *event))
    }

    /// Messages that are not acknowledged, the oldest first.
    pub fn messages(&self) -> &VecDeque<(u64, Bytes)> {
        &self.queue
    }

    /// The oldest one was acknowledged.
    pub fn acknowledged(&mut self) {
        if let Some((event, _)) = self.queue.pop_front() {
            self.done.push(event);
            self.is_acknowledged = true;
        }
    }

    /// Events of which the fragment was acknowledged since this was asked.
    pub fn take_done(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.done)
    }
}
