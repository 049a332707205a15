// SPDX-License-Identifier: Apache-2.0
//! Determines the first event of a run that started before this server: the first one that all boards that agree still
//! have. Promise: fragments that arrive before it is known are held in their slots, so that they do not count as late.
//! A board whose event numbers are far from the others' (it has restarted, or its number was set wrong) does not affect
//! the choice. Boards send in order of event.

use penstock_units::Time;

use crate::backend::Completion;

/// How the search waits.
#[derive(Debug, Clone, Copy)]
pub(super) struct Patience {
    /// For boards that are up and send nothing, after the first message and after the latest board came up.
    pub(super) silent: Time,
    /// For boards that are not up: until this time of the session.
    pub(super) bring_up: Time,
    /// And after the latest board came up: boards that are switched on together are not found at the same moment.
    pub(super) settle: Time,
}

/// Waits until every board has sent something, or long enough.
pub(super) struct FirstEvent {
    held: Vec<Completion>,
    /// By board: whether it is up, whether it has sent, and the first event that it has sent.
    up: Vec<bool>,
    heard: Vec<bool>,
    first: Vec<Option<u64>>,
    /// Boards agree if their first events can be open together.
    reach: u64,
    patience: Patience,
    /// Of the first message, and when the latest board came up.
    message_at: Time,
    up_at: Time,
}

impl FirstEvent {
    /// `reach`: how far apart the numbers of events are that can be open together.
    pub(super) fn new(boards: usize, reach: u64, patience: Patience) -> FirstEvent {
        let (up, heard, first) = (vec![false; boards], vec![false; boards], vec![None; boards]);
        let (message_at, up_at) = (Time::ZERO, Time::ZERO);
        FirstEvent { held: Vec::new(), up, heard, first, reach, patience, message_at, up_at }
    }

    /// When it is known at the latest.
    pub(super) fn due(&self) -> Time {
        let missing = |board: &usize| !self.heard[*board];
        let mut missing = (0..self.heard.len()).filter(missing).peekable();
        if self.held.is_empty() || missing.peek().is_none() {
            return if self.held.is_empty() { Time::MAX } else { Time::ZERO };
        }
        let silent = self.message_at.max(self.up_at).saturating_add(self.patience.silent);
        match missing.all(|board| self.up[board]) {
            true => silent,
            false => silent.max(self.patience.bring_up).max(self.up_at.saturating_add(self.patience.settle)),
        }
    }

    /// A board has a connection, or has lost it.
    pub(super) fn connected(&mut self, now: Time, board: usize, is_up: bool) {
        if is_up && !self.up[board] {
            self.up_at = now;
        }
        self.up[board] = is_up;
    }

    /// A message of `event`; none if it is no fragment.
    pub(super) fn hold(&mut self, now: Time, done: Completion, event: Option<u64>) {
        if self.held.is_empty() {
            self.message_at = now;
        }
        let board = usize::from(done.board);
        self.held.push(done);
        self.heard[board] = true;
        self.first[board] = self.first[board].into_iter().chain(event).min();
    }

    /// How many messages of `board` are held.
    pub(super) fn held_of(&self, board: u16) -> usize {
        self.held.iter().filter(|done| done.board == board).count()
    }

    /// The first event and what was held, once it is known.
    pub(super) fn found(&mut self, now: Time) -> Option<(u64, Vec<Completion>)> {
        if self.held.is_empty() || now < self.due() {
            return None;
        }
        // Messages that are no fragments have no event; where there are no others the run begins at 0.
        let event = agreed(self.first.iter().flatten().copied().collect(), self.reach).unwrap_or(0);
        Some((event, std::mem::take(&mut self.held)))
    }
}

/// The largest of those numbers that most boards agree on: they lie within `reach` of one another, each of the next. The
/// boards of smaller ones have what follows, too. Of groups of one size the latest counts: a board that begins again
/// begins at a small number. None if there are no numbers.
fn agreed(mut first: Vec<u64>, reach: u64) -> Option<u64> {
    first.sort_unstable();
    let groups = first.chunk_by(|a, b| b - a <= reach);
    groups.max_by_key(|group| group.len()).and_then(|group| group.last().copied())
}

#[cfg(test)]
mod tests {
    use penstock_transport::{RecvOpcode, RecvStatus};

    use super::*;

    fn message(board: u16) -> Completion {
        let (status, opcode) = (RecvStatus::Success, RecvOpcode::Send);
        Completion { board, wr_id: 0, status, opcode, imm: None, byte_len: 100, payload_crc: None }
    }

    #[test]
    fn boards_that_are_up_are_waited_for_briefly_and_others_until_all_that_come_together_are_there() {
        let patience = Patience { silent: Time(10), bring_up: Time(100), settle: Time(40) };
        let mut search = FirstEvent::new(3, 1024, patience);
        assert_eq!(search.due(), Time::MAX);
        search.connected(Time(5), 0, true);
        search.hold(Time(6), message(0), Some(3));
        assert_eq!((search.due(), search.found(Time(99)).is_none()), (Time(100), true), "others may come up");
        search.connected(Time(90), 1, true);
        assert_eq!(search.due(), Time(130), "one has just come up");
        search.connected(Time(95), 2, true);
        assert_eq!(search.due(), Time(105), "all are up");
        search.hold(Time(96), message(1), Some(5));
        search.hold(Time(97), message(2), Some(4));
        assert_eq!(search.found(Time(97)).map(|(event, held)| (event, held.len())), Some((5, 3)));
    }

    #[test]
    fn the_run_begins_where_most_boards_are() {
        assert_eq!(agreed(vec![100_003, 0, 100_000], 1024), Some(100_003), "one stale board does not decide");
        assert_eq!(agreed(vec![5, 100_000, 7, 6], 1024), Some(7), "nor one that is ahead");
        assert_eq!(agreed(vec![0, 100_000], 1024), Some(100_000), "of two it is the one that began again");
        assert_eq!(
            agreed((0..264).map(|k| k * 1000).collect(), 1024),
            Some(263_000),
            "those in between join the others"
        );
        assert_eq!(agreed(vec![], 1024), None);
    }
}
