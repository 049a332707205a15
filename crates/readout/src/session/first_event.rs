// SPDX-License-Identifier: Apache-2.0
//! Determines the first event of a run that started before this server: the first one that all boards that agree still
//! have. Promise: fragments that arrive before it is known are held in their slots, so that they do not count as late.
//! A board whose event numbers are far from the others' (it has restarted, or its number was set wrong) does not affect
//! the choice, nor does a single number that is wrong. Boards send in order of event.

use penstock_units::Time;

use crate::backend::Completion;

/// How the search waits.
#[derive(Debug, Clone, Copy)]
pub(super) struct Patience {
    /// Time for boards that are up and send nothing, after the first message and after the latest board came up.
    pub(super) silent: Time,
    /// Time of the session until which boards that are not up are waited for.
    pub(super) bring_up: Time,
    /// And after the latest board came up: boards that are switched on together are not found at the same moment.
    pub(super) settle: Time,
}

/// Waits until every board has sent something, or long enough.
pub(super) struct FirstEvent {
    held: Vec<Completion>,
    /// Whether a board is up, whether it has sent, and the first event that it has sent, for each.
    up: Vec<bool>,
    has_sent: Vec<bool>,
    first: Vec<Option<u64>>,
    /// Whether a board's next event follows its first one, for each.
    is_followed: Vec<bool>,
    /// Boards agree if their first events can be open together.
    reach: u64,
    patience: Patience,
    /// Time of the first message, and of the latest board that came up.
    message_at: Time,
    up_at: Time,
}

impl FirstEvent {
    /// `reach`: how far apart the numbers of events are that can be open together.
    pub(super) fn new(boards: usize, reach: u64, patience: Patience) -> FirstEvent {
        let (up, has_sent, first) = (vec![false; boards], vec![false; boards], vec![None; boards]);
        let (message_at, up_at, is_followed) = (Time::ZERO, Time::ZERO, vec![false; boards]);
        FirstEvent { held: Vec::new(), up, has_sent, first, is_followed, reach, patience, message_at, up_at }
    }

    /// When it is known at the latest.
    pub(super) fn due(&self) -> Time {
        let missing = |board: &usize| !self.has_sent[*board];
        let mut missing = (0..self.has_sent.len()).filter(missing).peekable();
        if self.held.is_empty() {
            return Time::MAX;
        }
        let since = self.message_at.max(self.up_at);
        let silent = since.saturating_add(self.patience.silent);
        if missing.peek().is_none() {
            let is_sure = (0..self.first.len()).all(|board| self.is_sure(board));
            return if is_sure { Time::ZERO } else { silent.min(since.saturating_add(self.patience.settle)) };
        }
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
        self.has_sent[board] = true;
        match event {
            Some(event) if self.first[board].is_some() => self.follows(board, event),
            Some(_) => self.first[board] = event,
            None => {}
        }
    }

    /// What a board sends after its first fragment, whether it is taken now or not. If it is of an earlier event, the
    /// first one's number was wrong.
    pub(super) fn follows(&mut self, board: usize, event: u64) {
        if let Some(first) = &mut self.first[board] {
            self.is_followed[board] |= event < *first || (1..=self.reach).contains(&(event - *first));
            *first = event.min(*first);
        }
    }

    /// A number counts if that of another board is near it, or the board's next one follows it.
    fn is_sure(&self, board: usize) -> bool {
        let Some(first) = self.first[board] else { return true };
        let near = |other: &&u64| other.abs_diff(first) <= self.reach;
        self.is_followed[board] || self.first.iter().flatten().filter(near).nth(1).is_some()
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
        let sure = (0..self.first.len()).filter(|board| self.is_sure(*board)).filter_map(|board| self.first[board]);
        let event = agreed(sure.collect(), self.reach);
        let event = event.or_else(|| agreed(self.first.iter().flatten().copied().collect(), self.reach)).unwrap_or(0);
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
    fn a_number_that_nothing_confirms_does_not_decide_where_the_run_begins() {
        const WRONG: u64 = (1 << 40) + 5;
        let search = |first: &[u64]| {
            let patience = Patience { silent: Time(50), bring_up: Time(100), settle: Time(40) };
            let mut search = FirstEvent::new(first.len(), 1024, patience);
            for (board, &event) in first.iter().enumerate() {
                search.connected(Time(0), board, true);
                search.hold(Time(1), message(board as u16), Some(event));
            }
            search
        };
        let found = |search: &mut FirstEvent, now| search.found(Time(now)).map(|(event, _)| event);
        // Of two boards one is wrong, and goes on with right numbers, or says no more.
        let mut both = search(&[6, WRONG]);
        assert_eq!((found(&mut both, 2), both.due()), (None, Time(41)));
        both.follows(1, 7);
        assert_eq!(found(&mut both, 2), Some(7));
        let mut silent = search(&[6, WRONG]);
        silent.follows(0, 7);
        assert_eq!((found(&mut silent, 40), found(&mut silent, 41)), (None, Some(6)));
        // A board that is alone; one whose later numbers are wrong; and one that sends a single message.
        let mut alone = search(&[WRONG]);
        assert_eq!(found(&mut alone, 2), None);
        alone.follows(0, 6);
        assert_eq!(found(&mut alone, 2), Some(6));
        let mut later = search(&[6]);
        later.follows(0, WRONG);
        assert_eq!((found(&mut later, 40), found(&mut later, 41)), (None, Some(6)));
        assert_eq!(found(&mut search(&[6]), 41), Some(6));
        // One that has begun again is as sure as the others.
        let mut again = search(&[100_000, 0]);
        again.follows(0, 100_001);
        again.follows(1, 1);
        assert_eq!(found(&mut again, 2), Some(100_000));
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
