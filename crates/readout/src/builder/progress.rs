// SPDX-License-Identifier: Apache-2.0
//! The progress of every source, and whether it is connected. Sources send in order of event, and queue pairs keep the
//! order. Promise: fragments that a source repeats over a new connection are recognised; events before the first
//! fragment on the new connection do not wait for that source.
//! Source: IBTA 9.5 (order within a queue pair).

use super::absence::Absence;
use super::config::BuilderConfig;

#[derive(Debug)]
pub(super) struct Progress {
    /// The place after the latest fragment of each source.
    reached: Vec<u64>,
    /// The value of `reached` when each source connected again.
    before: Vec<u64>,
    /// The place before which a source sends nothing over its connection, for each; none if the connection is new and
    /// nothing has come over it.
    begins: Vec<Option<u64>>,
    /// The place before which each source sends nothing over any connection, as it reported itself.
    passed: Vec<u64>,
    /// Whether each source's last fragment and the one before were too far ahead, and are near each other.
    is_followed: Vec<bool>,
    /// The last place of `begins` and `passed`, and how many of `begins` there are not.
    all_begin: u64,
    silent: usize,
    pub(super) absence: Absence,
}

impl Progress {
    pub(super) fn new(sources: u16, config: &BuilderConfig) -> Progress {
        let zeros = || vec![0; usize::from(sources)];
        // One ACK timer, where the timeout is the default.
        let absence = Absence::new(sources, config.outage, config.timeout / 8);
        let begins = vec![Some(0); usize::from(sources)];
        let is_followed = vec![false; usize::from(sources)];
        let (reached, before, passed) = (zeros(), zeros(), zeros());
        Progress { reached, before, begins, passed, is_followed, all_begin: 0, silent: 0, absence }
    }

    /// A fragment before the place `end` has arrived.
    pub(super) fn arrived(&mut self, source: u16, end: u64) {
        let reached = &mut self.reached[usize::from(source)];
        *reached = (*reached).max(end);
    }

    /// A source has sent the fragment of a place; its outcome does not matter here.
    pub(super) fn sent(&mut self, source: u16, seq: u64) {
        // Most runs look at no source here, and so at no memory of its own.
        if self.silent > 0 || seq < self.all_begin {
            let at = usize::from(source);
            self.passed[at] = self.passed[at].min(seq);
            if self.begins[at].is_none_or(|begin| seq < begin) {
                self.begins(source, seq);
                self.is_followed[at] = false;
            }
        }
        self.absence.sent(source);
    }

    /// A source sends nothing before a place any more, though it may have a connection later. Returns how many of its
    /// fragments before that place have not come.
    pub(super) fn passed(&mut self, source: u16, seq: u64) -> u64 {
        let at = usize::from(source);
        self.passed[at] = seq;
        self.all_begin = self.all_begin.max(seq);
        seq.saturating_sub(self.reached[at])
    }

    /// A source sends nothing before a place, or what it has sent was so far ahead that it was refused.
    pub(super) fn begins(&mut self, source: u16, seq: u64) {
        let earlier = self.begins[usize::from(source)].replace(seq);
        self.silent -= usize::from(earlier.is_none());
        self.all_begin = self.all_begin.max(seq);
    }

    /// What a source has sent was more than `rows` ahead, and refused.
    pub(super) fn went_ahead(&mut self, source: u16, seq: u64, rows: u64) {
        let at = usize::from(source);
        self.is_followed[at] =
            self.begins[at].is_some_and(|begin| begin > 0 && (begin..begin.saturating_add(rows)).contains(&seq));
        self.begins(source, seq.saturating_add(1));
    }

    /// The first place that a source may send which is there; none unless each has gone ahead with two fragments in a
    /// row.
    pub(super) fn first_ahead(&self) -> Option<u64> {
        let there = self.begins.iter().enumerate().filter(|(at, _)| !self.absence.is_gone(*at));
        there.map(|(at, begin)| begin.filter(|_| self.is_followed[at])).min().flatten()
    }

    pub(super) fn reconnected(&mut self, source: u16) {
        let source = usize::from(source);
        if let (Some(before), Some(reached)) = (self.before.get_mut(source), self.reached.get(source)) {
            *before = *reached;
            self.silent += usize::from(self.begins[source].take().is_some());
            self.is_followed[source] = false;
        }
    }

    /// Whether a fragment had come over its source's last connection; how far back that can be, `rows` bounds.
    pub(super) fn is_resent(&self, source: u16, seq: u64, rows: u64) -> bool {
        let before = self.before[usize::from(source)];
        seq < before && before - seq <= rows
    }

    /// Places before `end` that a source may still send.
    pub(super) fn short_of(&self, source: u16, end: u64) -> u64 {
        self.reached.get(usize::from(source)).map_or(0, |reached| end.saturating_sub(*reached))
    }

    /// Whether a source has sent something after a place, and so nothing of it any more.
    pub(super) fn is_past(&self, source: u16, seq: u64) -> bool {
        self.reached[usize::from(source)] > seq
    }

    /// Whether any fragment of a source was taken.
    pub(super) fn has_begun(&self, source: u16) -> bool {
        self.reached[usize::from(source)] > 0
    }

    /// Whether a source that has a connection has sent nothing from a place on.
    pub(super) fn is_behind(&self, source: u16, head: u64) -> bool {
        self.reached[usize::from(source)] <= head && !self.absence.is_lost(source)
    }

    /// Whether a source may still send the head's fragment: it is there and has sent no later one.
    pub(super) fn is_any_behind(&self, head: u64) -> bool {
        self.there().any(|reached| reached <= head)
    }

    /// Whether a source has sent nothing from the head on, but something of the event that was given up or of a later
    /// one. One that has sent later fragments will not send the head's any more, and one that has been silent for
    /// longer was not held back.
    pub(super) fn is_any_held_back(&self, given_up: u64, head: u64) -> bool {
        self.there().any(|reached| (given_up + 1..=head).contains(&reached))
    }

    /// Whether there can be sources that are not waited for at the head: see [`Self::excused`].
    pub(super) fn is_any_excused(&self, head: u64) -> bool {
        self.absence.is_any_gone() || head < self.all_begin
    }

    /// The sources, of the 64 from 64 `word` on, that are gone, start after the head or have passed it, as bits: their
    /// fragments of the head will not come.
    pub(super) fn excused(&self, word: usize, head: u64) -> u64 {
        let gone = self.absence.gone(word);
        if head >= self.all_begin {
            return gone;
        }
        let (begins, passed) = (&self.begins[word * 64..], &self.passed[word * 64..]);
        let of_word = begins.iter().zip(passed).take(64).enumerate();
        of_word.fold(gone, |bits, (k, (begin, passed))| {
            bits | u64::from(*passed > head || begin.is_some_and(|begin| begin > head)) << k
        })
    }

    /// How far the sources have come that are not gone.
    fn there(&self) -> impl Iterator<Item = u64> + '_ {
        let each = self.reached.iter().enumerate();
        each.filter(|(source, _)| !self.absence.is_gone(*source)).map(|(_, reached)| *reached)
    }
}
