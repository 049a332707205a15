// SPDX-License-Identifier: Apache-2.0
//! The event builder: merges fragments by event number and hands events out in order of their number.
//! Promise: every accepted handle comes out exactly once, complete or not; memory is fixed by the configuration.
//! Source: design.md section 2. Sans-IO: it keeps handles, not bytes, and time (ps) is passed in.
//!
//! ```text
//! push(event, source, handle) -> window of `window` open events, one row of handles each -> poll_event
//!                                ^ head: the next event to hand out; leaves when complete, timed out or flushed
//! ```

use std::num::{NonZeroU16, NonZeroU64};

use serde::Serialize;

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
    /// How long an event waits for its missing fragments, from its first one, in ps.
    pub timeout_ps: u64,
    /// Largest difference of a fragment's timestamp from that of the event's first fragment, in ns.
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
    /// Its event number is none of `first_event + k * stride`.
    OffSequence,
    /// Its timestamp contradicts that of the event's other fragments.
    Timestamp,
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
    pub strays_unknown_source: u64,
    pub strays_late: u64,
    pub strays_ahead: u64,
    pub strays_off_sequence: u64,
    pub strays_timestamp: u64,
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

/// The rest of an open event is in `EventBuilder::present` and `::handles`.
#[derive(Debug, Clone, Copy, Default)]
struct OpenEvent {
    opened_at_ps: u64,
    timestamp_ns: u64,
    fragments: u16,
    open: bool,
}

/// Builds events out of fragment handles `H` (for instance board and slot).
#[derive(Debug)]
pub struct EventBuilder<H> {
    config: BuilderConfig,
    /// Power of two less one; event `seq` (0, 1, 2...) lives in row `seq & mask`.
    mask: u64,
    /// 64-bit words of presence bits per row.
    words: usize,
    events: Vec<OpenEvent>,
    present: Vec<u64>,
    handles: Vec<H>,
    /// Sequence number of the next event to hand out.
    head: u64,
    open_events: usize,
    /// From when the head's patience counts; none while nothing says that it exists.
    head_since_ps: Option<u64>,
    flushing: bool,
    counters: BuilderCounters,
}

impl<H: Copy + Default> EventBuilder<H> {
    /// Allocates all the memory that the builder will ever use.
    pub fn new(config: BuilderConfig) -> EventBuilder<H> {
        let rows = config.window.max(1).next_power_of_two();
        let sources = usize::from(config.sources.get());
        let words = sources.div_ceil(64);
        EventBuilder {
            mask: rows as u64 - 1,
            words,
            events: vec![OpenEvent::default(); rows],
            present: vec![0; rows * words],
            handles: vec![H::default(); rows * sources],
            head: 0,
            open_events: 0,
            head_since_ps: None,
            flushing: false,
            counters: BuilderCounters::default(),
            config,
        }
    }

    /// Takes one fragment that arrived at `now_ps`. Call [`Self::poll_event`] until it has no more.
    pub fn push(&mut self, now_ps: u64, id: FragmentId, handle: H) -> Pushed {
        let seq = match self.place(id) {
            Ok(seq) => seq,
            Err(stray) => return self.count_stray(stray),
        };
        let row = (seq & self.mask) as usize;
        if !self.events[row].open {
            self.open(now_ps, seq, id.timestamp_ns);
        } else if self.events[row].timestamp_ns.abs_diff(id.timestamp_ns) > self.config.timestamp_window_ns {
            return self.count_stray(Stray::Timestamp);
        }

        let source = usize::from(id.source);
        let (word, bit) = (row * self.words + source / 64, 1 << (source % 64));
        if self.present[word] & bit != 0 {
            self.counters.duplicates += 1;
            return Pushed::Duplicate;
        }
        self.present[word] |= bit;
        self.handles[row * usize::from(self.config.sources.get()) + source] = handle;
        self.events[row].fragments += 1;
        self.counters.fragments_accepted += 1;
        Pushed::Accepted
    }

    /// The next event in order of number, if it is complete, has waited long enough, or the run is being flushed.
    /// An event of which no fragment came is handed out too (with none) once a later one shows that it is missing.
    pub fn poll_event(&mut self, now_ps: u64) -> Option<BuiltEvent<'_, H>> {
        let row = (self.head & self.mask) as usize;
        let event = self.events[row];
        let complete = event.open && event.fragments == self.config.sources.get();
        let given_up = self.open_events > 0 && (self.flushing || self.poll_timeout().is_some_and(|t| t <= now_ps));
        if !complete && !given_up {
            return None;
        }

        if complete {
            self.counters.events_complete += 1;
        } else {
            self.counters.events_incomplete += 1;
        }
        let number = self.number(self.head);
        self.head += 1;
        if event.open {
            self.events[row].open = false;
            self.open_events -= 1;
        }
        self.head_since_ps = self.evidence_of_head();

        let sources = usize::from(self.config.sources.get());
        Some(BuiltEvent {
            number,
            timestamp_ns: event.open.then_some(event.timestamp_ns),
            complete,
            present: if event.open { &self.present[row * self.words..][..self.words] } else { &[] },
            handles: &self.handles[row * sources..][..sources],
        })
    }

    /// When [`Self::poll_event`] will give up waiting for the head, in ps.
    pub fn poll_timeout(&self) -> Option<u64> {
        self.head_since_ps.map(|since| since.saturating_add(self.config.timeout_ps))
    }

    /// The run is over: from now on events are handed out as they are. Takes further fragments none the less.
    pub fn flush(&mut self) {
        self.flushing = true;
    }

    /// Events of which at least one fragment is held.
    pub fn open_events(&self) -> usize {
        self.open_events
    }

    /// Number of the next event that will be handed out.
    pub fn next_event(&self) -> u64 {
        self.number(self.head)
    }

    pub fn counters(&self) -> &BuilderCounters {
        &self.counters
    }

    pub fn config(&self) -> &BuilderConfig {
        &self.config
    }

    fn number(&self, seq: u64) -> u64 {
        seq.saturating_mul(self.config.stride.get()).saturating_add(self.config.first_event)
    }

    /// The sequence number of a fragment's event, if that event can be open now.
    fn place(&self, id: FragmentId) -> Result<u64, Stray> {
        if id.source >= self.config.sources.get() {
            return Err(Stray::UnknownSource);
        }
        let offset = id.event.checked_sub(self.config.first_event).ok_or(Stray::Late)?;
        let stride = self.config.stride.get();
        if offset % stride != 0 {
            return Err(Stray::OffSequence);
        }
        let ahead = (offset / stride).checked_sub(self.head).ok_or(Stray::Late)?;
        if ahead > self.mask {
            return Err(Stray::Ahead);
        }
        Ok(self.head + ahead)
    }

    fn open(&mut self, now_ps: u64, seq: u64, timestamp_ns: u64) {
        let row = (seq & self.mask) as usize;
        self.events[row] = OpenEvent { opened_at_ps: now_ps, timestamp_ns, fragments: 0, open: true };
        self.present[row * self.words..][..self.words].fill(0);
        self.open_events += 1;
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

    fn count_stray(&mut self, stray: Stray) -> Pushed {
        let counter = match stray {
            Stray::UnknownSource => &mut self.counters.strays_unknown_source,
            Stray::Late => &mut self.counters.strays_late,
            Stray::Ahead => &mut self.counters.strays_ahead,
            Stray::OffSequence => &mut self.counters.strays_off_sequence,
            Stray::Timestamp => &mut self.counters.strays_timestamp,
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
    /// Timestamp of the fragment that came first; none if none came.
    pub timestamp_ns: Option<u64>,
    pub complete: bool,
    present: &'a [u64],
    handles: &'a [H],
}

impl<'a, H: Copy> BuiltEvent<'a, H> {
    /// Source and handle of every fragment that is there, by source.
    pub fn fragments(&self) -> impl Iterator<Item = (u16, H)> + use<'a, H> {
        let present = self.present;
        self.handles.iter().enumerate().filter(|(i, _)| is_present(present, *i)).map(|(i, &handle)| (i as u16, handle))
    }

    /// The sources whose fragments are not there.
    pub fn missing(&self) -> impl Iterator<Item = u16> + use<'a, H> {
        let present = self.present;
        (0..self.handles.len()).filter(|i| !is_present(present, *i)).map(|i| i as u16)
    }
}

fn is_present(words: &[u64], source: usize) -> bool {
    words.get(source / 64).is_some_and(|word| word >> (source % 64) & 1 != 0)
}
