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
    /// A round is `numerator / denominator` picoseconds.
    numerator: u64,
    denominator: u64,
}

impl VisitClock {
    fn new(clock_hz: u64, cycles: u32) -> Self {
        const PS_PER_SECOND: u64 = 1_000_000_000_000;
        let hz = clock_hz.max(1);
        let divisor = gcd(PS_PER_SECOND * u64::from(cycles), hz);
        VisitClock { numerator: PS_PER_SECOND * u64::from(cycles) / divisor, denominator: hz / divisor }
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

/// What a visit is made by.
#[derive(Debug, Clone)]
struct Rules {
    law: Law,
    cc: Rc<CcParams>,
    /// Between two visits.
    cycles: u32,
    paused: bool,
    /// A packet waits that could start.
    waits: bool,
}

/// Flow and pacer, and what the next visit will be told.
#[derive(Debug, Clone, Copy)]
struct Visited {
    flow: Flow,
    pacer: Pacer,
    cnp: bool,
    feedback: u8,
    bytes: u32,
}

impl Visited {
    fn is_limited(&self) -> bool {
        match &self.flow.state {
            FlowState::Dcqcn(state) => state.limited,
            FlowState::Qcn(state) => state.limited,
        }
    }

    /// A notification has come since the last visit.
    #[inline]
    fn is_notified(&self) -> bool {
        self.cnp || self.feedback != 0
    }

    #[inline]
    fn happened(&self, rules: &Rules) -> Happened {
        let (cnp, feedback, bytes) = (self.cnp, self.feedback, self.bytes);
        Happened { cnp, feedback, bytes, cycles: rules.cycles, paused: rules.paused }
    }

    fn visit(&mut self, rules: &Rules) {
        self.flow.visit(self.happened(rules), rules.law, &rules.cc);
        let (rate, unlimited) = (self.flow.rate_current(), self.flow.unlimited(&rules.cc));
        self.pacer.grant(rate, rules.cycles, unlimited, rules.waits);
        (self.cnp, self.feedback, self.bytes) = (false, 0, 0);
    }

    /// The visits at once; false, and none is made, where that cannot be.
    #[inline]
    fn leap(&mut self, visits: u64, rules: &Rules) -> bool {
        let first = self.happened(rules);
        let leapt = self.flow.skip_paced(visits, first, rules.law, &rules.cc, &mut self.pacer, rules.waits);
        if leapt {
            (self.feedback, self.bytes) = (0, 0);
        }
        leapt
    }

    /// Visits in which nothing happens and the rate stays.
    fn skip_steady(&mut self, visits: u64, rules: &Rules) {
        if visits > 0 {
            self.flow.skip_settled(visits, rules.cycles, rules.paused, rules.law, &rules.cc);
            let unlimited = self.flow.unlimited(&rules.cc);
            self.pacer.skip(self.flow.rate_current(), rules.cycles, visits, unlimited, rules.waits);
        }
    }

    /// How many visits from here the pacer lets a packet start, where that is within so many visits of this rate.
    #[inline]
    fn earned_within(&self, steady: u64, rules: &Rules) -> Option<u64> {
        let grant = u64::from(self.flow.rate_current().0) * u64::from(rules.cycles);
        let owed = self.pacer.credit().unsigned_abs();
        // A division only where there will be no rate to change.
        let is_earned = grant > 0 && grant.checked_mul(steady).is_none_or(|earned| earned >= owed);
        is_earned.then(|| owed.div_ceil(grant))
    }

    /// How many visits from here the pacer lets a packet start, if the rate stays until then; if not, or if only visiting
    /// can say, for how many visits it stays.
    #[inline]
    fn steady_ahead(&self, rules: &Rules) -> Result<u64, u64> {
        if self.is_notified() {
            return Err(0);
        }
        let steady = self.flow.steady_visits_behind(self.bytes, rules.cycles, rules.law, &rules.cc);
        self.earned_within(steady, rules).ok_or(steady)
    }

    /// Makes visits up to where the pacer lets a packet start, or as far as can be seen. Returns how many it has made, and
    /// for how many from where it began no packet may start. `steady`: what `steady_ahead` has said.
    fn visit_ahead(&mut self, mut steady: u64, rules: &Rules) -> (u64, u64) {
        let mut made = 0;
        for _ in 0..RATE_CHANGES_AHEAD {
            // What lies before the next change of rate, and the change, in one leap; where that cannot be, visit by visit.
            let leap = steady.saturating_add(1);
            if self.leap(leap, rules) {
                made += leap;
            } else if self.bytes != 0 || self.is_notified() {
                self.visit(rules);
                made += 1;
            } else {
                let steady = self.flow.steady_visits(rules.cycles, rules.paused, rules.law, &rules.cc);
                if let Some(more) = self.earned_within(steady, rules) {
                    return (made, made.saturating_add(more));
                }
                if steady == u64::MAX {
                    return (made, u64::MAX);
                }
                self.skip_steady(steady, rules);
                self.visit(rules);
                made += steady + 1;
            }
            if self.pacer.eligible() {
                break;
            }
            match self.steady_ahead(rules) {
                Ok(more) => return (made, made.saturating_add(more)),
                Err(visits) => steady = visits,
            }
        }
        (made, made)
    }
}

/// Reaction point and pacer of one sender.
#[derive(Debug, Clone)]
pub(super) struct Limiter {
    rules: Rules,
    clock_hz: u64,
    clock: VisitClock,
    visited: Visited,
    /// Visits that have been made.
    visits: u64,
    /// The flow is not limited and its last visit has left nothing to settle.
    at_rest: bool,
    /// No packet may start before, unless something happens to the flow. Where nothing is known it lies in the past.
    blocked_until: Time,
    /// How far `blocked_until` was worked out, so that those visits are made once: up to this one, at the end of time if
    /// nothing is known, and what they have made.
    foreseen_at: u64,
    foreseen: Box<Visited>,
}

impl Limiter {
    pub(super) fn new(config: &PacingConfig) -> Self {
        let cycles = config.n_qp.clamp(16, MAX_QP);
        let clock = VisitClock::new(config.clock_hz, cycles);
        let mut visited = Visited {
            flow: Flow::new(config.law, config.index, &config.cc),
            pacer: Pacer::new(turn(config, cycles)),
            cnp: false,
            feedback: 0,
            bytes: 0,
        };
        let rules = Rules { law: config.law, cc: Rc::new(config.cc), cycles, paused: false, waits: false };
        visited.visit(&rules);
        Limiter {
            rules,
            clock_hz: config.clock_hz,
            clock,
            visited,
            visits: 0,
            at_rest: !visited.is_limited(),
            blocked_until: Time::ZERO,
            foreseen_at: u64::MAX,
            foreseen: Box::new(visited),
        }
    }

    /// Keeps its parameters where others of the same have theirs.
    pub(super) fn share_parameters(&mut self, known: &mut Vec<Rc<CcParams>>) {
        match known.iter().find(|known| **known == self.rules.cc) {
            Some(same) => self.rules.cc = Rc::clone(same),
            None => known.push(Rc::clone(&self.rules.cc)),
        }
    }

    pub(super) fn law(&self) -> Law {
        self.rules.law
    }

    pub(super) fn flow(&self) -> &Flow {
        &self.visited.flow
    }

    /// A rate of this flow in bit/s.
    pub(super) fn bits_per_second(&self, rate: Rate) -> u64 {
        rate.bits_per_second(self.clock_hz)
    }

    /// A CNP arrives.
    pub(super) fn on_cnp(&mut self, now: Time) {
        self.catch_up(now);
        self.visited.cnp = true;
        self.disturbed();
    }

    /// Feedback of a QCN congestion point arrives, 1 to 63; of several in one round the last counts.
    pub(super) fn on_feedback(&mut self, now: Time, feedback: u8) {
        self.catch_up(now);
        self.visited.feedback = feedback;
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
        if self.rules.law == Law::Qcn {
            self.catch_up(now);
            self.forget();
        }
        self.rules.paused = paused;
    }

    /// From now on a packet waits that could start, or none.
    #[inline]
    pub(super) fn set_waiting(&mut self, now: Time, waits: bool) {
        if self.rules.waits != waits {
            if !self.at_rest {
                self.catch_up(now);
            }
            self.rules.waits = waits;
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
        self.at_rest || self.visited.pacer.eligible()
    }

    /// A packet starts now and costs so many bytes on the wire.
    pub(super) fn started(&mut self, now: Time, wire_bytes: u32) {
        self.catch_up(now);
        self.visited.pacer.charge(wire_bytes);
        self.visited.bytes = self.visited.bytes.saturating_add(wire_bytes);
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
        let ahead = self.visited.steady_ahead(&self.rules).unwrap_or_else(|steady| self.foresee(steady));
        let start = self.clock.time_of(self.visits.saturating_add(ahead));
        self.blocked_until = start.unwrap_or(Time::ZERO);
        start
    }

    /// The same in visits from here where the rate changes before: makes them aside and keeps what they have made.
    fn foresee(&mut self, steady: u64) -> u64 {
        *self.foreseen = self.visited;
        let (made, ahead) = self.foreseen.visit_ahead(steady, &self.rules);
        self.foreseen_at = self.visits + made;
        ahead
    }

    /// Makes the visits that are due.
    #[inline]
    pub(super) fn catch_up(&mut self, now: Time) {
        if !self.clock.is_to_come(self.visits + 1, now) {
            self.make_visits(now);
        }
    }

    // Most questions come in the round of the last visit: those cost a comparison.
    #[inline(never)]
    fn make_visits(&mut self, now: Time) {
        let due = self.clock.visits(now);
        if due >= self.foreseen_at {
            self.visits = self.foreseen_at;
            self.visited = *self.foreseen;
            self.foreseen_at = u64::MAX;
            if due == self.visits {
                return;
            }
        }
        let mut left = due - self.visits;
        self.visits = due;
        let (visited, rules) = (&mut self.visited, &self.rules);
        if self.at_rest {
            // The first of them does to the pacer what all of them do.
            visited.bytes = 0;
            return visited.pacer.grant(visited.flow.rate_current(), rules.cycles, true, rules.waits);
        }
        if visited.leap(left, rules) {
            return;
        }
        self.at_rest = !visited.is_limited() && !visited.is_notified();
        visited.visit(rules);
        left -= 1;
        if visited.leap(left, rules) {
            return;
        }
        while left > 0 {
            let steady = visited.flow.steady_visits(rules.cycles, rules.paused, rules.law, &rules.cc).min(left);
            visited.skip_steady(steady, rules);
            left -= steady;
            if left > 0 {
                visited.visit(rules);
                left -= 1;
            }
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
