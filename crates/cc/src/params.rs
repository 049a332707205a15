// SPDX-License-Identifier: Apache-2.0
//! The parameters of the reaction point: in physical units, and as the registers hold them.

use crate::units::{cycles, rate};
use crate::{CycleRate, ParamError};
use penstock_units::{ByteSize, Rate, Time};

/// Which control law governs a queue pair.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Law {
    /// CNPs are ignored, packets are not paced.
    Off,
    /// Data Center Quantized Congestion Notification.
    #[default]
    Dcqcn,
    /// Quantized Congestion Notification (IEEE 802.1Qau).
    Qcn,
}

/// How recovery events are counted into stages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StageCounting {
    /// One counter that timer and byte counter both advance (AdvCam).
    #[default]
    Single,
    /// One counter each, T and BC (Zhu et al.).
    PerTrigger,
}

/// When alpha rises by g.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AlphaRule {
    /// With each cut.
    #[default]
    Cut,
    /// With each CNP, also one in the cooldown (AdvCam equation 1 as it stands).
    Cnp,
    /// At the end of an alpha interval in which a CNP came; the interval runs on whether CNPs come or not (ns-3).
    Interval,
}

/// By which 2^-g_shift is multiplied: g has three significant bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GFactor {
    /// A power of two.
    #[default]
    One,
    /// 3/2.
    ThreeHalves,
    /// 5/4.
    FiveQuarters,
    /// 7/8.
    SevenEighths,
}

impl GFactor {
    /// All, in the order of their codes in the register `cc.control.g_factor`.
    pub const ALL: [GFactor; 4] = [GFactor::One, GFactor::ThreeHalves, GFactor::FiveQuarters, GFactor::SevenEighths];

    /// Eight times it.
    #[inline]
    pub const fn eighths(self) -> u8 {
        match self {
            GFactor::One => 8,
            GFactor::ThreeHalves => 12,
            GFactor::FiveQuarters => 10,
            GFactor::SevenEighths => 7,
        }
    }
}

/// The parameters as the registers hold them: rates in Q8.24 bytes per cycle, intervals in cycles.
///
/// `Default` is AdvCam Table II at 156.25 MHz; see [`DcqcnSettings`] for physical units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DcqcnParams {
    /// The control law.
    pub law: Law,
    /// ClampTargetRate: a cut sets R_T to the R_C before it.
    pub clamp_target: bool,
    /// A cut restarts the timer (Zhu et al.); otherwise it fires periodically, cuts or not (AdvCam).
    pub restart_timer: bool,
    /// The timer stops while the limiter does not bind: no packet waits that could start, or a pause holds it.
    /// RFC 7661 validates TCP's window in this way.
    pub hold_timer: bool,
    /// How recovery events are counted.
    pub stage_counting: StageCounting,
    /// Cuts come at the end of a decrease interval in which a CNP came, and these run on from the first CNP (ns-3);
    /// otherwise a CNP that finds the last cut so long ago cuts at once.
    pub cut_on_tick: bool,
    /// Without `clamp_target`: a cut sets R_T to the R_C before it if a recovery event has come since the last cut.
    pub clamp_increasing: bool,
    /// When alpha rises.
    pub alpha_rule: AlphaRule,
    /// Fraction bits of alpha, rounded to the nearest with each update, 1 ..= 15; 0: 31 bits, rounded down.
    pub alpha_bits: u8,
    /// g = 2^-g_shift times the factor, 0 ..= 15.
    pub g_shift: u8,
    /// At g_shift 0 it counts as 1.
    pub g_factor: GFactor,
    /// F: this many stages of fast recovery follow a cut, 0 ..= 15.
    pub stage_threshold: u8,
    /// [`StageCounting::Single`] only: hyper increase begins after this many stages.
    pub hyper_threshold: u8,
    /// R_AI: additive increase of the target rate.
    pub rate_ai: CycleRate,
    /// R_HAI: hyper-additive increase of the target rate.
    pub rate_hai: CycleRate,
    /// R_C never falls below this rate.
    pub rate_min: CycleRate,
    /// R_C never exceeds this rate; a flow at this rate is not paced.
    pub rate_line: CycleRate,
    /// R_C of a fresh flow, between R_min and the line.
    pub rate_start: CycleRate,
    /// Cycles after a cut in which further CNPs do not cut (the cooldown).
    pub decrease_interval: u32,
    /// Cycles without a CNP after which alpha decays once; 0 = never.
    pub alpha_interval: u32,
    /// Cycles between recovery events of the timer; 0 = no timer.
    pub increase_interval: u32,
    /// Bytes between recovery events of the byte counter; 0 = no byte counter.
    pub byte_threshold: u32,
}

impl DcqcnParams {
    /// One of the intervals that run on is shorter than a visit of `cycles`: then time is lost, which only visiting counts.
    #[inline]
    pub(crate) fn loses(&self, cycles: u32) -> bool {
        let shorter = |interval: u32| interval != 0 && interval < cycles;
        let ticks = self.cut_on_tick && self.decrease_interval < cycles;
        ticks || shorter(self.alpha_interval) || shorter(self.increase_interval)
    }
}

impl Default for DcqcnParams {
    fn default() -> Self {
        Self {
            law: Law::Dcqcn,
            clamp_target: true,
            restart_timer: true,
            hold_timer: false,
            stage_counting: StageCounting::Single,
            cut_on_tick: false,
            clamp_increasing: false,
            alpha_rule: AlphaRule::Cut,
            alpha_bits: 0,
            g_shift: 8,
            g_factor: GFactor::One,
            stage_threshold: 5,
            hyper_threshold: 10,
            rate_ai: CycleRate(644_245),       // 6 MB/s
            rate_hai: CycleRate(1_288_490),    // 12 MB/s
            rate_min: CycleRate(134_218),      // 10 Mb/s
            rate_line: CycleRate(134_217_728), // 10 Gb/s: 8 bytes per cycle
            rate_start: CycleRate(u32::MAX),   // the line rate
            decrease_interval: 469,            // 3 us
            alpha_interval: 6_250,             // 40 us
            increase_interval: 312_500,        // 2 ms
            byte_threshold: 10_000_000,
        }
    }
}

/// The parameters in physical units, before a clock is chosen.
///
/// `Default` is AdvCam Table II at 10 Gb/s. Values that the table does not give are taken from Zhu et al.
/// (byte counter of 10 MB, a timer that cuts restart) or chosen: R_min 10 Mb/s, hyper increase after 2 F stages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DcqcnSettings {
    /// The control law.
    pub law: Law,
    /// ClampTargetRate.
    pub clamp_target: bool,
    /// A cut restarts the timer.
    pub restart_timer: bool,
    /// The timer stops while no packet waits that could start, or pause or PFC holds the transmitter.
    pub hold_timer: bool,
    /// How recovery events are counted.
    pub stage_counting: StageCounting,
    /// Cuts come at the end of a decrease interval (ns-3), not at once.
    pub cut_on_tick: bool,
    /// ClampTargetRate after a recovery event only (ns-3).
    pub clamp_increasing: bool,
    /// When alpha rises.
    pub alpha_rule: AlphaRule,
    /// Fraction bits of alpha, 1 ..= 15; 0: all 31.
    pub alpha_bits: u8,
    /// g = 2^-g_shift times the factor, 0 ..= 15.
    pub g_shift: u8,
    /// At g_shift 0 it counts as 1.
    pub g_factor: GFactor,
    /// F, 0 ..= 15.
    pub stage_threshold: u8,
    /// Stages before hyper increase (single counter).
    pub hyper_threshold: u8,
    /// R_AI.
    pub rate_ai: Rate,
    /// R_HAI.
    pub rate_hai: Rate,
    /// Lowest R_C.
    pub rate_min: Rate,
    /// Line rate.
    pub rate_line: Rate,
    /// R_C of a fresh flow; none: the line rate.
    pub rate_start: Option<Rate>,
    /// Cooldown.
    pub decrease_interval: Time,
    /// Alpha-update interval; 0 = alpha never decays.
    pub alpha_interval: Time,
    /// Rate-increase interval; 0 = no timer.
    pub increase_interval: Time,
    /// Byte counter; 0 = none.
    pub byte_threshold: ByteSize,
}

impl Default for DcqcnSettings {
    fn default() -> Self {
        Self {
            law: Law::Dcqcn,
            clamp_target: true,
            restart_timer: true,
            hold_timer: false,
            stage_counting: StageCounting::Single,
            cut_on_tick: false,
            clamp_increasing: false,
            alpha_rule: AlphaRule::Cut,
            alpha_bits: 0,
            g_shift: 8,
            g_factor: GFactor::One,
            stage_threshold: 5,
            hyper_threshold: 10,
            rate_ai: Rate::from_mbps(48),
            rate_hai: Rate::from_mbps(96),
            rate_min: Rate::from_mbps(10),
            rate_line: Rate::from_gbps(10),
            rate_start: None,
            decrease_interval: Time::from_us(3),
            alpha_interval: Time::from_us(40),
            increase_interval: Time::from_ms(2),
            byte_threshold: ByteSize(10_000_000),
        }
    }
}

impl DcqcnSettings {
    /// The register values for a core clock, each rounded to the nearest.
    ///
    /// # Errors
    /// [`ParamError`] names the first value that does not fit its register.
    pub fn at_clock(&self, clock_hz: u64) -> Result<DcqcnParams, ParamError> {
        let nibble =
            |name, value| (value <= 15).then_some(value).ok_or(ParamError::Range { name, value, low: 0, high: 15 });
        let params = DcqcnParams {
            law: self.law,
            clamp_target: self.clamp_target,
            restart_timer: self.restart_timer,
            hold_timer: self.hold_timer,
            stage_counting: self.stage_counting,
            cut_on_tick: self.cut_on_tick,
            clamp_increasing: self.clamp_increasing,
            alpha_rule: self.alpha_rule,
            alpha_bits: nibble("alpha_bits", self.alpha_bits)?,
            g_shift: nibble("g_shift", self.g_shift)?,
            g_factor: self.g_factor,
            stage_threshold: nibble("stage_threshold", self.stage_threshold)?,
            hyper_threshold: self.hyper_threshold,
            rate_ai: rate("rate_ai", self.rate_ai, clock_hz)?,
            rate_hai: rate("rate_hai", self.rate_hai, clock_hz)?,
            rate_min: rate("rate_min", self.rate_min, clock_hz)?,
            rate_line: rate("rate_line", self.rate_line, clock_hz)?,
            rate_start: match self.rate_start {
                Some(start) => rate("rate_start", start, clock_hz)?,
                None => CycleRate(u32::MAX),
            },
            decrease_interval: cycles("decrease_interval", self.decrease_interval, clock_hz)?,
            alpha_interval: cycles("alpha_interval", self.alpha_interval, clock_hz)?,
            increase_interval: cycles("increase_interval", self.increase_interval, clock_hz)?,
            byte_threshold: u32::try_from(self.byte_threshold.bytes())
                .map_err(|_| ParamError::ByteThreshold { value: self.byte_threshold })?,
        };
        if params.rate_min > params.rate_line {
            return Err(ParamError::MinAboveLine { min: self.rate_min, line: self.rate_line });
        }
        Ok(params)
    }
}
