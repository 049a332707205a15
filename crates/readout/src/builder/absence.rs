// SPDX-License-Identifier: Apache-2.0
//! Sources whose connection is lost, and which of them events wait for no more.
//! Promise: a source that comes back within the time an event waits has lost nothing by it; one that stays away costs
//! that time once, and not again at every event, nor when it has a connection and has not sent anything yet.
//! Source: a board whose queue pair failed sends what was not acknowledged again as soon as it has a new one.

#[derive(Debug)]
pub(super) struct Absence {
    timeout_ps: u64,
    /// By source: since when its connection is lost; none while it has one.
    lost_ps: Vec<Option<u64>>,
    /// A bit for each source that has been away for the whole timeout, in 64-bit words.
    gone: Vec<u64>,
    gone_count: usize,
    /// When the next one that is lost is gone.
    next_ps: u64,
}

impl Absence {
    pub(super) fn new(sources: u16, timeout_ps: u64) -> Absence {
        let sources = usize::from(sources);
        let (lost_ps, gone) = (vec![None; sources], vec![0; sources.div_ceil(64)]);
        Absence { timeout_ps, lost_ps, gone, gone_count: 0, next_ps: u64::MAX }
    }

    /// The connection of a source is lost; may be said again and again.
    pub(super) fn lost(&mut self, source: u16, now_ps: u64) {
        if let Some(since @ None) = self.lost_ps.get_mut(usize::from(source)) {
            *since = Some(now_ps);
            self.next_ps = self.next_ps.min(now_ps.saturating_add(self.timeout_ps));
        }
    }

    /// A source has a connection. If it was gone it stays so until it is heard.
    pub(super) fn back(&mut self, source: u16) {
        if let Some(since) = self.lost_ps.get_mut(usize::from(source)) {
            *since = None;
        }
    }

    /// A source has delivered something: if it is said to be lost, it is so from here on.
    pub(super) fn heard(&mut self, source: u16, now_ps: u64) {
        if self.lost_ps[usize::from(source)].is_some() {
            self.back(source);
            self.sent(source);
            self.lost(source, now_ps);
        }
    }

    /// Something of a source has come, be it too late for its event: over a connection, so it is there.
    pub(super) fn sent(&mut self, source: u16) {
        if self.gone_count > 0 && self.lost_ps[usize::from(source)].is_none() {
            self.mark(source, false);
        }
    }

    /// It is `now_ps`.
    pub(super) fn step(&mut self, now_ps: u64) {
        if now_ps < self.next_ps {
            return;
        }
        self.next_ps = u64::MAX;
        for source in 0..self.lost_ps.len() {
            let Some(since) = self.lost_ps[source].filter(|_| !self.is_gone(source)) else { continue };
            match since.saturating_add(self.timeout_ps) {
                at if at <= now_ps => self.mark(source as u16, true),
                at => self.next_ps = self.next_ps.min(at),
            }
        }
    }

    /// When the next source is gone; the end of time if none is lost.
    pub(super) fn next_ps(&self) -> u64 {
        self.next_ps
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
        let mut absence = Absence::new(70, 100);
        for (source, now) in [(3, 10), (69, 40), (3, 90), (70, 0)] {
            absence.lost(source, now);
        }
        let gone = |absence: &Absence| (0..70).filter(|&source| absence.is_gone(source)).collect::<Vec<_>>();
        absence.step(109);
        assert_eq!((gone(&absence), absence.is_any_gone(), absence.next_ps()), (vec![], false, 110));
        absence.step(110);
        assert_eq!((gone(&absence), absence.is_any_gone(), absence.next_ps()), (vec![3], true, 140));
        absence.heard(3, 120);
        absence.heard(4, 120);
        absence.step(150);
        assert_eq!((gone(&absence), absence.next_ps()), (vec![69], 220));
        absence.back(69);
        absence.back(69);
        absence.step(219);
        assert_eq!(gone(&absence), [69], "it has a connection, and has sent nothing yet");
        absence.sent(69);
        assert_eq!((gone(&absence), absence.is_any_gone()), (vec![], false));
        absence.step(400);
        assert_eq!(gone(&absence), [3], "the other is back for good");
    }
}
