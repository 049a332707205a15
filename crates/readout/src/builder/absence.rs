// SPDX-License-Identifier: Apache-2.0
//! Sources without a connection or without a sign of life, and sources that events no longer wait for.
//! Promise: a source that returns within the time of an outage loses nothing. A source that stays away delays the run
//! by that time once; it does not delay later events, nor when it has reconnected but has not sent yet.
//! Source: a board whose queue pair failed sends unacknowledged messages again as soon as it has a new one.
use penstock_units::Time;

#[derive(Debug)]
pub(super) struct Absence {
    /// How long each source is waited for.
    outage: Vec<Time>,
    /// How long after a sign of life something is waited for that was due before.
    grace: Time,
    /// Time since when a source's connection is lost, for each source; none while it has one.
    lost_since: Vec<Option<Time>>,
    /// The last sign of life of each source; none where nothing looks for any.
    alive_at: Vec<Option<Time>>,
    /// The first sign of life of each source after what was due last.
    answered_at: Vec<Option<Time>>,
    /// Time when each source could last be reached again, after which what it has to send may still take long.
    reached_at: Vec<Time>,
    /// A bit for each source that has been away for the whole time or was left out, in 64-bit words.
    gone: Vec<u64>,
    gone_count: usize,
    /// When the next one that is lost is gone.
    next_due: Time,
}

impl Absence {
    pub(super) fn new(sources: u16, outage: Time, grace: Time) -> Absence {
        let sources = usize::from(sources);
        let (lost_since, alive_at, gone) = (vec![None; sources], vec![None; sources], vec![0; sources.div_ceil(64)]);
        let (outage, reached_at) = (vec![outage; sources], vec![Time::ZERO; sources]);
        let answered_at = vec![None; sources];
        Absence {
            outage,
            grace,
            lost_since,
            alive_at,
            answered_at,
            reached_at,
            gone,
            gone_count: 0,
            next_due: Time::MAX,
        }
    }

    /// A source is waited for as long as this from now on.
    pub(super) fn set_outage(&mut self, source: u16, outage: Time) {
        if let Some(of_source) = self.outage.get_mut(usize::from(source)) {
            *of_source = outage;
            self.next_due = Time::ZERO;
        }
    }

    /// A source has given a sign of life. From the first one on it is expected to.
    pub(super) fn alive(&mut self, source: u16, now: Time) {
        if let Some(at) = self.alive_at.get_mut(usize::from(source)) {
            *at = Some(now);
        }
    }

    /// A source can be reached again, and may still be about to send what it could not.
    pub(super) fn reached(&mut self, source: u16, now: Time) {
        if let Some(at) = self.reached_at.get_mut(usize::from(source)) {
            *at = now;
        }
    }

    /// How long a source may still deliver something that it has not delivered in its time, which was over at
    /// `over_at`: as one on its way back, or as one that has given a sign of life since. The first one may have
    /// overtaken what the source sends, where a loaded machine gave it no processor before.
    pub(super) fn hope(&mut self, source: u16, over_at: Time) -> Option<Time> {
        let source = usize::from(source);
        let outage = self.outage[source];
        match (self.lost_since[source], self.alive_at[source]) {
            (Some(since), _) => Some(since.saturating_add(outage)),
            (None, Some(at)) if at >= over_at => {
                let first = self.answered_at[source].filter(|first| *first >= over_at).unwrap_or(at);
                self.answered_at[source] = Some(first);
                Some(first.saturating_add(self.grace))
            }
            (None, at) => at.map(|at| at.max(self.reached_at[source]).saturating_add(outage)),
        }
    }

    /// Whether a source with a connection has given no sign of life since `at`, though it has given some.
    pub(super) fn is_silent(&self, source: u16, at: Time) -> bool {
        let source = usize::from(source);
        self.lost_since[source].is_none() && self.alive_at[source].is_some_and(|alive_at| alive_at < at)
    }

    /// The connection of a source is lost; may be called repeatedly.
    pub(super) fn lost(&mut self, source: u16, now: Time) {
        let at = usize::from(source);
        if let Some(since @ None) = self.lost_since.get_mut(at) {
            let last_sign = self.alive_at[at].map_or(now, |alive| alive.max(self.reached_at[at]));
            *since = Some(last_sign);
            self.next_due = self.next_due.min(last_sign.saturating_add(self.outage[at]));
        }
    }

    /// A source has a connection; whether it had lost one. If it was gone it stays so until it is heard.
    pub(super) fn back(&mut self, source: u16) -> bool {
        self.lost_since.get_mut(usize::from(source)).is_some_and(|since| since.take().is_some())
    }

    /// A source has delivered something: if it counts as lost, then from here on.
    pub(super) fn arrived(&mut self, source: u16, now: Time) {
        if let Some(alive_at) = &mut self.alive_at[usize::from(source)] {
            *alive_at = now;
        }
        if self.lost_since[usize::from(source)].is_some() {
            self.back(source);
            self.sent(source);
            self.lost(source, now);
        }
    }

    /// Something of a source has come, be it too late for its event: over a connection, so it is there.
    pub(super) fn sent(&mut self, source: u16) {
        if self.gone_count > 0 && self.lost_since[usize::from(source)].is_none() {
            self.mark(source, false);
        }
    }

    /// It is `now`.
    pub(super) fn step(&mut self, now: Time) {
        if now < self.next_due {
            return;
        }
        self.next_due = Time::MAX;
        for source in 0..self.lost_since.len() {
            let Some(since) = self.lost_since[source].filter(|_| !self.is_gone(source)) else { continue };
            match since.saturating_add(self.outage[source]) {
                at if at <= now => self.mark(source as u16, true),
                at => self.next_due = self.next_due.min(at),
            }
        }
    }

    /// When the next source is gone; the end of time if none is lost.
    pub(super) fn next_due(&self) -> Time {
        self.next_due
    }

    pub(super) fn is_gone(&self, source: usize) -> bool {
        self.gone_count > 0 && self.gone[source / 64] >> (source % 64) & 1 != 0
    }

    /// Whether any source is gone.
    pub(super) fn is_any_gone(&self) -> bool {
        self.gone_count > 0
    }

    /// Which of the 64 sources from 64 `word` on are gone, as bits.
    pub(super) fn gone(&self, word: usize) -> u64 {
        self.gone[word]
    }

    /// A source is not waited for any more, until something of it fits an event.
    pub(super) fn leave_out(&mut self, source: u16) {
        self.mark(source, true);
    }

    /// A source is waited for from the run's first event on.
    pub(super) fn expect(&mut self, source: u16) {
        self.mark(source, false);
    }

    pub(super) fn is_lost(&self, source: u16) -> bool {
        self.lost_since[usize::from(source)].is_some()
    }

    fn mark(&mut self, source: u16, gone: bool) {
        let (word, bit) = (usize::from(source / 64), 1 << (source % 64));
        match (gone, self.gone[word] & bit != 0) {
            (true, false) => self.gone_count += 1,
            (false, true) => self.gone_count -= 1,
            _ => return,
        }
        self.gone[word] ^= bit;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_is_gone_when_it_has_been_away_for_the_whole_time_and_not_before() {
        let mut absence = Absence::new(70, Time(100), Time(10));
        for (source, now) in [(3, 10), (69, 40), (3, 90), (70, 0)] {
            absence.lost(source, Time(now));
        }
        let gone = |absence: &Absence| (0..70).filter(|&source| absence.is_gone(source)).collect::<Vec<_>>();
        absence.step(Time(109));
        assert_eq!((gone(&absence), absence.is_any_gone(), absence.next_due()), (vec![], false, Time(110)));
        absence.step(Time(110));
        assert_eq!((gone(&absence), absence.is_any_gone(), absence.next_due()), (vec![3], true, Time(140)));
        absence.arrived(3, Time(120));
        absence.arrived(4, Time(120));
        absence.step(Time(150));
        assert_eq!((gone(&absence), absence.next_due()), (vec![69], Time(220)));
        assert!(absence.back(69) && !absence.back(69));
        absence.step(Time(219));
        assert_eq!(gone(&absence), [69], "it has a connection, and has sent nothing yet");
        absence.sent(69);
        assert_eq!((gone(&absence), absence.is_any_gone()), (vec![], false));
        absence.step(Time(400));
        assert_eq!(gone(&absence), [3], "the other is back for good");
    }

    #[test]
    fn a_source_that_is_waited_for_longer_is_gone_later_also_if_it_is_away_already() {
        let mut absence = Absence::new(2, Time(100), Time(10));
        (0..2).for_each(|source| absence.lost(source, Time(0)));
        absence.set_outage(1, Time(300));
        absence.step(Time(100));
        assert_eq!((absence.is_gone(0), absence.is_gone(1), absence.next_due()), (true, false, Time(300)));
        absence.step(Time(300));
        assert!(absence.is_gone(1));
    }
}
