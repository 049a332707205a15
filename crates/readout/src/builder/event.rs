// SPDX-License-Identifier: Apache-2.0
//! One event as the builder delivers it: the fragments present, the sources missing, and the fragments rejected.
//! Promise: each source is in exactly one of the three.

/// A fragment that is held.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Cell<H> {
    pub(super) timestamp_ns: u64,
    pub(super) handle: H,
}

/// One event as handed out; borrows the builder until the next call.
#[derive(Debug)]
pub struct BuiltEvent<'a, H> {
    /// Event number.
    pub number: u64,
    /// Time of the event; none if no fragment came.
    pub timestamp_ns: Option<u64>,
    pub complete: bool,
    /// A bit for each source, in 64-bit words; no words if no fragment came.
    pub(super) present: &'a [u64],
    pub(super) rejected: &'a [u64],
    /// One for each source.
    pub(super) cells: &'a [Cell<H>],
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

    /// The sources whose fragments are missing or were rejected.
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

pub(super) fn is_present(words: &[u64], source: usize) -> bool {
    words.get(source / 64).is_some_and(|word| word >> (source % 64) & 1 != 0)
}
