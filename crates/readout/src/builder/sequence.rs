// SPDX-License-Identifier: Apache-2.0
//! The event numbers that belong to this server as the farm changes: maps a number to its place in the sequence and
//! back.
//! Promise: places 0, 1, 2... have ascending numbers; a change never moves an event that already has a place.
//! Source: docs/integration.md (event n to server n modulo the live servers; the table changes only at an announced
//! event number); docs/integration.md, "destination".

use std::collections::VecDeque;
use std::iter::once;
use std::num::NonZeroU64;

/// This server's part of the events from an announced number on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// First event of the new table (register `destination.switch_event` of the boards).
    pub from_event: u64,
    /// Live servers.
    pub servers: NonZeroU64,
    /// Event n is ours if n modulo `servers` is this. None: no event is ours any more.
    pub index: Option<u64>,
}

/// Why a change cannot be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ShareError {
    #[error("the table cannot change at event {from_event}: event {taken} has begun already; announce a later one")]
    TooLate { from_event: u64, taken: u64 },
    #[error("the table cannot change at event {from_event}: it changes at {last} already; announce in order")]
    Disorder { from_event: u64, last: u64 },
    #[error("server {index} of {servers} does not exist; servers count from 0")]
    NoSuchServer { index: u64, servers: u64 },
}

/// Places that follow one another by a fixed stride.
#[derive(Debug, Clone, Copy)]
struct Era {
    /// The table is this one from here on.
    from_event: u64,
    /// Number of the first event, and its place.
    first_event: u64,
    first_seq: u64,
    /// None: no event is ours.
    stride: Option<NonZeroU64>,
}

impl Era {
    /// Events of this era below `event`.
    fn events_below(&self, event: u64) -> u64 {
        self.stride.map_or(0, |stride| event.saturating_sub(self.first_event).div_ceil(stride.get()))
    }
}

/// The numbers of one server's events.
#[derive(Debug, Clone)]
pub(crate) struct Sequence {
    /// By `from_event`; the last one has no end. Never empty.
    eras: VecDeque<Era>,
}

impl Sequence {
    pub fn new(first_event: u64, stride: NonZeroU64) -> Sequence {
        let era = Era { from_event: first_event, first_event, first_seq: 0, stride: Some(stride) };
        Sequence { eras: VecDeque::from([era]) }
    }

    /// Starts at this server's first event from `event` on; no place has been taken. Announced changes hold.
    pub fn begin_at(&mut self, event: u64) {
        let old = std::mem::take(&mut self.eras);
        let here = old.iter().rposition(|era| era.from_event <= event).unwrap_or(0);
        for (era, from_event) in
            old.iter().skip(here).zip(once(event).chain(old.iter().skip(here + 1).map(|e| e.from_event)))
        {
            let first_seq = self.eras.back().map_or(0, |last| last.first_seq + last.events_below(from_event));
            let steps =
                |stride: NonZeroU64| from_event.saturating_sub(era.first_event).div_ceil(stride.get()) * stride.get();
            let first_event = era.first_event.saturating_add(era.stride.map_or(0, steps));
            self.eras.push_back(Era { from_event, first_event, first_seq, ..*era });
        }
    }

    /// Changes the table. `taken` places are in use or over; they must be before the change.
    pub fn change(&mut self, share: Share, taken: u64) -> Result<(), ShareError> {
        let Share { from_event, servers, index } = share;
        if let Some(index) = index.filter(|index| *index >= servers.get()) {
            return Err(ShareError::NoSuchServer { index, servers: servers.get() });
        }
        let last = self.last();
        if from_event <= last.from_event && self.eras.len() > 1 {
            return Err(ShareError::Disorder { from_event, last: last.from_event });
        }
        let first_seq = last.first_seq + last.events_below(from_event);
        if taken > first_seq {
            return Err(ShareError::TooLate { from_event, taken: self.number(taken - 1) });
        }
        let ahead = |index: u64| (index + servers.get() - from_event % servers) % servers;
        let first_event = index.map_or(u64::MAX, |index| from_event.saturating_add(ahead(index)));
        let stride = index.and(Some(servers));
        self.eras.push_back(Era { from_event, first_event, first_seq, stride });
        Ok(())
    }

    /// The place of an event; none if it is not ours.
    pub fn place(&self, event: u64) -> Option<u64> {
        let era = self.eras.iter().rev().find(|era| era.from_event <= event)?;
        let (offset, stride) = (event.checked_sub(era.first_event)?, era.stride?);
        (offset % stride == 0).then(|| era.first_seq + offset / stride)
    }

    /// The number of the event at a place; the largest number if no event will ever be there.
    pub fn number(&self, seq: u64) -> u64 {
        let era = self.eras.iter().rev().find(|era| era.first_seq <= seq).unwrap_or(&self.eras[0]);
        let Some(stride) = era.stride else {
            return u64::MAX;
        };
        seq.saturating_sub(era.first_seq).saturating_mul(stride.get()).saturating_add(era.first_event)
    }

    /// Whether an event is older than all events that this server still tracks.
    pub fn is_before(&self, event: u64) -> bool {
        event < self.eras[0].from_event
    }

    /// Forgets eras that end before a place.
    pub fn forget_before(&mut self, seq: u64) {
        while self.eras.get(1).is_some_and(|next| next.first_seq <= seq) {
            self.eras.pop_front();
        }
    }

    fn last(&self) -> Era {
        self.eras[self.eras.len() - 1]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(from_event: u64, servers: u64, index: Option<u64>) -> Share {
        Share { from_event, servers: NonZeroU64::new(servers).unwrap(), index }
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
        sequence.forget_before(6);
        assert!(sequence.is_before(14) && !sequence.is_before(15));
        assert_eq!((sequence.place(15), sequence.number(7)), (Some(6), 19));
    }

    #[test]
    fn a_run_that_begins_late_knows_the_changes_that_were_told() {
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
        let nobody = sequence.change(share(20, 3, Some(3)), 5).unwrap_err();
        assert_eq!(nobody.to_string(), "server 3 of 3 does not exist; servers count from 0");
    }
}
