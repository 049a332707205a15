// SPDX-License-Identifier: Apache-2.0
//! The rate limiter of one sender, visit by visit: reaction point and pacer as the gateware runs them.
//! Promise: equal to the gateware bit for bit. Senders run [`LookAhead`](super::look_ahead::LookAhead), which makes
//! many visits at once and is equal to this limiter (property test there).
//! Source: `rtl/cc/cc_engine.sv` (a visit per queue pair and round of max(N_QP, 16) cycles), `rtl/cc/pacer.sv`.

use std::rc::Rc;

use penstock_cc::{CcParams, CycleRate, Flow, Happened, Law, Pacer, Transmitter};
use penstock_wire::gateware::CLOCK_HZ;

use crate::units::Time;

/// How a sender is paced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PacingConfig {
    pub law: Law,
    /// The parameters at `clock_hz`; their choice of a law is ignored.
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
        PacingConfig { law, cc, clock_hz: CLOCK_HZ, n_qp: 4, index: 0 }
    }
}

/// The queue pairs that the gateware can be built with.
const MAX_QP: u32 = 256;

/// When visits happen: visit n at n rounds after time 0.
#[derive(Debug, Clone, Copy)]
pub(super) struct VisitClock {
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
    pub(super) fn visits(&self, now: Time) -> u64 {
        match self.denominator {
            1 => now.0 / self.numerator,
            denominator => (u128::from(now.0) * u128::from(denominator) / u128::from(self.numerator)) as u64,
        }
    }

    /// Whether this visit is still to come at `now`; without the division of [`Self::visits`].
    #[inline]
    pub(super) fn is_to_come(&self, visit: u64, now: Time) -> bool {
        u128::from(now.0) * u128::from(self.denominator) < u128::from(visit) * u128::from(self.numerator)
    }

    /// When a visit happens; `None` beyond the end of time.
    pub(super) fn time_of(&self, visit: u64) -> Option<Time> {
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

/// The common parameters of all visits of a sender.
#[derive(Debug, Clone)]
pub(super) struct Rules {
    pub(super) law: Law,
    pub(super) cc: Rc<CcParams>,
    /// Time between two visits.
    pub(super) cycles: u32,
    pub(super) paused: bool,
    /// A packet waits that could start.
    pub(super) waits: bool,
}

impl Rules {
    #[inline]
    pub(super) fn transmitter(&self) -> Transmitter {
        Transmitter::new(self.paused, self.waits)
    }
}

/// The state that visits change: flow and pacer, and the events for the next visit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Visited {
    pub(super) flow: Flow,
    pub(super) pacer: Pacer,
    pub(super) cnp: bool,
    pub(super) feedback: u8,
    pub(super) bytes: u32,
}

impl Visited {
    #[inline]
    pub(super) fn happened(&self, rules: &Rules) -> Happened {
        let (cnp, feedback, bytes) = (self.cnp, self.feedback, self.bytes);
        Happened { cnp, feedback, bytes, cycles: rules.cycles, transmitter: rules.transmitter(), floor: 0 }
    }

    pub(super) fn visit(&mut self, rules: &Rules) {
        self.flow.visit(self.happened(rules), rules.law, &rules.cc);
        let (rate, unlimited) = (self.flow.rate_current(), self.flow.unlimited(&rules.cc));
        self.pacer.grant(rate, rules.cycles, unlimited, rules.waits);
        (self.cnp, self.feedback, self.bytes) = (false, 0, 0);
    }
}

/// Reaction point and pacer of one sender.
#[derive(Debug, Clone)]
pub(super) struct Limiter {
    pub(super) rules: Rules,
    clock_hz: u64,
    pub(super) clock: VisitClock,
    pub(super) visited: Visited,
    /// Visits that have been made after the one at time 0.
    pub(super) visits: u64,
}

impl Limiter {
    pub(super) fn new(config: &PacingConfig) -> Self {
        let cycles = config.n_qp.clamp(16, MAX_QP);
        let mut visited = Visited {
            flow: Flow::new(config.law, config.index, &config.cc),
            pacer: Pacer::new(turn(config, cycles)),
            cnp: false,
            feedback: 0,
            bytes: 0,
        };
        let rules = Rules { law: config.law, cc: Rc::new(config.cc), cycles, paused: false, waits: false };
        visited.visit(&rules);
        let clock = VisitClock::new(config.clock_hz, cycles);
        Limiter { rules, clock_hz: config.clock_hz, clock, visited, visits: 0 }
    }

    /// Keeps its parameters where others of the same have theirs.
    pub(super) fn share_parameters(&mut self, pool: &mut Vec<Rc<CcParams>>) {
        match pool.iter().find(|params| **params == self.rules.cc) {
            Some(same) => self.rules.cc = Rc::clone(same),
            None => pool.push(Rc::clone(&self.rules.cc)),
        }
    }

    /// A rate of this flow in bit/s.
    pub(super) fn bits_per_second(&self, rate: CycleRate) -> u64 {
        rate.to_rate(self.clock_hz).bits_per_second()
    }

    /// Makes the visits that are due.
    #[inline]
    pub(super) fn catch_up(&mut self, now: Time) {
        while !self.clock.is_to_come(self.visits + 1, now) {
            self.visited.visit(&self.rules);
            self.visits += 1;
        }
    }

    /// A CNP arrives.
    pub(super) fn on_cnp(&mut self, now: Time) {
        self.catch_up(now);
        self.visited.cnp = true;
    }

    /// Feedback of a QCN congestion point arrives, 1 to 63; of several in one round the last counts.
    pub(super) fn on_feedback(&mut self, now: Time, feedback: u8) {
        self.catch_up(now);
        self.visited.feedback = feedback;
    }

    /// Pause or PFC holds the transmitter from now on, or no longer.
    pub(super) fn set_paused(&mut self, now: Time, paused: bool) {
        self.catch_up(now);
        self.rules.paused = paused;
    }

    /// From now on a packet waits that could start, or none.
    #[inline]
    pub(super) fn set_waiting(&mut self, now: Time, waits: bool) {
        self.catch_up(now);
        self.rules.waits = waits;
    }

    /// Whether a packet may start now.
    #[inline]
    pub(super) fn may_start(&mut self, now: Time) -> bool {
        self.catch_up(now);
        self.visited.pacer.eligible()
    }

    /// A packet starts now and takes this number of bytes on the wire.
    pub(super) fn started(&mut self, now: Time, wire_bytes: u32) {
        self.catch_up(now);
        self.visited.pacer.charge(wire_bytes);
        self.visited.bytes = self.visited.bytes.saturating_add(wire_bytes);
    }

    /// When a packet may start if it may not at `now` and nothing happens until then; `None` if it may. `LookAhead` may
    /// name an earlier time, at which it has to be asked again.
    #[cfg(test)]
    pub(super) fn next_start(&mut self, now: Time) -> Option<Time> {
        if self.may_start(now) {
            return None;
        }
        let mut ahead = self.clone();
        while !ahead.visited.pacer.eligible() {
            ahead.visited.visit(&ahead.rules);
            ahead.visits += 1;
        }
        self.clock.time_of(ahead.visits)
    }
}

/// How many rounds one packet of 4096 bytes from each queue pair takes at line rate.
fn turn(config: &PacingConfig, cycles: u32) -> u32 {
    let line = if config.law == Law::Qcn { config.cc.qcn.rate_line } else { config.cc.dcqcn.rate_line };
    let packets = (4096 * u64::from(config.n_qp.clamp(1, MAX_QP))) << CycleRate::FRACTION_BITS;
    let turn = packets / (u64::from(line.0) * u64::from(cycles)).max(1);
    u32::try_from(turn).unwrap_or(u32::MAX).max(1)
}

#[cfg(test)]
mod tests {
    use penstock_cc::{FlowState, QcnSettings};

    use super::*;
    use crate::units::Rate;

    #[test]
    fn a_paused_limiter_adds_tokens_by_its_rate_freezes_its_timer_and_follows_feedback() {
        let settings = QcnSettings { rate_line: Rate::from_gbps(1), ..QcnSettings::default() };
        let cc = CcParams { qcn: settings.at_clock(CLOCK_HZ).unwrap(), ..CcParams::default() };
        let mut limiter = Limiter::new(&PacingConfig { law: Law::Qcn, cc, ..PacingConfig::default() });
        let state = |limiter: &Limiter| match limiter.visited.flow.state {
            FlowState::Qcn(state) => state,
            FlowState::Dcqcn(_) => panic!("the law is QCN"),
        };
        let begin = Time::from_us(2);
        limiter.on_feedback(Time::from_us(1), 32);
        limiter.set_waiting(begin, true);
        limiter.started(begin, 1538);
        limiter.set_paused(begin, true);
        limiter.catch_up(begin + Time::from_us(1));
        let (before, credit, visits) = (state(&limiter), limiter.visited.pacer.credit(), limiter.visits);
        assert!(credit < 0 && before.rate_current < CycleRate::from_rate(Rate::from_gbps(1), CLOCK_HZ).unwrap());

        // Some 3 KB: below what four packets earn at the line, where saved tokens end.
        limiter.catch_up(begin + Time::from_us(30));
        let made = i64::from(limiter.rules.cycles) * (limiter.visits - visits) as i64;
        let earned = limiter.visited.pacer.credit() - credit;
        assert_eq!(earned, i64::from(before.rate_current.0) * made, "tokens are added by the present rate");
        assert!(limiter.visited.pacer.eligible());

        limiter.catch_up(begin + Time::from_ms(100));
        let paused = state(&limiter);
        assert_eq!((paused.stage_timer, paused.rate_current), (before.stage_timer, before.rate_current));
        limiter.on_feedback(begin + Time::from_ms(100), 32);
        limiter.set_paused(begin + Time::from_ms(101), false);
        assert!(state(&limiter).rate_current < before.rate_current, "feedback is obeyed");
        assert!(limiter.may_start(begin + Time::from_ms(101)), "its tokens are there");
        limiter.catch_up(begin + Time::from_ms(151));
        assert!(state(&limiter).stage_timer > 0, "the timer goes on");
    }
}
