// SPDX-License-Identifier: Apache-2.0
//! Actions at times that are set in advance: changes of links, samples, calls of observers.
//! Promise: a change applies to every event of its instant; samples and observers see all events of their instant.
//! Source: ARCHITECTURE.md, "Time"; the QCN hardware evaluation (output-generated hotspot: a link whose rate drops for
//! a while).

use std::collections::BTreeSet;

use crate::trace::TraceSink;
use crate::units::Time;

/// Called at fixed intervals with the time and the trace, if there is one.
pub type Observer = Box<dyn FnMut(Time, Option<&mut TraceSink>)>;

/// Something that comes again and again.
struct Periodic {
    interval: Time,
    next: Time,
    what: Recurring,
}

/// Recurring actions.
pub(crate) enum Recurring {
    /// A sample of every node.
    Sample,
    Observer(Observer),
}

/// The actions that are due.
pub(crate) enum Due<'a> {
    /// The change with this number.
    Change(Time, u32),
    Recurring(Time, &'a mut Recurring),
}

/// All that is to come.
pub(crate) struct Agenda {
    /// See `bound`.
    bound: Time,
    /// Changes by time and number.
    changes: BTreeSet<(Time, u32)>,
    periodic: Vec<Periodic>,
}

impl Default for Agenda {
    fn default() -> Self {
        Agenda { bound: Time::MAX, changes: BTreeSet::new(), periodic: Vec::new() }
    }
}

impl Agenda {
    pub(crate) fn add_change(&mut self, at: Time, number: u32) {
        self.changes.insert((at, number));
        self.set_bound();
    }

    /// `what` at `first` and every `interval` after it; an interval of zero is never.
    pub(crate) fn add_periodic(&mut self, first: Time, interval: Time, what: Recurring) {
        if interval > Time::ZERO {
            self.periodic.push(Periodic { interval, next: first, what });
            self.set_bound();
        }
    }

    pub(crate) fn drop_samples(&mut self) {
        self.periodic.retain(|periodic| !matches!(periodic.what, Recurring::Sample));
        self.set_bound();
    }

    /// No event at or after this time may happen before `take` has been called for it.
    #[inline]
    pub(crate) fn bound(&self) -> Time {
        self.bound
    }

    fn set_bound(&mut self) {
        let change = self.changes.first().map(|(at, _)| *at);
        let periodic = self.periodic.iter().map(|periodic| Time(periodic.next.0.saturating_add(1))).min();
        self.bound = change.unwrap_or(Time::MAX).min(periodic.unwrap_or(Time::MAX));
    }

    /// The next thing that comes before any event at `at`, in order of time; at equal times changes come first.
    pub(crate) fn take(&mut self, at: Time) -> Option<Due<'_>> {
        let change = self.changes.first().copied().filter(|(due, _)| *due <= at);
        let periodic = self.periodic.iter().enumerate().filter(|(_, periodic)| periodic.next < at);
        let first = periodic.map(|(index, periodic)| (periodic.next, index)).min();
        match (change, first) {
            (Some(key), first) if first.is_none_or(|(next, _)| key.0 <= next) => {
                self.changes.remove(&key);
                self.set_bound();
                Some(Due::Change(key.0, key.1))
            }
            (_, Some((now, index))) => {
                self.periodic[index].next = now.saturating_add(self.periodic[index].interval);
                self.set_bound();
                Some(Due::Recurring(now, &mut self.periodic[index].what))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(agenda: &mut Agenda, at: u64) -> Vec<String> {
        let mut order = Vec::new();
        while let Some(due) = agenda.take(Time(at)) {
            order.push(match due {
                Due::Change(_, number) => format!("change {number}"),
                Due::Recurring(now, Recurring::Sample) => format!("sample {}", now.0),
                Due::Recurring(now, Recurring::Observer(_)) => format!("observer {}", now.0),
            });
        }
        order
    }

    #[test]
    fn changes_precede_the_events_of_their_instant_and_samples_follow_them() {
        let mut agenda = Agenda::default();
        agenda.add_periodic(Time(0), Time(10), Recurring::Sample);
        agenda.add_periodic(Time(10), Time(10), Recurring::Observer(Box::new(|_, _| ())));
        agenda.add_change(Time(10), 1);
        agenda.add_change(Time(10), 0);
        assert_eq!(agenda.bound(), Time(1));
        assert_eq!(order(&mut agenda, 0), Vec::<String>::new(), "events at 0 come before the sample at 0");
        assert_eq!(order(&mut agenda, 10), ["sample 0", "change 0", "change 1"]);
        assert_eq!(agenda.bound(), Time(11));
        assert_eq!(order(&mut agenda, 21), ["sample 10", "observer 10", "sample 20", "observer 20"]);
    }
}
