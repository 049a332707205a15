// SPDX-License-Identifier: Apache-2.0
//! The sampling port: R_C, R_T and alpha of queue pairs at a fixed rate (AdvCam figure 14); the layout
//! is `cc_sample_t` in `rtl/lib/penstock_pkg.sv`.

use penstock_cc::CycleRate;

/// The rates of one queue pair at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateSample {
    /// Clock cycle in which the sample was taken off the port.
    pub cycle: u64,
    pub qp: u8,
    /// R_C.
    pub current: CycleRate,
    /// R_T.
    pub target: CycleRate,
    /// 65536 = 1; 0 under QCN.
    pub alpha: u32,
}

impl RateSample {
    pub(crate) fn from_words(cycle: u64, words: [u32; 4]) -> Self {
        let [current, target, low, _] = words;
        Self {
            cycle,
            qp: (low >> 17) as u8,
            current: CycleRate(current),
            target: CycleRate(target),
            alpha: low & 0x1_ffff,
        }
    }
}
