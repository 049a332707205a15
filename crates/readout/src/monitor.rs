// SPDX-License-Identifier: Apache-2.0
//! Checks test patterns as they arrive, board by board: correct bytes, errors with the first position, gaps.
//! Promise: every byte is compared; the first error and the first gap of every board are kept with their place.
//! The patterns are those of `pattern.rs`.

use serde::Serialize;

use crate::pattern::{Found, Pattern, PatternCheck};

/// Where something was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct PatternPlace {
    /// Number of the message of this board, from 0: payloads before it.
    pub message: u64,
    /// None where messages are no fragments.
    pub event: Option<u64>,
    /// Byte of the payload, from 0. A gap precedes its message: 0.
    pub byte: usize,
}

/// The data that one board has sent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct PatternReport {
    pub messages: u64,
    pub bytes: u64,
    pub messages_wrong: u64,
    /// Bits (PRBS-31) or bytes (counter).
    pub errors: u64,
    pub first_error: Option<PatternPlace>,
    /// Messages that are right in themselves and do not follow the one before.
    pub gaps: u64,
    pub first_gap: Option<PatternPlace>,
    /// Bytes of the pattern missing in the first gap; below 0 if it went back. None if there is none.
    pub first_gap_bytes: Option<i64>,
}

/// Follows the patterns of all boards, for a sink or a receiver that sees their payloads.
#[derive(Debug)]
pub struct PatternMonitor {
    check: PatternCheck,
    boards: Vec<PatternReport>,
    next_event: Option<u64>,
}

impl PatternMonitor {
    /// A monitor of this number of boards, numbered from 0.
    pub fn new(pattern: Pattern, boards: usize) -> PatternMonitor {
        let reports = vec![PatternReport::default(); boards];
        PatternMonitor { check: PatternCheck::new(pattern), boards: reports, next_event: None }
    }

    /// The report of each board.
    pub fn reports(&self) -> &[PatternReport] {
        &self.boards
    }

    /// The next payload of a board; `event` as in [`PatternPlace`].
    ///
    /// # Panics
    /// If there is no such board. So do the other functions that take one.
    pub fn payload(&mut self, board: u16, event: Option<u64>, payload: &[u8]) {
        let found = self.check.check(board, payload);
        self.note(board, event, payload.len(), found);
    }

    /// The same of a payload of `len` bytes that is known to be right in itself; `ends` begins and ends as it does, for
    /// four bytes each. False if it could not be used so; [`Self::payload`] takes it then.
    #[must_use]
    pub fn right_payload(&mut self, board: u16, event: u64, ends: &[u8], len: usize) -> bool {
        let found = self.check.follow(board, ends);
        found.map(|found| self.note(board, Some(event), len, found)).is_some()
    }

    fn note(&mut self, board: u16, event: Option<u64>, len: usize, found: Found) {
        let report = &mut self.boards[usize::from(board)];
        let place = |byte| PatternPlace { message: report.messages, event, byte };
        match found {
            Found::Right => {}
            Found::Jump { bytes } => {
                if report.first_gap.is_none() {
                    (report.first_gap, report.first_gap_bytes) = (Some(place(0)), bytes);
                }
                report.gaps += 1;
            }
            Found::Wrong { errors, first } => {
                report.first_error = report.first_error.or(Some(place(first)));
                report.errors += errors;
                report.messages_wrong += 1;
            }
        }
        report.messages += 1;
        report.bytes += len as u64;
    }

    /// The event that comes next. Those between it and the last one went to other servers, and their payloads with
    /// them.
    pub fn event(&mut self, event: u64, missing: &[u16]) {
        if self.next_event.is_some_and(|next| next != event) {
            (0..self.boards.len() as u16).for_each(|board| self.check.skip(board));
        }
        missing.iter().for_each(|&board| self.check.skip(board));
        self.next_event = event.checked_add(1);
    }

    /// A board restarts, at any position in its pattern.
    pub fn begin_anew(&mut self, board: u16) {
        self.check.skip(board);
    }
}
