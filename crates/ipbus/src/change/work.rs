// SPDX-License-Identifier: Apache-2.0
//! A change in progress.

use super::fault::{Fault, FaultKind};
use super::journal::Journal;
use super::manner::Manner;
use crate::fleet::{BoardAddress, Fleet};
use crate::request::AccessError;

/// The state of one change.
pub(super) struct Change<'a> {
    pub(super) fleet: &'a mut Fleet,
    pub(super) manner: &'a Manner,
    pub(super) journal: Journal,
    pub(super) faults: &'a mut Vec<Fault>,
}

impl Change<'_> {
    pub(super) fn address(&self, board: usize) -> BoardAddress {
        self.fleet.addresses()[board]
    }

    pub(super) fn fault(&mut self, board: usize, kind: FaultKind, register: Option<String>, message: String) {
        let board = self.address(board);
        self.faults.push(Fault { board, kind, register, message });
    }

    pub(super) fn failed(&mut self, board: usize, error: &AccessError) {
        self.faults.push(Fault::of(self.fleet.map(), self.address(board), error));
    }
}
