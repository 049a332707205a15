// SPDX-License-Identifier: Apache-2.0
//! Why a change was not started, or not recorded in the journal.

use super::journal::JournalError;
use crate::fleet::{BoardAddress, FleetError};

/// Why a change was not begun, or not noted.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum ChangeError {
    #[error(
        "{board}: {register}: a change from 0x{old:08X} to 0x{new:08X} breaks a run or cuts the board off; nothing was \
         written; {to_force} does it"
    )]
    Critical { board: BoardAddress, register: String, old: u32, new: u32, to_force: &'static str },
    #[error("{board}: {register}: {}; nothing was written", lacks(.part))]
    Lacking { board: BoardAddress, register: String, part: String },
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error(transparent)]
    Fleet(#[from] FleetError),
}

impl ChangeError {
    /// Whether it was refused before anything was written.
    pub const fn wrote_nothing(&self) -> bool {
        !matches!(self, ChangeError::Journal(JournalError::Write { .. }) | ChangeError::Fleet(_))
    }
}

/// What is reported of a setting without the part of the gateware that uses it.
pub(super) fn lacks(part: &str) -> String {
    format!("this board's gateware is built without {part}: leave the setting out, or load a build that has it")
}
