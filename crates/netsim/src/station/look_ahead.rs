// SPDX-License-Identifier: Apache-2.0
//! The rate limiter of one sender in closed form: a query makes all visits that are due at once, and computes the time
//! at which the next packet may start instead of waiting for it.
//! Promise: every answer is equal to that of [`Limiter`], which makes one visit after the other.

use std::rc::Rc;

use penstock_cc::{CcParams, CycleRate, Flow, Law};

use super::limiter::{Limiter, PacingConfig, Rules, Visited};
use crate::units::Time;

/// Rate changes over which the next start is computed: further ahead a CNP is likely to come first.
const RATE_CHANGES_AHEAD: u32 = 32;

// Replacements for many calls of `Visited::visit`.
impl Visited {
    /// Makes this number of visits; 0 makes none.
    fn visit_often(&mut self, mut visits: u64, rules: &Rules) {
        while visits > 0 && !self.leap(visits, rules) {
            self.visit(rules);
            visits -= 1;
            let steady = self.flow.steady_visits(rules.cycles, rules.transmitter(), rules.law, &rules.cc).min(visits);
            self.skip_steady(steady, rules);
            visits -= steady;
        }
    }

    /// Makes this number of visits, at least one, in one step; returns false and makes none if that is not possible.
    #[inline]
    fn leap(&mut self, visits: u64, rules: &Rules) -> bool {
        let first = self.happened(rules);
        let leapt = self.flow.skip_paced(visits, first, rules.law, &rules.cc, &mut self.pacer, rules.waits);
        if leapt {
            (self.feedback, self.bytes) = (0, 0);
        }
        leapt
    }

    /// Makes visits in which nothing happens and the rate stays.
    fn skip_steady(&mut self, visits: u64, rules: &Rules) {
        if visits > 0 {
            self.flow.skip_settled(visits, rules.cycles, rules.transmitter(), rules.law, &rules.cc);
            let unlimited = self.flow.unlimited(&rules.cc);
            self.pacer.skip(self.flow.rate_current(), rules.cycles, visits, unlimited, rules.waits);
        }
    }

    /// A notification has come since the last visit.
    #[inline]
    fn is_notified(&self) -> bool {
        self.cnp || self.feedback != 0
    }

    /// The visit, counted from here, at which the pacer lets a packet start, if it is among the next `steady` ones,
    /// which leave the rate as it is.
    #[inline]
    fn earned_within(&self, steady: u64, rules: &Rules) -> Option<u64> {
        let grant = u64::from(self.flow.rate_current().0) * u64::from(rules.cycles);
        let owed = self.pacer.credit().unsigned_abs();
        // The product first: a division costs more, and mostly there is nothing to divide.
        let is_earned = grant > 0 && grant.checked_mul(steady).is_none_or(|earned| earned >= owed);
        is_earned.then(|| owed.div_ceil(grant))
    }

    /// The visit at which the pacer lets a packet start, if the rate stays as it is until then; else the number of
    /// visits for which it stays, 0 where only a visit shows it.
    #[inline]
    fn steady_ahead(&self, rules: &Rules) -> Result<u64, u64> {
        if self.is_notified() {
            return Err(0);
        }
        let steady =
            self.flow.steady_visits_behind(self.bytes, rules.cycles, rules.transmitter(), rules.law, &rules.cc);
        self.earned_within(steady, rules).ok_or(steady)
    }

    /// Makes visits until the pacer lets a packet start, or as far as can be seen; `steady` is the error of
    /// `steady_ahead`. Returns how many it has made, and the visit, counted from where it began, before which no packet
    /// may start.
    fn visit_ahead(&mut self, mut steady: u64, rules: &Rules) -> (u64, u64) {
        let mut made = 0;
        for _ in 0..RATE_CHANGES_AHEAD {
            // The visits before the next change of rate, and that change.
            let leap = steady.saturating_add(1);
            if self.leap(leap, rules) {
                made += leap;
            } else if self.bytes != 0 || self.is_notified() {
                self.visit(rules);
                made += 1;
            } else {
                let steady = self.flow.steady_visits(rules.cycles, rules.transmitter(), rules.law, &rules.cc);
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

/// A [`Limiter`] that looks ahead. Its methods are those of `Limiter`.
#[derive(Debug, Clone)]
pub(super) struct LookAhead {
    limiter: Limiter,
    /// No packet may start before, unless something happens to the flow. In the past where nothing is known.
    blocked_until: Time,
    /// The visit up to which the next start was computed, at the end of time if nothing is known, and what the visits
    /// up to there make of the flow: so they are made once.
    foreseen_at: u64,
    foreseen: Box<Visited>,
}

impl LookAhead {
    pub(super) fn new(config: &PacingConfig) -> Self {
        let limiter = Limiter::new(config);
        let foreseen = Box::new(limiter.visited);
        LookAhead { limiter, blocked_until: Time::ZERO, foreseen_at: u64::MAX, foreseen }
    }

    pub(super) fn share_parameters(&mut self, pool: &mut Vec<Rc<CcParams>>) {
        self.limiter.share_parameters(pool);
    }

    pub(super) fn law(&self) -> Law {
        self.limiter.rules.law
    }

    pub(super) fn flow(&self) -> &Flow {
        &self.limiter.visited.flow
    }

    pub(super) fn bits_per_second(&self, rate: CycleRate) -> u64 {
        self.limiter.bits_per_second(rate)
    }

    pub(super) fn on_cnp(&mut self, now: Time) {
        self.catch_up(now);
        self.limiter.on_cnp(now);
        self.forget();
    }

    pub(super) fn on_feedback(&mut self, now: Time, feedback: u8) {
        self.catch_up(now);
        self.limiter.on_feedback(now, feedback);
        self.forget();
    }

    pub(super) fn set_paused(&mut self, now: Time, paused: bool) {
        self.catch_up(now);
        self.limiter.set_paused(now, paused);
        let Rules { law, cc, .. } = &self.limiter.rules;
        if *law == Law::Qcn || cc.dcqcn.hold_timer {
            // Its timer stops during a pause.
            self.forget();
        }
    }

    #[inline]
    pub(super) fn set_waiting(&mut self, now: Time, waits: bool) {
        if self.limiter.rules.waits != waits {
            self.catch_up(now);
            self.limiter.set_waiting(now, waits);
            self.forget();
        }
    }

    #[inline]
    pub(super) fn may_start(&mut self, now: Time) -> bool {
        if now < self.blocked_until {
            return false;
        }
        self.catch_up(now);
        self.limiter.may_start(now)
    }

    pub(super) fn started(&mut self, now: Time, wire_bytes: u32) {
        self.catch_up(now);
        self.limiter.started(now, wire_bytes);
        self.forget();
    }

    /// When a packet may start if it may not at `now`: perhaps not then, but not before.
    pub(super) fn next_start(&mut self, now: Time) -> Option<Time> {
        if now < self.blocked_until {
            return Some(self.blocked_until);
        }
        if self.may_start(now) {
            return None;
        }
        let Limiter { rules, visited, visits, clock, .. } = &self.limiter;
        let ahead = visited.steady_ahead(rules).unwrap_or_else(|steady| {
            *self.foreseen = *visited;
            let (made, ahead) = self.foreseen.visit_ahead(steady, rules);
            self.foreseen_at = visits + made;
            ahead
        });
        let start = clock.time_of(visits.saturating_add(ahead));
        self.blocked_until = start.unwrap_or(Time::ZERO);
        start
    }

    /// Something has happened to the flow: nothing is known of its future.
    fn forget(&mut self) {
        self.blocked_until = Time::ZERO;
        self.foreseen_at = u64::MAX;
    }

    // Most questions come in the round of the last visit and cost a comparison.
    #[inline]
    pub(super) fn catch_up(&mut self, now: Time) {
        if !self.limiter.clock.is_to_come(self.limiter.visits + 1, now) {
            self.make_visits(now);
        }
    }

    #[inline(never)]
    fn make_visits(&mut self, now: Time) {
        let Limiter { rules, visited, visits, clock, .. } = &mut self.limiter;
        let due = clock.visits(now);
        if due >= self.foreseen_at {
            (*visits, *visited) = (self.foreseen_at, *self.foreseen);
            self.foreseen_at = u64::MAX;
        }
        visited.visit_often(due - *visits, rules);
        *visits = due;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::{ByteSize, Rate};
    use penstock_cc::{AlphaRule, DcqcnSettings, QcnSettings, StageCounting};
    use proptest::prelude::*;

    const CLOCK_HZ: u64 = 156_250_000;

    /// What happens to a sender, and what is requested of it.
    #[derive(Debug, Clone, Copy)]
    enum Step {
        Cnp,
        Feedback(u8),
        Pause(bool),
        Wait(bool),
        /// A packet of that many bytes starts, if it may; up to this number at once.
        Send(u32, u8),
        CatchUp,
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            2 => Just(Step::Cnp),
            2 => (1u8..64).prop_map(Step::Feedback),
            1 => any::<bool>().prop_map(Step::Pause),
            2 => any::<bool>().prop_map(Step::Wait),
            6 => (64u32..9000, 1u8..5).prop_map(|(bytes, packets)| Step::Send(bytes, packets)),
            1 => Just(Step::CatchUp),
        ]
    }

    /// Time up to the next step: within a round of 16 or 37 cycles, over some, or over many.
    fn pause() -> impl Strategy<Value = Time> {
        prop_oneof![0u64..300_000, 0u64..20_000_000, 0u64..2_000_000_000].prop_map(Time)
    }

    /// Intervals of microseconds, so that a trace of milliseconds sees all phases of recovery; some intervals are 0
    /// (never) or shorter than a round.
    fn config() -> impl Strategy<Value = PacingConfig> {
        let interval =
            || prop_oneof![1 => Just(0u64), 1 => 6_400u64..200_000, 8 => 1_000_000u64..90_000_000].prop_map(Time);
        let law = prop_oneof![1 => Just(Law::Off), 4 => Just(Law::Dcqcn), 2 => Just(Law::Qcn)];
        let bytes = prop_oneof![Just(0u32), 1_000u32..100_000];
        (law, any::<[bool; 5]>(), interval(), interval(), bytes, 1u32..60, any::<u8>()).prop_map(
            |(
                law,
                [per_trigger, hold_timer, slow_start, cut_on_tick, at_interval],
                alpha_interval,
                increase_interval,
                bytes,
                n_qp,
                index,
            )| {
                let stage_counting = if per_trigger { StageCounting::PerTrigger } else { StageCounting::Single };
                let dcqcn = DcqcnSettings {
                    g_shift: 4,
                    cut_on_tick,
                    alpha_rule: if at_interval { AlphaRule::Interval } else { AlphaRule::Cut },
                    stage_counting,
                    hold_timer,
                    alpha_interval,
                    increase_interval,
                    byte_threshold: ByteSize(bytes.into()),
                    rate_ai: Rate::from_mbps(400),
                    rate_hai: Rate::from_mbps(900),
                    rate_start: slow_start.then_some(Rate::from_mbps(700)),
                    ..DcqcnSettings::default()
                };
                let qcn = QcnSettings {
                    timer_period: increase_interval,
                    byte_limit: ByteSize(bytes.into()),
                    rate_ai: Rate::from_mbps(300),
                    rate_hai: Rate::from_mbps(800),
                    ..QcnSettings::default()
                };
                let dcqcn = dcqcn.at_clock(CLOCK_HZ).unwrap();
                let qcn = qcn.at_clock(CLOCK_HZ).unwrap();
                PacingConfig { law, cc: CcParams { dcqcn, qcn }, clock_hz: CLOCK_HZ, n_qp, index }
            },
        )
    }

    /// Both limiters, with the same calls.
    struct Pair {
        plain: Limiter,
        ahead: LookAhead,
    }

    impl Pair {
        fn both(&mut self, on_plain: impl Fn(&mut Limiter), on_ahead: impl Fn(&mut LookAhead)) {
            on_plain(&mut self.plain);
            on_ahead(&mut self.ahead);
        }

        /// Asks whether a packet may start, and follows the answers to when one may.
        fn compare_start(&mut self, now: Time) -> Result<bool, TestCaseError> {
            let may_start = self.plain.may_start(now);
            prop_assert_eq!(self.ahead.may_start(now), may_start);
            let start = self.plain.next_start(now);
            let named = self.ahead.next_start(now);
            prop_assert_eq!((start.is_none(), named.is_none()), (may_start, may_start));
            // A copy is polled again at the times that it names, as a sender does.
            let (mut polled, mut next, mut last) = (self.ahead.clone(), named, now);
            while let Some(at) = next {
                prop_assert!(at > last && start.is_some_and(|start| at <= start), "{at} after {last}, not {start:?}");
                last = at;
                next = polled.next_start(at);
            }
            prop_assert_eq!(Some(last), start.or(Some(now)));
            Ok(may_start)
        }

        fn take(&mut self, now: Time, step: Step) -> Result<(), TestCaseError> {
            match step {
                Step::Cnp => self.both(|plain| plain.on_cnp(now), |ahead| ahead.on_cnp(now)),
                Step::Feedback(value) => {
                    self.both(|plain| plain.on_feedback(now, value), |ahead| ahead.on_feedback(now, value));
                }
                Step::Pause(on) => self.both(|plain| plain.set_paused(now, on), |ahead| ahead.set_paused(now, on)),
                Step::Wait(on) => self.both(|plain| plain.set_waiting(now, on), |ahead| ahead.set_waiting(now, on)),
                Step::Send(bytes, packets) => {
                    for _ in 0..packets {
                        if self.compare_start(now)? {
                            self.both(|plain| plain.started(now, bytes), |ahead| ahead.started(now, bytes));
                        }
                    }
                }
                Step::CatchUp => {
                    self.both(|plain| plain.catch_up(now), |ahead| ahead.catch_up(now));
                    prop_assert_eq!(self.plain.visited, self.ahead.limiter.visited);
                    prop_assert_eq!(self.plain.visits, self.ahead.limiter.visits);
                }
            }
            Ok(())
        }
    }

    proptest! {
        #[test]
        fn looking_ahead_gives_what_visit_by_visit_gives(
            config in config(),
            steps in proptest::collection::vec((pause(), step()), 1..40),
        ) {
            let mut pair = Pair { plain: Limiter::new(&config), ahead: LookAhead::new(&config) };
            let mut now = Time::ZERO;
            for (pause, step) in steps {
                now += pause;
                pair.take(now, step)?;
            }
            pair.compare_start(now)?;
            pair.take(now + Time::from_ms(3), Step::CatchUp)?;
        }
    }
}
