// SPDX-License-Identifier: Apache-2.0
//! Recorded events of any detector, cut into the fragments of its modules, and how they are dealt out to boards.
//! Promise: `module(event, module)` is the module's bytes exactly as the file has them.
//! Source: `docs/your-data.md` (any detector), `data/lst1_run2008/README.md` (LST-1 run 2008, BSD-3-Clause).

use std::io::Cursor;
use std::ops::Range;
use std::path::Path;

use crate::inputs::input_streams;
use crate::npz::{DatasetError, Npz, RawArray};

/// Counters of one LST-1 module: pps u16, 10 MHz u32, event u32, trigger u32, local clock u64.
pub const COUNTER_BYTES: usize = 22;
/// Gains, pixels of an LST-1 module, time samples.
pub const SAMPLE_SHAPE: [usize; 3] = [2, 7, 40];
/// Bytes of one LST-1 module's fragment: counters, then `2 * 7 * 40` little-endian 16-bit samples.
pub const MODULE_BYTES: usize = COUNTER_BYTES + 2 * SAMPLE_SHAPE[0] * SAMPLE_SHAPE[1] * SAMPLE_SHAPE[2];

const SAMPLE_BYTES: usize = MODULE_BYTES - COUNTER_BYTES;
/// LST-1 files have no trigger types.
const LST1_TRIGGER_TYPE: u16 = 1;

/// One event as recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Header {
    id: i64,
    time_ns: u64,
    trigger_type: u16,
}

/// All events of one file, in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dataset {
    headers: Vec<Header>,
    modules: usize,
    /// Where module m of event e begins in `bytes`: entry e * modules + m; one more entry for the end.
    offsets: Vec<usize>,
    bytes: Vec<u8>,
    /// Whether a module has as many bytes in every event, for each module.
    steady: Vec<bool>,
}

impl Dataset {
    /// Reads a file of either layout. Any detector: `event_number` (events,) `<u8`, `timestamp_ns` (events,) `<u8`,
    /// `trigger_type` (events,) `<u2`, `source` (modules,) `<u2`, `offset` (events * modules + 1,) `<u8`, `payload`
    /// (bytes,) `|u1`. LST-1: `frag` (events, modules, 2, 7, 40) `<u2`, `counters` (events, modules, 22) `|u1`,
    /// `event_id` (events,) `<i8`.
    ///
    /// # Errors
    /// [`DatasetError`], with the file's name and what was expected, when the file is absent, truncated, corrupt or
    /// holds something else.
    pub fn load(path: impl AsRef<Path>) -> Result<Dataset, DatasetError> {
        Dataset::from_archive(Npz::open(path.as_ref())?)
    }

    /// The same of a file whose bytes are in memory; `path` names it in messages.
    ///
    /// # Errors
    /// As [`Dataset::load`], but for an absent file.
    pub fn read(path: impl AsRef<Path>, bytes: Vec<u8>) -> Result<Dataset, DatasetError> {
        Dataset::from_archive(Npz::new(path.as_ref(), Cursor::new(bytes))?)
    }

    fn from_archive(npz: Npz) -> Result<Dataset, DatasetError> {
        if npz.has("payload") {
            Dataset::any_detector(npz)
        } else {
            Dataset::lst1(npz)
        }
    }

    fn any_detector(mut npz: Npz) -> Result<Dataset, DatasetError> {
        let numbers = npz.array("event_number", "<u8")?;
        let times = npz.array("timestamp_ns", "<u8")?;
        let types = npz.array("trigger_type", "<u2")?;
        let sources = npz.array("source", "<u2")?;
        let offsets = npz.array("offset", "<u8")?;
        let payload = npz.array("payload", "|u1")?;

        let events = at_least_one(&npz, "event_number", &numbers)?;
        let modules = at_least_one(&npz, "source", &sources)?;
        let fragments = events.checked_mul(modules).and_then(|n| n.checked_add(1)).unwrap_or(u64::MAX);
        for (name, array, expected) in
            [("timestamp_ns", &times, events), ("trigger_type", &types, events), ("offset", &offsets, fragments)]
        {
            expect_shape(&npz, name, array, &[expected], "`event_number` and `source` have it")?;
        }
        if payload.shape.len() != 1 {
            let found = format!("shape {:?}", payload.shape);
            return Err(npz.wrong_shape("payload", found, "one dimension, the bytes of all fragments".into()));
        }
        let source_ids: Vec<u64> = sources.bytes.as_chunks().0.iter().map(|b| u16::from_le_bytes(*b).into()).collect();
        if let Some(at) = source_ids.windows(2).position(|pair| pair[0] >= pair[1]) {
            let found = format!("{} after {}", source_ids[at + 1], source_ids[at]);
            return Err(npz.wrong_shape("source", found, "ascending numbers, each once".into()));
        }
        let offsets: Vec<u64> = offsets.bytes.as_chunks().0.iter().map(|b| u64::from_le_bytes(*b)).collect();
        let end = payload.bytes.len() as u64;
        if offsets.first() != Some(&0) || offsets.last() != Some(&end) || !offsets.is_sorted() {
            let expected = format!("offsets that ascend from 0 to {end}, the bytes of `payload`");
            return Err(npz.wrong_shape("offset", "offsets that do not cut `payload` into fragments".into(), expected));
        }
        let times = times.bytes.as_chunks().0.iter().map(|b| u64::from_le_bytes(*b));
        let types = types.bytes.as_chunks().0.iter().map(|b| u16::from_le_bytes(*b));
        let headers = numbers.bytes.as_chunks().0.iter().map(|b| i64::from_le_bytes(*b)).zip(times.zip(types));
        let modules = modules as usize;
        let offsets: Vec<usize> = offsets.into_iter().map(|at| at as usize).collect();
        let len = |at: usize| offsets[at + 1] - offsets[at];
        let steady = |module: usize| (module..offsets.len() - 1).step_by(modules).all(|at| len(at) == len(module));
        Ok(Dataset {
            headers: headers.map(|(id, (time_ns, trigger_type))| Header { id, time_ns, trigger_type }).collect(),
            modules,
            steady: (0..modules).map(steady).collect(),
            offsets,
            bytes: payload.bytes,
        })
    }

    fn lst1(mut npz: Npz) -> Result<Dataset, DatasetError> {
        let samples = npz.array("frag", "<u2")?;
        let counters = npz.array("counters", "|u1")?;
        let ids = npz.array("event_id", "<i8")?;

        let [gains, pixels, times] = SAMPLE_SHAPE.map(|n| n as u64);
        let (events, modules) = match samples.shape[..] {
            [e, m, g, p, t] if e > 0 && m > 0 && [g, p, t] == [gains, pixels, times] => (e, m),
            _ => {
                let expected = format!("shape [events >= 1, modules >= 1, {gains}, {pixels}, {times}]");
                return Err(npz.wrong_shape("frag", format!("shape {:?}", samples.shape), expected));
            }
        };
        expect_shape(&npz, "counters", &counters, &[events, modules, COUNTER_BYTES as u64], "`frag` has it")?;
        expect_shape(&npz, "event_id", &ids, &[events], "`frag` has it")?;

        let mut bytes = Vec::with_capacity(counters.bytes.len() + samples.bytes.len());
        let per_module = counters.bytes.chunks_exact(COUNTER_BYTES).zip(samples.bytes.chunks_exact(SAMPLE_BYTES));
        for (counters, samples) in per_module {
            bytes.extend_from_slice(counters);
            bytes.extend_from_slice(samples);
        }
        let event_bytes = modules as usize * MODULE_BYTES;
        let headers = ids.bytes.as_chunks().0.iter().zip(bytes.chunks_exact(event_bytes)).map(|(id, event)| Header {
            id: i64::from_le_bytes(*id),
            time_ns: lst1_time_ns(event),
            trigger_type: LST1_TRIGGER_TYPE,
        });
        Ok(Dataset {
            headers: headers.collect(),
            modules: modules as usize,
            offsets: (0..=bytes.len()).step_by(MODULE_BYTES).collect(),
            bytes,
            steady: vec![true; modules as usize],
        })
    }

    /// Number of recorded events, at least 1.
    pub fn events(&self) -> usize {
        self.headers.len()
    }

    /// Number of front-end modules, at least 1.
    pub fn modules(&self) -> usize {
        self.modules
    }

    /// The detector's own number of recorded event `event`.
    ///
    /// # Panics
    /// If `event >= self.events()`.
    pub fn event_id(&self, event: usize) -> i64 {
        self.headers[event].id
    }

    /// When event `event` was recorded, ns. LST-1: the first module's pulses per second and its ticks of 10 MHz since.
    ///
    /// # Panics
    /// If `event >= self.events()`.
    pub fn time_ns(&self, event: usize) -> u64 {
        self.headers[event].time_ns
    }

    /// The trigger type of event `event`; 1 for LST-1, whose files have none.
    ///
    /// # Panics
    /// If `event >= self.events()`.
    pub fn trigger_type(&self, event: usize) -> u16 {
        self.headers[event].trigger_type
    }

    /// The bytes of one module in recorded event `event`.
    ///
    /// # Panics
    /// If `event >= self.events()` or `module >= self.modules()`.
    pub fn module(&self, event: usize, module: usize) -> &[u8] {
        assert!(module < self.modules, "module {module} of {}", self.modules);
        let at = event * self.modules + module;
        &self.bytes[self.offsets[at]..self.offsets[at + 1]]
    }

    /// The modules of `board`, one of `boards`: every `boards`-th one.
    pub fn share(&self, board: usize, boards: usize) -> impl Iterator<Item = usize> {
        (board..self.modules).step_by(boards)
    }

    /// Bytes of the modules of `board`, one of `boards`, in event `event`.
    ///
    /// # Panics
    /// If `event >= self.events()`.
    pub fn share_len(&self, event: usize, board: usize, boards: usize) -> usize {
        self.share(board, boards).map(|module| self.module(event, module).len()).sum()
    }

    /// Ranges of the payload of `board`, one of `boards`, that go to its `inputs`, at most. One for the whole payload
    /// where a module's length differs from event to event: an input's part must not end at another place each time.
    pub fn input_streams(&self, event: usize, board: usize, boards: usize, inputs: usize) -> Vec<Range<usize>> {
        let lens: Vec<usize> = self.share(board, boards).map(|module| self.module(event, module).len()).collect();
        let steady = self.share(board, boards).all(|module| self.steady[module]);
        input_streams(&lens, if steady { inputs } else { 1 })
    }
}

/// The time of an LST-1 event, by the counters of its first module.
fn lst1_time_ns(counters: &[u8]) -> u64 {
    let seconds = u16::from_le_bytes([counters[0], counters[1]]);
    let ticks = u32::from_le_bytes([counters[2], counters[3], counters[4], counters[5]]);
    u64::from(seconds) * 1_000_000_000 + u64::from(ticks) * 100
}

/// The length of an array of one dimension.
fn at_least_one(npz: &Npz, name: &str, array: &RawArray) -> Result<u64, DatasetError> {
    match array.shape[..] {
        [len] if len > 0 => Ok(len),
        _ => Err(npz.wrong_shape(name, format!("shape {:?}", array.shape), "one dimension of 1 and more".into())),
    }
}

fn expect_shape(npz: &Npz, name: &str, array: &RawArray, shape: &[u64], why: &str) -> Result<(), DatasetError> {
    if array.shape == shape {
        return Ok(());
    }
    Err(npz.wrong_shape(name, format!("shape {:?}", array.shape), format!("shape {shape:?}, as {why}")))
}
