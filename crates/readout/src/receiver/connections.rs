// SPDX-License-Identifier: Apache-2.0
//! What the receiver is notified of its boards' connections, for the event builder.

use super::Receiver;
use crate::sink::EventSink;
use penstock_units::Time;

impl<S: EventSink> Receiver<S> {
    /// The board has a new connection over the same ring, and may send again what is here already.
    pub fn reconnected(&mut self, board: u16) {
        self.builder.reconnected(board);
        self.storing.sink.reconnected(board);
        if let Some(pattern) = &mut self.storing.pattern {
            pattern.begin_anew(board);
        }
    }

    /// Whether a board has a connection, as far as is known at `now`: see [`EventBuilder::lost`].
    pub fn set_connected(&mut self, now: Time, board: u16, is_connected: bool) {
        match is_connected {
            true => self.builder.back(now, board),
            false => self.builder.lost(now, board),
        }
    }

    /// See [`EventBuilder::absent`].
    pub fn absent(&mut self, board: u16) {
        self.builder.absent(board);
    }

    /// See [`EventBuilder::passed`].
    pub fn passed(&mut self, board: u16, event: u64) -> u64 {
        self.builder.passed(board, event)
    }

    /// See [`EventBuilder::set_outage`].
    pub fn set_outage(&mut self, board: u16, outage: Time) {
        self.builder.set_outage(board, outage);
    }

    /// See [`EventBuilder::is_gone`].
    pub fn is_gone(&self, board: u16) -> bool {
        self.builder.is_gone(board)
    }

    /// See [`EventBuilder::reached`].
    pub fn reached(&mut self, now: Time, board: u16) {
        self.builder.reached(now, board);
    }

    /// See [`EventBuilder::alive`].
    pub fn alive(&mut self, now: Time, board: u16, was_away: bool) {
        self.builder.alive(now, board, was_away);
    }
}
