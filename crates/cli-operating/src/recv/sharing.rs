// SPDX-License-Identifier: Apache-2.0
//! This server's part of a run that several servers share, as announced during the run.
//! Promise: a change that comes too late moves no event, and is a fault of the run. The run ends for this server before
//! the event that was announced, without another message.

use super::observer::{Observer, ServerState, Turn};
use super::sink::Sink;
use crate::servers_file::Farm;
use penstock_cli_common::output::screen::notify;
use penstock_farm::{Change, Mark};
use penstock_readout::session::{Session, SessionError};
use penstock_readout::{Share, ShareError};
use penstock_units::Time;
use std::path::Path;

/// This server's part of the run.
pub struct Sharing {
    farm: Farm,
    /// Changes that could not be made.
    pub faults: Vec<String>,
    /// When the end was announced, or the last message came after that, and how many had come.
    ending: Option<(Time, u64)>,
    patience: Time,
}

impl Sharing {
    /// The part of `server` in what `file` announces; `patience`: how long a last event waits for what is missing.
    pub fn open(file: &Path, server: u16, patience: Time) -> Result<Sharing, String> {
        let sharing = Sharing { farm: Farm::open(file, server)?, faults: Vec::new(), ending: None, patience };
        if let Some(end) = sharing.farm.read().end() {
            return Err(format!(
                "{}: its run has ended before event {end}; `penstock farm --begin` makes the file of the next one",
                file.display()
            ));
        }
        if !sharing.has_part() {
            let file = file.display();
            notify(format_args!(
                "WARNING: server {server} is in no table of {file}: no event is its own until it is put in"
            ));
        }
        Ok(sharing)
    }

    /// Keys and values that distinguish this server's files of this run from others.
    pub fn names(&self) -> Vec<(String, String)> {
        let run = self.farm.tables().run().to_owned();
        let names = [("penstock.run", run), ("penstock.server", self.farm.server().to_string())];
        names.into_iter().filter(|(_, value)| !value.is_empty()).map(|(key, value)| (key.to_owned(), value)).collect()
    }

    /// The changes announced so far.
    pub fn shares(&self) -> Vec<Share> {
        self.farm.servers().shares(self.farm.server()).collect()
    }

    /// Some event of the run is this server's. One that is out of use has none, and boards give it no queue pairs.
    pub fn has_part(&self) -> bool {
        self.shares().iter().any(|share| !share.ours.is_empty())
    }

    /// The state that the farm's coordinator reads.
    fn state(&self) -> ServerState {
        let tables = self.farm.read();
        let count = tables.count() as u64;
        ServerState { number: self.farm.server(), tables: count, digest: tables.digest(count).unwrap_or(0) }
    }

    /// Applies the changes announced since the last call.
    ///
    /// # Errors
    /// Those of the sink.
    fn apply_changes(&mut self, session: &mut Session<Sink>) -> Result<(), SessionError> {
        self.end_if_quiet(session)?;
        let changes = match self.farm.look() {
            None => return Ok(()),
            Some(Err(error)) => {
                notify(format_args!("WARNING: {error}; the table stays as it was"));
                return Ok(());
            }
            Some(Ok(changes)) => changes,
        };
        for change in changes {
            // The run may end before a change that no event has reached.
            let is_cut = change.mark == Mark::End && change.first <= self.farm.tables().first();
            let changed = match session.newest_event().filter(|event| is_cut && *event >= change.first) {
                Some(taken) => Err(ShareError::TooLate { from_event: change.first, taken }),
                None if is_cut => Ok(()),
                None => session.change_share(self.share(&change)),
            };
            match changed {
                Ok(()) => {
                    self.report(&change);
                    match change.mark {
                        Mark::None => {}
                        Mark::Begin => session.begin_at(change.first)?,
                        // A run without an event: none is searched for, or waited for.
                        Mark::End if change.first <= self.farm.tables().begin() => session.end_now()?,
                        Mark::End => {
                            session.end_before(change.first)?;
                            self.ending = Some((session.now(), session.messages()));
                        }
                    }
                    self.farm.accept(change);
                }
                Err(error) => {
                    notify(format_args!("WARNING: {error}"));
                    self.faults.push(error.to_string());
                    self.farm.refuse(change);
                }
            }
        }
        Ok(())
    }

    /// Why nothing has come, though the run has not ended: it may never have begun.
    pub fn waited_in_vain(&self, messages: u64) -> Option<String> {
        let is_vain = messages == 0 && self.farm.tables().end().is_none();
        is_vain.then(|| {
            "no event has come: has `penstock farm` begun the run at the boards, and is this server in its table?"
                .into()
        })
    }

    /// Events of which nothing comes any more, at the end of the run, are not waited for.
    fn end_if_quiet(&mut self, session: &mut Session<Sink>) -> Result<(), SessionError> {
        let Some((since, messages)) = self.ending else { return Ok(()) };
        let (now, come) = (session.now(), session.messages());
        if come != messages {
            self.ending = Some((now, come));
        } else if now.saturating_sub(since) >= self.patience {
            session.end_now()?;
        }
        Ok(())
    }

    fn share(&self, change: &Change) -> Share {
        let mut servers = self.farm.servers();
        // Its place among the tables was checked when it was read.
        let _ = servers.change(change.first, change.live.clone());
        servers.shares(self.farm.server()).last().expect("there is a table at least")
    }

    fn report(&self, change: &Change) {
        let Share { from_event, rows, ours } = self.share(change);
        match (change.mark, ours.is_empty()) {
            (Mark::End, _) => notify(format_args!("the run ends before event {from_event}")),
            (Mark::Begin, _) => notify(format_args!("the run begins at event {from_event}")),
            (Mark::None, true) => notify(format_args!("from event {from_event} on no event is this server's")),
            (Mark::None, false) => {
                let ours = ours.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
                notify(format_args!(
                    "from event {from_event} on this server takes those that are {ours} modulo {rows}"
                ));
            }
        }
    }
}

impl Observer for Sharing {
    fn observe(&mut self, turn: &mut Turn<'_>) -> Result<(), SessionError> {
        self.apply_changes(turn.session)?;
        turn.server = Some(self.state());
        Ok(())
    }
}
