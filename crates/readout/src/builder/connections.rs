// SPDX-License-Identifier: Apache-2.0
//! What the builder is notified of its sources' connections: lost, back, answered, and which event a source has passed.
//! Promise: each of these may be repeated.

use super::EventBuilder;
use penstock_units::Time;

/// How often an event waits again for sources that come back. A source that always answers late must not hold it for
/// ever.
const RETURNS: u32 = 16;

impl<H: Copy + Default> EventBuilder<H> {
    /// A source has a new connection, over which it sends again what was not acknowledged over the last one. Sources
    /// send in order, so what lies before their latest fragment was here; how far back that can be the window bounds.
    pub fn reconnected(&mut self, source: u16) {
        self.progress.reconnected(source);
    }

    /// A source has no connection any more, and all that it had delivered was pushed. Events wait for it until it has
    /// been away for the time of an outage, since it sends again what was not acknowledged if it connects again; from
    /// then on an event that lacks such sources alone is handed out at once. May be said again and again.
    pub fn lost(&mut self, now: Time, source: u16) {
        let now = self.patience.step(now);
        self.progress.absence.lost(source, now);
    }

    /// A source has a connection: events wait for it; if they did not any more, then from its first fragment on, or
    /// from the first event on. What it could not send it has now its whole time for.
    pub fn back(&mut self, now: Time, source: u16) {
        let now = self.patience.step(now);
        if self.progress.absence.back(source) {
            self.patience.restart(now);
        }
        if self.taken == 0 && source < self.config.sources.get() {
            self.progress.absence.expect(source);
        }
    }

    /// A source without a connection has passed this event, as it reported: what has not come of events up to it will
    /// not come. To be called only when nothing of it can be on its way, over any connection. Returns how many of its
    /// fragments are missing that it had passed.
    pub fn passed(&mut self, source: u16, event: u64) -> u64 {
        let Some(reported) = self.passed.get_mut(usize::from(source)) else { return 0 };
        *reported = Some(event);
        self.progress.passed(source, self.sequence.places_before(event.saturating_add(1)))
    }

    /// Events wait for a source for this time, whatever [`BuilderConfig::outage`] is.
    pub fn set_outage(&mut self, source: u16, outage: Time) {
        self.progress.absence.set_outage(source, outage);
    }

    /// Whether events do not wait for a source: it has been away for too long.
    pub fn is_gone(&self, source: u16) -> bool {
        self.progress.absence.is_gone(usize::from(source))
    }

    /// A source was never there: no event waits for it before it sends.
    pub fn absent(&mut self, source: u16) {
        if source < self.config.sources.get() && !self.progress.has_begun(source) {
            self.progress.absence.leave_out(source);
        }
    }

    /// A source has answered: it is there, whether it has something to send or not. From its first answer on no event
    /// is given up for want of its fragment without another one after the event's time: see [`Self::suspects`].
    /// `was_away`: it could not be reached before, nor could it send. What it could not send it has now its whole time
    /// for.
    pub fn alive(&mut self, now: Time, source: u16, was_away: bool) {
        let now = self.patience.step(now);
        self.progress.absence.alive(source, now);
        if was_away && self.suspects.contains(&source) && self.returns < RETURNS {
            self.returns += 1;
            self.patience.restart(now);
        }
    }

    /// A source can be reached again, which says nothing of what it has to send: TCP repeats what was lost at growing
    /// intervals, the next time after at most as long again as it could not be reached. Events wait for it as for one
    /// that has just been lost.
    pub fn reached(&mut self, now: Time, source: u16) {
        let now = self.patience.step(now);
        self.progress.absence.reached(source, now);
    }
}
