// SPDX-License-Identifier: Apache-2.0
//! How long the next event is waited for.
//! Promise: an event waits its whole time for what its sources could send, and no longer; a source that is slow but
//! sends is waited for, one that has stopped is not; time that leaps times nothing out.
//! "The head" is the next event to hand out.

use super::progress::Progress;
use super::step_clock::StepClock;

#[derive(Debug)]
pub(super) struct Patience {
    timeout_ps: u64,
    clock: StepClock,
    /// From when the head's patience counts; none while nothing says that it exists.
    head_since_ps: Option<u64>,
    /// Nobody's patience counts from before this.
    since_ps: u64,
    /// When events were last asked for, and when the last complete one was.
    asked_ps: u64,
    complete_ps: u64,
    /// Place of the latest event that was given up, and when. Until then it may have held back sources: while the head
    /// waits its other fragments keep their slots, and a source whose ring is full of such sends nothing.
    gave_up: Option<(u64, u64)>,
}

impl Patience {
    pub(super) fn new(timeout_ps: u64) -> Patience {
        Patience {
            timeout_ps,
            clock: StepClock::new(timeout_ps.saturating_mul(2)),
            head_since_ps: None,
            since_ps: 0,
            asked_ps: 0,
            complete_ps: 0,
            gave_up: None,
        }
    }

    /// The caller's clock shows `now_ps`. Returns the time to wait by, which all the others take.
    pub(super) fn step(&mut self, now_ps: u64) -> u64 {
        self.clock.step(now_ps)
    }

    /// An event is opened: the head, or one behind it, which shows that the head exists.
    pub(super) fn opened(&mut self, now_ps: u64, is_head: bool) {
        if is_head || self.head_since_ps.is_none() {
            self.head_since_ps = Some(now_ps);
        }
    }

    /// Sources were held back until now: all wait their whole time from here on.
    pub(super) fn restart(&mut self, now_ps: u64) {
        self.since_ps = now_ps;
    }

    /// Whether the head has waited long enough.
    pub(super) fn is_over(&mut self, now_ps: u64, head: u64, progress: &Progress) -> bool {
        self.asked_ps = now_ps;
        let is_fresh = self.complete_ps.saturating_add(self.timeout_ps) > now_ps;
        self.give_up_at().is_some_and(|at| at <= now_ps) && !(is_fresh && progress.is_any_behind(head))
    }

    /// The head is handed out without all its fragments.
    pub(super) fn gave_up(&mut self, head: u64) {
        self.gave_up = Some((head, self.asked_ps));
    }

    /// An event was handed out whole, or but for sources that are gone.
    pub(super) fn completed(&mut self) {
        self.complete_ps = self.asked_ps;
    }

    /// Another event is the head, of which something says since `since_ps` that it exists.
    pub(super) fn next(&mut self, head: u64, since_ps: Option<u64>, progress: &Progress) {
        self.head_since_ps = since_ps;
        if let (Some((seq, at_ps)), Some(since)) = (self.gave_up, &mut self.head_since_ps) {
            if *since < at_ps && progress.is_any_held_back(seq, head) {
                *since = at_ps;
            }
        }
    }

    /// When [`Self::is_over`] will say so, or a source is gone before, by the caller's clock.
    pub(super) fn ends_at(&self, head: u64, progress: &Progress) -> Option<u64> {
        let at = self.give_up_at()?;
        let is_behind = progress.is_any_behind(head);
        let at = if is_behind { at.max(self.complete_ps.saturating_add(self.timeout_ps)) } else { at };
        // A source that is gone then may be the last one that is waited for.
        Some(self.clock.outside(at.min(progress.absence.next_ps())))
    }

    fn give_up_at(&self) -> Option<u64> {
        let since = self.head_since_ps?.max(self.since_ps);
        Some(since.saturating_add(self.timeout_ps))
    }
}
