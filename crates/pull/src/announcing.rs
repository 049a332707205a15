// SPDX-License-Identifier: Apache-2.0
//! When a board announces the fragments that wait at it.
//! Promise: an idle board announces at once; a busy one joins fragments, so that announcements cost little. No more than
//! two announcements are outstanding.

/// Announcements of a board that may be outstanding.
const MOST: usize = 2;

/// What a board has announced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Announcements {
    /// Announcements that are not acknowledged.
    pub outstanding: usize,
    /// Fragments that are announced and that the server has not begun to read.
    pub unread: usize,
    /// Fragments that were announced together, last.
    pub last: usize,
}

impl Announcements {
    /// Whether the next announcement is due. The server reads what was announced first: while that is more than half of
    /// the last announcement, others can wait and be joined. `is_full`: no further fragment fits into the next one.
    pub fn is_next_due(&self, is_full: bool) -> bool {
        let is_mostly_read = self.outstanding == 0 && self.unread <= self.last / 2;
        is_mostly_read || is_full && self.outstanding < MOST
    }
}
