// SPDX-License-Identifier: Apache-2.0
//! Determines the first event of a run that started before this server: the first one of the boards that agree.
//! Promise: fragments that arrive before it is known are held in their slots, so that they do not count as late. A
//! board whose event numbers are far from the others' (it has restarted, or its number was set wrong) does not affect
//! the choice. Boards send in order of event.

use penstock_units::Time;

use crate::backend::Completion;

/// Waits until every board has sent something, or long enough.
pub(super) struct FirstEvent {
    held: Vec<Completion>,
    /// By board: whether it has sent, and the first event that it has sent.
    heard: Vec<bool>,
    first: Vec<Option<u64>>,
    /// Boards agree if their first events can be open together.
    reach: u64,
    patience: Time,
    due: Time,
}

impl FirstEvent {
    /// `reach`: how far apart the numbers of events are that can be open together.
    pub(super) fn new(boards: usize, reach: u64, patience: Time) -> FirstEvent {
        let (heard, first) = (vec![false; boards], vec![None; boards]);
        FirstEvent { held: Vec::new(), heard, first, reach, patience, due: Time::MAX }
    }

    /// When it is known at the latest.
    pub(super) fn due(&self) -> Time {
        self.due
    }

    /// A message of `event`; none if it is no fragment.
    pub(super) fn hold(&mut self, now: Time, done: Completion, event: Option<u64>) {
        if self.held.is_empty() {
            self.due = now.saturating_add(self.patience);
        }
        let board = usize::from(done.board);
        self.held.push(done);
        self.heard[board] = true;
        self.first[board] = self.first[board].into_iter().chain(event).min();
    }

    /// Whether something of `board` is held.
    pub(super) fn holds(&self, board: u16) -> bool {
        self.held.iter().any(|done| done.board == board)
    }

    /// The first event and what was held, once it is known.
    pub(super) fn found(&mut self, now: Time) -> Option<(u64, Vec<Completion>)> {
        let known = now >= self.due || self.heard.iter().all(|heard| *heard);
        if !known || self.held.is_empty() {
            return None;
        }
        // Messages that are no fragments have no event; where there are no others the run begins at 0.
        let event = agreed(self.first.iter().flatten().copied().collect(), self.reach).unwrap_or(0);
        Some((event, std::mem::take(&mut self.held)))
    }
}

/// The smallest of those numbers that most boards agree on: they lie within `reach` of one another, each of the next.
/// Of groups of one size the latest counts: a board that begins again begins at a small number. None if there are no
/// numbers.
fn agreed(mut first: Vec<u64>, reach: u64) -> Option<u64> {
    first.sort_unstable();
    let groups = first.chunk_by(|a, b| b - a <= reach);
    groups.max_by_key(|group| group.len()).map(|group| group[0])
}

#[cfg(test)]
mod tests {
    use super::agreed;

    #[test]
    fn the_run_begins_where_most_boards_are() {
        assert_eq!(agreed(vec![100_003, 0, 100_000], 1024), Some(100_000), "one stale board does not decide");
        assert_eq!(agreed(vec![5, 100_000, 7, 6], 1024), Some(5), "nor one that is ahead");
        assert_eq!(agreed(vec![0, 100_000], 1024), Some(100_000), "of two it is the one that began again");
        assert_eq!(agreed((0..264).map(|k| k * 1000).collect(), 1024), Some(0), "those in between join the others");
        assert_eq!(agreed(vec![], 1024), None);
    }
}
