// SPDX-License-Identifier: Apache-2.0
//! What peers SEND to a board with windows: the user's end of the stream `m_axis_receive_*`.
//! Promise: the stream is always taken; with `--received` the bytes of all SENDs are in the file, in the order of their
//! ends.

use super::plan::Plan;
use penstock_board::live::LiveBoard;
use penstock_board::Arrival;
use penstock_cli_common::outcome::Failure;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Takes the messages.
pub struct Received {
    file: Option<(PathBuf, File)>,
}

impl Received {
    /// # Errors
    /// The file cannot be made.
    pub fn open(plan: &Plan) -> Result<Self, Failure> {
        let create = |path: &PathBuf| match File::create(path) {
            Ok(file) => Ok((path.clone(), file)),
            Err(error) => Err(Failure::Refused(failure_text(path, &error))),
        };
        Ok(Self { file: plan.received.as_ref().map(create).transpose()? })
    }

    /// Takes what has come.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn turn(&mut self, board: &mut LiveBoard) -> Result<(), Failure> {
        while let Some(message) = board.board().poll_received() {
            if let (Arrival::Send(bytes), Some((path, file))) = (&message.arrival, &mut self.file) {
                file.write_all(bytes).map_err(|error| Failure::Fault(failure_text(path, &error)))?;
            }
        }
        Ok(())
    }
}

fn failure_text(path: &Path, error: &io::Error) -> String {
    format!("--received {}: {error}", path.display())
}
