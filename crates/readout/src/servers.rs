// SPDX-License-Identifier: Apache-2.0
//! The destination table as run control keeps it: the server of each event, over a whole run.
//! Promise: every event belongs to exactly one server; the events of a dead server are known by their numbers.
//! Source: docs/integration.md ("event n goes to row n modulo the live rows"); a server has as many rows as its weight.

use std::num::NonZeroU64;

use crate::builder::Share;

/// Why a table cannot be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ServersError {
    #[error("the table has no server from event {from_event} on; keep one")]
    Empty { from_event: u64 },
    #[error("server {server} is not in the table at event {from_event}; it cannot be taken out")]
    NotThere { server: u16, from_event: u64 },
    #[error("the table changes at event {last} already; announce a change at a later event than {from_event}")]
    Disorder { from_event: u64, last: u64 },
    #[error("the table from event {from_event} on has {rows} rows; a board's has {MAX_ROWS}")]
    TooLong { rows: usize, from_event: u64 },
}

/// Rows of a board's destination table (regs/destination.rdl).
pub const MAX_ROWS: usize = 64;

/// Which servers share a run, from which event on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Servers {
    tables: Vec<ServerTable>,
}

/// Rows that are in force from an event on.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ServerTable {
    from_event: u64,
    /// Live servers, each as often as its weight.
    live: Vec<u16>,
}

impl Servers {
    /// Servers `0..count` share the run from event 0 on.
    ///
    /// # Errors
    /// [`ServersError::Empty`] if there is none.
    pub fn new(count: u16) -> Result<Servers, ServersError> {
        match count {
            0 => Err(ServersError::Empty { from_event: 0 }),
            _ => Servers::of((0..count).collect(), []),
        }
    }

    /// The tables of a whole run: the servers of all rows in the order of the boards' tables, from event 0 on and at
    /// each announced change. A server that stands twice in a table gets twice the events. A change without servers
    /// stands for events that wait at the boards; the next one may begin at the same event.
    ///
    /// # Errors
    /// [`ServersError`] if a table is empty or too long, or changes are not in order.
    pub fn of(live: Vec<u16>, changes: impl IntoIterator<Item = (u64, Vec<u16>)>) -> Result<Servers, ServersError> {
        let mut servers = Servers { tables: Vec::new() };
        servers.change(0, live)?;
        changes.into_iter().try_for_each(|(from_event, live)| servers.change(from_event, live))?;
        Ok(servers)
    }

    /// Takes a server out at an announced event.
    ///
    /// # Errors
    /// [`ServersError`] if it is not there, is the last one, or the table changes at a later event already.
    pub fn take_out(&mut self, server: u16, from_event: u64) -> Result<(), ServersError> {
        let live = self.live();
        if !live.contains(&server) {
            return Err(ServersError::NotThere { server, from_event });
        }
        let left: Vec<u16> = live.iter().copied().filter(|&other| other != server).collect();
        match left.is_empty() {
            true => Err(ServersError::Empty { from_event }),
            false => self.change(from_event, left),
        }
    }

    /// Puts a server in at an announced event, with one row unless it has some.
    ///
    /// # Errors
    /// [`ServersError::Disorder`].
    pub fn put_in(&mut self, server: u16, from_event: u64) -> Result<(), ServersError> {
        let mut live = self.live().to_vec();
        if !live.contains(&server) {
            live.push(server);
        }
        live.sort_unstable();
        self.change(from_event, live)
    }

    /// Announces one more table.
    ///
    /// # Errors
    /// As [`Self::of`].
    pub fn change(&mut self, from_event: u64, live: Vec<u16>) -> Result<(), ServersError> {
        match self.tables.last() {
            Some(ServerTable { from_event: last, live: before })
                if from_event < *last || (from_event == *last && !before.is_empty() && !live.is_empty()) =>
            {
                return Err(ServersError::Disorder { from_event, last: *last });
            }
            None if live.is_empty() => return Err(ServersError::Empty { from_event }),
            _ if live.len() > MAX_ROWS => return Err(ServersError::TooLong { rows: live.len(), from_event }),
            _ => {}
        }
        self.tables.push(ServerTable { from_event, live });
        Ok(())
    }

    /// The rows of the last table.
    pub fn live(&self) -> &[u16] {
        &self.tables[self.tables.len() - 1].live
    }

    /// Who takes an event; nobody where no server was left, or the run has ended.
    pub fn server_of(&self, event: u64) -> Option<u16> {
        let table = self.tables.iter().rev().find(|table| table.from_event <= event).unwrap_or(&self.tables[0]);
        let row = event.checked_rem(table.live.len() as u64)?;
        table.live.get(usize::try_from(row).ok()?).copied()
    }

    /// The first event of `server` from an event on; none if it gets no more.
    pub fn next_of(&self, server: u16, event: u64) -> Option<u64> {
        self.tables.iter().enumerate().find_map(|(place, ServerTable { from_event, live })| {
            let end = self.tables.get(place + 1).map_or(u64::MAX, |next| next.from_event);
            let (first, count) = ((*from_event).max(event), live.len() as u64);
            let rows = (0..count).zip(live).filter(|(_, other)| **other == server);
            let ahead = rows.map(|(row, _)| (row + count - first % count) % count).min()?;
            first.checked_add(ahead).filter(|next| *next < end)
        })
    }

    /// The settings for the event builder of `server`, table by table.
    pub fn shares(&self, server: u16) -> impl Iterator<Item = Share> + '_ {
        self.tables.iter().map(move |ServerTable { from_event, live }| Share {
            from_event: *from_event,
            rows: NonZeroU64::new(live.len() as u64).unwrap_or(NonZeroU64::MIN),
            ours: (0..).zip(live).filter(|(_, other)| **other == server).map(|(row, _)| row).collect(),
        })
    }

    /// The events of `server` below `end` that it has not stored, one by one. `stored` holds its events in ascending
    /// order, as its files do.
    pub fn unstored(&self, server: u16, end: u64, stored: &[u64]) -> Vec<u64> {
        let mine = (0..end).filter(|&event| self.server_of(event) == Some(server));
        mine.filter(|event| stored.binary_search(event).is_err()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_event_has_one_server_and_the_shares_agree() {
        let mut servers = Servers::new(3).unwrap();
        servers.take_out(1, 10).unwrap();
        servers.put_in(1, 15).unwrap();
        assert_eq!(
            (0..20).filter_map(|event| servers.server_of(event)).collect::<Vec<_>>(),
            [0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 0, 2, 0, 2, 0, 0, 1, 2, 0, 1]
        );
        assert_eq!(servers.shares(1).map(|share| share.ours).collect::<Vec<_>>(), [vec![1], vec![], vec![1]]);
        assert_eq!(servers.unstored(1, 20, &[1, 4, 19]), [7, 16]);
        for server in 0..4 {
            let of_server = |event: &u64| servers.server_of(*event) == Some(server);
            for event in 0..20 {
                let next = (event..100).find(of_server);
                assert_eq!(servers.next_of(server, event), next, "server {server} from event {event} on");
            }
        }
    }

    #[test]
    fn a_server_with_twice_the_rows_gets_twice_the_events() {
        let servers = Servers::of(vec![0, 1, 0], [(7, vec![1, 2, 1, 1, 2])]).unwrap();
        assert_eq!(servers.shares(0).map(|share| share.ours).collect::<Vec<_>>(), [vec![0, 2], vec![]]);
        assert_eq!(servers.shares(1).map(|share| share.ours).collect::<Vec<_>>(), [vec![1], vec![0, 2, 3]]);
        let of = |server, end| (0..end).filter(|event| servers.server_of(*event) == Some(server)).count();
        assert_eq!((of(0, 6), of(1, 6), of(2, 7)), (4, 2, 0));
        for (server, event) in (0..3).flat_map(|server| (0..20).map(move |event| (server, event))) {
            let next = (event..100).find(|event| servers.server_of(*event) == Some(server));
            assert_eq!(servers.next_of(server, event), next, "server {server} from event {event} on");
        }
    }

    #[test]
    fn events_that_wait_are_nobodys_and_the_next_table_may_begin_with_them() {
        let servers = Servers::of(vec![0, 1], [(4, vec![]), (4, vec![1]), (9, vec![])]).unwrap();
        let all: Vec<Option<u16>> = (2..11).map(|event| servers.server_of(event)).collect();
        assert_eq!(all, [0, 1, 1, 1, 1, 1, 1].map(Some).into_iter().chain([None; 2]).collect::<Vec<_>>());
        assert_eq!((servers.next_of(0, 3), servers.next_of(1, 4), servers.next_of(1, 9)), (None, Some(4), None));
    }

    #[test]
    fn tables_that_cannot_be_are_refused() {
        assert_eq!(Servers::new(0), Err(ServersError::Empty { from_event: 0 }));
        let mut servers = Servers::new(1).unwrap();
        assert_eq!(servers.take_out(0, 5), Err(ServersError::Empty { from_event: 5 }));
        assert_eq!(servers.take_out(3, 5), Err(ServersError::NotThere { server: 3, from_event: 5 }));
        assert_eq!(Servers::of(vec![2; 65], []), Err(ServersError::TooLong { rows: 65, from_event: 0 }));
        let late = Servers::of(vec![0], [(9, vec![1]), (9, vec![0])]);
        assert_eq!(late, Err(ServersError::Disorder { from_event: 9, last: 9 }));
        servers.put_in(1, 7).unwrap();
        assert_eq!(servers.take_out(1, 7), Err(ServersError::Disorder { from_event: 7, last: 7 }));
    }
}
