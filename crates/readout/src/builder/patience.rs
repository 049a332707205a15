// SPDX-License-Identifier: Apache-2.0
//! The waiting time of the next event.
//! Promise: an event waits its full time for fragments that its sources could still send, and no longer; it waits for a
//! source that is slow but sending, not for one that has stopped; jumps of the time cause no time-out.
//! "The head" is the next event to deliver.

use penstock_units::Time;

use super::progress::Progress;
use super::step_clock::StepClock;

#[derive(Debug)]
pub(super) struct Patience {
    timeout: Time,
    clock: StepClock,
    /// The start of the head's waiting time; none while nothing shows that it exists.
    head_since: Option<Time>,
    /// No waiting time starts before this.
    since: Time,
    /// The time of the last request for events, and of the last complete event.
    polled_at: Time,
    complete_at: Time,
    /// Place of the latest event that was given up, and when. Until then it may have held back sources: while the head
    /// waits its other fragments keep their slots, and a source whose ring is full of such sends nothing.
    gave_up: Option<(u64, Time)>,
}

impl Patience {
    pub(super) fn new(timeout: Time) -> Patience {
        Patience {
            timeout,
            clock: StepClock::new(timeout.saturating_mul(2)),
            head_since: None,
            since: Time::ZERO,
            polled_at: Time::ZERO,
            complete_at: Time::ZERO,
            gave_up: None,
        }
    }

    /// The caller's clock shows `now`. Returns the time to wait by, which all the others take.
    pub(super) fn step(&mut self, now: Time) -> Time {
        self.clock.step(now)
    }

    /// The time since the last step does not count.
    pub(super) fn leap(&mut self, now: Time) {
        self.clock.leap(now);
    }

    /// An event is opened: the head, or a later one, which shows that the head exists.
    pub(super) fn opened(&mut self, now: Time, is_head: bool) {
        if is_head || self.head_since.is_none() {
            self.head_since = Some(now);
        }
    }

    /// Sources were held back until now: all wait their whole time from here on.
    pub(super) fn restart(&mut self, now: Time) {
        self.since = now;
    }

    /// Whether the head has waited long enough.
    pub(super) fn poll(&mut self, now: Time, head: u64, progress: &Progress) -> bool {
        self.polled_at = now;
        let is_fresh = self.complete_at.saturating_add(self.timeout) > now;
        self.give_up_at().is_some_and(|at| at <= now) && !(is_fresh && progress.is_any_behind(head))
    }

    /// The head is handed out without all its fragments.
    pub(super) fn gave_up(&mut self, head: u64) {
        self.gave_up = Some((head, self.polled_at));
    }

    /// An event was handed out whole, or but for sources that are gone.
    pub(super) fn completed(&mut self) {
        self.complete_at = self.polled_at;
    }

    /// The time of the last request for events.
    pub(super) fn polled_at(&self) -> Time {
        self.polled_at
    }

    /// Another event is the head, of which something says since `since` that it exists.
    pub(super) fn next(&mut self, head: u64, since: Option<Time>, progress: &Progress) {
        self.head_since = since;
        if let (Some((seq, at)), Some(since)) = (self.gave_up, &mut self.head_since) {
            if *since < at && progress.is_any_held_back(seq, head) {
                *since = at;
            }
        }
    }

    /// When [`Self::is_over`] will say so, or a source is gone before, by the caller's clock.
    pub(super) fn ends_at(&self, head: u64, progress: &Progress) -> Option<Time> {
        let at = self.give_up_at()?;
        let is_behind = progress.is_any_behind(head);
        let at = if is_behind { at.max(self.complete_at.saturating_add(self.timeout)) } else { at };
        // A source that is gone then may be the last one that is waited for.
        Some(self.clock.outside(at.min(progress.absence.next_due())))
    }

    /// The caller's time at which the time to wait by is `inside`.
    pub(super) fn outside(&self, inside: Time) -> Time {
        self.clock.outside(inside)
    }

    /// When the waiting time of the head is over.
    pub(super) fn give_up_at(&self) -> Option<Time> {
        let since = self.head_since?.max(self.since);
        Some(since.saturating_add(self.timeout))
    }
}
