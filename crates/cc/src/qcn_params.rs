// SPDX-License-Identifier: Apache-2.0
//! The parameters of the QCN reaction point: in physical units, and as the registers hold them.

use crate::units::{cycles, rate};
use crate::{ParamError, Rate};

/// The parameters as the registers hold them: rates in Q8.24 bytes per cycle, periods in cycles.
///
/// `Default` is the QCN hardware evaluation's parameter page at 156.25 MHz, with a line of 10 Gb/s.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QcnParams {
    /// G_d = 2^-gd_shift, 1 ..= 15.
    pub gd_shift: u8,
    /// Stages of fast recovery; behind them, byte counter and timer run at half their length.
    pub stage_threshold: u8,
    /// Byte counter and timer are drawn from their length * (1 ± jitter/256), 0 ..= 127.
    pub jitter: u8,
    /// Active increase of the target rate.
    pub rate_ai: Rate,
    /// Hyper-active increase of the target rate, times the stages behind the threshold.
    pub rate_hai: Rate,
    /// R_C never falls below this rate.
    pub rate_min: Rate,
    /// R_C never exceeds this rate; a flow at this rate is not paced.
    pub rate_line: Rate,
    /// Cycles of one stage of the timer; 0 = no timer.
    pub timer_period: u32,
    /// Bytes of one stage of the byte counter; 0 = no byte counter.
    pub byte_limit: u32,
    /// Where the jitter starts.
    pub seed: u32,
}

impl Default for QcnParams {
    fn default() -> Self {
        Self {
            gd_shift: 7,
            stage_threshold: 5,
            jitter: 77,                   // 30 %
            rate_ai: Rate(6_711),         // 0.5 Mb/s
            rate_hai: Rate(67_109),       // 5 Mb/s
            rate_min: Rate(6_711),        // 0.5 Mb/s
            rate_line: Rate(134_217_728), // 10 Gb/s: 8 bytes per cycle
            timer_period: 3_906_250,      // 25 ms
            byte_limit: 150_000,
            seed: 0x5053_544b,
        }
    }
}

/// The parameters in physical units; `Default` is the QCN hardware evaluation's parameter page at 10 Gb/s.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QcnSettings {
    /// G_d = 2^-gd_shift, 1 ..= 15.
    pub gd_shift: u8,
    /// Stages of fast recovery, 0 ..= 15.
    pub stage_threshold: u8,
    /// Jitter in 1/256, 0 ..= 127.
    pub jitter: u8,
    /// AI_INC in bit/s.
    pub rate_ai_bps: u64,
    /// HAI_INC in bit/s.
    pub rate_hai_bps: u64,
    /// MIN_RATE in bit/s.
    pub rate_min_bps: u64,
    /// Line rate in bit/s.
    pub rate_line_bps: u64,
    /// TIMER_PERIOD in ps; 0 = no timer.
    pub timer_period_ps: u64,
    /// BC_LIMIT in bytes; 0 = no byte counter.
    pub byte_limit: u32,
    /// Where the jitter starts.
    pub seed: u32,
}

impl Default for QcnSettings {
    fn default() -> Self {
        Self {
            gd_shift: 7,
            stage_threshold: 5,
            jitter: 77,
            rate_ai_bps: 500_000,
            rate_hai_bps: 5_000_000,
            rate_min_bps: 500_000,
            rate_line_bps: 10_000_000_000,
            timer_period_ps: 25_000_000_000,
            byte_limit: 150_000,
            seed: 0x5053_544b,
        }
    }
}

impl QcnSettings {
    /// The register values for a core clock, each rounded to the nearest.
    ///
    /// # Errors
    /// [`ParamError`] names the first value that does not fit its register.
    pub fn at_clock(&self, clock_hz: u64) -> Result<QcnParams, ParamError> {
        let within = |name, value, low, high| match (low..=high).contains(&value) {
            true => Ok(value),
            false => Err(ParamError::Range { name, value, low, high }),
        };
        let params = QcnParams {
            gd_shift: within("gd_shift", self.gd_shift, 1, 15)?,
            stage_threshold: within("stage_threshold", self.stage_threshold, 0, 15)?,
            jitter: within("jitter", self.jitter, 0, 127)?,
            rate_ai: rate("rate_ai", self.rate_ai_bps, clock_hz)?,
            rate_hai: rate("rate_hai", self.rate_hai_bps, clock_hz)?,
            rate_min: rate("rate_min", self.rate_min_bps, clock_hz)?,
            rate_line: rate("rate_line", self.rate_line_bps, clock_hz)?,
            timer_period: cycles("timer_period", self.timer_period_ps, clock_hz)?,
            byte_limit: self.byte_limit,
            seed: self.seed,
        };
        if params.rate_min > params.rate_line {
            return Err(ParamError::MinAboveLine { min: self.rate_min_bps, line: self.rate_line_bps });
        }
        Ok(params)
    }
}
