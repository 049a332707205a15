// SPDX-License-Identifier: Apache-2.0
//! The counters of a board, read from its registers when its run is over.

use penstock_board::{regs, Board, RegisterError, WorkerGone};
use std::collections::BTreeMap;

/// Why a board's counters cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum CounterError {
    #[error("{board}: {source}")]
    Register { board: String, source: RegisterError },
    #[error(transparent)]
    Worker(#[from] WorkerGone),
}

/// Every counter of the register map: name, address, value.
pub struct GatewareCounters(Vec<(&'static str, u32, u32)>);

impl GatewareCounters {
    /// Reads them all; `board` is its name, for errors.
    pub fn read(board: &str, mut gateware: Board) -> Result<Self, CounterError> {
        let failed = |source| CounterError::Register { board: board.to_owned(), source };
        let read = |&(name, address)| Ok((name, address, gateware.read(address).map_err(failed)?));
        regs::counters::ALL.iter().map(read).collect::<Result<_, _>>().map(Self)
    }

    /// The counter at an address of `regs::counters`.
    pub fn at(&self, address: u32) -> u32 {
        self.0.iter().find(|counter| counter.1 == address).expect("an address of regs::counters").2
    }

    pub fn by_name(&self) -> BTreeMap<&'static str, u32> {
        self.0.iter().map(|&(name, _, value)| (name, value)).collect()
    }
}
