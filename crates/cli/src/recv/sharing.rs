// SPDX-License-Identifier: Apache-2.0
//! This server's part of a run that several servers share, as announced during the run.
//! Promise: a change that comes too late moves no event, and is a fault of the run.

use super::metrics::ServerState;
use super::sink::Sink;
use crate::arguments::farm::Farm;
use crate::output::screen::say;
use penstock_readout::session::Session;
use penstock_readout::Share;
use std::path::Path;

pub struct Sharing {
    farm: Farm,
    /// Changes that could not be made.
    pub faults: Vec<String>,
}

impl Sharing {
    /// The part of `server` in what `file` announces.
    pub fn open(file: &Path, server: u16) -> Result<Sharing, String> {
        let sharing = Sharing { farm: Farm::open(file, server)?, faults: Vec::new() };
        if sharing.shares().iter().all(|share| share.ours.is_empty()) {
            let file = file.display();
            say(format_args!(
                "WARNING: server {server} is in no table of {file}: no event is its own until it is put in"
            ));
        }
        Ok(sharing)
    }

    /// The changes announced so far.
    pub fn shares(&self) -> Vec<Share> {
        self.farm.servers().shares(self.farm.server()).collect()
    }

    /// What the coordinator of the farm wants to know.
    pub fn state(&self) -> ServerState {
        let tables = self.farm.tables();
        let count = tables.count() as u64;
        ServerState { number: self.farm.server(), tables: count, digest: tables.digest(count).unwrap_or(0) }
    }

    /// Takes what was announced since the last look.
    pub fn look(&mut self, session: &mut Session<Sink>) {
        let known = match self.farm.look() {
            None => return,
            Some(Err(error)) => return say(format_args!("WARNING: {error}; the table stays as it was")),
            Some(Ok(known)) => known,
        };
        for share in self.shares().into_iter().skip(known) {
            let Share { from_event, rows, ours } = share.clone();
            match session.change_share(share) {
                Ok(()) if ours.is_empty() => say(format_args!("from event {from_event} on no event is this server's")),
                Ok(()) => {
                    let ours = ours.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
                    say(format_args!(
                        "from event {from_event} on this server takes those that are {ours} modulo {rows}"
                    ));
                }
                Err(error) => {
                    say(format_args!("WARNING: {error}"));
                    self.faults.push(error.to_string());
                }
            }
        }
    }
}
