// SPDX-License-Identifier: Apache-2.0
//! The event numbers that belong to this server as the farm changes: maps a number to its place in the sequence and
//! back.
//! Promise: places 0, 1, 2... have ascending numbers; a change never moves an event that already has a place.
//! Source: docs/integration.md (event n to server n modulo the live servers; the table changes only at an announced
//! event number); docs/integration.md, "destination".

use std::collections::VecDeque;
use std::num::NonZeroU64;

/// This server's part of the events from an announced number on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Share {
    /// First event of the new table (register `destination.switch_event` of the boards).
    pub from_event: u64,
    /// Rows of the table: live servers, each as often as its weight.
    pub rows: NonZeroU64,
    /// Event n is ours if n modulo `rows` is one of these, which ascend. Empty: no event is ours any more.
    pub ours: Vec<u64>,
}

/// Why a change cannot be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ShareError {
    #[error("the table cannot change at event {from_event}: event {taken} has begun already; announce a later one")]
    TooLate { from_event: u64, taken: u64 },
    #[error("the table cannot change at event {from_event}: it changes at {last} already; announce in order")]
    Disorder { from_event: u64, last: u64 },
    #[error(
        "row {row} of a table of {rows} rows does not exist, or does not follow the one before; rows count from 0"
    )]
    NoSuchRow { row: u64, rows: u64 },
}

/// Places that one table gives.
#[derive(Debug, Clone)]
struct Era {
    share: Share,
    /// Place of the first event that is ours.
    first_seq: u64,
    /// How many events below `share.from_event` would be ours by this table.
    skipped: u64,
}

impl Era {
    fn new(share: Share, first_seq: u64) -> Era {
        Era { skipped: count_below(&share, share.from_event), share, first_seq }
    }

    /// Events of this era below `event`.
    fn events_below(&self, event: u64) -> u64 {
        count_below(&self.share, event).saturating_sub(self.skipped)
    }
}

/// How many of the events below `event` are ours by this table alone.
fn count_below(share: &Share, event: u64) -> u64 {
    let (rounds, rest) = (event / share.rows, event % share.rows);
    // As many as there are events at most, so this cannot overflow.
    rounds * share.ours.len() as u64 + share.ours.partition_point(|row| *row < rest) as u64
}

/// The numbers of one server's events.
#[derive(Debug, Clone)]
pub(crate) struct Sequence {
    /// The eras by `share.from_event`; the last one has no end. Never empty.
    eras: VecDeque<Era>,
}

impl Sequence {
    /// `first_event` and every `stride`th after it.
    pub fn new(first_event: u64, stride: NonZeroU64) -> Sequence {
        let share = Share { from_event: first_event, rows: stride, ours: vec![first_event % stride] };
        Sequence { eras: VecDeque::from([Era::new(share, 0)]) }
    }

    /// Starts at this server's first event from `event` on; no place has been taken. Announced changes hold.
    pub fn begin_at(&mut self, event: u64) {
        let old = std::mem::take(&mut self.eras);
        let here = old.iter().rposition(|era| era.share.from_event <= event).unwrap_or(0);
        for Era { mut share, .. } in old.into_iter().skip(here) {
            share.from_event = share.from_event.max(event);
            let first_seq = self.eras.back().map_or(0, |last| last.first_seq + last.events_below(share.from_event));
            self.eras.push_back(Era::new(share, first_seq));
        }
    }

    /// Changes the table. `taken` places are in use or over; they must be before the change.
    pub fn change(&mut self, share: Share, taken: u64) -> Result<(), ShareError> {
        let (from_event, rows) = (share.from_event, share.rows.get());
        let follows = |at: usize| share.ours[at] < rows && (at == 0 || share.ours[at - 1] < share.ours[at]);
        if let Some(at) = (0..share.ours.len()).find(|at| !follows(*at)) {
            return Err(ShareError::NoSuchRow { row: share.ours[at], rows });
        }
        let last = self.last();
        // Of a table that gives this server nothing no place is known.
        let is_earlier =
            from_event < last.share.from_event || (from_event == last.share.from_event && !last.share.ours.is_empty());
        if is_earlier && self.eras.len() > 1 {
            return Err(ShareError::Disorder { from_event, last: last.share.from_event });
        }
        let first_seq = last.first_seq + last.events_below(from_event);
        if taken > first_seq {
            return Err(ShareError::TooLate { from_event, taken: self.number(taken - 1) });
        }
        self.eras.push_back(Era::new(share, first_seq));
        Ok(())
    }

    /// The place after the last event of ours before an event, as the tables have it now.
    pub fn places_before(&self, event: u64) -> u64 {
        let era = self.eras.iter().rev().find(|era| era.share.from_event <= event).unwrap_or(&self.eras[0]);
        era.first_seq + era.events_below(event)
    }

    /// The place of an event; none if it is not ours.
    pub fn place(&self, event: u64) -> Option<u64> {
        let era = self.eras.iter().rev().find(|era| era.share.from_event <= event)?;
        let Share { rows, ours, .. } = &era.share;
        let at = ours.binary_search(&(event % *rows)).ok()?;
        Some(era.first_seq + (event / *rows * ours.len() as u64 + at as u64 - era.skipped))
    }

    /// The number of the event at a place; the largest number if no event will ever be there.
    pub fn number(&self, seq: u64) -> u64 {
        let era = self.eras.iter().rev().find(|era| era.first_seq <= seq).unwrap_or(&self.eras[0]);
        let Share { rows, ours, .. } = &era.share;
        let Some(each) = NonZeroU64::new(ours.len() as u64) else {
            return u64::MAX;
        };
        let at = seq.saturating_sub(era.first_seq).saturating_add(era.skipped);
        (at / each).saturating_mul(rows.get()).saturating_add(ours[(at % each) as usize])
    }

    /// Whether an event is older than all events that this server still tracks.
    pub fn is_before(&self, event: u64) -> bool {
        event < self.eras[0].share.from_event
    }

    /// Forgets eras that end before a place.
    pub fn forget_before(&mut self, seq: u64) {
        while self.eras.get(1).is_some_and(|next| next.first_seq <= seq) {
            self.eras.pop_front();
        }
    }

    fn last(&self) -> &Era {
        &self.eras[self.eras.len() - 1]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(from_event: u64, rows: u64, ours: impl IntoIterator<Item = u64>) -> Share {
        Share { from_event, rows: NonZeroU64::new(rows).unwrap(), ours: ours.into_iter().collect() }
    }

    #[test]
    fn places_and_numbers_are_inverse_over_every_change() {
        let mut sequence = Sequence::new(1, NonZeroU64::new(3).unwrap());
        sequence.change(share(10, 2, Some(0)), 0).unwrap();
        sequence.change(share(15, 4, Some(3)), 0).unwrap();
        sequence.change(share(23, 1, None), 0).unwrap();
        let ours: Vec<u64> = (0..40).filter(|&event| sequence.place(event).is_some()).collect();
        assert_eq!(ours, [1, 4, 7, 10, 12, 14, 15, 19]);
        assert_eq!((0..8).map(|seq| sequence.number(seq)).collect::<Vec<_>>(), ours);
        assert_eq!(ours.iter().map(|&n| sequence.place(n).unwrap()).collect::<Vec<_>>(), (0..8).collect::<Vec<_>>());
        assert_eq!(sequence.number(8), u64::MAX);
        let before = |event: u64| ours.iter().filter(|number| **number < event).count() as u64;
        assert!((0..40).all(|event| sequence.places_before(event) == before(event)));
        sequence.forget_before(6);
        assert!(sequence.is_before(14) && !sequence.is_before(15));
        assert_eq!((sequence.place(15), sequence.number(7)), (Some(6), 19));
    }

    #[test]
    fn a_server_of_more_weight_has_several_rows_of_a_round() {
        let mut sequence = Sequence::new(0, NonZeroU64::MIN);
        sequence.change(share(0, 5, [1, 2, 4]), 0).unwrap();
        sequence.change(share(13, 4, [0, 3]), 0).unwrap();
        let ours: Vec<u64> = (0..400).filter(|&event| sequence.place(event).is_some()).collect();
        assert_eq!(ours[..12], [1, 2, 4, 6, 7, 9, 11, 12, 15, 16, 19, 20]);
        assert!((0..ours.len()).all(|seq| sequence.place(ours[seq]) == Some(seq as u64)));
        assert_eq!((0..ours.len() as u64).map(|seq| sequence.number(seq)).collect::<Vec<_>>(), ours);
    }

    #[test]
    fn a_run_that_begins_late_has_the_changes_that_were_announced() {
        for event in 0..30 {
            let mut sequence = Sequence::new(0, NonZeroU64::MIN);
            for share in [share(0, 3, Some(1)), share(10, 2, None), share(15, 4, Some(3))] {
                sequence.change(share, 0).unwrap();
            }
            let ours: Vec<u64> = (event..60).filter(|&event| sequence.place(event).is_some()).collect();
            sequence.begin_at(event);
            assert_eq!((0..8).map(|seq| sequence.number(seq)).collect::<Vec<_>>(), ours[..8], "from event {event} on");
            assert!((0..8).all(|seq| sequence.place(ours[seq]) == Some(seq as u64)));
            assert!(!sequence.is_before(event) && (event == 0 || sequence.is_before(event - 1)));
        }
    }

    #[test]
    fn a_change_that_would_move_events_is_refused() {
        let mut sequence = Sequence::new(0, NonZeroU64::new(2).unwrap());
        let late = sequence.change(share(8, 3, Some(0)), 5).unwrap_err();
        assert_eq!(late, ShareError::TooLate { from_event: 8, taken: 8 });
        sequence.change(share(9, 3, Some(0)), 5).unwrap();
        let disorder = sequence.change(share(9, 2, Some(0)), 5).unwrap_err();
        assert_eq!(disorder, ShareError::Disorder { from_event: 9, last: 9 });
        for (ours, row) in [(vec![3], 3), (vec![1, 0], 0), (vec![1, 1], 1)] {
            let refused = sequence.change(share(20, 3, ours), 5).unwrap_err();
            assert_eq!(refused, ShareError::NoSuchRow { row, rows: 3 });
        }
    }
}
