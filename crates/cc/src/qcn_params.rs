// SPDX-License-Identifier: Apache-2.0
//! The parameters of the QCN reaction point: in physical units, and as the registers hold them.

use crate::units::{cycles, rate};
use crate::{CycleRate, ParamError};
use penstock_units::{Rate, Time};

/// The parameters as the registers hold them: rates in Q8.24 bytes per cycle, periods in cycles.
///
/// `Default` is the QCN hardware evaluation's parameter page at 156.25 MHz, with a line of 10 Gb/s.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QcnParams {
    /// G_d = 2^-gd_shift, 1 ..= 15.
    pub gd_shift: u8,
    /// Stages of fast recovery; after them, stages of byte counter and timer have half their length.
    pub stage_threshold: u8,
    /// Byte counter and timer are drawn from their length * (1 ± jitter/256), 0 ..= 127.
    pub jitter: u8,
    /// Active increase of the target rate.
    pub rate_ai: CycleRate,
    /// Hyper-active increase of the target rate, multiplied by the number of stages after the threshold.
    pub rate_hai: CycleRate,
    /// R_C never falls below this rate.
    pub rate_min: CycleRate,
    /// R_C never exceeds this rate; a flow at this rate is not paced.
    pub rate_line: CycleRate,
    /// Cycles of one stage of the timer; 0 = no timer.
    pub timer_period: u32,
    /// Bytes of one stage of the byte counter; 0 = no byte counter.
    pub byte_limit: u32,
    /// Seed of the jitter.
    pub seed: u32,
}

impl Default for QcnParams {
    fn default() -> Self {
        Self {
            gd_shift: 7,
            stage_threshold: 5,
            jitter: 77,                        // 30 %
            rate_ai: CycleRate(6_711),         // 0.5 Mb/s
            rate_hai: CycleRate(67_109),       // 5 Mb/s
            rate_min: CycleRate(6_711),        // 0.5 Mb/s
            rate_line: CycleRate(134_217_728), // 10 Gb/s: 8 bytes per cycle
            timer_period: 3_906_250,           // 25 ms
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
    /// AI_INC.
    pub rate_ai: Rate,
    /// HAI_INC.
    pub rate_hai: Rate,
    /// MIN_RATE.
    pub rate_min: Rate,
    /// Line rate.
    pub rate_line: Rate,
    /// TIMER_PERIOD; 0 = no timer.
    pub timer_period: Time,
    /// BC_LIMIT in bytes; 0 = no byte counter.
    pub byte_limit: u32,
    /// Seed of the jitter.
    pub seed: u32,
}

impl Default for QcnSettings {
    fn default() -> Self {
        Self {
            gd_shift: 7,
            stage_threshold: 5,
            jitter: 77,
            rate_ai: Rate::from_kbps(500),
            rate_hai: Rate::from_mbps(5),
            rate_min: Rate::from_kbps(500),
            rate_line: Rate::from_gbps(10),
            timer_period: Time::from_ms(25),
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
            rate_ai: rate("rate_ai", self.rate_ai, clock_hz)?,
            rate_hai: rate("rate_hai", self.rate_hai, clock_hz)?,
            rate_min: rate("rate_min", self.rate_min, clock_hz)?,
            rate_line: rate("rate_line", self.rate_line, clock_hz)?,
            timer_period: cycles("timer_period", self.timer_period, clock_hz)?,
            byte_limit: self.byte_limit,
            seed: self.seed,
        };
        if params.rate_min > params.rate_line {
            return Err(ParamError::MinAboveLine { min: self.rate_min, line: self.rate_line });
        }
        Ok(params)
    }
}
