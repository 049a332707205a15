// SPDX-License-Identifier: Apache-2.0
//! One board's queue pair, and the numbers of its work requests.
//! Promise: it is destroyed before the memory that it fills.

use std::io;

use penstock_wire::Psn;

use super::reads::Reads;
use crate::backend::BackendError;
use crate::sys::verbs::QueuePair;

/// One board's queue pair.
pub(super) struct Board {
    /// First: it is destroyed before what it fills.
    pub(super) qp: QueuePair,
    /// What is read, if the board announces.
    pub(super) reads: Option<Reads>,
    /// Completions that may be there at a time.
    pub(super) most_completions: u32,
    /// The connection's number, in the upper half of our work request numbers with the board: completions of an earlier
    /// one do not count.
    pub(super) life: u16,
    pub(super) psn: Psn,
    /// Receives that have not completed.
    pub(super) posted: u32,
    /// The peer may have filled some.
    pub(super) connected: bool,
    /// Reason of the first error completion.
    pub(super) fault: Option<&'static str>,
}

/// What the numbers of a connection's work requests begin with.
pub(super) fn tag(board: u16, life: u16) -> u64 {
    u64::from(board) << 48 | u64::from(life) << 32
}

/// The error of the device during an action.
pub(super) fn failed(action: impl Into<std::borrow::Cow<'static, str>>) -> impl FnOnce(io::Error) -> BackendError {
    let action = action.into();
    move |source| BackendError::Io { action, source }
}
