// SPDX-License-Identifier: Apache-2.0
//! What one board's detector gives: the raw samples of an event per trigger. The gateware makes the messages.

use penstock_board::{DetectorEvent, Feed, MessageSource};
use penstock_readout::EventSource;
use penstock_units::Time;
use std::sync::Arc;

/// The trigger type of recorded events: no other is known of them.
pub const TRIGGER_TYPE: u16 = 1;

/// The samples of one board, event after event, at the times of the run's triggers.
pub struct BoardSource {
    events: Arc<EventSource>,
    board: u16,
    /// Trigger times, one per event, never decreasing; shared by all boards.
    triggers: Arc<[Time]>,
    next: usize,
}

impl BoardSource {
    /// From event `next` on; those whose time is over follow one another at once, with the timestamps that they had.
    pub fn new(events: Arc<EventSource>, board: u16, triggers: Arc<[Time]>, next: u64) -> Self {
        Self { events, board, triggers, next: next as usize }
    }
}

impl MessageSource for BoardSource {
    fn next_time(&self) -> Option<Time> {
        self.triggers.get(self.next).copied()
    }

    fn take(&mut self) -> Option<Feed> {
        let at = self.next_time()?;
        let number = self.next as u64;
        self.next += 1;
        let streams = self.events.streams(number, self.board);
        // From the first event on: boards whose clocks began at different times agree.
        let timestamp_ns = (at - self.triggers[0]) / Time::from_ns(1);
        Some(DetectorEvent { number, timestamp_ns, trigger_type: TRIGGER_TYPE, streams }.into())
    }
}
