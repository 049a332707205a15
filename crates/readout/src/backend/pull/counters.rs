// SPDX-License-Identifier: Apache-2.0
//! What has happened to the announcements of a board.
//! Promise: an announced fragment is counted once as read, or once by the reason why it is not.

use std::ops::AddAssign;

use crate::backend::Counters;

/// Counts of one board, all its connections together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::backend) struct PullCounters {
    /// Messages with announcements.
    pub announcements: u64,
    /// Fragments that they name.
    pub announced: u64,
    /// Announced fragments that a READ of an earlier one has named.
    pub carried: u64,
    /// Fragments read.
    pub read: u64,
    /// Events of which the board has nothing.
    pub empty: u64,
    /// Events that had been announced over the same connection: not read.
    pub repeated: u64,
    /// Fragments of another event or board than was announced.
    pub mislabelled: u64,
    /// Announcements that broke the format, or named what fits into no slot: each ends its connection.
    pub malformed: u64,
    /// Read when the run had ended before them: the board keeps them.
    pub after_end: u64,
    /// Announced and not read when the connection ended: the board announces them again.
    pub forgotten: u64,
    /// READ requests that were repeated.
    pub requests_repeated: u64,
}

impl PullCounters {
    pub(super) fn named(&self) -> Counters {
        let all = [
            ("pull_announcements", self.announcements),
            ("pull_announced", self.announced),
            ("pull_carried", self.carried),
            ("pull_read", self.read),
            ("pull_empty", self.empty),
            ("pull_repeated", self.repeated),
            ("pull_mislabelled", self.mislabelled),
            ("pull_malformed", self.malformed),
            ("pull_after_end", self.after_end),
            ("pull_forgotten", self.forgotten),
            ("pull_requests_repeated", self.requests_repeated),
        ];
        all.into_iter().map(|(name, value)| (name.into(), value)).collect()
    }
}

impl AddAssign for PullCounters {
    fn add_assign(&mut self, more: PullCounters) {
        self.announcements += more.announcements;
        self.announced += more.announced;
        self.carried += more.carried;
        self.read += more.read;
        self.empty += more.empty;
        self.repeated += more.repeated;
        self.mislabelled += more.mislabelled;
        self.malformed += more.malformed;
        self.after_end += more.after_end;
        self.forgotten += more.forgotten;
        self.requests_repeated += more.requests_repeated;
    }
}
