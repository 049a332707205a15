// SPDX-License-Identifier: Apache-2.0
//! A detector at the gateware's inputs that always has a next event.

use bytes::Bytes;
use penstock_board::{Board, DetectorEvent};
use penstock_wire::fragment::message_2_len;
use penstock_wire::gateware::BOARD_INPUTS;

/// Events at the inputs ahead of those that are taken.
const AHEAD: usize = 3;

/// A detector that always has the next event.
pub struct Detector {
    /// One for each input.
    pub streams: Vec<Bytes>,
    next: u64,
}

impl Detector {
    /// The same bytes again and again, shared evenly among the inputs.
    pub fn new(payload: usize) -> Self {
        let bytes = Bytes::from((0..payload).map(|i| i as u8).collect::<Vec<_>>());
        let each = payload.div_ceil(BOARD_INPUTS).next_multiple_of(8);
        let streams = (0..payload).step_by(each).map(|at| bytes.slice(at..payload.min(at + each))).collect();
        Self { streams, next: 0 }
    }

    /// The next event.
    pub fn event(&mut self) -> DetectorEvent {
        let number = self.next;
        self.next += 1;
        DetectorEvent { number, trigger_type: 1, cycle: 0, streams: self.streams.clone() }
    }

    /// Keeps events at the inputs.
    pub fn refill(&mut self, board: &mut Board) {
        while board.pending_messages() < AHEAD {
            board.detect(self.event());
        }
    }

    /// Size of the message that the gateware makes of an event.
    pub fn message_bytes(&self) -> u32 {
        let payload = self.streams.iter().map(Bytes::len).sum();
        message_2_len(payload, self.streams.len()) as u32
    }
}
