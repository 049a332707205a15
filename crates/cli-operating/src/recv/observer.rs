// SPDX-License-Identifier: Apache-2.0
//! What watches a run of `penstock recv`: the live view, metrics, the file of servers, and others.

use super::sink::Sink;
use penstock_readout::session::{Session, SessionError};
use penstock_units::Time;

/// A server's number, and what it has read from the file of servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServerState {
    pub number: u16,
    pub tables: u64,
    /// Digest of those tables (`penstock_farm::Tables::digest`).
    pub digest: u32,
}

/// A moment of a run.
pub struct Turn<'a> {
    pub session: &'a mut Session<Sink>,
    pub now: Time,
    /// The run continues only for events that have begun.
    pub is_ending: bool,
    /// This server's part of a run that several servers share; set by the first observer.
    pub server: Option<ServerState>,
}

/// Called a few times per second.
pub trait Observer {
    /// Looks at the run, and changes it if the outside world requires that.
    ///
    /// # Errors
    /// Those of the session: they end the run.
    fn observe(&mut self, turn: &mut Turn<'_>) -> Result<(), SessionError>;
}

impl<T: Observer> Observer for Option<T> {
    fn observe(&mut self, turn: &mut Turn<'_>) -> Result<(), SessionError> {
        self.as_mut().map_or(Ok(()), |observer| observer.observe(turn))
    }
}
