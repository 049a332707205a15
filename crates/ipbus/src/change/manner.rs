// SPDX-License-Identifier: Apache-2.0
//! The options of a change, and its author.

use penstock_units::Time;
use std::path::PathBuf;

/// The options of a change, and its author.
#[derive(Debug, Clone)]
pub struct Manner {
    /// Also what breaks a run; and a board that another operator is changing is taken over at once.
    pub force: bool,
    /// How long to wait for other operators who are changing a board.
    pub wait: Time,
    /// The file of the journal; None: that of the user.
    pub journal: Option<PathBuf>,
    /// Who is written down; None: user@host.
    pub operator: Option<String>,
    /// How the caller's users ask for `force`: "--force".
    pub to_force: &'static str,
    /// How they name a journal: "--journal FILE".
    pub to_name_journal: &'static str,
}
