// SPDX-License-Identifier: Apache-2.0
//! The event builder: merges fragments by event number and hands events out in order of their number.
//! Promise: every accepted handle comes out exactly once, in its event or as rejected; memory is fixed by the
//! configuration. Source: design.md section 2. Sans-IO: it keeps handles, not bytes, and time (ps) is passed in.
//!
//! ```text
//! push(event, source, handle) -> window of `window` open events, one row of cells each -> peek_event, pop_event
//!                                ^ head: the next event to hand out; leaves when complete, timed out or flushed
//! ```
//!
//! Timestamps decide at the end: an event's time is the one that most of its fragments agree on, so one board whose
//! clock is wrong spoils its own fragment and nobody else's. Time that leaps (a clock that was set, a machine that
//! slept) times nothing out.

use std::num::{NonZeroU16, NonZeroU64};

use serde::Serialize;

use crate::sequence::{Sequence, Share, ShareError};
use crate::step_clock::StepClock;

/// What the builder expects. The default is one server, three boards, every event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuilderConfig {
    /// Sources carry ids `0..sources`; an event with a fragment of each is complete.
    pub sources: NonZeroU16,
    /// Number of the first event.
    pub first_event: u64,
    /// Distance between the numbers of consecutive events; the number of servers when they share a run.
    pub stride: NonZeroU64,
    /// Events open at a time, rounded up to a power of two. At least the slots of a ring, so that no board that keeps
    /// to its credits can run ahead of it.
    pub window: usize,
    /// How long an event waits for its missing fragments, in ps: from its first one, or from when an event before it was
    /// complete, if a source has sent nothing later: until then it was sending, in order.
    pub timeout_ps: u64,
    /// Largest difference of a fragment's timestamp from that of the event, in ns. The event's is the median of its
    /// fragments', or that of the one that came first where there are only two.
    pub timestamp_window_ns: u64,
}

impl Default for BuilderConfig {
    fn default() -> Self {
        BuilderConfig {
            sources: const { NonZeroU16::new(3).unwrap() },
            first_event: 0,
            stride: NonZeroU64::MIN,
            window: 1024,
            timeout_ps: 100_000_000_000,
            timestamp_window_ns: 1_000,
        }
    }
}

/// Where a fragment belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FragmentId {
    pub event: u64,
    pub source: u16,
    pub timestamp_ns: u64,
}

/// Why a fragment belongs to no event that is being built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stray {
    /// Its source is not one of the configured ones.
    UnknownSource,
    /// Its event was handed out already, or lies before the first one.
    Late,
    /// Its event lies further ahead than the window reaches.
    Ahead,
    /// Its event is another server's.
    OffSequence,
    /// The run ends with an earlier event.
    AfterEnd,
}

/// What became of a pushed fragment. The builder has kept the handle only if `Accepted`.
#[must_use = "the handle of a fragment that was not accepted is still the caller's"]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pushed {
    Accepted,
    /// The event has this source's fragment already.
    Duplicate,
    Stray(Stray),
}

/// Counts since the start.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct BuilderCounters {
    pub fragments_accepted: u64,
    pub duplicates: u64,
    /// Had come before the source connected again: it had not heard the acknowledgement. No fault.
    pub resent_after_reconnect: u64,
    pub strays_unknown_source: u64,
    pub strays_late: u64,
    pub strays_ahead: u64,
    pub strays_off_sequence: u64,
    /// Accepted first, and then rejected because its timestamp contradicts that of the event's other fragments.
    pub strays_timestamp: u64,
    /// Of events behind the last one of the run. No fault.
    pub after_end: u64,
    pub events_complete: u64,
    /// Handed out with some, but not all fragments, or with none.
    pub events_incomplete: u64,
}

impl BuilderCounters {
    /// Strays of every kind.
    pub fn strays(&self) -> u64 {
        let by_place = self.strays_late + self.strays_ahead + self.strays_off_sequence;
        self.strays_unknown_source + by_place + self.strays_timestamp
    }
}

/// The rest of an open event is in `EventBuilder::present` and `::cells`.
#[derive(Debug, Clone, Copy, Default)]
struct OpenEvent {
    opened_at_ps: u64,
    /// Of the fragment that came first; of the event once it is settled.
    timestamp_ns: u64,
    earliest_ns: u64,
    latest_ns: u64,
    fragments: u16,
    open: bool,
    /// Its timestamps have been compared.
    settled: bool,
}

/// A fragment that is held.
#[derive(Debug, Clone, Copy, Default)]
struct Cell<H> {
    timestamp_ns: u64,
    handle: H,
}

/// Builds events out of fragment handles `H` (for instance board and slot).
#[derive(Debug)]
pub struct EventBuilder<H> {
    config: BuilderConfig,
    sequence: Sequence,
    /// Power of two less one; the event at place `seq` (0, 1, 2...) lives in row `seq & mask`.
    mask: u64,
    /// 64-bit words of presence bits per row.
    words: usize,
    events: Vec<OpenEvent>,
    present: Vec<u64>,
    cells: Vec<Cell<H>>,
    /// Presence bits of the head's fragments that its timestamps have rejected.
    rejected: Vec<u64>,
    /// Timestamps of one event, to find their median.
    sorted_ns: Vec<u64>,
    /// Place of the next event to hand out.
    head: u64,
    /// Places below this have been in use.
    taken: u64,
    open_events: usize,
    clock: StepClock,
    /// From when the head's patience counts; none while nothing says that it exists.
    head_since_ps: Option<u64>,
    /// Nobody's patience counts from before this.
    patient_since_ps: u64,
    /// When events were last asked for, and when the last complete one was.
    asked_ps: u64,
    complete_ps: u64,
    /// By source: the place behind its latest fragment.
    reached: Vec<u64>,
    /// By source: what `reached` was when it connected again.
    reached_before: Vec<u64>,
    /// Place of the latest event that was given up, and when. Until then it may have held back sources: while the head
    /// waits its other fragments keep their slots, and a source whose ring is full of such sends nothing.
    gave_up: Option<(u64, u64)>,
    flushing: bool,
    /// Place behind the last event of the run.
    end: u64,
    counters: BuilderCounters,
}

impl<H: Copy + Default> EventBuilder<H> {
    /// Allocates all the memory that the builder will ever use.
    pub fn new(config: BuilderConfig) -> EventBuilder<H> {
        let rows = config.window.max(1).next_power_of_two();
        let sources = usize::from(config.sources.get());
        let words = sources.div_ceil(64);
        EventBuilder {
            sequence: Sequence::new(config.first_event, config.stride),
            mask: rows as u64 - 1,
            words,
            events: vec![OpenEvent::default(); rows],
            present: vec![0; rows * words],
            cells: vec![Cell::default(); rows * sources],
            rejected: vec![0; words],
            sorted_ns: Vec::with_capacity(sources),
            head: 0,
            taken: 0,
            open_events: 0,
            clock: StepClock::new(config.timeout_ps.saturating_mul(2)),
            head_since_ps: None,
            patient_since_ps: 0,
            asked_ps: 0,
            complete_ps: 0,
            reached: vec![0; sources],
            reached_before: vec![0; sources],
            gave_up: None,
            flushing: false,
            end: u64::MAX,
            counters: BuilderCounters::default(),
            config,
        }
    }

    /// The first event is this one, for whoever comes into a run under way. Nothing must have been pushed.
    pub fn begin_at(&mut self, event: u64) {
        if self.taken == 0 && self.head == 0 {
            self.sequence = Sequence::new(event, self.config.stride);
            self.config.first_event = event;
        }
    }

    /// Takes one fragment that arrived at `now_ps`. Call [`Self::poll_event`] until it has no more.
    pub fn push(&mut self, now_ps: u64, id: FragmentId, handle: H) -> Pushed {
        let now_ps = self.clock.step(now_ps);
        let seq = match self.place(id) {
            Ok(seq) => seq,
            Err(Stray::Late) if self.is_resent(id) => return self.count_resent(),
            Err(Stray::AfterEnd) => {
                self.reached[usize::from(id.source)] = self.end;
                return self.count_stray(Stray::AfterEnd);
            }
            Err(stray) => return self.count_stray(stray),
        };
        let row = (seq & self.mask) as usize;
        if !self.events[row].open {
            self.open(now_ps, seq, id.timestamp_ns);
        }
        let source = usize::from(id.source);
        let (word, bit) = (row * self.words + source / 64, 1 << (source % 64));
        let event = &mut self.events[row];
        if self.present[word] & bit != 0 {
            if self.is_resent(id) {
                return self.count_resent();
            }
            self.counters.duplicates += 1;
            return Pushed::Duplicate;
        }
        if event.settled {
            return self.count_stray(Stray::Late); // it is being handed out as it is
        }
        self.present[word] |= bit;
        self.reached[source] = self.reached[source].max(seq + 1);
        event.fragments += 1;
        event.earliest_ns = event.earliest_ns.min(id.timestamp_ns);
        event.latest_ns = event.latest_ns.max(id.timestamp_ns);
        let cell = Cell { timestamp_ns: id.timestamp_ns, handle };
        self.cells[row * usize::from(self.config.sources.get()) + source] = cell;
        self.counters.fragments_accepted += 1;
        Pushed::Accepted
    }

    /// A source has a new connection, over which it sends again what was not acknowledged over the last one. Sources
    /// send in order, so what lies before their latest fragment was here; how far back that can be the window bounds.
    pub fn reconnected(&mut self, source: u16) {
        let source = usize::from(source);
        if let (Some(before), Some(reached)) = (self.reached_before.get_mut(source), self.reached.get(source)) {
            *before = *reached;
        }
    }

    /// The handle of an accepted fragment, as long as its event has not been handed out.
    pub fn handle_mut(&mut self, id: FragmentId) -> Option<&mut H> {
        let row = (self.place(id).ok()? & self.mask) as usize;
        let source = usize::from(id.source);
        let here = self.events[row].open && is_present(&self.present[row * self.words..][..self.words], source);
        here.then(|| &mut self.cells[row * usize::from(self.config.sources.get()) + source].handle)
    }

    /// [`Self::peek_event`] and [`Self::pop_event`] in one.
    pub fn poll_event(&mut self, now_ps: u64) -> Option<BuiltEvent<'_, H>> {
        let row = self.due(now_ps)?;
        let number = self.next_event();
        self.pop_event();
        Some(self.built(row, number))
    }

    /// The next event in order of number, if it is complete, has waited long enough, or the run is being flushed.
    /// An event of which no fragment came is handed out too (with none) once a later one shows that it is missing.
    /// It stays the next one until [`Self::pop_event`].
    pub fn peek_event(&mut self, now_ps: u64) -> Option<BuiltEvent<'_, H>> {
        let row = self.due(now_ps)?;
        Some(self.built(row, self.next_event()))
    }

    /// The event that [`Self::peek_event`] has shown is over; its handles are the caller's again.
    pub fn pop_event(&mut self) {
        let row = (self.head & self.mask) as usize;
        let event = self.events[row];
        if event.open && event.fragments == self.config.sources.get() {
            self.counters.events_complete += 1;
            self.complete_ps = self.asked_ps;
        } else {
            self.counters.events_incomplete += 1;
        }
        self.head += 1;
        self.taken = self.taken.max(self.head);
        self.sequence.forget_before(self.head);
        if event.open {
            self.events[row].open = false;
            self.open_events -= 1;
        }
        self.head_since_ps = self.evidence_of_head();
        if let (Some((seq, at_ps)), Some(since)) = (self.gave_up, &mut self.head_since_ps) {
            if *since < at_ps && held_back(&self.reached, seq, self.head) {
                *since = at_ps;
            }
        }
    }

    /// When [`Self::peek_event`] will give up waiting for the head, in ps.
    pub fn poll_timeout(&self) -> Option<u64> {
        let at = self.give_up_at()?;
        let at = if self.is_behind() { at.max(self.complete_ps.saturating_add(self.config.timeout_ps)) } else { at };
        Some(self.clock.outside(at))
    }

    /// Boards were held back until now (a full disk, a slow consumer): events wait their whole time from here on for
    /// what could not be sent.
    pub fn restart_patience(&mut self, now_ps: u64) {
        self.patient_since_ps = self.clock.step(now_ps);
    }

    /// The destination table changes: from an announced event on another part of the events is this server's.
    ///
    /// # Errors
    /// [`ShareError`] if events that have begun would move, or changes are not announced in order.
    pub fn change_share(&mut self, share: Share) -> Result<(), ShareError> {
        self.sequence.change(share, self.taken)
    }

    /// The run has so many events, those handed out included. Fragments of later ones are refused; what is held of them
    /// already comes out with [`Self::flush`].
    pub fn end_after(&mut self, events: u64) {
        self.end = self.end.min(events);
    }

    /// The run ends with the last event that has begun.
    pub fn end_now(&mut self) {
        self.end_after(self.taken);
    }

    /// The run has an end, and the last event before it was handed out.
    pub fn is_over(&self) -> bool {
        self.head >= self.end
    }

    /// Whether a source has still something to send before the run's end. Sources send in order.
    pub fn wants(&self, source: u16) -> bool {
        self.reached.get(usize::from(source)).is_some_and(|reached| *reached < self.end)
    }

    /// The run is over: from now on events are handed out as they are. Takes further fragments none the less.
    pub fn flush(&mut self) {
        self.flushing = true;
    }

    /// Events of which at least one fragment is held.
    pub fn open_events(&self) -> usize {
        self.open_events
    }

    /// The sources of which the next event has no fragment.
    pub fn missing_now(&self) -> Vec<u16> {
        let row = (self.head & self.mask) as usize;
        let present = if self.events[row].open { &self.present[row * self.words..][..self.words] } else { &[] };
        (0..self.config.sources.get()).filter(|source| !is_present(present, usize::from(*source))).collect()
    }

    /// Number of the next event that will be handed out; the largest one if no event is ours any more.
    pub fn next_event(&self) -> u64 {
        self.sequence.number(self.head)
    }

    pub fn counters(&self) -> &BuilderCounters {
        &self.counters
    }

    pub fn config(&self) -> &BuilderConfig {
        &self.config
    }

    /// The row of the head if it is to be handed out now; its timestamps are then compared.
    fn due(&mut self, now_ps: u64) -> Option<usize> {
        let now_ps = self.clock.step(now_ps);
        self.asked_ps = now_ps;
        let row = (self.head & self.mask) as usize;
        let event = self.events[row];
        if event.settled && event.open {
            return Some(row);
        }
        let all_here = event.open && event.fragments == self.config.sources.get();
        let is_fresh = self.complete_ps.saturating_add(self.config.timeout_ps) > now_ps;
        let waited = self.give_up_at().is_some_and(|at| at <= now_ps) && !(is_fresh && self.is_behind());
        let given_up = self.open_events > 0 && (self.flushing || waited);
        if !all_here && !given_up {
            return None;
        }
        if !all_here {
            self.gave_up = Some((self.head, now_ps));
        }
        self.rejected.fill(0);
        self.events[row].settled = event.open;
        if event.open {
            self.settle(row);
        }
        Some(row)
    }

    /// Finds the time of an event, and takes out what contradicts it.
    fn settle(&mut self, row: usize) {
        let window_ns = self.config.timestamp_window_ns;
        let sources = usize::from(self.config.sources.get());
        let (event, present) = (&mut self.events[row], &mut self.present[row * self.words..][..self.words]);
        if event.latest_ns - event.earliest_ns <= window_ns {
            return;
        }
        let cells = &self.cells[row * sources..][..sources];
        if event.fragments > 2 {
            self.sorted_ns.clear();
            let here = cells.iter().enumerate().filter(|(source, _)| is_present(present, *source));
            self.sorted_ns.extend(here.map(|(_, cell)| cell.timestamp_ns));
            let middle = (self.sorted_ns.len() - 1) / 2;
            event.timestamp_ns = *self.sorted_ns.select_nth_unstable(middle).1;
        }
        for (source, cell) in cells.iter().enumerate() {
            let (word, bit) = (source / 64, 1 << (source % 64));
            if present[word] & bit != 0 && cell.timestamp_ns.abs_diff(event.timestamp_ns) > window_ns {
                present[word] &= !bit;
                self.rejected[word] |= bit;
                event.fragments -= 1;
                self.counters.fragments_accepted -= 1;
                self.counters.strays_timestamp += 1;
            }
        }
    }

    fn built(&self, row: usize, number: u64) -> BuiltEvent<'_, H> {
        let event = self.events[row];
        // An event that was just popped is not open any more, but settled.
        let some = event.settled;
        let sources = usize::from(self.config.sources.get());
        BuiltEvent {
            number,
            timestamp_ns: some.then_some(event.timestamp_ns),
            complete: some && event.fragments == self.config.sources.get(),
            present: if some { &self.present[row * self.words..][..self.words] } else { &[] },
            rejected: if some { &self.rejected } else { &[] },
            cells: &self.cells[row * sources..][..sources],
        }
    }

    /// Whether a source may still send the head's fragment: it has sent no later one.
    fn is_behind(&self) -> bool {
        self.reached.iter().any(|reached| *reached <= self.head)
    }

    fn give_up_at(&self) -> Option<u64> {
        let since = self.head_since_ps?.max(self.patient_since_ps);
        Some(since.saturating_add(self.config.timeout_ps))
    }

    /// The place of a fragment's event, if that event can be open now.
    fn place(&self, id: FragmentId) -> Result<u64, Stray> {
        if id.source >= self.config.sources.get() {
            return Err(Stray::UnknownSource);
        }
        if self.sequence.is_before(id.event) {
            return Err(Stray::Late);
        }
        let seq = self.sequence.place(id.event).ok_or(Stray::OffSequence)?;
        if seq >= self.end {
            return Err(Stray::AfterEnd);
        }
        let ahead = seq.checked_sub(self.head).ok_or(Stray::Late)?;
        if ahead > self.mask {
            return Err(Stray::Ahead);
        }
        Ok(seq)
    }

    fn open(&mut self, now_ps: u64, seq: u64, timestamp_ns: u64) {
        let row = (seq & self.mask) as usize;
        self.events[row] = OpenEvent {
            opened_at_ps: now_ps,
            timestamp_ns,
            earliest_ns: timestamp_ns,
            latest_ns: timestamp_ns,
            fragments: 0,
            open: true,
            settled: false,
        };
        self.present[row * self.words..][..self.words].fill(0);
        self.open_events += 1;
        self.taken = self.taken.max(seq + 1);
        if seq == self.head || self.head_since_ps.is_none() {
            self.head_since_ps = Some(now_ps);
        }
    }

    /// The head's own first fragment, or else the oldest one of a later event: what came first of what should have
    /// come after it. The search is rare: it happens only after an event of which nothing came.
    fn evidence_of_head(&self) -> Option<u64> {
        let head = self.events[(self.head & self.mask) as usize];
        if head.open {
            return Some(head.opened_at_ps);
        }
        if self.open_events == 0 {
            return None;
        }
        self.events.iter().filter(|event| event.open).map(|event| event.opened_at_ps).min()
    }

    /// Whether a fragment had come over its source's last connection.
    fn is_resent(&self, id: FragmentId) -> bool {
        let before = self.reached_before[usize::from(id.source)];
        self.sequence.place(id.event).is_some_and(|seq| seq < before && before - seq <= self.mask + 1)
    }

    fn count_resent(&mut self) -> Pushed {
        self.counters.resent_after_reconnect += 1;
        Pushed::Duplicate
    }

    fn count_stray(&mut self, stray: Stray) -> Pushed {
        let counter = match stray {
            Stray::UnknownSource => &mut self.counters.strays_unknown_source,
            Stray::Late => &mut self.counters.strays_late,
            Stray::Ahead => &mut self.counters.strays_ahead,
            Stray::OffSequence => &mut self.counters.strays_off_sequence,
            Stray::AfterEnd => &mut self.counters.after_end,
        };
        *counter += 1;
        Pushed::Stray(stray)
    }
}

/// One event as handed out; borrows the builder until the next call.
#[derive(Debug)]
pub struct BuiltEvent<'a, H> {
    /// Event number.
    pub number: u64,
    /// Time of the event; none if no fragment came.
    pub timestamp_ns: Option<u64>,
    pub complete: bool,
    present: &'a [u64],
    rejected: &'a [u64],
    cells: &'a [Cell<H>],
}

impl<'a, H: Copy> BuiltEvent<'a, H> {
    /// Source and handle of every fragment that is there, by source.
    pub fn fragments(&self) -> impl Iterator<Item = (u16, H)> + use<'a, H> {
        held(self.present, self.cells).map(|(source, cell)| (source, cell.handle))
    }

    /// Source, timestamp in ns and handle of every fragment that is there, by source.
    pub fn timed_fragments(&self) -> impl Iterator<Item = (u16, u64, H)> + use<'a, H> {
        held(self.present, self.cells).map(|(source, cell)| (source, cell.timestamp_ns, cell.handle))
    }

    /// The sources whose fragments are not there, or were rejected.
    pub fn missing(&self) -> impl Iterator<Item = u16> + use<'a, H> {
        let present = self.present;
        (0..self.cells.len()).filter(|i| !is_present(present, *i)).map(|i| i as u16)
    }

    /// Source and handle of fragments that do not belong here: their timestamps contradict the event's.
    pub fn rejected(&self) -> impl Iterator<Item = (u16, H)> + use<'a, H> {
        held(self.rejected, self.cells).map(|(source, cell)| (source, cell.handle))
    }
}

/// The cells whose bits are set, by source; word by word, since an event has hundreds of sources.
fn held<'a, H: Copy>(bits: &'a [u64], cells: &'a [Cell<H>]) -> impl Iterator<Item = (u16, &'a Cell<H>)> + use<'a, H> {
    bits.iter().zip(cells.chunks(64)).enumerate().flat_map(|(word, (&bits, cells))| {
        let here = move |(bit, _): &(usize, _)| bits >> bit & 1 != 0;
        cells.iter().enumerate().filter(here).map(move |(bit, cell)| ((word * 64 + bit) as u16, cell))
    })
}

/// Whether a source has sent nothing from the head on, but something of the event that was given up or of a later one.
/// One that has sent later fragments will not send the head's any more (queue pairs keep the order), and one that has
/// been silent for longer was not held back.
fn held_back(reached: &[u64], given_up: u64, head: u64) -> bool {
    reached.iter().any(|&reached| (given_up + 1..=head).contains(&reached))
}

fn is_present(words: &[u64], source: usize) -> bool {
    words.get(source / 64).is_some_and(|word| word >> (source % 64) & 1 != 0)
}
