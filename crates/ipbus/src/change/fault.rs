// SPDX-License-Identifier: Apache-2.0
//! Failed requests to boards.

use crate::fleet::BoardAddress;
use crate::map::name_of;
use crate::request::AccessError;

/// What kind of thing a board did not do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultKind {
    /// It does not answer, or was reset meanwhile.
    Silent,
    /// It refuses the register.
    Refused,
    /// Another operator is changing it: nothing was written.
    Busy,
    /// What was written is not what is read back.
    Differs,
    /// What became of its old settings after another fault.
    Undone,
    /// It was written, and another operator began to change it meanwhile.
    Meanwhile,
    /// Anything else that a command has to say of it.
    Other,
}

impl FaultKind {
    /// Its name for programs.
    pub const fn name(self) -> &'static str {
        match self {
            FaultKind::Silent => "silent",
            FaultKind::Refused => "refused",
            FaultKind::Busy => "busy",
            FaultKind::Differs => "differs",
            FaultKind::Undone => "undone",
            FaultKind::Meanwhile => "meanwhile",
            FaultKind::Other => "other",
        }
    }
}

/// What a board did not do.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Fault {
    pub board: BoardAddress,
    pub kind: FaultKind,
    /// The register it is about, by name.
    pub register: Option<String>,
    pub message: String,
}

impl Fault {
    /// An access that went wrong.
    pub fn of(board: BoardAddress, error: &AccessError) -> Self {
        let (kind, register) = match error {
            AccessError::Refused { address, .. } => (FaultKind::Refused, Some(name_of(*address))),
            _ => (FaultKind::Silent, None),
        };
        Fault { board, kind, register, message: error.to_string() }
    }
}
