// SPDX-License-Identifier: Apache-2.0
//! What one board sends: a message per trigger, each into the next slot of the board's ring.

use penstock_board::{Message, MessageSource, Verb};
use penstock_readout::{EventSource, RingConfig};
use penstock_units::Time;
use std::sync::Arc;

/// The fragments of one board, event after event, at the times of the run's triggers.
pub struct BoardSource {
    events: Arc<EventSource>,
    board: u16,
    ring: RingConfig,
    /// Trigger times, one per event, never decreasing; shared by all boards.
    triggers: Arc<[Time]>,
    next: usize,
    qp: u8,
    verb: Verb,
    with_imm: bool,
}

impl BoardSource {
    pub fn new(events: Arc<EventSource>, board: u16, ring: RingConfig, triggers: Arc<[Time]>) -> Self {
        Self { events, board, ring, triggers, next: 0, qp: 0, verb: Verb::Write, with_imm: true }
    }

    /// The same by another queue pair or operation than WRITE WITH IMMEDIATE of queue pair 0. With [`Verb::RingWrite`] the
    /// gateware fills in the slots, which begin again at 0 with each connection.
    pub fn with_verb(self, qp: u8, verb: Verb, with_imm: bool) -> Self {
        Self { qp, verb, with_imm, ..self }
    }
}

impl MessageSource for BoardSource {
    fn next_time(&self) -> Option<Time> {
        self.triggers.get(self.next).copied()
    }

    fn take(&mut self) -> Option<Message> {
        let at = self.next_time()?;
        let event = self.next as u64;
        // One message per fragment; the immediate names the slot.
        let slot = (event % u64::from(self.ring.slots)) as u32;
        let message = Message {
            qp: self.qp,
            verb: self.verb,
            imm: (self.with_imm && self.verb != Verb::RingWrite).then_some(slot),
            remote_address: self.ring.va + u64::from(slot) * u64::from(self.ring.slot_bytes),
            tag: event as u32,
            payload: self.events.message(event, self.board, at / Time::from_ns(1)),
        };
        self.next += 1;
        Some(message)
    }
}
