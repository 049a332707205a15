// SPDX-License-Identifier: Apache-2.0
//! The QCN reaction point: one visit of one queue pair, equal to `rtl/cc/qcn_step.sv` to the bit.
//!
//! IEEE 802.1Qau; the QCN seed's parameters, its functions by name, and its list of what a paused
//! reaction point does. Rounding: a cut removes `floor(R_C * G_d |F_b|)`, at most half; recovery goes
//! to `ceil((R_C + R_T) / 2)`. A counter that expires starts at zero again, as in the pseudo-code.

use crate::lfsr::{jittered, Lfsr};
use crate::{Happened, QcnParams, Rate};

/// The state word of one queue pair under QCN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QcnState {
    /// R_C.
    pub rate_current: Rate,
    /// R_T.
    pub rate_target: Rate,
    /// Cycles of the timer's present stage.
    pub timer_elapsed: u32,
    /// How long that stage lasts, cycles; 0 = not drawn yet.
    pub timer_limit: u32,
    /// Bytes of the byte counter's present stage.
    pub bytes_sent: u32,
    /// How long that stage lasts, bytes; 0 = not drawn yet.
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

/// What a visit made of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QcnOutcome {
    /// The new state word.
    pub state: QcnState,
    /// A CNP came, which is DCQCN's.
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

    /// This flow without its rate limiter; its jitter goes on where it was.
    fn released(&self, params: &QcnParams) -> Self {
        Self { cnp_handled: self.cnp_handled, lfsr: self.lfsr, ..Self::idle(params, 0) }
    }

    /// The stage as software sees it: the larger of the two counters.
    pub fn stage(&self) -> u8 {
        self.stage_timer.max(self.stage_bytes)
    }

    /// Visits of `cycles` each, without feedback or bytes, in which nothing happens but that the
    /// timer counts. Only right for a state that a visit with these parameters has made.
    pub(crate) fn quiet_visits(&self, cycles: u32, paused: bool, params: &QcnParams) -> u64 {
        if !self.limited {
            // a limiter that has just been released is taken away at the next visit
            return if *self == self.released(params) { u64::MAX } else { 0 };
        }
        let undrawn =
            (self.timer_limit == 0 && params.timer_period != 0) || (self.byte_limit == 0 && params.byte_limit != 0);
        if undrawn || (self.byte_limit != 0 && self.bytes_sent >= self.byte_limit) {
            return 0;
        }
        if paused || self.timer_limit == 0 || cycles == 0 {
            return u64::MAX;
        }
        u64::from(self.timer_limit.saturating_sub(1).saturating_sub(self.timer_elapsed) / cycles)
    }
}

/// One visit: all rules of the reaction point in one function.
///
/// Feedback cuts and restarts everything. Otherwise at most one stage ends, the timer's before the
/// byte counter's, which then waits for the next visit; and at most one length is drawn.
pub fn qcn_step(state: &QcnState, happened: Happened, params: &QcnParams) -> QcnOutcome {
    let cut = happened.feedback != 0;
    let mut next = if !state.limited && !cut {
        state.released(params)
    } else if cut {
        cut_rate(state, happened.feedback, params)
    } else {
        recover(state, happened, params)
    };
    let bounded = |rate: Rate| rate.max(params.rate_min).min(params.rate_line);
    next.rate_current = bounded(next.rate_current);
    next.rate_target = bounded(next.rate_target);
    next.limited = next.rate_current < params.rate_line;
    QcnOutcome { state: next, cnp_ignored: happened.cnp }
}

/// R_C (1 - G_d |F_b|); R_T follows R_C down only if R_C was on its way up ("extra fast recovery").
fn cut_rate(state: &QcnState, feedback: u8, params: &QcnParams) -> QcnState {
    let factor = ((u64::from(feedback & 63) << 16) >> params.gd_shift).min(1 << 15);
    let Rate(rate) = state.rate_current;
    let increasing = state.stage_timer != 0 || state.stage_bytes != 0;
    QcnState {
        rate_current: Rate(rate - ((u64::from(rate) * factor) >> 16) as u32),
        rate_target: if increasing { state.rate_current } else { state.rate_target },
        timer_elapsed: 0,
        timer_limit: 0,
        bytes_sent: 0,
        byte_limit: 0,
        stage_timer: 0,
        stage_bytes: 0,
        lfsr: state.lfsr,
        cnp_handled: state.cnp_handled.wrapping_add(1),
        limited: true,
    }
}

/// The two counters and what they lead to.
fn recover(state: &QcnState, happened: Happened, params: &QcnParams) -> QcnState {
    let mut next = *state;
    let running = if happened.paused { 0 } else { happened.cycles };
    next.timer_elapsed = state.timer_elapsed.saturating_add(running);
    next.bytes_sent = state.bytes_sent.saturating_add(happened.bytes);
    let over = |period: u32, limit: u32, count: u32| period != 0 && limit != 0 && count >= limit;
    let timer = over(params.timer_period, state.timer_limit, next.timer_elapsed);
    let bytes = over(params.byte_limit, state.byte_limit, next.bytes_sent) && !timer;
    draw(&mut next, state, params);
    if timer || params.timer_period == 0 {
        (next.timer_elapsed, next.timer_limit) = (0, 0);
    }
    if bytes || params.byte_limit == 0 {
        (next.bytes_sent, next.byte_limit) = (0, 0);
    }
    next.stage_timer = state.stage_timer.saturating_add(u8::from(timer));
    next.stage_bytes = state.stage_bytes.saturating_add(u8::from(bytes));
    if timer || bytes {
        raise_rate(&mut next, state, params);
    }
    next
}

/// Draws how long a new stage lasts, one of the two in a visit.
fn draw(next: &mut QcnState, state: &QcnState, params: &QcnParams) {
    let (limit, base, stage) = if state.timer_limit == 0 && params.timer_period != 0 {
        (&mut next.timer_limit, params.timer_period, state.stage_timer)
    } else if state.byte_limit == 0 && params.byte_limit != 0 {
        (&mut next.byte_limit, params.byte_limit, state.stage_bytes)
    } else {
        return;
    };
    *limit = jittered(base, params.jitter, next.lfsr.draw(), stage >= params.stage_threshold);
}

/// A stage has ended: target-rate reduction, fast recovery, active or hyper-active increase.
fn raise_rate(next: &mut QcnState, state: &QcnState, params: &QcnParams) {
    let (Rate(current), Rate(target)) = (state.rate_current, state.rate_target);
    let (more, less) = (next.stage_timer.max(next.stage_bytes), next.stage_timer.min(next.stage_bytes));
    let increment = if more <= params.stage_threshold {
        0
    } else if less <= params.stage_threshold {
        u64::from(params.rate_ai.0)
    } else {
        u64::from(params.rate_hai.0) * u64::from(less - params.stage_threshold)
    };
    let first = state.stage_timer == 0 && state.stage_bytes == 0;
    let target = if first && u64::from(target) > 10 * u64::from(current) {
        u64::from(target >> 3)
    } else {
        (u64::from(target) + increment).min(u64::from(params.rate_line.0))
    };
    next.rate_target = Rate(target as u32);
    next.rate_current = Rate(((u64::from(current) + target + 1) >> 1) as u32);
}
