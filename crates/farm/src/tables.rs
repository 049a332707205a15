// SPDX-License-Identifier: Apache-2.0
//! The coordinator's copy of the log: the servers of all events over a whole run.

/// What a change is for the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mark {
    #[default]
    None,
    /// The run begins with it: what is before is not of this run.
    Begin,
    /// The run has ended before it.
    End,
}

/// A table of the log: who takes the events from `first` on; event n goes to row n modulo their count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    pub first: u64,
    /// The server of each row: every server that takes events, as often as its weight. Empty: events wait at the boards
    /// for the next table, which may begin at the same event.
    pub live: Vec<u16>,
    pub mark: Mark,
}

impl Change {
    /// One within the run.
    pub fn new(first: u64, live: Vec<u16>) -> Self {
        Change { first, live, mark: Mark::None }
    }
}

/// All tables of a run, by their first events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tables {
    run: String,
    begin: Change,
    changes: Vec<Change>,
}

impl Tables {
    /// The log with these servers from event 0 on. `run` separates it from those of other runs.
    pub fn new(run: String, live: Vec<u16>) -> Self {
        Tables { run, begin: Change::new(0, live), changes: Vec::new() }
    }

    /// Tells the first `count` tables of this run from those of another one (not from a forger's). None: there are not
    /// so many.
    pub fn digest(&self, count: u64) -> Option<u32> {
        let count = usize::try_from(count).ok().filter(|count| (1..=self.count()).contains(count))?;
        let mut digest = Fnv::new();
        digest.take(self.run.as_bytes());
        for Change { first, live, .. } in self.all().take(count) {
            digest.take(&first.to_be_bytes());
            digest.take(&(live.len() as u64).to_be_bytes());
            live.iter().for_each(|server| digest.take(&server.to_be_bytes()));
        }
        Some(digest.0)
    }

    /// Appends a change; whether it could be: it is later than all others, or at the event from which on none takes
    /// events, and the run has not ended. The run may also end before the last change, if no event has reached that.
    pub fn announce(&mut self, change: Change) -> bool {
        let is_later = match change.mark {
            Mark::End => change.first >= self.reached(),
            _ => change.first > self.first() || (change.first == self.first() && self.live().is_empty()),
        };
        let may = is_later && self.end().is_none();
        if may {
            self.changes.push(change);
        }
        may
    }

    pub(crate) fn last(&self) -> &Change {
        self.changes.last().unwrap_or(&self.begin)
    }

    /// The run's name.
    pub fn run(&self) -> &str {
        &self.run
    }

    /// The run's first event, as far as it is known: 0 where boards that were reset begin.
    pub fn begin(&self) -> u64 {
        self.changes.iter().find(|change| change.mark == Mark::Begin).map_or(0, |change| change.first)
    }

    /// All tables, the first one included.
    pub fn all(&self) -> impl Iterator<Item = &Change> {
        std::iter::once(&self.begin).chain(&self.changes)
    }

    /// The first event after the run's last one; none while it goes on.
    pub fn end(&self) -> Option<u64> {
        let last = self.last();
        (last.mark == Mark::End).then_some(last.first)
    }

    /// The tables that hold: without a change that the end of the run was before.
    pub fn in_force(&self) -> impl Iterator<Item = &Change> {
        let end = self.end().unwrap_or(u64::MAX);
        let changes = self.changes.iter().filter(move |change| change.first < end || change.mark == Mark::End);
        std::iter::once(&self.begin).chain(changes)
    }

    /// An event that was reached, as without that the last change could not have been made.
    pub(crate) fn reached(&self) -> u64 {
        let before = self.changes.len().checked_sub(2).map_or(0, |at| self.changes[at].first);
        before.max(self.begin())
    }

    /// First event of the last table.
    pub fn first(&self) -> u64 {
        self.last().first
    }

    /// The servers of the last table.
    pub fn live(&self) -> &[u16] {
        &self.last().live
    }

    /// The servers of the table before the last; of the last if there is no other, none if the run begins with it.
    pub(crate) fn live_before(&self) -> &[u16] {
        if self.last().mark == Mark::Begin {
            return &[];
        }
        let (last, rest) = (self.last(), self.changes.iter().rev().skip(1));
        let mut before = rest.filter(|change| last.mark != Mark::End || change.first < last.first);
        &before.next().unwrap_or(&self.begin).live
    }

    /// Tables, the first included.
    pub fn count(&self) -> usize {
        1 + self.changes.len()
    }

    /// Whether a table of so many rows begins at this event: the last one that does.
    pub(crate) fn changes_at(&self, event: u64, rows: usize) -> bool {
        self.all().filter(|change| change.first == event).last().is_some_and(|change| change.live.len() == rows)
    }

    /// Who takes an event; nobody while no server was left, before the run, and after it.
    pub fn server_of(&self, event: u64) -> Option<u16> {
        let change = self.changes.iter().rev().find(|change| change.first <= event).unwrap_or(&self.begin);
        let row = event.checked_rem(change.live.len() as u64)?;
        change.live.get(usize::try_from(row).ok()?).copied()
    }
}

/// FNV-1a of 32 bits (G. Fowler, L. C. Noll, K.-P. Vo, 1991).
struct Fnv(u32);

impl Fnv {
    fn new() -> Self {
        Fnv(0x811c_9dc5)
    }

    fn take(&mut self, bytes: &[u8]) {
        self.0 = bytes.iter().fold(self.0, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_the_published_one() {
        let hash = |text: &str| {
            let mut hash = Fnv::new();
            hash.take(text.as_bytes());
            hash.0
        };
        assert_eq!([hash(""), hash("a"), hash("foobar")], [0x811c_9dc5, 0xe40c_292c, 0xbf9c_f968]);
    }

    #[test]
    fn a_run_may_end_before_a_change_that_no_event_has_reached() {
        let mut tables = Tables::new("a".into(), vec![0, 1]);
        assert!(tables.announce(Change::new(7, vec![0])) && tables.announce(Change::new(20, vec![1])));
        let end = |first| Change { first, live: Vec::new(), mark: Mark::End };
        assert!(!tables.announce(end(6)), "event 7 was reached, or there could be no change at 20");
        assert!(tables.announce(end(12)));
        assert_eq!((tables.end(), tables.count(), tables.live_before()), (Some(12), 4, &[0][..]));
        assert_eq!(tables.in_force().map(|change| change.first).collect::<Vec<_>>(), [0, 7, 12]);
        assert_eq!([6, 11, 12, 20].map(|event| tables.server_of(event)), [Some(0), Some(0), None, None]);
        assert!(!tables.announce(Change::new(30, vec![0])), "it has ended");
    }

    #[test]
    fn a_digest_is_that_of_a_run_and_of_its_first_tables() {
        let mut tables = Tables::new("a".into(), vec![0, 1]);
        let first = tables.digest(1);
        assert!(tables.announce(Change::new(7, vec![0])));
        assert_eq!((tables.digest(1), tables.digest(0), tables.digest(3)), (first, None, None));
        let mut other = Tables::new("b".into(), vec![0, 1]);
        assert!(other.announce(Change::new(7, vec![0])));
        assert!(other.digest(1) != first && other.digest(2) != tables.digest(2) && tables.digest(2) != first);
    }
}
