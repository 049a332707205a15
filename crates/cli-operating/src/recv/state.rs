// SPDX-License-Identifier: Apache-2.0
//! The file that records which queue pairs are open at boards, so that a restarted receiver can close those that a
//! killed one left: boards have few queue pairs, and while they send nothing they do not detect a dead server.
//! Promise: written under another name and renamed; a file that cannot be read or written only causes a warning.

use super::observer::{Observer, Turn};
use super::state_file;
use penstock_readout::session::{Remembered, SessionError};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

pub struct State {
    /// None: nothing is remembered.
    file: Option<PathBuf>,
    written: Option<Vec<Remembered>>,
    warned: bool,
}

impl State {
    pub fn open(file: Option<&Path>, ip: Ipv4Addr) -> State {
        State { file: state_file::file(file, ip), written: None, warned: false }
    }

    /// The queue pairs that the last receiver left open.
    pub fn earlier(&self) -> Vec<Remembered> {
        let text = self.file.as_ref().and_then(|file| std::fs::read_to_string(file).ok()).unwrap_or_default();
        text.lines().filter_map(Remembered::parse).collect()
    }

    /// Writes what is open now, if that has changed.
    pub fn keep(&mut self, open: &[Remembered]) {
        let Some(file) = &self.file else { return };
        if self.written.as_deref() == Some(open) {
            return;
        }
        let text: String = open.iter().map(|connection| connection.line() + "\n").collect();
        let partial = file.with_extension("partial");
        let parent = file.parent().map_or(Ok(()), std::fs::create_dir_all);
        let written =
            parent.and_then(|()| std::fs::write(&partial, text)).and_then(|()| std::fs::rename(&partial, file));
        match written {
            Ok(()) => self.written = Some(open.to_vec()),
            // Retried the next time: the obstacle may be gone.
            Err(error) if !self.warned => {
                self.warned = true;
                let what = "after a crash boards may have no free queue pair";
                penstock_cli_common::output::screen::notify(format_args!(
                    "warning: {}: {error}; {what}",
                    file.display()
                ));
            }
            Err(_) => {}
        }
    }
}

impl Observer for State {
    fn observe(&mut self, turn: &mut Turn<'_>) -> Result<(), SessionError> {
        self.keep(&turn.session.remembered());
        Ok(())
    }
}
