// SPDX-License-Identifier: Apache-2.0
//! The sampling port: R_C, R_T and alpha of queue pairs at a fixed rate (AdvCam figure 14); the layout
//! is `cc_sample_t` in `rtl/lib/penstock_pkg.sv`.

use crate::board::{Board, RegisterError};
use crate::config::regs::sampling;
use crate::top::Top;
use penstock_cc::Rate;

/// The rates of one queue pair at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateSample {
    /// Clock cycle in which the sample was taken off the port.
    pub cycle: u64,
    pub qp: u8,
    /// R_C.
    pub current: Rate,
    /// R_T.
    pub target: Rate,
    /// 65536 = 1; 0 under QCN.
    pub alpha: u32,
}

impl RateSample {
    pub(crate) fn from_words(cycle: u64, words: [u32; 4]) -> Self {
        let [current, target, low, _] = words;
        Self { cycle, qp: (low >> 17) as u8, current: Rate(current), target: Rate(target), alpha: low & 0x1_ffff }
    }
}

impl<T: Top> Board<T> {
    /// Has the sampling port give the rates of queue pairs `first` to `last` every `interval_cycles`;
    /// 0 = no more. [`Board::poll_rates`] returns them.
    pub fn sample_rates(&mut self, first: u8, last: u8, interval_cycles: u32) -> Result<(), RegisterError> {
        let range = u32::from(first) << sampling::RANGE_FIRST_SHIFT | u32::from(last) << sampling::RANGE_LAST_SHIFT;
        self.write(sampling::RANGE, range)?;
        self.write(sampling::INTERVAL, interval_cycles)
    }
}
