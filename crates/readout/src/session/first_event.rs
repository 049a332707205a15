// SPDX-License-Identifier: Apache-2.0
//! With which event a run begins that was under way before this server: the first one that any board sends.
//! Promise: what comes before that is known is held in its slots, so that it is not taken for an event's late part.
//! Boards send in order of event.

use crate::backend::Completion;

/// Waits until every board has sent something, or long enough.
pub(super) struct FirstEvent {
    held: Vec<Completion>,
    /// Boards that have not sent.
    silent: Vec<bool>,
    event: Option<u64>,
    patience_ps: u64,
    due_ps: u64,
}

impl FirstEvent {
    pub(super) fn new(boards: usize, patience_ps: u64) -> FirstEvent {
        FirstEvent { held: Vec::new(), silent: vec![true; boards], event: None, patience_ps, due_ps: u64::MAX }
    }

    /// When it is known at the latest.
    pub(super) fn due_ps(&self) -> u64 {
        self.due_ps
    }

    /// A message of `event`; none if it is no fragment.
    pub(super) fn hold(&mut self, now_ps: u64, done: Completion, event: Option<u64>) {
        if self.held.is_empty() {
            self.due_ps = now_ps.saturating_add(self.patience_ps);
        }
        self.held.push(done);
        self.silent[usize::from(done.board)] = false;
        self.event = self.event.into_iter().chain(event).min();
    }

    /// Whether something of `board` is held.
    pub(super) fn holds(&self, board: u16) -> bool {
        self.held.iter().any(|done| done.board == board)
    }

    /// The first event and what was held, once it is known.
    pub(super) fn found(&mut self, now_ps: u64) -> Option<(u64, Vec<Completion>)> {
        let known = now_ps >= self.due_ps || !self.silent.contains(&true);
        // Messages that are no fragments are nobody's first.
        let event = self.event.filter(|_| known).or((known && !self.held.is_empty()).then_some(0))?;
        Some((event, std::mem::take(&mut self.held)))
    }
}
