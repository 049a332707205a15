// SPDX-License-Identifier: Apache-2.0
//! The event builder: merges fragments by event number and delivers events in order of their number.
//! Promise: every accepted handle is returned exactly once, in its event or as rejected; memory is fixed by the
//! configuration. Source: ARCHITECTURE.md, "The way of a fragment". Sans-IO: it stores handles, not bytes, and the
//! caller passes in the time (ps).
//!
//! ```text
//! push(event, source, handle) -> window of open events, one row of cells each -> peek_event, pop_event
//!                                ^ head: the next event to deliver; leaves when complete, timed out or flushed
//! ```
//!
//! | part | holds |
//! |---|---|
//! | `sequence` | the event numbers of this server, and their places 0, 1, 2... |
//! | `window` | the fragments of the open events, and the votes of their timestamps |
//! | `progress` | the progress of every source, and where it began |
//! | `absence` | the sources without a connection, for how long, and the excluded sources |
//! | `standing` | the sources that are silent, or far from the run |
//! | `patience` | how long the head is waited for |
//!
//! Timestamps are compared at the end: an event's time is the one on which most of its fragments agree, so a board with
//! a wrong clock loses only its own fragment. A jump of the time (a clock that was set, a machine that slept) causes no
//! time-out.

mod absence;
mod config;
mod connections;
mod event;
mod patience;
mod progress;
mod sequence;
mod standing;
mod step_clock;
mod window;

pub use config::{BuilderConfig, BuilderCounters, FragmentId, Pushed, SourceCounters, Stray};
pub use event::BuiltEvent;
pub use sequence::{Share, ShareError};
pub use standing::{Notice, Standing};

use patience::Patience;
use penstock_units::Time;
use progress::Progress;
use sequence::Sequence;
use standing::Standings;
use window::{Put, Window};

/// Builds events out of fragment handles `H` (for instance board and slot).
#[derive(Debug)]
pub struct EventBuilder<H> {
    config: BuilderConfig,
    sequence: Sequence,
    window: Window<H>,
    progress: Progress,
    patience: Patience,
    standings: Standings,
    /// The event that each source has passed, as it reported when its connection was lost last.
    passed: Vec<Option<u64>>,
    /// Place of the next event to hand out.
    head: u64,
    /// Places below this have been in use.
    taken: u64,
    flushing: bool,
    /// The head's time is over, and until then it waits for sources that may come back.
    held: Option<Time>,
    /// These sources; those of them with a connection, whose sign of life is awaited; how often one has come late.
    out_of_reach: Vec<u16>,
    suspects: Vec<u16>,
    returns: u32,
    /// Place after the last event of the run.
    end: u64,
    /// The event before which it ends, if that was announced.
    end_event: Option<u64>,
    counters: BuilderCounters,
    of_sources: Vec<SourceCounters>,
}

impl<H: Copy + Default> EventBuilder<H> {
    /// Allocates all the memory that the builder will ever use.
    pub fn new(config: BuilderConfig) -> EventBuilder<H> {
        let sources = config.sources.get();
        EventBuilder {
            sequence: Sequence::new(config.first_event, config.stride),
            window: Window::new(config.window, sources),
            progress: Progress::new(sources, &config),
            patience: Patience::new(config.timeout),
            standings: Standings::new(sources, config.timeout),
            passed: vec![None; usize::from(sources)],
            head: 0,
            taken: 0,
            flushing: false,
            held: None,
            out_of_reach: Vec::new(),
            suspects: Vec::new(),
            returns: 0,
            end: u64::MAX,
            end_event: None,
            counters: BuilderCounters::default(),
            of_sources: vec![SourceCounters::default(); usize::from(sources)],
            config,
        }
    }

    /// The first event is this one, or our first one after it, for a server that joins a run in progress. Nothing
    /// must have been pushed.
    pub fn begin_at(&mut self, event: u64) {
        if self.taken == 0 && self.head == 0 {
            self.sequence.begin_at(event);
            self.config.first_event = event;
            if let Some(end) = self.end_event {
                self.end_before(end);
            }
        }
    }

    /// Takes one fragment that arrived at `now`. Call [`Self::poll_event`] until it has no more.
    pub fn push(&mut self, now: Time, id: FragmentId, handle: H) -> Pushed {
        let now = self.patience.step(now);
        let seq = match self.place(id) {
            Ok(seq) => seq,
            Err(stray) => return self.refuse(id, stray),
        };
        self.progress.sent(id.source, seq);
        if self.standings.is_any_unsettled() {
            self.standings.in_step(id.source, id.event, self.next_event());
        }
        if !self.window.is_open(seq) {
            self.window.open(now, seq, id.timestamp_ns);
            self.taken = self.taken.max(seq + 1);
            self.patience.opened(now, seq == self.head);
        }
        match self.window.put(seq, id.source, id.timestamp_ns, handle) {
            Put::Taken => {
                self.progress.arrived(id.source, seq + 1);
                self.progress.absence.arrived(id.source, now);
                self.counters.fragments_accepted += 1;
                Pushed::Accepted
            }
            Put::Twice if self.is_resent(id) => self.counters.resent(),
            Put::Twice => {
                self.of_sources[usize::from(id.source)].duplicates += 1;
                self.counters.duplicate()
            }
            Put::Settled => self.count_stray(id.source, Stray::Late),
        }
    }

    /// Connected sources for which the next event waits although its time is over: they have given no sign of life
    /// since. They should be asked for one. See [`BuilderConfig::outage`].
    pub fn suspects(&self) -> &[u16] {
        &self.suspects
    }

    /// The sources for which the next event waits although its time is over.
    pub fn out_of_reach(&self) -> &[u16] {
        &self.out_of_reach
    }

    /// The handle of an accepted fragment, as long as its event has not been handed out.
    pub fn handle_mut(&mut self, id: FragmentId) -> Option<&mut H> {
        let seq = self.place(id).ok()?;
        self.window.handle_mut(seq, id.source)
    }

    /// [`Self::peek_event`] and [`Self::pop_event`] in one.
    pub fn poll_event(&mut self, now: Time) -> Option<BuiltEvent<'_, H>> {
        let (seq, number) = self.due(now)?;
        self.pop_event();
        Some(self.window.built(seq, number))
    }

    /// The next event in order of number, if it is complete, has waited long enough, or the run is being flushed.
    /// An event of which no fragment came is handed out too (with none) once a later one shows that it is missing.
    /// It stays the next one until [`Self::pop_event`].
    pub fn peek_event(&mut self, now: Time) -> Option<BuiltEvent<'_, H>> {
        let (seq, number) = self.due(now)?;
        Some(self.window.built(seq, number))
    }

    /// The event that [`Self::peek_event`] has shown is over; its handles are the caller's again.
    pub fn pop_event(&mut self) {
        if self.window.is_whole(self.head) {
            self.counters.events_complete += 1;
            self.patience.completed();
        } else {
            self.counters.events_incomplete += 1;
            if self.all_missing_excused() {
                self.patience.completed();
            }
            self.note_missing();
        }
        self.window.close(self.head);
        self.head += 1;
        self.suspects.clear();
        self.out_of_reach.clear();
        self.returns = 0;
        self.taken = self.taken.max(self.head);
        self.sequence.forget_before(self.head);
        // Its own first fragment, or else the oldest fragment of a later event, which should have come after it. That
        // search is rare: only if no fragment of an event has arrived.
        let evidence = self.window.opened_at(self.head).or_else(|| self.window.oldest());
        self.patience.next(self.head, evidence, &self.progress);
    }

    /// When [`Self::peek_event`] will give up waiting for the head.
    pub fn poll_timeout(&self) -> Option<Time> {
        match self.held {
            Some(until) => Some(self.patience.outside(until)),
            None => self.patience.ends_at(self.head, &self.progress),
        }
    }

    /// Boards were held back until now (a full disk, a slow consumer): events wait their whole time from here on for
    /// what could not be sent.
    pub fn restart_patience(&mut self, now: Time) {
        let now = self.patience.step(now);
        self.patience.restart(now);
    }

    /// The caller had no processor since its last call, and took no messages: no event has waited meanwhile.
    pub fn leap(&mut self, now: Time) {
        self.patience.leap(now);
    }

    /// The destination table changes: from an announced event on another part of the events is this server's.
    ///
    /// # Errors
    /// [`ShareError`] if events that have begun would move, or changes are not announced in order.
    pub fn change_share(&mut self, share: Share) -> Result<(), ShareError> {
        self.sequence.change(share, self.taken)?;
        // Later events have other places now.
        let reported = self.passed.iter().zip(0..).filter_map(|(event, source)| Some((source, (*event)?)));
        for (source, event) in reported {
            self.progress.passed(source, self.sequence.places_before(event.saturating_add(1)));
        }
        Ok(())
    }

    /// The run has this number of events, including those already delivered. Fragments of later ones are refused;
    /// fragments of them already held are returned by [`Self::flush`].
    pub fn end_after(&mut self, events: u64) {
        self.end = self.end.min(events);
    }

    /// The run ends before this event, which was announced, or with the last one that has begun if that is later.
    pub fn end_before(&mut self, event: u64) {
        self.end_event = Some(event);
        self.end_after(self.places_to(self.end_event));
    }

    /// The run ends with the last event that has begun.
    pub fn end_now(&mut self) {
        self.end_after(self.places_to(None));
    }

    /// How many fragments a source may still send if the run ends so: see [`Self::end_before`], [`Self::end_now`].
    pub fn short_of(&self, source: u16, before: Option<u64>) -> u64 {
        self.progress.short_of(source, self.end.min(self.places_to(before)))
    }

    fn places_to(&self, before: Option<u64>) -> u64 {
        before.map_or(0, |event| self.sequence.places_before(event)).max(self.taken)
    }

    /// The latest event that has begun; none if none has.
    pub fn newest_event(&self) -> Option<u64> {
        self.taken.checked_sub(1).map(|seq| self.sequence.number(seq))
    }

    /// Whether the run has an end.
    pub fn has_end(&self) -> bool {
        self.end != u64::MAX
    }

    /// Whether an event is not after the end of the run.
    pub fn precedes_end(&self, event: u64) -> bool {
        self.sequence.place(event).is_none_or(|seq| seq < self.end)
    }

    /// Whether a fragment may be taken: its event is not after the end of the run. A source of which one is not taken
    /// has sent, in order, all that it has before the end.
    pub fn admit(&mut self, source: u16, event: u64) -> bool {
        let admitted = self.precedes_end(event);
        if !admitted && source < self.config.sources.get() {
            self.progress.sent(source, self.end);
            self.progress.arrived(source, self.end);
        }
        admitted
    }

    /// A source will send this event's fragment, and then later ones, whatever it has sent before.
    pub fn offered(&mut self, source: u16, event: u64) {
        if let Some(seq) = self.sequence.place(event).filter(|_| source < self.config.sources.get()) {
            self.progress.sent(source, seq);
        }
    }

    /// The run has an end, and the last event before it was handed out.
    pub fn is_over(&self) -> bool {
        self.head >= self.end
    }

    /// Whether a source has still something to send before the run's end.
    pub fn expects(&self, source: u16) -> bool {
        self.short_of_end(source) > 0
    }

    /// How many fragments a source may still send before the run's end.
    pub fn short_of_end(&self, source: u16) -> u64 {
        self.progress.short_of(source, self.end)
    }

    /// The run is over: from now on events are handed out as they are. Takes further fragments none the less.
    pub fn flush(&mut self) {
        self.flushing = true;
    }

    /// Events of which at least one fragment is held.
    pub fn open_events(&self) -> usize {
        self.window.open_events()
    }

    /// Number of the next event that will be handed out; the largest one if no event is ours any more.
    pub fn next_event(&self) -> u64 {
        self.sequence.number(self.head)
    }

    pub fn counters(&self) -> &BuilderCounters {
        &self.counters
    }

    /// The fragments of each source that are in no event, and the events that lack it.
    pub fn source_counters(&self) -> &[SourceCounters] {
        &self.of_sources
    }

    /// The same, for code that checks fragments before they are pushed; none if there is no such source.
    pub fn source_counters_mut(&mut self, source: u16) -> Option<&mut SourceCounters> {
        self.of_sources.get_mut(usize::from(source))
    }

    /// Whether events wait for a source, as far as that depends on what it sends; see [`Self::lost`] for connections.
    pub fn standing(&self, source: u16) -> Standing {
        self.standings.of(source)
    }

    /// The next source whose standing has changed.
    pub fn poll_notice(&mut self) -> Option<Notice> {
        self.standings.poll()
    }

    pub fn config(&self) -> &BuilderConfig {
        &self.config
    }

    /// Place and number of the head if it is to be handed out now; its timestamps are then compared.
    fn due(&mut self, now: Time) -> Option<(u64, u64)> {
        let now = self.patience.step(now);
        self.progress.absence.step(now);
        let waited = self.patience.poll(now, self.head, &self.progress);
        self.held = None;
        if !self.window.is_settled(self.head) {
            let is_whole = self.window.is_whole(self.head);
            let is_given_up = self.open_events() > 0
                && (self.flushing || self.all_missing_excused() || (waited && !is_whole && !self.hold(now)));
            if !is_whole && !is_given_up {
                return None;
            }
            if !is_whole {
                self.patience.gave_up(self.head);
            }
            let rejected = self.window.settle(self.head, self.config.timestamp_window_ns);
            self.counters.fragments_accepted -= rejected;
            self.counters.strays_timestamp += rejected;
            if rejected > 0 {
                self.window.rejected().for_each(|source| self.of_sources[source].strays_timestamp += 1);
            }
        }
        Some((self.head, self.next_event()))
    }

    /// Whether the head, whose time is over, lacks a fragment of a source that may be on its way back and still hold it.
    fn hold(&mut self, now: Time) -> bool {
        let head = self.head;
        let Some(over_at) = self.patience.give_up_at() else { return false };
        self.suspects.clear();
        self.out_of_reach.clear();
        let lacking: Vec<u16> = self.window.lacking(head, |word| self.progress.excused(word, head)).collect();
        let progress = &mut self.progress;
        for source in lacking {
            let hope = progress.absence.hope(source, over_at).filter(|until| *until > now);
            let Some(until) = hope.filter(|_| !progress.is_past(source, head)) else { continue };
            self.held = self.held.max(Some(until));
            let is_silent = progress.absence.is_silent(source, over_at);
            if is_silent || progress.absence.is_lost(source) {
                self.out_of_reach.push(source);
            }
            if is_silent {
                self.suspects.push(source);
            }
        }
        self.held.is_some()
    }

    /// Whether nothing that the head lacks can be waited for: it is that of sources that are gone, or that were away
    /// and have begun again at a later event.
    fn all_missing_excused(&self) -> bool {
        let (head, progress) = (self.head, &self.progress);
        progress.is_any_excused(head) && self.window.is_whole_but(head, |word| progress.excused(word, head))
    }

    /// The head goes without all its fragments: counts them, and leaves out sources that several events have waited
    /// for.
    fn note_missing(&mut self) {
        let (head, event, progress) = (self.head, self.next_event(), &self.progress);
        self.window.lacking(head, |_| 0).for_each(|source| self.of_sources[usize::from(source)].events_missing += 1);
        if self.flushing {
            return;
        }
        let waited = self.window.lacking(head, |word| progress.excused(word, head));
        let waited: Vec<u16> = waited.filter(|source| progress.is_behind(*source, head)).collect();
        for source in waited {
            if self.standings.missed(self.patience.polled_at(), source, event, event) {
                self.progress.absence.leave_out(source);
            }
        }
    }

    /// The run goes on where all sources do that are there: they have gone further ahead than events can be open at a
    /// time, and what lies between none of them has any more.
    fn skip_ahead(&mut self) {
        let Some(first) = self.progress.first_ahead().filter(|first| self.open_events() == 0 && *first > self.head)
        else {
            return;
        };
        self.counters.events_skipped += first - self.head;
        self.head = first;
        self.taken = self.taken.max(first);
        self.suspects.clear();
        self.out_of_reach.clear();
        self.returns = 0;
        self.sequence.forget_before(first);
        self.patience.next(first, None, &self.progress);
    }

    /// A fragment of an event that no window reaches from here: its source is not waited for before it is in step
    /// again.
    fn leave_out(&mut self, id: FragmentId) {
        let standing = if id.event < self.next_event() { Standing::Behind } else { Standing::Ahead };
        self.standings.out_of_step(Notice { source: id.source, standing, event: id.event, head: self.next_event() });
        if standing == Standing::Behind {
            self.progress.absence.leave_out(id.source);
        }
    }

    /// Whether an event was over before any that could be open together with the head.
    fn is_far_behind(&self, event: u64) -> bool {
        let reach = self.window.rows().saturating_mul(self.config.stride.get());
        self.next_event().saturating_sub(event) > reach
    }

    fn count_stray(&mut self, source: u16, stray: Stray) -> Pushed {
        if let Some(counters) = self.of_sources.get_mut(usize::from(source)) {
            match stray {
                Stray::Late => counters.strays_late += 1,
                Stray::Ahead => counters.strays_ahead += 1,
                Stray::OffSequence => counters.strays_off_sequence += 1,
                Stray::UnknownSource | Stray::BeforeBegin | Stray::AfterEnd => {}
            }
        }
        self.counters.stray(stray)
    }

    /// Whether an event is before the first one of the run, and could have been open together with it.
    fn is_before_begin(&self, event: u64) -> bool {
        let reach = self.window.rows().saturating_mul(self.config.stride.get());
        (1..=reach).contains(&self.config.first_event.saturating_sub(event))
    }

    /// A fragment that belongs to no event, but shows that its source is alive.
    fn refuse(&mut self, id: FragmentId, stray: Stray) -> Pushed {
        // One that was in step and is back is waited for until it has caught up.
        if stray == Stray::Late && self.is_far_behind(id.event) && !self.progress.has_begun(id.source) {
            self.leave_out(id);
            return self.count_stray(id.source, stray);
        }
        let seq = match stray {
            Stray::Late | Stray::Ahead => self.sequence.place(id.event),
            Stray::AfterEnd => Some(self.end),
            // It is there, and sends what the run begins with next.
            Stray::BeforeBegin => Some(0),
            Stray::UnknownSource | Stray::OffSequence => None,
        };
        if let Some(seq) = seq {
            self.progress.sent(id.source, seq);
        }
        match stray {
            Stray::Late if self.is_resent(id) => return self.counters.resent(),
            Stray::Ahead => {
                let rows = self.window.rows();
                seq.into_iter().for_each(|seq| self.progress.went_ahead(id.source, seq, rows));
                self.leave_out(id);
                self.skip_ahead();
            }
            Stray::AfterEnd => self.progress.arrived(id.source, self.end),
            _ => {}
        }
        self.count_stray(id.source, stray)
    }

    /// The place of a fragment's event, if that event can be open now.
    fn place(&self, id: FragmentId) -> Result<u64, Stray> {
        if id.source >= self.config.sources.get() {
            return Err(Stray::UnknownSource);
        }
        if self.is_before_begin(id.event) {
            return Err(Stray::BeforeBegin);
        }
        if self.sequence.is_before(id.event) {
            return Err(Stray::Late);
        }
        let seq = self.sequence.place(id.event).ok_or(Stray::OffSequence)?;
        if seq >= self.end {
            return Err(Stray::AfterEnd);
        }
        let ahead = seq.checked_sub(self.head).ok_or(Stray::Late)?;
        if ahead >= self.window.rows() {
            return Err(Stray::Ahead);
        }
        Ok(seq)
    }

    /// Whether an event is another server's, by the tables that are known.
    pub fn is_foreign(&self, event: u64) -> bool {
        !self.sequence.is_before(event) && self.sequence.place(event).is_none()
    }

    /// Whether a fragment had come over its source's last connection.
    fn is_resent(&self, id: FragmentId) -> bool {
        let seq = self.sequence.place(id.event);
        seq.is_some_and(|seq| self.progress.is_resent(id.source, seq, self.window.rows()))
    }
}
