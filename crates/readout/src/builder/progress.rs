// SPDX-License-Identifier: Apache-2.0
//! How far every source has come, and whether it is there. Sources send in order of event: queue pairs keep it.
//! Promise: what a source sends again over a new connection is known for what it is.
//! Source: IBTA 9.5 (order within a queue pair).

use super::absence::Absence;

#[derive(Debug)]
pub(super) struct Progress {
    /// By source: the place behind its latest fragment.
    reached: Vec<u64>,
    /// By source: what `reached` was when it connected again.
    before: Vec<u64>,
    pub(super) absence: Absence,
}

impl Progress {
    pub(super) fn new(sources: u16, timeout_ps: u64) -> Progress {
        let zeros = || vec![0; usize::from(sources)];
        Progress { reached: zeros(), before: zeros(), absence: Absence::new(sources, timeout_ps) }
    }

    /// A fragment in front of the place `end` has come.
    pub(super) fn heard(&mut self, source: u16, end: u64) {
        let reached = &mut self.reached[usize::from(source)];
        *reached = (*reached).max(end);
    }

    pub(super) fn reconnected(&mut self, source: u16) {
        let source = usize::from(source);
        if let (Some(before), Some(reached)) = (self.before.get_mut(source), self.reached.get(source)) {
            *before = *reached;
        }
    }

    /// Whether a fragment had come over its source's last connection; how far back that can be, `rows` bounds.
    pub(super) fn is_resent(&self, source: u16, seq: u64, rows: u64) -> bool {
        let before = self.before[usize::from(source)];
        seq < before && before - seq <= rows
    }

    /// Whether a source has still something to send in front of a place.
    pub(super) fn is_short_of(&self, source: u16, end: u64) -> bool {
        self.reached.get(usize::from(source)).is_some_and(|reached| *reached < end)
    }

    /// Whether a source may still send the head's fragment: it is there and has sent no later one.
    pub(super) fn is_any_behind(&self, head: u64) -> bool {
        self.there().any(|reached| reached <= head)
    }

    /// Whether a source has sent nothing from the head on, but something of the event that was given up or of a later
    /// one. One that has sent later fragments will not send the head's any more, and one that has been silent for longer
    /// was not held back.
    pub(super) fn is_any_held_back(&self, given_up: u64, head: u64) -> bool {
        self.there().any(|reached| (given_up + 1..=head).contains(&reached))
    }

    /// How far the sources have come that are not gone.
    fn there(&self) -> impl Iterator<Item = u64> + '_ {
        let each = self.reached.iter().enumerate();
        each.filter(|(source, _)| !self.absence.is_gone(*source)).map(|(_, reached)| *reached)
    }
}
