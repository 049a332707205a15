// SPDX-License-Identifier: Apache-2.0
//! Random parameters for the examples that make histories for the gateware.

mod random;

use penstock_cc::{AlphaRule, CcParams, CycleRate, DcqcnParams, GFactor, Law, QcnParams, StageCounting};

pub use random::Random;

impl Random {
    /// Parameters of one group: plain rates half of the time, any at all otherwise.
    pub fn params(&mut self) -> CcParams {
        let mut dcqcn = DcqcnParams {
            law: self.pick(&[Law::Dcqcn, Law::Dcqcn, Law::Qcn, Law::Off]),
            clamp_target: self.one_in(2),
            restart_timer: self.one_in(2),
            hold_timer: self.one_in(2),
            stage_counting: self.pick(&[StageCounting::Single, StageCounting::PerTrigger]),
            cut_on_tick: self.one_in(3),
            clamp_increasing: self.one_in(2),
            alpha_rule: self.pick(&[AlphaRule::Cut, AlphaRule::Cut, AlphaRule::Cnp, AlphaRule::Interval]),
            alpha_bits: if self.one_in(2) { self.below(16) as u8 } else { 0 },
            g_shift: self.below(16) as u8,
            g_factor: self.pick(&GFactor::ALL),
            stage_threshold: self.below(16) as u8,
            hyper_threshold: self.below(24) as u8,
            decrease_interval: self.magnitude(12),
            alpha_interval: self.magnitude(12),
            increase_interval: self.magnitude(12),
            byte_threshold: self.magnitude(20),
            ..DcqcnParams::default()
        };
        let mut qcn = QcnParams {
            gd_shift: self.below(16) as u8,
            stage_threshold: self.below(16) as u8,
            jitter: self.below(128) as u8,
            timer_period: self.magnitude(12),
            byte_limit: self.magnitude(20),
            seed: self.next() as u32,
            ..QcnParams::default()
        };
        if self.one_in(2) {
            (dcqcn.rate_ai, dcqcn.rate_hai) = (CycleRate(self.magnitude(32)), CycleRate(self.magnitude(32)));
            (dcqcn.rate_min, dcqcn.rate_line) = (CycleRate(self.magnitude(28)), CycleRate(self.magnitude(32)));
            dcqcn.rate_start = CycleRate(self.magnitude(32));
            (qcn.rate_ai, qcn.rate_hai) = (CycleRate(self.magnitude(32)), CycleRate(self.magnitude(32)));
            (qcn.rate_min, qcn.rate_line) = (CycleRate(self.magnitude(28)), CycleRate(self.magnitude(32)));
        }
        if self.one_in(8) {
            let full = u32::MAX - self.magnitude(8);
            (qcn.timer_period, qcn.byte_limit, dcqcn.byte_threshold) = (full, full, full);
        }
        CcParams { dcqcn, qcn }
    }
}

/// The registers of a group's parameters of both laws.
pub fn param_words(params: &CcParams) -> impl Iterator<Item = u32> {
    params.dcqcn.words().into_iter().chain(params.qcn.words())
}
