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
    pub fn new(events: Arc<EventSource>, board: u16, triggers: Arc<[Time]>) -> Self {
        Self { events, board, triggers, next: 0 }
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
        let timestamp_ns = at / Time::from_ns(1);
        Some(DetectorEvent { number, timestamp_ns, trigger_type: TRIGGER_TYPE, streams }.into())
    }
}
