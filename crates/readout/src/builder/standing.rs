// SPDX-License-Identifier: Apache-2.0
//! Sources that are connected but hold up events: silent ones, and those that are far from the run.
//! Promise: such a source is excluded after a bounded time, each change is reported once, and events wait for it again
//! from its first fragment that fits an event. One source can therefore delay a run only for that time.
//! Source: a board may answer the connection manager and have no data, or begin again at event 0 in the middle of a
//! run.

use std::collections::VecDeque;

use penstock_units::Time;
use serde::Serialize;

/// A source is silent if this number of consecutive events was given up because of it, over at least an event's waiting
/// time. Events are given up in bursts, so the count alone would say nothing.
const MISSED_EVENTS: u32 = 3;

/// Whether events wait for a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Standing {
    #[default]
    InStep,
    /// It has sent nothing while several events waited for it.
    Silent,
    /// It sends events that are over by more than events can be open at a time.
    Behind,
    /// It sends events that are further ahead than events can be open at a time.
    Ahead,
}

/// A source's standing has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Notice {
    pub source: u16,
    pub standing: Standing,
    /// The event that it has sent; of a silent source the last one that was given up.
    pub event: u64,
    /// The next event to hand out.
    pub head: u64,
}

#[derive(Debug, Clone, Copy, Default)]
struct State {
    standing: Standing,
    /// Consecutive events given up because of it, and the time of the first of them.
    missed: u32,
    since: Time,
}

#[derive(Debug)]
pub(super) struct Standings {
    timeout: Time,
    states: Vec<State>,
    /// Sources that have missed an event or are out of step. Runs without any look at nothing else here.
    unsettled: usize,
    notices: VecDeque<Notice>,
}

impl Standings {
    pub(super) fn new(sources: u16, timeout: Time) -> Standings {
        let states = vec![State::default(); usize::from(sources)];
        Standings { timeout, states, unsettled: 0, notices: VecDeque::new() }
    }

    /// Whether any source has missed an event or is out of step.
    pub(super) fn is_any_unsettled(&self) -> bool {
        self.unsettled > 0
    }

    pub(super) fn of(&self, source: u16) -> Standing {
        self.states[usize::from(source)].standing
    }

    /// An event was given up because a source did not deliver. True: this source is silent from now on.
    pub(super) fn missed(&mut self, now: Time, source: u16, event: u64, head: u64) -> bool {
        let state = &mut self.states[usize::from(source)];
        if state.missed == 0 {
            self.unsettled += usize::from(state.standing == Standing::InStep);
            state.since = now;
        }
        state.missed += 1;
        let is_silent = state.missed >= MISSED_EVENTS && now >= state.since.saturating_add(self.timeout);
        if is_silent {
            self.change(Notice { source, standing: Standing::Silent, event, head });
        }
        is_silent
    }

    /// A source has sent a fragment outside the window.
    pub(super) fn out_of_step(&mut self, notice: Notice) {
        let state = &mut self.states[usize::from(notice.source)];
        self.unsettled += usize::from(state.standing == Standing::InStep && state.missed == 0);
        self.change(notice);
    }

    /// A source has sent something that is within reach of the head.
    pub(super) fn in_step(&mut self, source: u16, event: u64, head: u64) {
        let state = &mut self.states[usize::from(source)];
        if state.missed == 0 && state.standing == Standing::InStep {
            return;
        }
        state.missed = 0;
        self.unsettled -= 1;
        self.change(Notice { source, standing: Standing::InStep, event, head });
    }

    pub(super) fn poll(&mut self) -> Option<Notice> {
        self.notices.pop_front()
    }

    fn change(&mut self, notice: Notice) {
        let standing = &mut self.states[usize::from(notice.source)].standing;
        if *standing != notice.standing {
            *standing = notice.standing;
            self.notices.push_back(notice);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_is_silent_after_several_events_and_the_whole_time_and_reported_once() {
        let mut standings = Standings::new(2, Time(100));
        assert!((0..9).all(|event| !standings.missed(Time(10), 1, event, event)), "a burst says nothing");
        assert!(standings.missed(Time(110), 1, 9, 9));
        standings.missed(Time(120), 1, 10, 10);
        assert_eq!(standings.poll(), Some(Notice { source: 1, standing: Standing::Silent, event: 9, head: 9 }));
        assert_eq!((standings.poll(), standings.is_any_unsettled()), (None, true));
        standings.in_step(1, 11, 11);
        assert_eq!(standings.poll().map(|notice| notice.standing), Some(Standing::InStep));
        assert!(
            !standings.is_any_unsettled() && !standings.missed(Time(500), 1, 12, 12),
            "it has its whole time again"
        );
    }

    #[test]
    fn a_source_out_of_step_is_reported_whenever_it_changes_sides() {
        let mut standings = Standings::new(1, Time(100));
        let notice = |standing| Notice { source: 0, standing, event: 1, head: 5000 };
        for standing in [Standing::Behind, Standing::Behind, Standing::Ahead] {
            standings.out_of_step(notice(standing));
        }
        assert_eq!(standings.poll(), Some(notice(Standing::Behind)));
        assert_eq!((standings.poll(), standings.poll()), (Some(notice(Standing::Ahead)), None));
        standings.in_step(0, 5000, 5000);
        assert!(!standings.is_any_unsettled());
    }
}
