// SPDX-License-Identifier: Apache-2.0
//! The open events: a row for each, with a bit and a cell for every source. The event at place `seq` is stored in
//! row `seq` modulo the number of rows.
//! Promise: all memory is allocated at the start; a row that is closed is not read again until it is opened.
//! Source: ARCHITECTURE.md, "The way of a fragment".

use penstock_units::Time;

use super::event::{is_present, BuiltEvent, Cell};

/// The rest of an open event is in `Window::present` and `::cells`.
#[derive(Debug, Clone, Copy, Default)]
struct OpenEvent {
    opened_at: Time,
    /// Timestamp of the first fragment; of the event once it is settled.
    timestamp_ns: u64,
    earliest_ns: u64,
    latest_ns: u64,
    fragments: u16,
    open: bool,
    /// Its timestamps have been compared.
    settled: bool,
}

/// The outcome of a fragment.
pub(super) enum Put {
    Taken,
    /// The source's fragment is here already.
    Twice,
    /// The event is being handed out as it is.
    Settled,
}

#[derive(Debug)]
pub(super) struct Window<H> {
    sources: usize,
    /// 64-bit words of presence bits per row.
    words: usize,
    /// Power of two less one.
    mask: u64,
    events: Vec<OpenEvent>,
    present: Vec<u64>,
    cells: Vec<Cell<H>>,
    /// Presence bits of the fragments that timestamps have rejected, of the event that was settled last.
    rejected: Vec<u64>,
    /// Timestamps of one event, to find their median.
    sorted_ns: Vec<u64>,
    open: usize,
}

impl<H: Copy + Default> Window<H> {
    /// A window of this number of events at least, rounded up to a power of two.
    pub(super) fn new(events: usize, sources: u16) -> Window<H> {
        let rows = events.max(1).next_power_of_two();
        let sources = usize::from(sources);
        let words = sources.div_ceil(64);
        Window {
            sources,
            words,
            mask: rows as u64 - 1,
            events: vec![OpenEvent::default(); rows],
            present: vec![0; rows * words],
            cells: vec![Cell::default(); rows * sources],
            rejected: vec![0; words],
            sorted_ns: Vec::with_capacity(sources),
            open: 0,
        }
    }

    /// Rows: events that can be open at a time.
    pub(super) fn rows(&self) -> u64 {
        self.mask + 1
    }

    /// Events that are open.
    pub(super) fn open_events(&self) -> usize {
        self.open
    }

    pub(super) fn is_open(&self, seq: u64) -> bool {
        self.events[self.row(seq)].open
    }

    /// Every source's fragment is here.
    pub(super) fn is_whole(&self, seq: u64) -> bool {
        let event = self.events[self.row(seq)];
        event.open && usize::from(event.fragments) == self.sources
    }

    /// Every source's fragment is here but those of sources that are `excused`, as bits, 64 by 64; there may be no
    /// other.
    pub(super) fn is_whole_but(&self, seq: u64, excused: impl Fn(usize) -> u64) -> bool {
        let row = self.row(seq);
        let is_open = self.events[row].open;
        let present = &self.present[row * self.words..][..self.words];
        present.iter().enumerate().all(|(word, &present)| {
            let all = u64::MAX >> (64 - (self.sources - word * 64).min(64));
            excused(word) | if is_open { present } else { 0 } == all
        })
    }

    pub(super) fn is_settled(&self, seq: u64) -> bool {
        let event = self.events[self.row(seq)];
        event.open && event.settled
    }

    /// Sources whose fragment is missing and that are not `excused`, as bits, in words of 64.
    pub(super) fn lacking<'a>(
        &'a self,
        seq: u64,
        excused: impl Fn(usize) -> u64 + 'a,
    ) -> impl Iterator<Item = u16> + 'a {
        let row = self.row(seq);
        let is_open = self.events[row].open;
        let lacks = move |source: &usize| {
            let (word, bit) = (source / 64, source % 64);
            let present = if is_open { self.present[row * self.words + word] } else { 0 };
            (present | excused(word)) >> bit & 1 == 0
        };
        (0..self.sources).filter(lacks).map(|source| source as u16)
    }

    /// Sources whose timestamps [`Self::settle`] has rejected, of the event that was settled last.
    pub(super) fn rejected(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.sources).filter(|source| is_present(&self.rejected, *source))
    }

    /// When an event's first fragment came; none if none has.
    pub(super) fn opened_at(&self, seq: u64) -> Option<Time> {
        let event = self.events[self.row(seq)];
        event.open.then_some(event.opened_at)
    }

    /// When the first fragment came of the event that has been open for longest. Looks through all rows.
    pub(super) fn oldest(&self) -> Option<Time> {
        if self.open == 0 {
            return None;
        }
        self.events.iter().filter(|event| event.open).map(|event| event.opened_at).min()
    }

    /// Opens a row for an event's first fragment.
    pub(super) fn open(&mut self, now: Time, seq: u64, timestamp_ns: u64) {
        let row = self.row(seq);
        self.events[row] = OpenEvent {
            opened_at: now,
            timestamp_ns,
            earliest_ns: timestamp_ns,
            latest_ns: timestamp_ns,
            fragments: 0,
            open: true,
            settled: false,
        };
        self.present[row * self.words..][..self.words].fill(0);
        self.open += 1;
    }

    /// Puts a fragment into an event that is open.
    pub(super) fn put(&mut self, seq: u64, source: u16, timestamp_ns: u64, handle: H) -> Put {
        let (row, source) = (self.row(seq), usize::from(source));
        let (word, bit) = (row * self.words + source / 64, 1 << (source % 64));
        let event = &mut self.events[row];
        if self.present[word] & bit != 0 {
            return Put::Twice;
        }
        if event.settled {
            return Put::Settled;
        }
        self.present[word] |= bit;
        event.fragments += 1;
        event.earliest_ns = event.earliest_ns.min(timestamp_ns);
        event.latest_ns = event.latest_ns.max(timestamp_ns);
        self.cells[row * self.sources + source] = Cell { timestamp_ns, handle };
        Put::Taken
    }

    /// The handle of a fragment that is here.
    pub(super) fn handle_mut(&mut self, seq: u64, source: u16) -> Option<&mut H> {
        let (row, source) = (self.row(seq), usize::from(source));
        let here = self.events[row].open && is_present(&self.present[row * self.words..][..self.words], source);
        here.then(|| &mut self.cells[row * self.sources + source].handle)
    }

    /// Finds the time of an event, if it is open, and takes out what is further than `window_ns` from it. From then on
    /// it changes no more. Returns how many fragments were taken out.
    pub(super) fn settle(&mut self, seq: u64, window_ns: u64) -> u64 {
        let row = self.row(seq);
        self.rejected.fill(0);
        let (event, present) = (&mut self.events[row], &mut self.present[row * self.words..][..self.words]);
        event.settled = event.open;
        if !event.open || event.latest_ns - event.earliest_ns <= window_ns {
            return 0;
        }
        let cells = &self.cells[row * self.sources..][..self.sources];
        if event.fragments > 2 {
            self.sorted_ns.clear();
            let here = cells.iter().enumerate().filter(|(source, _)| is_present(present, *source));
            self.sorted_ns.extend(here.map(|(_, cell)| cell.timestamp_ns));
            let middle = (self.sorted_ns.len() - 1) / 2;
            event.timestamp_ns = *self.sorted_ns.select_nth_unstable(middle).1;
        }
        let before = event.fragments;
        for (source, cell) in cells.iter().enumerate() {
            let (word, bit) = (source / 64, 1 << (source % 64));
            if present[word] & bit != 0 && cell.timestamp_ns.abs_diff(event.timestamp_ns) > window_ns {
                present[word] &= !bit;
                self.rejected[word] |= bit;
                event.fragments -= 1;
            }
        }
        u64::from(before - event.fragments)
    }

    /// An event that was settled, open or just closed; or one of which nothing came.
    pub(super) fn built(&self, seq: u64, number: u64) -> BuiltEvent<'_, H> {
        let row = self.row(seq);
        let event = self.events[row];
        let some = event.settled;
        BuiltEvent {
            number,
            timestamp_ns: some.then_some(event.timestamp_ns),
            complete: some && usize::from(event.fragments) == self.sources,
            present: if some { &self.present[row * self.words..][..self.words] } else { &[] },
            rejected: if some { &self.rejected } else { &[] },
            cells: &self.cells[row * self.sources..][..self.sources],
        }
    }

    /// The event is over; its row is free.
    pub(super) fn close(&mut self, seq: u64) {
        let row = self.row(seq);
        self.open -= usize::from(std::mem::take(&mut self.events[row].open));
    }

    fn row(&self, seq: u64) -> usize {
        (seq & self.mask) as usize
    }
}
