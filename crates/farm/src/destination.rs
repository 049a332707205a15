// SPDX-License-Identifier: Apache-2.0
//! The destination table of a board, a participant of the two-phase commit: which queue pair an event goes to, and when
//! it waits.
//! Promise: a change is accepted only if none of its events has gone, and from then on none goes until it is in force or
//! cancelled.
//! Source: rtl/roce/destination_table.sv and destination.sv, rule for rule; regs/destination.rdl.

use crate::board::BoardView;

/// A command of `destination.control`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Command {
    Commit { first: u64 },
    Prepare { first: u64 },
    Confirm,
    Cancel,
}

/// What becomes of the next event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Route {
    /// It waits for a command or for its server, and all later ones with it.
    Wait,
    /// It goes to this queue pair, which flushes it if it takes no messages.
    To(u8),
    /// No server is live: it is flushed.
    Nowhere,
}

#[derive(Debug, Clone, Default)]
struct Table {
    first: u64,
    /// Queue pairs of the live servers, in table order.
    rows: Vec<u8>,
}

impl Table {
    fn row_of(&self, event: u64) -> Option<u8> {
        event.checked_rem(self.rows.len() as u64).map(|row| self.rows[row as usize])
    }
}

/// The tables of a board.
#[derive(Debug, Clone, Default)]
pub struct DestinationTable {
    /// `destination.owner`: whose commands are carried out.
    pub owner: u16,
    /// `destination.options.wait_for_server`.
    pub waits_for_server: bool,
    newer: Table,
    older: Table,
    staged: Option<Table>,
    pending: bool,
    last: Option<u64>,
    refused: bool,
    held: bool,
    waits: bool,
}

impl DestinationTable {
    /// Carries out a command that comes with this key; `rows`: queue pairs of the live servers, as edited.
    pub fn command(&mut self, key: u16, command: Command, rows: &[u8]) {
        let has_gone = |first: u64| self.last.is_some_and(|last| first <= last);
        self.refused = key != self.owner
            || match command {
                Command::Commit { first } => self.staged.is_some() || (first != 0 && has_gone(first)),
                Command::Prepare { first } => self.staged.is_some() || (self.pending && !self.waits) || has_gone(first),
                Command::Confirm | Command::Cancel => self.staged.is_none(),
            };
        if self.refused {
            return;
        }
        match command {
            Command::Commit { first } => {
                // While a table waits for its first event, another one takes its place.
                self.put_into_force(Table { first, rows: rows.to_vec() }, !self.pending);
                self.last = self.last.filter(|_| first != 0);
            }
            Command::Prepare { first } => self.staged = Some(Table { first, rows: rows.to_vec() }),
            Command::Confirm => {
                if let Some(table) = self.staged.take() {
                    self.put_into_force(table, true);
                }
            }
            Command::Cancel => self.staged = None,
        }
    }

    fn put_into_force(&mut self, table: Table, keeps_newer: bool) {
        if keeps_newer {
            self.older = std::mem::take(&mut self.newer);
        }
        (self.pending, self.waits) = (table.first != 0, false);
        self.newer = table;
    }

    /// Where an event would go now; `is_ready`: whether a queue pair takes messages, none if there is no such one.
    pub fn route(&mut self, event: u64, is_ready: impl Fn(u8) -> Option<bool>) -> Route {
        self.held = self.staged.as_ref().is_some_and(|staged| event >= staged.first);
        let is_new = event >= self.newer.first;
        let row = if is_new { self.newer.row_of(event) } else { self.older.row_of(event) };
        // An event of an older table waits for no server: the next table comes too late for it.
        let may_wait = self.waits_for_server && is_new && self.staged.is_none();
        self.waits = may_wait && row.is_none_or(|row| is_ready(row) == Some(false));
        match row {
            _ if self.held || self.waits => Route::Wait,
            Some(row) => Route::To(row),
            None => Route::Nowhere,
        }
    }

    /// The event goes, as [`Self::route`] has it.
    pub fn passes(&mut self, event: u64) {
        self.pending &= event < self.newer.first;
        self.last = Some(self.last.map_or(event, |last| last.max(event)));
    }

    /// Whether servers are in the last table.
    pub fn has_servers(&self) -> bool {
        !self.newer.rows.is_empty()
    }

    /// The rows of the last table.
    pub fn rows(&self) -> &[u8] {
        &self.newer.rows
    }

    /// Its state as its registers show it; what is not of the table is left empty.
    pub fn view(&self) -> BoardView {
        BoardView {
            owner: self.owner,
            next_event: self.last.map_or(0, |last| last.saturating_add(1)),
            announced: self.staged.as_ref().unwrap_or(&self.newer).first,
            live: self.newer.rows.len() as u8,
            prepared: self.staged.is_some(),
            pending: self.pending,
            refused: self.refused,
            held: self.held,
            waits: self.waits,
            ..BoardView::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWNER: u16 = 9;

    fn table() -> DestinationTable {
        DestinationTable { owner: OWNER, waits_for_server: true, ..DestinationTable::default() }
    }

    #[test]
    fn the_events_of_a_prepared_table_wait_until_it_is_confirmed_or_cancelled() {
        for confirms in [true, false] {
            let mut table = table();
            table.command(OWNER, Command::Commit { first: 0 }, &[4, 5]);
            table.passes(0);
            table.command(OWNER, Command::Prepare { first: 3 }, &[6]);
            let routes: Vec<Route> = (1..4).map(|event| table.route(event, |_| Some(true))).collect();
            assert_eq!(routes, [Route::To(5), Route::To(4), Route::Wait]);
            assert!(table.view().held && table.view().prepared);
            (1..3).for_each(|event| table.passes(event));
            table.command(OWNER, if confirms { Command::Confirm } else { Command::Cancel }, &[]);
            assert_eq!(table.route(3, |_| Some(true)), Route::To(if confirms { 6 } else { 5 }));
            assert_eq!(table.view().pending, confirms);
        }
    }

    #[test]
    fn what_would_divide_an_event_is_refused_and_so_is_the_command_of_another() {
        let mut table = table();
        table.command(OWNER, Command::Commit { first: 0 }, &[4]);
        table.passes(7);
        for (key, command) in [
            (OWNER + 1, Command::Prepare { first: 8 }),
            (OWNER, Command::Prepare { first: 7 }),
            (OWNER, Command::Commit { first: 7 }),
            (OWNER, Command::Confirm),
        ] {
            table.command(key, command, &[5]);
            assert!(table.view().refused, "{command:?}");
        }
        table.command(OWNER, Command::Prepare { first: 8 }, &[5]);
        assert!(!table.view().refused && table.view().announced == 8);
        table.command(OWNER, Command::Commit { first: 9 }, &[5]);
        assert!(table.view().refused, "one is prepared");
        table.command(OWNER, Command::Confirm, &[]);
        table.command(OWNER, Command::Prepare { first: 20 }, &[4]);
        assert!(table.view().refused, "no event of the last table has come");
    }

    #[test]
    fn an_event_waits_for_its_server_unless_its_table_has_been_replaced() {
        let mut table = table();
        table.command(OWNER, Command::Commit { first: 0 }, &[4]);
        assert_eq!(table.route(0, |_| Some(false)), Route::Wait);
        assert!(table.view().waits);
        table.command(OWNER, Command::Prepare { first: 1 }, &[5]);
        assert_eq!(table.route(0, |_| Some(false)), Route::To(4));
        table.passes(0);
        table.command(OWNER, Command::Confirm, &[]);
        assert_eq!(table.route(1, |_| None), Route::To(5), "a queue pair that no build has");
        table.command(OWNER, Command::Commit { first: 1 }, &[]);
        assert_eq!(table.route(1, |_| None), Route::Wait);
        table.waits_for_server = false;
        assert_eq!(table.route(1, |_| None), Route::Nowhere);
    }
}
