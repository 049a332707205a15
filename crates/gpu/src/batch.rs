// SPDX-License-Identifier: Apache-2.0
//! A batch of events for the GPU: their fragments side by side in one lane's memory, or in rings on the device, with
//! tables of the work. Promise: an event is in one batch as a whole; fragments are returned in the order of their
//! entry.
//! Source: the layout that kernels.cu reads; PRBS-31 in pieces of 4 KiB, so that long fragments keep many threads busy.
//!
//! ```text
//! input   |  fragments, each on a boundary of 16 bytes  |  jumps  |  pieces  |  modules  |
//! ```

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use penstock_readout::{Event, Fragment};
use penstock_recorded::MODULE_BYTES;
use penstock_wire::Prbs31;

use crate::cuda::{
    ChargeWork, CudaError, Gpu, Lane, PrbsWork, Work, ADDRESS_BYTES, CHARGES_BYTES, FOUND_BYTES, JUMPS_BYTES,
    PIECE_BYTES,
};
use crate::rings::{DeviceRings, OnDevice};

/// Where fragments may begin: more than the widest load of a kernel.
const ALIGNMENT: usize = 16;
/// Bytes that one warp compares.
const PIECE_LEN: usize = 4096;
/// The first bytes of a payload give its place in the sequence.
const HEAD: usize = 4;

/// How much a batch holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchSize {
    /// Bytes of its fragments, each rounded up to 16; below 2^31.
    pub bytes: usize,
    /// Fragments.
    pub fragments: usize,
}

impl BatchSize {
    /// A batch that holds events of `sources` fragments of at most `fragment_bytes`, and at least `bytes` of them.
    pub fn holding(sources: usize, fragment_bytes: usize, bytes: usize) -> BatchSize {
        let event = sources.saturating_mul(fragment_bytes.next_multiple_of(ALIGNMENT));
        let bytes = bytes.max(event).clamp(PIECE_LEN, (1 << 31) - ALIGNMENT);
        BatchSize { bytes, fragments: (bytes / 256).max(sources) }
    }

    fn pieces(&self) -> usize {
        self.fragments + self.bytes / PIECE_LEN
    }

    fn modules(&self) -> usize {
        self.bytes / MODULE_BYTES
    }

    fn jumps_at(&self) -> usize {
        self.bytes.next_multiple_of(ALIGNMENT)
    }

    fn pieces_at(&self) -> usize {
        self.jumps_at() + JUMPS_BYTES
    }

    fn modules_at(&self) -> usize {
        self.pieces_at() + self.pieces() * PIECE_BYTES
    }

    fn input_bytes(&self) -> usize {
        self.modules_at() + self.modules() * ADDRESS_BYTES
    }

    fn output_bytes(&self) -> usize {
        (self.pieces() * FOUND_BYTES).max(self.modules() * CHARGES_BYTES)
    }
}

/// Which kernel a batch is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kernel {
    Prbs31 { invert: bool },
    Charges,
}

#[derive(Debug)]
struct Entry {
    number: u64,
    timestamp_ns: Option<u64>,
    complete: bool,
    fragments: Range<usize>,
    missing: Range<usize>,
    restarted: Range<usize>,
}

/// Where a payload lies.
#[derive(Debug, Clone)]
enum Data {
    /// It is in the lane.
    Staged(Range<usize>),
    /// It is in a slot; with its first and its last four bytes.
    InSlot(OnDevice, [u8; 2 * HEAD]),
}

/// A fragment and what the GPU has to say about it.
#[derive(Debug, Clone)]
struct Part {
    source: u16,
    timestamp_ns: u64,
    data: Data,
    /// The range of pieces or of modules; empty if the GPU does not process the payload.
    units: Range<usize>,
}

/// An event that has come back.
#[derive(Debug, Clone, Copy)]
pub(super) struct Done<'a> {
    batch: &'a Batch,
    entry: &'a Entry,
}

/// A payload that was compared.
#[derive(Debug, Clone, Copy)]
pub(super) struct Compared<'a> {
    pub source: u16,
    batch: &'a Batch,
    data: &'a Data,
    /// None if the GPU was not asked.
    pub found: Option<Errors>,
}

impl<'a> Compared<'a> {
    pub fn len(&self) -> usize {
        match self.data {
            Data::Staged(range) => range.len(),
            Data::InSlot(slot, _) => slot.len,
        }
    }

    /// What begins and ends as the payload does, for four bytes each.
    pub fn ends(&self) -> &'a [u8] {
        match self.data {
            Data::Staged(range) => &self.batch.lane.input()[range.clone()],
            Data::InSlot(slot, ends) if slot.len < HEAD => &ends[..slot.len],
            Data::InSlot(_, ends) => ends,
        }
    }

    /// All of it, brought to the host if need be.
    pub fn payload(&self) -> Result<Cow<'a, [u8]>, CudaError> {
        match self.data {
            Data::Staged(range) => Ok(Cow::Borrowed(&self.batch.lane.input()[range.clone()])),
            Data::InSlot(slot, _) => slot.read().map(Cow::Owned),
        }
    }
}

/// What the GPU found of a PRBS-31 payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Errors {
    /// Wrong bits, if its first four bytes are right.
    pub bits: u64,
    /// Byte of the first.
    pub first: Option<usize>,
}

/// One lane and what is in it.
#[derive(Debug)]
pub(super) struct Batch {
    kernel: Kernel,
    size: BatchSize,
    lane: Lane,
    /// Where fragments may lie that are in no slot of these.
    rings: Option<Arc<DeviceRings>>,
    /// Bytes of fragments, wherever they lie; and the end of those that are staged.
    used: usize,
    staged: usize,
    units: usize,
    entries: Vec<Entry>,
    parts: Vec<Part>,
    missing: Vec<u16>,
    restarted: Vec<u16>,
}

impl Batch {
    /// Fragments in `rings` stay where they are: they must not change until the batch is done.
    pub fn new(
        gpu: &Arc<Gpu>,
        size: BatchSize,
        kernel: Kernel,
        rings: Option<Arc<DeviceRings>>,
    ) -> Result<Batch, CudaError> {
        let mut lane = Lane::new(gpu, size.input_bytes(), size.output_bytes())?;
        if let (Kernel::Prbs31 { .. }, Some(input)) = (kernel, lane.input_mut()) {
            let rows = input[size.jumps_at()..][..JUMPS_BYTES].chunks_exact_mut(31 * 4);
            for (row, k) in rows.zip(0..) {
                let states = Prbs31::jump(1 << k);
                row.chunks_exact_mut(4).zip(states).for_each(|(at, state)| at.copy_from_slice(&state.to_ne_bytes()));
            }
        }
        let (entries, parts, missing, restarted) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let (used, staged, units) = (0, 0, 0);
        Ok(Batch { kernel, size, lane, rings, used, staged, units, entries, parts, missing, restarted })
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Whether an event still goes in.
    pub fn has_room_for(&self, event: &Event<'_>) -> bool {
        let padded = |fragment: &Fragment<'_>| fragment.payload.len().next_multiple_of(ALIGNMENT);
        let bytes: usize = event.fragments.iter().map(padded).sum();
        self.used + bytes <= self.size.bytes && self.parts.len() + event.fragments.len() <= self.size.fragments
    }

    /// Takes an event for which there is room. `restarted` are boards that began anew before it.
    ///
    /// # Panics
    /// If there is no room, or the batch is under way.
    pub fn push(&mut self, event: &Event<'_>, restarted: &[u16]) {
        let Batch { kernel, size, lane, rings, used, staged, units, parts, .. } = self;
        let staged_at = lane.device_address(0);
        let input = lane.input_mut().expect("a batch that is filled is not under way");
        let first_part = parts.len();
        for &Fragment { source, timestamp_ns, payload, .. } in event.fragments {
            let (data, address) = match rings.as_ref().and_then(|rings| rings.find(payload)) {
                Some(slot) => {
                    let address = slot.address();
                    (Data::InSlot(slot, ends(payload)), address)
                }
                None => {
                    let range = *used..*used + payload.len();
                    input[range.clone()].copy_from_slice(payload);
                    *staged = range.end;
                    let address = staged_at + range.start as u64;
                    (Data::Staged(range), address)
                }
            };
            let first = *units;
            *units += match kernel {
                Kernel::Prbs31 { invert } => write_pieces(input, size, first, address, payload, *invert),
                Kernel::Charges => write_modules(input, size, first, address, payload.len()),
            };
            *used = (*used + payload.len()).next_multiple_of(ALIGNMENT);
            parts.push(Part { source, timestamp_ns, data, units: first..*units });
        }
        let (first_missing, first_restarted) = (self.missing.len(), self.restarted.len());
        self.missing.extend_from_slice(event.missing);
        self.restarted.extend_from_slice(restarted);
        self.entries.push(Entry {
            number: event.number,
            timestamp_ns: event.timestamp_ns,
            complete: event.complete,
            fragments: first_part..self.parts.len(),
            missing: first_missing..self.missing.len(),
            restarted: first_restarted..self.restarted.len(),
        });
    }

    /// Sends it to the GPU.
    pub fn start(&mut self) -> Result<(), CudaError> {
        let &mut Batch { kernel, size, staged, units, .. } = self;
        let (pieces_at, modules_at) = (size.pieces_at(), size.modules_at());
        match kernel {
            Kernel::Prbs31 { invert } => {
                let upload = [0..staged, size.jumps_at()..pieces_at + units * PIECE_BYTES];
                let jumps_at = size.jumps_at();
                let work = PrbsWork { pieces_at, pieces: units, jumps_at, invert, found_at: 0 };
                self.lane.start(&upload, &Work::Prbs31(work))
            }
            Kernel::Charges => {
                let work = ChargeWork { modules_at, modules: units, charges_at: 0 };
                self.lane.start(&[0..staged, modules_at..modules_at + units * ADDRESS_BYTES], &Work::Charges(work))
            }
        }
    }

    pub fn poll_done(&mut self) -> Result<bool, CudaError> {
        self.lane.poll_done()
    }

    pub fn wait(&mut self) -> Result<(), CudaError> {
        self.lane.wait()
    }

    /// Events in it.
    pub fn events(&self) -> usize {
        self.entries.len()
    }

    /// Bytes of its fragments, those between them included.
    pub fn bytes(&self) -> usize {
        self.used
    }

    /// An event that has come back.
    ///
    /// # Panics
    /// If there are not so many.
    pub fn event(&self, at: usize) -> Done<'_> {
        Done { batch: self, entry: &self.entries[at] }
    }

    /// Ready to be filled again.
    pub fn clear(&mut self) {
        (self.used, self.staged, self.units) = (0, 0, 0);
        self.entries.clear();
        self.parts.clear();
        self.missing.clear();
        self.restarted.clear();
    }
}

/// Tables of a payload at `address` whose first bytes are PRBS-31; the pieces go on behind them. Of its bytes only
/// these are looked at. Returns how many pieces there are.
fn write_pieces(input: &mut [u8], size: &BatchSize, first: usize, address: u64, payload: &[u8], invert: bool) -> usize {
    let Some(state) = state_behind(payload, invert) else { return 0 };
    let body = payload.len() - HEAD;
    let table = &mut input[size.pieces_at() + first * PIECE_BYTES..];
    let mut pieces = 0;
    for (row, begin) in table.chunks_exact_mut(PIECE_BYTES).zip((0..body).step_by(PIECE_LEN)) {
        let words = [begin as u32, PIECE_LEN.min(body - begin) as u32, state, 0];
        row[..8].copy_from_slice(&(address + (HEAD + begin) as u64).to_ne_bytes());
        row[8..].chunks_exact_mut(4).zip(words).for_each(|(at, word)| at.copy_from_slice(&word.to_ne_bytes()));
        pieces += 1;
    }
    pieces
}

fn ends(payload: &[u8]) -> [u8; 2 * HEAD] {
    let mut ends = [0; 2 * HEAD];
    let len = payload.len().min(HEAD);
    ends[..len].copy_from_slice(&payload[..len]);
    ends[HEAD..][..len].copy_from_slice(&payload[payload.len() - len..]);
    ends
}

/// The state behind a payload's first four bytes; none if they are not of the sequence, or nothing is behind them.
fn state_behind(payload: &[u8], invert: bool) -> Option<u32> {
    let head = payload.first_chunk::<HEAD>().filter(|_| payload.len() > HEAD)?;
    let plain = u32::from_le_bytes(*head) ^ if invert { u32::MAX } else { 0 };
    // Bit 31 is the sum of bits 0 and 3; all other bits may be anything.
    let goes_on = (plain >> 31 ^ plain ^ plain >> 3) & 1 == 0;
    Prbs31::behind(*head, invert).filter(|_| goes_on).map(|prbs| prbs.state())
}

/// Table of a payload that is nothing but modules of the camera. Returns how many there are.
fn write_modules(input: &mut [u8], size: &BatchSize, first: usize, address: u64, len: usize) -> usize {
    if !len.is_multiple_of(MODULE_BYTES) {
        return 0;
    }
    let table = &mut input[size.modules_at() + first * ADDRESS_BYTES..];
    let rows = table.chunks_exact_mut(ADDRESS_BYTES).zip((0..len).step_by(MODULE_BYTES));
    rows.for_each(|(row, at)| row.copy_from_slice(&(address + at as u64).to_ne_bytes()));
    len / MODULE_BYTES
}

impl<'a> Done<'a> {
    pub fn number(&self) -> u64 {
        self.entry.number
    }

    pub fn missing(&self) -> &'a [u16] {
        &self.batch.missing[self.entry.missing.clone()]
    }

    /// Boards that began anew before it.
    pub fn restarted(&self) -> &'a [u16] {
        &self.batch.restarted[self.entry.restarted.clone()]
    }

    fn parts(&self) -> impl Iterator<Item = &'a Part> + 'a {
        self.batch.parts[self.entry.fragments.clone()].iter()
    }

    /// Every fragment's payload, and what the GPU found.
    pub fn compared(&self) -> impl Iterator<Item = Compared<'a>> + 'a {
        let batch = self.batch;
        self.parts().map(move |part| {
            let (source, data, found) = (part.source, &part.data, batch.errors(part.units.clone()));
            Compared { source, batch, data, found }
        })
    }

    /// The event with the charges of its fragments as payloads, 32-bit words each; that of a fragment which is no
    /// camera's is empty. Calls `with` with it.
    pub fn with_charges<R>(&self, with: impl FnOnce(&Event<'_>) -> R) -> R {
        let charges = |part: &Part| {
            let bytes = self.batch.lane.output().unwrap_or_default();
            let payload = &bytes[part.units.start * CHARGES_BYTES..part.units.end * CHARGES_BYTES];
            Fragment::of(part.source, part.timestamp_ns, payload)
        };
        let fragments: Vec<Fragment<'_>> = self.parts().map(charges).collect();
        let &Entry { number, timestamp_ns, complete, .. } = self.entry;
        with(&Event { number, timestamp_ns, complete, fragments: &fragments, missing: self.missing() })
    }

    /// Fragments that are no modules of the camera.
    pub fn not_of_the_camera(&self) -> usize {
        self.parts().filter(|part| part.units.is_empty()).count()
    }
}

impl Batch {
    fn errors(&self, pieces: Range<usize>) -> Option<Errors> {
        let output = self.lane.output().filter(|_| !pieces.is_empty())?;
        let found = output[pieces.start * FOUND_BYTES..pieces.end * FOUND_BYTES].chunks_exact(FOUND_BYTES);
        let word =
            |found: &[u8], at: usize| u32::from_ne_bytes([found[at], found[at + 1], found[at + 2], found[at + 3]]);
        let mut errors = Errors { bits: 0, first: None };
        for found in found {
            let bits = word(found, 0);
            if bits > 0 {
                errors.bits += u64::from(bits);
                errors.first = errors.first.or(Some(HEAD + !word(found, 4) as usize));
            }
        }
        Some(errors)
    }
}
