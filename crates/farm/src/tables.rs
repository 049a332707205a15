// SPDX-License-Identifier: Apache-2.0
//! The coordinator's copy of the log: the servers of all events over a whole run.

/// A table of the log: who takes the events from `first` on; event n goes to number n modulo their count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    pub first: u64,
    pub live: Vec<u16>,
}

/// All tables of a run, by their first events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tables {
    begin: Change,
    changes: Vec<Change>,
}

impl Tables {
    /// From event 0 on these servers.
    pub fn new(live: Vec<u16>) -> Self {
        Tables { begin: Change { first: 0, live }, changes: Vec::new() }
    }

    /// Appends a change; whether it could be: it is later than all others, and names a server.
    pub fn announce(&mut self, change: Change) -> bool {
        let may = change.first > self.first() && !change.live.is_empty();
        if may {
            self.changes.push(change);
        }
        may
    }

    pub(crate) fn last(&self) -> &Change {
        self.changes.last().unwrap_or(&self.begin)
    }

    /// First event of the last table.
    pub fn first(&self) -> u64 {
        self.last().first
    }

    /// The servers of the last table.
    pub fn live(&self) -> &[u16] {
        &self.last().live
    }

    /// The servers of the table before the last; of the last if there is no other.
    pub(crate) fn live_before(&self) -> &[u16] {
        let before = self.changes.len().checked_sub(2).map(|at| &self.changes[at]);
        &before.unwrap_or(&self.begin).live
    }

    /// Tables, the first included.
    pub fn count(&self) -> usize {
        1 + self.changes.len()
    }

    /// Whether a table begins at this event.
    pub(crate) fn changes_at(&self, event: u64) -> bool {
        event == 0 || self.changes.iter().any(|change| change.first == event)
    }

    /// Who takes an event.
    pub fn server_of(&self, event: u64) -> u16 {
        let change = self.changes.iter().rev().find(|change| change.first <= event).unwrap_or(&self.begin);
        change.live[(event % change.live.len() as u64) as usize]
    }
}
