// SPDX-License-Identifier: Apache-2.0
//! Failed requests to boards.

use crate::fleet::BoardAddress;
use crate::map::Map;
use crate::request::AccessError;

/// The kind of failure of a board.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultKind {
    /// It does not answer, or was reset meanwhile.
    Silent,
    /// It refuses the register.
    Refused,
    /// Other operators are changing it: nothing was written.
    Busy,
    /// The value read back differs from the written one.
    Differs,
    /// The outcome of restoring its old settings after another fault.
    Undone,
    /// It was written, and another operator began to change it meanwhile.
    Meanwhile,
    /// What became of a write is not known, or anything else that a command has to say of it.
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

/// A failed request to a board.
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
    /// An access of a device with this map that went wrong.
    pub fn of(map: &'static Map, board: BoardAddress, error: &AccessError) -> Self {
        let (kind, register) = match error {
            AccessError::Refused { address, .. } => (FaultKind::Refused, Some(map.name_of(*address))),
            AccessError::Crowded { .. } => (FaultKind::Busy, None),
            AccessError::Unknown | AccessError::Protocol { .. } => (FaultKind::Other, None),
            _ => (FaultKind::Silent, None),
        };
        Fault { board, kind, register, message: error.to_string() }
    }
}
