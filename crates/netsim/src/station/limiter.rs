// SPDX-License-Identifier: Apache-2.0
//! The rate limiter of one sender: reaction point and pacer, visited at the moments at which the gateware visits them.
//! Promise: bit for bit what visiting cycle by cycle gives; time in which nothing happens costs nothing, and a flow
//! that has seen no congestion costs nothing at all.
//! Source: `rtl/cc/cc_engine.sv` (a visit per queue pair and round of max(N_QP, 16) cycles), `rtl/cc/pacer.sv`.

use std::rc::Rc;

use penstock_cc::{CcParams, Flow, FlowState, Happened, Law, Pacer, Rate};

use crate::units::Time;

/// How a sender is paced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PacingConfig {
    pub law: Law,
    /// At `clock_hz`; its own choice of a law is not looked at.
    pub cc: CcParams,
    /// Clock of the network card.
    pub clock_hz: u64,
    /// Queue pairs of the network card, 1 to 256: each is visited once in max(n_qp, 16) cycles.
    pub n_qp: u32,
    /// The queue pair's own number, which sets its jitter apart (QCN).
    pub index: u8,
}

impl Default for PacingConfig {
    /// DCQCN with AdvCam's Table II in a build of four queue pairs at 156.25 MHz.
    fn default() -> Self {
        let (law, cc) = (Law::default(), CcParams::default());
        PacingConfig { law, cc, clock_hz: 156_250_000, n_qp: 4, index: 0 }
    }
}

/// As many as the gateware can be built with.
const MAX_QP: u32 = 256;

/// How far a limiter looks ahead: further, and a CNP is likely to come first.
const RATE_CHANGES_AHEAD: u32 = 32;

/// When visits happen: visit n at n rounds after time 0.
#[derive(Debug, Clone, Copy)]
struct VisitClock {
    cycles: u32,
    /// A round is `numerator / denominator` picoseconds.
    numerator: u64,
    denominator: u64,
}

impl VisitClock {
    fn new(clock_hz: u64, n_qp: u32) -> Self {
        const PS_PER_SECOND: u64 = 1_000_000_000_000;
        let cycles = n_qp.clamp(16, MAX_QP);
        let hz = clock_hz.max(1);
        let divisor = gcd(PS_PER_SECOND * u64::from(cycles), hz);
        VisitClock { cycles, numerator: PS_PER_SECOND * u64::from(cycles) / divisor, denominator: hz / divisor }
    }

    /// Visits up to and including `now`.
    fn visits(&self, now: Time) -> u64 {
        match self.denominator {
            1 => now.0 / self.numerator,
            denominator => (u128::from(now.0) * u128::from(denominator) / u128::from(self.numerator)) as u64,
        }
    }

    /// Whether this visit is still to come at `now`.
    #[inline]
    fn is_to_come(&self, visit: u64, now: Time) -> bool {
        match self.denominator {
            1 => now.0 < visit.saturating_mul(self.numerator),
            _ => self.visits(now) < visit,
        }
    }

    /// When a visit happens; `None` beyond the end of time.
    fn time_of(&self, visit: u64) -> Option<Time> {
        if self.denominator == 1 {
            return visit.checked_mul(self.numerator).map(Time);
        }
        let scaled = u128::from(visit) * u128::from(self.numerator);
        u64::try_from(scaled.div_ceil(u128::from(self.denominator))).ok().map(Time)
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    match b {
        0 => a,
        b => gcd(b, a % b),
    }
}

/// What flow and pacer will be after a visit, if nothing happens before.
#[derive(Debug, Clone, Copy)]
struct Foreseen {
    flow: Flow,
    pacer: Pacer,
}

/// Reaction point and pacer of one sender.
#[derive(Debug, Clone)]
pub(super) struct Limiter {
    law: Law,
    cc: Rc<CcParams>,
    clock_hz: u64,
    clock: VisitClock,
    flow: Flow,
    pacer: Pacer,
    /// Visits that flow and pacer have seen.
    visits: u64,
    /// What the next visit will be told.
    cnp: bool,
    feedback: u8,
    bytes: u32,
    paused: bool,
    /// A packet waits that could start.
    waits: bool,
    /// The flow is not limited and its last visit has left nothing to settle.
    at_rest: bool,
    /// No packet may start before, unless something happens to the flow. Where nothing is known it lies in the past.
    blocked_until: Time,
    /// How far `blocked_until` was worked out, so that those visits are made once: up to this one, at the end of time if
    /// nothing is known, and what they have made.
    foreseen_at: u64,
    foreseen: Box<Foreseen>,
}

impl Limiter {
    pub(super) fn new(config: &PacingConfig) -> Self {
        let clock = VisitClock::new(config.clock_hz, config.n_qp);
        let flow = Flow::new(config.law, config.index, &config.cc);
        let pacer = Pacer::new(turn(config, clock.cycles));
        let mut limiter = Limiter {
            law: config.law,
            cc: Rc::new(config.cc),
            clock_hz: config.clock_hz,
            clock,
            flow,
            pacer,
            visits: 0,
            cnp: false,
            feedback: 0,
            bytes: 0,
            paused: false,
            waits: false,
            at_rest: false,
            blocked_until: Time::ZERO,
            foreseen_at: u64::MAX,
            foreseen: Box::new(Foreseen { flow, pacer }),
        };
        limiter.visit();
        limiter.at_rest = !limiter.is_limited();
        limiter
    }

    /// Keeps its parameters where others of the same have theirs.
    pub(super) fn share_parameters(&mut self, known: &mut Vec<Rc<CcParams>>) {
        match known.iter().find(|known| **known == self.cc) {
            Some(same) => self.cc = Rc::clone(same),
            None => known.push(Rc::clone(&self.cc)),
        }
    }

    pub(super) fn law(&self) -> Law {
        self.law
    }

    pub(super) fn flow(&self) -> &Flow {
        &self.flow
    }

    /// A rate of this flow in bit/s.
    pub(super) fn bits_per_second(&self, rate: Rate) -> u64 {
        rate.bits_per_second(self.clock_hz)
    }

    /// A CNP arrives.
    pub(super) fn on_cnp(&mut self, now: Time) {
        self.catch_up(now);
        self.cnp = true;
        self.disturbed();
    }

    /// Feedback of a QCN congestion point arrives, 1 to 63; of several in one round the last counts.
    pub(super) fn on_feedback(&mut self, now: Time, feedback: u8) {
        self.catch_up(now);
        self.feedback = feedback;
        self.disturbed();
    }

    fn disturbed(&mut self) {
        self.at_rest = false;
        self.forget();
    }

    /// What was foreseen will not come.
    fn forget(&mut self) {
        self.blocked_until = Time::ZERO;
        self.foreseen_at = u64::MAX;
    }

    /// Pause or PFC holds the transmitter from now on, or no longer. Only QCN's timer stands still then.
    pub(super) fn set_paused(&mut self, now: Time, paused: bool) {
        if self.law == Law::Qcn {
            self.catch_up(now);
            self.forget();
        }
        self.paused = paused;
    }

    /// From now on a packet waits that could start, or none.
    #[inline]
    pub(super) fn set_waiting(&mut self, now: Time, waits: bool) {
        if self.waits != waits {
            if !self.at_rest {
                self.catch_up(now);
            }
            self.waits = waits;
            self.forget();
        }
    }

    /// Whether a packet may start now.
    #[inline]
    pub(super) fn may_start(&mut self, now: Time) -> bool {
        if now < self.blocked_until {
            return false;
        }
        if !self.at_rest {
            self.catch_up(now);
        }
        self.at_rest || self.pacer.eligible()
    }

    /// A packet starts now and costs so many bytes on the wire.
    pub(super) fn started(&mut self, now: Time, wire_bytes: u32) {
        self.catch_up(now);
        self.pacer.charge(wire_bytes);
        self.bytes = self.bytes.saturating_add(wire_bytes);
        self.forget();
    }

    /// When a packet may start, if it may not at `now`, as far as can be foreseen: perhaps not then, but not before.
    pub(super) fn next_start(&mut self, now: Time) -> Option<Time> {
        if now < self.blocked_until {
            return Some(self.blocked_until);
        }
        if self.may_start(now) {
            return None;
        }
        let ahead = self.steady_ahead().unwrap_or_else(|| self.foresee());
        let start = self.clock.time_of(self.visits.saturating_add(ahead));
        self.blocked_until = start.unwrap_or(Time::ZERO);
        start
    }

    /// How many visits from here the pacer lets a packet start, if the rate stays until then.
    #[inline]
    fn steady_ahead(&self) -> Option<u64> {
        if self.cnp || self.feedback != 0 {
            return None;
        }
        let cycles = self.clock.cycles;
        let steady = self.flow.steady_visits_behind(self.bytes, cycles, self.law, &self.cc);
        let grant = u64::from(self.flow.rate_current().0) * u64::from(cycles);
        let owed = self.pacer.credit().unsigned_abs();
        let is_earned = grant > 0 && grant.checked_mul(steady).is_none_or(|earned| earned >= owed);
        is_earned.then(|| owed.div_ceil(grant))
    }

    /// The same, or at least not before, whatever changes: makes the visits up to there and keeps what they have made.
    fn foresee(&mut self) -> u64 {
        let (flow, pacer) = (self.flow, self.pacer);
        let told = (self.cnp, self.feedback, self.bytes);
        let (made, ahead) = self.visits_ahead();
        self.foreseen_at = self.visits + made;
        *self.foreseen = Foreseen { flow: self.flow, pacer: self.pacer };
        (self.flow, self.pacer) = (flow, pacer);
        (self.cnp, self.feedback, self.bytes) = told;
        ahead
    }

    /// How many visits from here the pacer lets a packet start, or at least does not before; in front of it, how many of
    /// them have been made: state must be put back.
    fn visits_ahead(&mut self) -> (u64, u64) {
        let mut ahead = 0;
        if self.cnp || self.feedback != 0 {
            self.visit();
            ahead = 1;
        }
        let cycles = self.clock.cycles;
        for _ in 0..RATE_CHANGES_AHEAD {
            if self.pacer.eligible() {
                return (ahead, ahead);
            }
            if let Some(more) = self.steady_ahead() {
                return (ahead, ahead.saturating_add(more));
            }
            // What lies before the next change of rate, and the change, in one leap; where that cannot be, visit by visit.
            let steady = self.flow.steady_visits_behind(self.bytes, cycles, self.law, &self.cc);
            let (first, leap) = (self.happened(), steady.saturating_add(1));
            if self.flow.skip_paced(leap, first, self.law, &self.cc, &mut self.pacer, self.waits) {
                self.bytes = 0;
                ahead += leap;
                continue;
            }
            if self.bytes != 0 {
                self.visit();
                ahead += 1;
                continue;
            }
            let grant = u64::from(self.flow.rate_current().0) * u64::from(cycles);
            let owed = self.pacer.credit().unsigned_abs();
            // Behind the steady visits comes one that may change the rate.
            let steady = self.flow.steady_visits(cycles, self.paused, self.law, &self.cc);
            // A division only where there will be no rate to change.
            if steady == u64::MAX || grant.checked_mul(steady).is_none_or(|earned| earned >= owed) {
                let needed = if grant == 0 { u64::MAX } else { owed.div_ceil(grant) };
                return (ahead, ahead.saturating_add(needed));
            }
            self.skip_steady(steady);
            self.visit();
            ahead += steady + 1;
        }
        (ahead, ahead)
    }

    /// Visits in which nothing happens and the rate stays.
    fn skip_steady(&mut self, visits: u64) {
        if visits > 0 {
            let cycles = self.clock.cycles;
            self.flow.skip_settled(visits, cycles, self.paused, self.law, &self.cc);
            let unlimited = self.flow.unlimited(&self.cc);
            self.pacer.skip(self.flow.rate_current(), cycles, visits, unlimited, self.waits);
        }
    }

    /// Makes the visits that are due.
    #[inline]
    pub(super) fn catch_up(&mut self, now: Time) {
        if !self.clock.is_to_come(self.visits + 1, now) {
            self.make_visits(now);
        }
    }

    fn make_visits(&mut self, now: Time) {
        let due = self.clock.visits(now);
        if due >= self.foreseen_at {
            self.adopt_foreseen();
            if due == self.visits {
                return;
            }
        }
        let mut left = due - self.visits;
        self.visits = due;
        let cycles = self.clock.cycles;
        if self.at_rest {
            // The first of them does to the pacer what all of them do.
            self.bytes = 0;
            return self.pacer.grant(self.flow.rate_current(), cycles, true, self.waits);
        }
        let first = self.happened();
        if self.flow.skip_paced(left, first, self.law, &self.cc, &mut self.pacer, self.waits) {
            (self.feedback, self.bytes) = (0, 0);
            return;
        }
        let rests = !self.is_limited() && !self.cnp && self.feedback == 0;
        self.visit();
        left -= 1;
        let first = self.happened();
        if self.flow.skip_paced(left, first, self.law, &self.cc, &mut self.pacer, self.waits) {
            left = 0;
        }
        while left > 0 {
            let steady = self.flow.steady_visits(cycles, self.paused, self.law, &self.cc).min(left);
            self.skip_steady(steady);
            left -= steady;
            if left > 0 {
                self.visit();
                left -= 1;
            }
        }
        self.at_rest = rests;
    }

    /// The visits that `next_start` has made are due.
    fn adopt_foreseen(&mut self) {
        (self.visits, self.flow, self.pacer) = (self.foreseen_at, self.foreseen.flow, self.foreseen.pacer);
        (self.cnp, self.feedback, self.bytes) = (false, 0, 0);
        self.foreseen_at = u64::MAX;
    }

    /// What the next visit will be told.
    #[inline]
    fn happened(&self) -> Happened {
        let (cnp, feedback, bytes) = (self.cnp, self.feedback, self.bytes);
        Happened { cnp, feedback, bytes, cycles: self.clock.cycles, paused: self.paused }
    }

    fn visit(&mut self) {
        self.flow.visit(self.happened(), self.law, &self.cc);
        let (rate, unlimited) = (self.flow.rate_current(), self.flow.unlimited(&self.cc));
        self.pacer.grant(rate, self.clock.cycles, unlimited, self.waits);
        (self.cnp, self.feedback, self.bytes) = (false, 0, 0);
    }

    fn is_limited(&self) -> bool {
        match &self.flow.state {
            FlowState::Dcqcn(state) => state.limited,
            FlowState::Qcn(state) => state.limited,
        }
    }
}

/// How many rounds one packet of 4096 bytes from each queue pair takes at line rate.
fn turn(config: &PacingConfig, cycles: u32) -> u32 {
    let line = if config.law == Law::Qcn { config.cc.qcn.rate_line } else { config.cc.dcqcn.rate_line };
    let packets = (4096 * u64::from(config.n_qp.clamp(1, MAX_QP))) << Rate::FRACTION_BITS;
    let turn = packets / (u64::from(line.0) * u64::from(cycles)).max(1);
    u32::try_from(turn).unwrap_or(u32::MAX).max(1)
}
