// SPDX-License-Identifier: Apache-2.0
//! The QCN reaction point: one visit of one queue pair, equal to `rtl/cc/cc_step.sv` to the bit.
//!
//! Source: IEEE 802.1Qau; the QCN hardware evaluation: its parameters, the names of its functions, and its list of
//! rules for a paused reaction point. Rounding: a cut removes `floor(R_C * G_d |F_b|)`, at most half; recovery goes
//! to `ceil((R_C + R_T) / 2)`. A counter that expires restarts at zero, as in the pseudo-code.

use crate::cycle_rate::CycleRate;
use crate::lfsr::{jittered, Lfsr};
use crate::parameters::QcnParams;
use crate::reaction::{Happened, Transmitter};

/// The state word of one queue pair under QCN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QcnState {
    /// R_C.
    pub rate_current: CycleRate,
    /// R_T.
    pub rate_target: CycleRate,
    /// Elapsed cycles of the timer's present stage.
    pub timer_elapsed: u32,
    /// Length of that stage, cycles; 0 = not drawn yet.
    pub timer_limit: u32,
    /// Counted bytes of the byte counter's present stage.
    pub bytes_sent: u32,
    /// Length of that stage, bytes; 0 = not drawn yet.
    pub byte_limit: u32,
    /// Stages of the timer since the last cut.
    pub stage_timer: u8,
    /// Stages of the byte counter since the last cut.
    pub stage_bytes: u8,
    /// Source of the jitter.
    pub lfsr: Lfsr,
    /// Notifications that cut, modulo 2^32.
    pub cnp_handled: u32,
    /// The rate limiter is installed: from a cut until R_C is back at the line rate.
    pub limited: bool,
}

/// The result of a visit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QcnOutcome {
    /// The new state word.
    pub state: QcnState,
    /// A CNP came, which belongs to DCQCN.
    pub cnp_ignored: bool,
}

impl QcnState {
    /// A flow without a rate limiter.
    pub fn idle(params: &QcnParams, index: u8) -> Self {
        Self {
            rate_current: params.rate_line,
            rate_target: params.rate_line,
            timer_elapsed: 0,
            timer_limit: 0,
            bytes_sent: 0,
            byte_limit: 0,
            stage_timer: 0,
            stage_bytes: 0,
            lfsr: Lfsr::new(params.seed, index),
            cnp_handled: 0,
            limited: false,
        }
    }

    /// This flow without its rate limiter; its jitter sequence continues.
    fn released(&self, params: &QcnParams) -> Self {
        Self { cnp_handled: self.cnp_handled, lfsr: self.lfsr, ..Self::idle(params, 0) }
    }

    /// The stage visible to software: the larger of the two counters.
    pub fn stage(&self) -> u8 {
        self.stage_timer.max(self.stage_bytes)
    }

    /// Visits of `cycles` each, without feedback or bytes, in which only the timer advances.
    /// Valid only for a state that results from a visit with these parameters.
    pub(crate) fn quiet_visits(&self, cycles: u32, transmitter: Transmitter, params: &QcnParams) -> u64 {
        if !self.limited {
            // a limiter that has just been released is removed at the next visit
            return if *self == self.released(params) { u64::MAX } else { 0 };
        }
        let undrawn =
            (self.timer_limit == 0 && params.timer_period != 0) || (self.byte_limit == 0 && params.byte_limit != 0);
        if undrawn || (self.byte_limit != 0 && self.bytes_sent >= self.byte_limit) {
            return 0;
        }
        if transmitter == Transmitter::Paused || self.timer_limit == 0 || cycles == 0 {
            return u64::MAX;
        }
        u64::from(self.timer_limit.saturating_sub(1).saturating_sub(self.timer_elapsed) / cycles)
    }

    /// The effect of `visits` such visits: one computed visit for each event of the timer.
    pub(crate) fn skip(&mut self, mut visits: u64, cycles: u32, transmitter: Transmitter, params: &QcnParams) {
        while visits > 0 {
            let quiet = self.quiet_visits(cycles, transmitter, params).min(visits);
            if self.limited && transmitter != Transmitter::Paused && params.timer_period != 0 {
                let span = u32::try_from(quiet.saturating_mul(u64::from(cycles))).unwrap_or(u32::MAX);
                self.timer_elapsed = self.timer_elapsed.saturating_add(span);
            }
            visits -= quiet;
            if visits > 0 {
                self.visit(Happened { cycles, transmitter, ..Happened::default() }, params);
                visits -= 1;
            }
        }
    }
}

/// One visit: all rules of the reaction point in one function.
///
/// Feedback cuts and restarts everything. Otherwise at most one stage ends, the timer's before the
/// byte counter's, which then waits for the next visit; and at most one length is drawn.
pub fn qcn_step(state: &QcnState, happened: Happened, params: &QcnParams) -> QcnOutcome {
    let mut state = *state;
    let cnp_ignored = state.visit(happened, params);
    QcnOutcome { state, cnp_ignored }
}

// The rules, in place. Most visits only advance counters: that path is inlined and straight; the actions of
// a counter or a notification are in separate functions.
impl QcnState {
    /// [`qcn_step`]; returns whether a CNP came, which belongs to DCQCN.
    #[inline]
    pub(crate) fn visit(&mut self, happened: Happened, params: &QcnParams) -> bool {
        if happened.feedback != 0 {
            self.cut_rate(happened.feedback, params);
        } else if self.limited {
            self.recover(happened, params);
        } else {
            *self = self.released(params);
        }
        self.rate_current = self.rate_current.max(params.rate_min).min(params.rate_line);
        self.rate_target = self.rate_target.max(params.rate_min).min(params.rate_line);
        self.limited = self.rate_current < params.rate_line;
        happened.cnp
    }

    /// R_C (1 - G_d |F_b|); R_T follows R_C down only if R_C was increasing ("extra fast recovery").
    #[cold]
    fn cut_rate(&mut self, feedback: u8, params: &QcnParams) {
        let factor = ((u64::from(feedback & 63) << 16) >> params.gd_shift).min(1 << 15);
        let CycleRate(rate) = self.rate_current;
        let increasing = self.stage_timer != 0 || self.stage_bytes != 0;
        *self = Self {
            rate_current: CycleRate(rate - ((u64::from(rate) * factor) >> 16) as u32),
            rate_target: if increasing { self.rate_current } else { self.rate_target },
            timer_elapsed: 0,
            timer_limit: 0,
            bytes_sent: 0,
            byte_limit: 0,
            stage_timer: 0,
            stage_bytes: 0,
            lfsr: self.lfsr,
            cnp_handled: self.cnp_handled.wrapping_add(1),
            limited: true,
        };
    }

    /// The two counters and their actions.
    #[inline]
    fn recover(&mut self, happened: Happened, params: &QcnParams) {
        let running = if happened.transmitter == Transmitter::Paused { 0 } else { happened.cycles };
        self.timer_elapsed = self.timer_elapsed.saturating_add(running);
        self.bytes_sent = self.bytes_sent.saturating_add(happened.bytes);
        let over = |period: u32, limit: u32, count: u32| period != 0 && limit != 0 && count >= limit;
        let timer = over(params.timer_period, self.timer_limit, self.timer_elapsed);
        let bytes = over(params.byte_limit, self.byte_limit, self.bytes_sent) && !timer;
        if self.timer_limit == 0 || self.byte_limit == 0 {
            self.draw(params);
        }
        if timer || params.timer_period == 0 {
            (self.timer_elapsed, self.timer_limit) = (0, 0);
        }
        if bytes || params.byte_limit == 0 {
            (self.bytes_sent, self.byte_limit) = (0, 0);
        }
        if timer || bytes {
            self.raise_rate(timer, params);
        }
    }

    /// Draws the length of a new stage, at most one of the two per visit.
    #[cold]
    fn draw(&mut self, params: &QcnParams) {
        let (limit, base, stage) = if self.timer_limit == 0 && params.timer_period != 0 {
            (&mut self.timer_limit, params.timer_period, self.stage_timer)
        } else if self.byte_limit == 0 && params.byte_limit != 0 {
            (&mut self.byte_limit, params.byte_limit, self.stage_bytes)
        } else {
            return;
        };
        *limit = jittered(base, params.jitter, self.lfsr.draw(), stage >= params.stage_threshold);
    }

    /// A stage of the timer or of the byte counter has ended: target-rate reduction, fast recovery,
    /// active or hyper-active increase.
    #[cold]
    fn raise_rate(&mut self, timer: bool, params: &QcnParams) {
        let first = self.stage_timer == 0 && self.stage_bytes == 0;
        let ended = if timer { &mut self.stage_timer } else { &mut self.stage_bytes };
        *ended = ended.saturating_add(1);
        let (CycleRate(current), CycleRate(target)) = (self.rate_current, self.rate_target);
        let (more, less) = (self.stage_timer.max(self.stage_bytes), self.stage_timer.min(self.stage_bytes));
        let increment = if more <= params.stage_threshold {
            0
        } else if less <= params.stage_threshold {
            u64::from(params.rate_ai.0)
        } else {
            u64::from(params.rate_hai.0) * u64::from(less - params.stage_threshold)
        };
        let target = if first && u64::from(target) > 10 * u64::from(current) {
            u64::from(target >> 3)
        } else {
            (u64::from(target) + increment).min(u64::from(params.rate_line.0))
        };
        self.rate_target = CycleRate(target as u32);
        self.rate_current = CycleRate(((u64::from(current) + target + 1) >> 1) as u32);
    }
}
