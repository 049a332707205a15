// SPDX-License-Identifier: Apache-2.0
//! The reaction point: one visit of one queue pair, equal to `rtl/cc/cc_step.sv` to the bit.
//!
//! Rounding, the same in both: a cut removes `floor(R_C * alpha / 2)` with the 17 visible bits of
//! alpha; alpha decays to `floor(alpha * (1 - g))` on its 32 internal bits, so it reaches zero, unless
//! `alpha_bits` names a coarser resolution, to which it is rounded to the nearest;
//! recovery goes to `ceil((R_C + R_T) / 2)`, so R_C arrives at R_T exactly.

use crate::alpha::{below_resolution, decayed, decayed_often, gain, ALPHA_GUARD_BITS, ALPHA_ONE_FULL};
use crate::cnp_bound::CnpBound;
use crate::cycle_rate::CycleRate;
use crate::pacer::Pacer;
use crate::parameters::{AlphaRule, DcqcnParams, Law, StageCounting};

/// Surplus bytes of a recovery event are kept for the next one up to this number; more than this can
/// only result from a threshold that software has just lowered.
const BYTE_SLACK: u32 = 1 << 16;

/// The state word of one queue pair, as stored in the engine's RAM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State {
    /// R_C.
    pub rate_current: CycleRate,
    /// R_T.
    pub rate_target: CycleRate,
    /// alpha with its guard bits, 2^31 = 1.
    pub alpha_full: u32,
    /// Cycles since the last cut, held at its highest value; since the last end of a decrease interval, where cuts wait
    /// for it.
    pub since_cut: u32,
    /// Cycles since the last CNP or alpha update.
    pub alpha_elapsed: u32,
    /// Cycles since the last recovery event of the timer, or the last cut if cuts restart it.
    pub increase_elapsed: u32,
    /// Bytes since the last cut or recovery event of the byte counter.
    pub bytes_sent: u32,
    /// Recovery events since the last cut: of the timer (T), or of both (single counter).
    pub stage_timer: u8,
    /// Recovery events of the byte counter since the last cut (BC).
    pub stage_bytes: u8,
    /// CNPs that led to a cut (`rp_cnp_handled`), modulo 2^32.
    pub cnp_handled: u32,
    /// A CNP waits for the end of the decrease interval.
    pub cut_due: bool,
    /// A CNP came in this alpha interval ([`AlphaRule::Interval`]).
    pub rise_due: bool,
    /// A CNP has been seen, or the flow started below the line rate; before that, the limiter is idle.
    pub limited: bool,
}

impl State {
    /// A flow that has seen no congestion: line rate, alpha = 1, counters stopped.
    pub fn idle(params: &DcqcnParams) -> Self {
        Self {
            rate_current: params.rate_line,
            rate_target: params.rate_line,
            alpha_full: ALPHA_ONE_FULL,
            since_cut: u32::MAX,
            alpha_elapsed: 0,
            increase_elapsed: 0,
            bytes_sent: 0,
            stage_timer: 0,
            stage_bytes: 0,
            cnp_handled: 0,
            cut_due: false,
            rise_due: false,
            limited: false,
        }
    }

    /// A flow that starts under the law: at its start rate, and idle if that is the line rate.
    pub fn fresh(params: &DcqcnParams) -> Self {
        let rate = params.rate_start.max(params.rate_min).min(params.rate_line);
        Self { rate_current: rate, rate_target: rate, limited: rate < params.rate_line, ..Self::idle(params) }
    }

    /// alpha in the format visible to software, 65536 = 1.
    pub fn alpha(&self) -> u32 {
        self.alpha_full >> ALPHA_GUARD_BITS
    }

    /// The stage visible to software: the larger of the two counters.
    pub fn stage(&self) -> u8 {
        self.stage_timer.max(self.stage_bytes)
    }

    /// Visits of `cycles` each, without CNP or bytes, over which R_C stays constant. Valid only for a state that
    /// results from a visit with these parameters.
    pub(crate) fn steady_visits(&self, cycles: u32, transmitter: Transmitter, params: &DcqcnParams) -> u64 {
        if !self.limited {
            return u64::MAX;
        }
        if self.byte_counter_is_due(params) {
            return 0;
        }
        let before_cut = match (self.cut_due, params.decrease_interval) {
            (false, _) => u64::MAX,
            (true, 0) => 0,
            (true, interval) => until(self.since_cut, interval, cycles),
        };
        // A held timer shorter than a visit may have one pending event, which occurs despite the pause.
        let holds = transmitter.holds(params) && self.increase_elapsed < params.increase_interval;
        if self.is_at_line(params) || holds {
            return before_cut;
        }
        before_cut.min(until(self.increase_elapsed, params.increase_interval, cycles))
    }

    /// The same if the first visit reports `bytes` sent; 0 if only a real visit shows it.
    #[inline]
    pub(crate) fn steady_visits_behind(
        &self,
        bytes: u32,
        cycles: u32,
        transmitter: Transmitter,
        params: &DcqcnParams,
    ) -> u64 {
        match advance(self.bytes_sent, bytes, params.byte_threshold, BYTE_SLACK) {
            (_, false) if self.limited => self.steady_visits(cycles, transmitter, params),
            _ => 0,
        }
    }

    /// The byte counter has yielded to the timer in the last visit.
    fn byte_counter_is_due(&self, params: &DcqcnParams) -> bool {
        params.byte_threshold != 0 && self.bytes_sent >= params.byte_threshold
    }

    /// Recovery events no longer change the rates.
    #[inline]
    fn is_at_line(&self, params: &DcqcnParams) -> bool {
        self.rate_current == params.rate_line && self.rate_target == params.rate_line
    }

    /// The effect of `visits` such visits.
    pub(crate) fn skip(&mut self, mut visits: u64, cycles: u32, transmitter: Transmitter, params: &DcqcnParams) {
        if !self.limited {
            return;
        }
        // A timer that is shorter than a visit loses time, which only visiting counts.
        let loses = params.loses(cycles);
        while visits > 0 && (loses || self.cut_due || self.byte_counter_is_due(params)) {
            self.visit(Happened { cycles, transmitter, ..Happened::default() }, Law::Dcqcn, params);
            visits -= 1;
        }
        if visits == 0 {
            return;
        }
        // Alpha and rates are independent, so each can be advanced separately.
        let span = visits.saturating_mul(u64::from(cycles));
        self.run_alpha(span, params);
        if !transmitter.holds(params) {
            self.run_increase(span, params);
        }
    }

    /// Has the effect of `visits` visits, the first with the events `first` and the others without events, and of the
    /// pacer's grants between them; returns false and changes nothing if single visits are needed.
    pub(crate) fn skip_paced(
        &mut self,
        visits: u64,
        first: Happened,
        params: &DcqcnParams,
        pacer: &mut Pacer,
        waits: bool,
    ) -> bool {
        let (cycles, interval) = (first.cycles, params.increase_interval);
        let loses = interval < cycles || params.loses(cycles);
        let (bytes_sent, counter) = advance(self.bytes_sent, first.bytes, params.byte_threshold, BYTE_SLACK);
        let holds = first.transmitter.holds(params);
        if !self.limited || self.cut_due || loses || counter || holds || first.cnp || visits == 0 {
            return false;
        }
        self.bytes_sent = bytes_sent;
        let span = |visits: u64| visits.saturating_mul(u64::from(cycles));
        self.run_alpha(span(visits), params);
        if span(visits) < u64::from(interval.saturating_sub(self.increase_elapsed)) {
            // The timer is still running after the last of them: nothing changes the rate.
            pacer.skip(self.rate_current, cycles, visits, self.rate_current >= params.rate_line, waits);
            self.increase_elapsed += span(visits) as u32;
            return true;
        }
        let mut left = visits;
        if let Some(behind) = self.climb(visits, cycles, params) {
            // At the line rate the credit restarts, so its earlier values are not needed.
            pacer.grant(self.rate_current, cycles, true, waits);
            left = behind;
        }
        while left > 0 && !self.is_at_line(params) {
            let is_line = self.rate_current >= params.rate_line;
            let quiet = left.min(until(self.increase_elapsed, interval, cycles));
            pacer.skip(self.rate_current, cycles, quiet, is_line, waits);
            self.increase_elapsed += quiet as u32 * cycles;
            left -= quiet;
            if left > 0 {
                self.increase_elapsed = self.increase_elapsed.saturating_add(cycles) - interval;
                self.raise(true, params);
                self.clamp_rates(params);
                pacer.grant(self.rate_current, cycles, self.rate_current >= params.rate_line, waits);
                left -= 1;
            }
        }
        if left > 0 {
            pacer.skip(self.rate_current, cycles, left, self.rate_current >= params.rate_line, waits);
            self.run_increase(span(left), params);
        }
        true
    }

    /// Lets the timer raise the rates to the line rate, if that takes at most `visits`; returns the number of visits
    /// left. `None`, without a change, if they do not reach it or R_C is already there.
    fn climb(&mut self, visits: u64, cycles: u32, params: &DcqcnParams) -> Option<u64> {
        let (interval, line) = (u64::from(params.increase_interval), params.rate_line);
        params.increase_interval.checked_add(cycles)?;
        // Raise k is due when the timer has run for k intervals, and comes with the next visit.
        let (cycles, elapsed) = (u64::from(cycles), u64::from(self.increase_elapsed));
        let end = visits.saturating_mul(cycles).saturating_add(elapsed);
        let halvings = |rate: CycleRate| Some(u64::from(line.0.checked_sub(rate.0)?.checked_ilog2()? + 1));
        // A raise at most halves the difference.
        if halvings(self.rate_current)? * interval > end {
            return None;
        }
        let (mut state, mut due) = (*self, 0);
        while state.rate_target != line {
            due += interval;
            if due > end {
                return None;
            }
            state.raise(true, params);
            state.clamp_rates(params);
        }
        // R_T no longer increases, so each raise halves the difference in every phase.
        let raises = halvings(state.rate_current).unwrap_or(0);
        due += raises * interval;
        if due > end {
            return None;
        }
        let needed = due.checked_sub(elapsed)?.div_ceil(cycles);
        state.rate_current = line;
        state.stage_timer = state.stage_timer.saturating_add(raises as u8);
        state.increase_elapsed = (elapsed + needed * cycles - due) as u32;
        *self = state;
        Some(visits - needed)
    }

    fn run_alpha(&mut self, span: u64, params: &DcqcnParams) {
        self.since_cut = match params.cut_on_tick {
            true => rounds(self.since_cut, span, params.decrease_interval).0,
            false => self.since_cut.saturating_add(u32::try_from(span).unwrap_or(u32::MAX)),
        };
        let (elapsed, mut updates) = rounds(self.alpha_elapsed, span, params.alpha_interval);
        self.alpha_elapsed = elapsed;
        if updates > 0 && self.rise_due {
            self.update_alpha(true, params);
            self.rise_due = false;
            updates -= 1;
        }
        if updates > 0 {
            self.alpha_full = decayed_often(self.alpha_full, params, updates);
        }
    }

    fn run_increase(&mut self, span: u64, params: &DcqcnParams) {
        let (elapsed, mut raises) = rounds(self.increase_elapsed, span, params.increase_interval);
        self.increase_elapsed = elapsed;
        while raises > 0 && !self.is_at_line(params) {
            self.raise(true, params);
            self.clamp_rates(params);
            raises -= 1;
        }
        self.stage_timer = self.stage_timer.saturating_add(u8::try_from(raises).unwrap_or(u8::MAX));
    }

    #[inline]
    fn clamp_rates(&mut self, params: &DcqcnParams) {
        self.clamp_rates_above(params.rate_min, params);
    }

    #[inline]
    fn clamp_rates_above(&mut self, least: CycleRate, params: &DcqcnParams) {
        self.rate_current = self.rate_current.max(least).min(params.rate_line);
        self.rate_target = self.rate_target.max(least).min(params.rate_line);
    }
}

/// Whether the limiter binds at a visit, or the reason why it does not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Transmitter {
    /// A packet waits that could start.
    #[default]
    Busy,
    /// No packet waits: there is nothing to send, or no credit for it.
    Idle,
    /// Pause or PFC holds it, whether or not a packet waits.
    Paused,
}

impl Transmitter {
    /// The transmitter's state by the pause state, and by whether a packet waits that could start.
    #[inline]
    pub fn new(paused: bool, waits: bool) -> Self {
        match (paused, waits) {
            (true, _) => Self::Paused,
            (false, false) => Self::Idle,
            (false, true) => Self::Busy,
        }
    }

    /// Whether DCQCN's increase timer stops. QCN's timer stops only during a pause (IEEE 802.1Qau).
    #[inline]
    fn holds(self, params: &DcqcnParams) -> bool {
        params.hold_timer && self != Self::Busy
    }
}

/// The events of a queue pair since its last visit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Happened {
    /// A CNP arrived (DCQCN), or several.
    pub cnp: bool,
    /// |F_b| of a congestion notification message, 1 to 63; 0 = none came (QCN).
    pub feedback: u8,
    /// Bytes sent, in wire length.
    pub bytes: u32,
    /// Elapsed clock cycles.
    pub cycles: u32,
    /// The transmitter at the time of the visit.
    pub transmitter: Transmitter,
    /// Level of the floor below which notifications do not hold the rate ([`CnpBound::floor`], DCQCN).
    pub floor: u8,
}

impl Happened {
    /// Cycles that count for the increase timer.
    #[inline]
    fn running(&self, params: &DcqcnParams) -> u32 {
        if self.transmitter.holds(params) {
            0
        } else {
            self.cycles
        }
    }
}

/// The result of a visit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The new state word.
    pub state: State,
    /// A CNP came and did not cut: inside the cooldown, or the law is off.
    pub cnp_ignored: bool,
}

/// One visit under the law that `params` name: all rules of the reaction point in one function.
///
/// A CNP outside the cooldown cuts and restarts everything, or all but the timer, of which an event in
/// the very visit of a cut is lost. A CNP inside the cooldown only restarts the alpha interval. Otherwise alpha decays
/// when its interval is over, and at most one recovery event is served: the timer's before the byte counter's, which
/// then waits for the next visit. `cut_on_tick` and `alpha_rule` change when a CNP cuts and alpha rises.
pub fn step(state: &State, happened: Happened, params: &DcqcnParams) -> Outcome {
    let mut state = *state;
    let cnp_ignored = state.visit(happened, params.law, params);
    Outcome { state, cnp_ignored }
}

// The rules, in place. Most visits only advance counters: that path is inlined and straight; the actions of
// a counter or a CNP are in separate functions.
impl State {
    /// [`step`] under DCQCN, or under no law; returns whether a CNP came and did not cut.
    #[inline]
    pub(crate) fn visit(&mut self, happened: Happened, law: Law, params: &DcqcnParams) -> bool {
        if law != Law::Dcqcn {
            *self = Self { cnp_handled: self.cnp_handled, ..Self::idle(params) };
            return happened.cnp;
        }
        if !self.limited && !happened.cnp {
            *self = Self { cnp_handled: self.cnp_handled, ..Self::fresh(params) };
            return false;
        }
        let waited = self.cut_due;
        let cut = self.cuts(happened, params);
        // A cut takes alpha as it was.
        if cut {
            self.cut_rate(happened, params);
        } else {
            self.recover(happened, params);
        }
        self.count_alpha(happened, cut, params);
        self.clamp_rates_above(params.rate_min.max(CnpBound::floor(params.rate_line, happened.floor)), params);
        self.limited = true;
        happened.cnp && if params.cut_on_tick { waited } else { !cut }
    }

    /// Whether this visit cuts, by the cooldown.
    #[inline]
    fn cuts(&mut self, happened: Happened, params: &DcqcnParams) -> bool {
        let since_cut = self.since_cut.saturating_add(happened.cycles);
        let cooled = since_cut >= params.decrease_interval;
        if !params.cut_on_tick {
            let cut = happened.cnp && cooled;
            self.since_cut = if cut { 0 } else { since_cut };
            self.cut_due = false;
            return cut;
        }
        // The first CNP only lets the intervals begin.
        let (due, first) = (happened.cnp || self.cut_due, !self.limited);
        let cut = due && cooled && !first;
        let rest = since_cut.saturating_sub(params.decrease_interval);
        self.since_cut = match (first, cooled) {
            (false, false) => since_cut,
            (false, true) if rest < happened.cycles => rest,
            _ => 0,
        };
        self.cut_due = due && !cut;
        cut
    }

    /// AdvCam equations 1 and 2.
    #[inline]
    fn count_alpha(&mut self, happened: Happened, cut: bool, params: &DcqcnParams) {
        let at_interval = params.alpha_rule == AlphaRule::Interval;
        let clear = if at_interval { !self.limited } else { happened.cnp || cut };
        let (elapsed, met) = advance(self.alpha_elapsed, happened.cycles, params.alpha_interval, happened.cycles);
        let met = met && !clear;
        self.alpha_elapsed = if clear { 0 } else { elapsed };
        let notified = self.rise_due || happened.cnp;
        let rise = match params.alpha_rule {
            AlphaRule::Cut => cut,
            AlphaRule::Cnp => happened.cnp,
            AlphaRule::Interval => met && notified,
        };
        self.rise_due = at_interval && !clear && !met && params.alpha_interval != 0 && notified;
        if rise || met {
            self.update_alpha(rise, params);
        }
        self.alpha_full &= !below_resolution(params.alpha_bits);
    }

    fn update_alpha(&mut self, rise: bool, params: &DcqcnParams) {
        self.alpha_full = decayed(self.alpha_full, params);
        if rise {
            self.alpha_full += gain(params) & !below_resolution(params.alpha_bits);
        }
    }

    /// AdvCam equations 3 and 4.
    #[cold]
    fn cut_rate(&mut self, happened: Happened, params: &DcqcnParams) {
        let CycleRate(rate) = self.rate_current;
        let reduction = (u64::from(rate) * u64::from(self.alpha())) >> 17;
        let increasing = self.stage_timer != 0 || self.stage_bytes != 0;
        if params.clamp_target || (params.clamp_increasing && increasing) {
            self.rate_target = self.rate_current;
        }
        let Happened { cycles, .. } = happened;
        let (elapsed, _) = advance(self.increase_elapsed, happened.running(params), params.increase_interval, cycles);
        *self = Self {
            rate_current: CycleRate(rate - reduction as u32),
            increase_elapsed: if params.restart_timer { 0 } else { elapsed },
            bytes_sent: 0,
            stage_timer: 0,
            stage_bytes: 0,
            cnp_handled: self.cnp_handled.wrapping_add(1),
            ..*self
        };
    }

    /// The three recovery phases.
    #[inline]
    fn recover(&mut self, happened: Happened, params: &DcqcnParams) {
        let Happened { bytes, cycles, .. } = happened;
        let running = happened.running(params);
        let (elapsed, timer) = advance(self.increase_elapsed, running, params.increase_interval, cycles);
        self.increase_elapsed = elapsed;
        let (rest, counter) = advance(self.bytes_sent, bytes, params.byte_threshold, BYTE_SLACK);
        self.bytes_sent = if timer && counter { self.bytes_sent.saturating_add(bytes) } else { rest };
        if timer || counter {
            self.raise_rate(timer, params);
        }
    }

    /// [`raise`](Self::raise), kept out of line.
    #[cold]
    fn raise_rate(&mut self, timer: bool, params: &DcqcnParams) {
        self.raise(timer, params);
    }

    /// One recovery event, of the timer or of the byte counter; the phase depends on the stages
    /// before it, so F = 5 gives five steps of fast recovery.
    #[inline]
    fn raise(&mut self, timer: bool, params: &DcqcnParams) {
        let (first, last) = (self.stage_timer.max(self.stage_bytes), self.stage_timer.min(self.stage_bytes));
        let (fast, hyper) = match params.stage_counting {
            StageCounting::Single => {
                (self.stage_timer < params.stage_threshold, self.stage_timer >= params.hyper_threshold)
            }
            StageCounting::PerTrigger => (first < params.stage_threshold, last > params.stage_threshold),
        };
        let increment = match (fast, hyper) {
            (true, _) => 0,
            (false, true) => params.rate_hai.0,
            (false, false) => params.rate_ai.0,
        };
        let target = u64::from(self.rate_target.0) + u64::from(increment);
        let target = target.min(u64::from(params.rate_line.0));
        self.rate_target = CycleRate(target as u32);
        self.rate_current = CycleRate(((u64::from(self.rate_current.0) + target + 1) >> 1) as u32);
        let stage = match (params.stage_counting, timer) {
            (StageCounting::Single, _) | (_, true) => &mut self.stage_timer,
            (StageCounting::PerTrigger, false) => &mut self.stage_bytes,
        };
        *stage = stage.saturating_add(1);
    }
}

/// Visits of `cycles` each before the one in which a count reaches its limit; a limit of 0 is never reached.
fn until(count: u32, limit: u32, cycles: u32) -> u64 {
    match limit {
        0 => u64::MAX,
        limit => u64::from(limit.saturating_sub(1).saturating_sub(count).checked_div(cycles).unwrap_or(u32::MAX)),
    }
}

/// A timer at `count` that runs for another `span`: its new count, and how often it has fired.
fn rounds(count: u32, span: u64, interval: u32) -> (u32, u64) {
    let sum = u64::from(count).saturating_add(span);
    match u64::from(interval) {
        0 => (0, 0),
        interval if sum < interval => (sum as u32, 0),
        interval if sum < 2 * interval => ((sum - interval) as u32, 1),
        interval => ((sum % interval) as u32, sum / interval),
    }
}

/// Counts `amount` towards `limit`; at the limit the counter fires and keeps the remainder,
/// so that the mean interval is exact. A remainder of `slack` or more is dropped. A limit of 0 never
/// fires.
#[inline]
fn advance(count: u32, amount: u32, limit: u32, slack: u32) -> (u32, bool) {
    let sum = count.saturating_add(amount);
    if limit == 0 {
        return (0, false);
    }
    if sum < limit {
        return (sum, false);
    }
    let rest = sum - limit;
    (if rest < slack { rest } else { 0 }, true)
}

/// The reaction point of one queue pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReactionPoint {
    /// The state word.
    pub state: State,
}

impl ReactionPoint {
    /// A new flow.
    pub fn new(params: &DcqcnParams) -> Self {
        let state = if params.law == Law::Dcqcn { State::fresh(params) } else { State::idle(params) };
        Self { state }
    }

    /// One visit, see [`step`]; returns whether a CNP was ignored.
    pub fn visit(&mut self, happened: Happened, params: &DcqcnParams) -> bool {
        self.state.visit(happened, params.law, params)
    }

    /// Whether the pacer does not limit this flow.
    pub fn unlimited(&self, params: &DcqcnParams) -> bool {
        self.state.rate_current >= params.rate_line
    }
}
