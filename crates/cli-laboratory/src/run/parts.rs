// SPDX-License-Identifier: Apache-2.0
//! The parts of a simulation that only the command provides: verilated boards and switches, and the readout's receiver.

use super::board::board;
use super::readout::{readout, SharedReadout};
use super::switch::switch;
use penstock_lab::{BoardRequest, MakerError, Makers, ReadoutEnd, ReadoutRequest, SwitchRequest};
use penstock_netsim::Node;
use std::path::Path;

/// Makes them, and keeps a handle of the readout.
pub struct Parts<'a> {
    out: &'a Path,
    pub readout: Option<SharedReadout>,
}

impl<'a> Parts<'a> {
    /// The parts of a run with its results in the folder `out`.
    pub fn new(out: &'a Path) -> Self {
        Parts { out, readout: None }
    }
}

impl Makers for Parts<'_> {
    fn board(&mut self, request: BoardRequest) -> Result<Box<dyn Node>, MakerError> {
        board(request)
    }

    fn switch(&mut self, request: SwitchRequest) -> Result<Box<dyn Node>, MakerError> {
        switch(request)
    }

    fn readout(&mut self, request: ReadoutRequest) -> Result<ReadoutEnd, MakerError> {
        let (shared, end) = readout(request, self.out)?;
        self.readout = Some(shared);
        Ok(end)
    }
}
