// SPDX-License-Identifier: Apache-2.0
//! The announcements of one board as its server takes them, in the order in which the board made them.
//! Promise: a message that has overtaken successors, whose READ was lost and is repeated, waits for these. What a board
//! announces twice is counted and not given out.
//! Source: `penstock_wire::Announcement`.

use std::collections::VecDeque;

use penstock_wire::{successors_from_bytes, Announced, Announcement, AnnouncementError, Entry, SUCCESSORS_LEN};
use thiserror::Error;

/// Messages that may wait for successors: the slots that a board writes them to.
const MOST_HELD: usize = penstock_wire::ANNOUNCEMENT_SLOTS as usize;

/// A fragment to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Offer {
    /// Its event, address and length; of length 0 the board has nothing of this event.
    pub fragment: Announced,
    /// Key of its memory.
    pub rkey: u32,
}

/// What is wrong with announcements. The connection cannot go on: their order is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum IntakeError {
    /// A message or an entry.
    #[error(transparent)]
    Format(#[from] AnnouncementError),
    /// Successors of nothing.
    #[error("successors were read before anything was announced")]
    NothingBefore,
    /// An entry after the end.
    #[error("successors that begin with none")]
    Hole,
    /// A message that counts more successors than the board has named, with no fragment left that could name them.
    #[error("an announcement after {0} successors that the board has not named")]
    Missing(u8),
    /// More messages wait for successors than a board has slots for.
    #[error("{MOST_HELD} announcements wait for successors that have not come")]
    TooMany,
}

/// The announcements of one board over one connection.
#[derive(Debug, Default)]
pub struct Intake {
    /// The last fragment, with key and stride of its memory.
    last: Option<(Announced, u32, u32)>,
    /// The highest event.
    highest: Option<u64>,
    /// Successors that have come.
    carried: u64,
    /// Fragments given out whose successors have not been read.
    unread: usize,
    /// Messages that wait.
    held: VecDeque<Vec<u8>>,
    repeated: u64,
}

impl Intake {
    /// A message has come. Fragments that may be read are added to `out`.
    ///
    /// # Errors
    /// [`IntakeError`].
    pub fn take_message(&mut self, bytes: &[u8], out: &mut Vec<Offer>) -> Result<(), IntakeError> {
        let announcement = Announcement::parse(bytes)?;
        if self.held.is_empty() && announcement.carried == self.carried as u8 {
            self.give(&announcement, out);
            return Ok(());
        }
        if self.held.len() == MOST_HELD {
            return Err(IntakeError::TooMany);
        }
        self.held.push_back(bytes.to_vec());
        self.release(out)
    }

    /// What followed a fragment has been read with it.
    ///
    /// # Errors
    /// [`IntakeError`].
    pub fn take_successors(&mut self, bytes: &[u8; SUCCESSORS_LEN], out: &mut Vec<Offer>) -> Result<(), IntakeError> {
        let (mut last, rkey, stride) = self.last.ok_or(IntakeError::NothingBefore)?;
        self.unread = self.unread.saturating_sub(1);
        let entries = successors_from_bytes(bytes);
        let named = entries.iter().take_while(|entry| entry.length > 0).count();
        if entries[named..].iter().any(|entry| *entry != Entry::default()) {
            return Err(IntakeError::Hole);
        }
        for entry in &entries[..named] {
            last = last.next(*entry, stride)?;
            self.carried += 1;
            self.offer(last, rkey, out);
        }
        self.last = Some((last, rkey, stride));
        self.release(out)
    }

    /// Fragments that were named as successors.
    #[must_use]
    pub fn carried(&self) -> u64 {
        self.carried
    }

    /// Events that were announced at or before an earlier one.
    #[must_use]
    pub fn repeated(&self) -> u64 {
        self.repeated
    }

    /// Gives out the messages whose turn it is.
    fn release(&mut self, out: &mut Vec<Offer>) -> Result<(), IntakeError> {
        while let Some(bytes) = self.held.pop_front() {
            let announcement = Announcement::parse(&bytes)?;
            let missing = announcement.carried.wrapping_sub(self.carried as u8);
            if missing > 0 && self.unread == 0 {
                return Err(IntakeError::Missing(missing));
            }
            if missing > 0 {
                self.held.push_front(bytes);
                return Ok(());
            }
            self.give(&announcement, out);
        }
        Ok(())
    }

    fn give(&mut self, announcement: &Announcement<'_>, out: &mut Vec<Offer>) {
        let &Announcement { rkey, stride, .. } = announcement;
        for fragment in announcement.iter() {
            self.last = Some((fragment, rkey, stride));
            self.offer(fragment, rkey, out);
        }
    }

    fn offer(&mut self, fragment: Announced, rkey: u32, out: &mut Vec<Offer>) {
        if self.highest.is_some_and(|highest| fragment.event <= highest) {
            self.repeated += 1;
            return;
        }
        self.highest = Some(fragment.event);
        self.unread += usize::from(fragment.length > 0);
        out.push(Offer { fragment, rkey });
    }
}
