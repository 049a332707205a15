// SPDX-License-Identifier: Apache-2.0
//! Recorded camera events, divided into the fragments of their front-end modules.
//! Promise: `module(event, module)` is the module's bytes exactly as recorded, 22 counter bytes and then the samples.
//! Source: `data/lst1_run2008/README.md` (LST-1 run 2008, protozfits 2.13.1, BSD-3-Clause).

use std::io::Cursor;
use std::path::Path;

use crate::npz::{DatasetError, Npz};

/// Counters of one module: pps u16, 10 MHz u32, event u32, trigger u32, local clock u64.
pub const COUNTER_BYTES: usize = 22;
/// Gains, pixels of a module, time samples.
pub const SAMPLE_SHAPE: [usize; 3] = [2, 7, 40];
/// Bytes of one module's fragment: counters, then `2 * 7 * 40` little-endian 16-bit samples.
pub const MODULE_BYTES: usize = COUNTER_BYTES + 2 * SAMPLE_SHAPE[0] * SAMPLE_SHAPE[1] * SAMPLE_SHAPE[2];

const SAMPLE_BYTES: usize = MODULE_BYTES - COUNTER_BYTES;

/// All events of one file, in memory: shape (events, modules, [`MODULE_BYTES`]).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dataset {
    event_ids: Vec<i64>,
    modules: usize,
    bytes: Vec<u8>,
}

impl Dataset {
    /// Reads the arrays `frag` (events, modules, 2, 7, 40) `<u2`, `counters` (events, modules, 22) `|u1` and
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

    fn from_archive(mut npz: Npz) -> Result<Dataset, DatasetError> {
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
        for (name, array, expected) in
            [("counters", &counters, vec![events, modules, COUNTER_BYTES as u64]), ("event_id", &ids, vec![events])]
        {
            if array.shape != expected {
                let (found, expected) =
                    (format!("shape {:?}", array.shape), format!("shape {expected:?}, as `frag` has it"));
                return Err(npz.wrong_shape(name, found, expected));
            }
        }

        let event_ids = ids.bytes.as_chunks::<8>().0.iter().map(|b| i64::from_le_bytes(*b)).collect();
        let mut bytes = Vec::with_capacity(counters.bytes.len() + samples.bytes.len());
        let per_module = counters.bytes.chunks_exact(COUNTER_BYTES).zip(samples.bytes.chunks_exact(SAMPLE_BYTES));
        for (counters, samples) in per_module {
            bytes.extend_from_slice(counters);
            bytes.extend_from_slice(samples);
        }
        Ok(Dataset { event_ids, modules: modules as usize, bytes })
    }

    /// Number of recorded events, at least 1.
    pub fn events(&self) -> usize {
        self.event_ids.len()
    }

    /// Number of front-end modules, at least 1.
    pub fn modules(&self) -> usize {
        self.modules
    }

    /// The telescope's own number of recorded event `event`.
    ///
    /// # Panics
    /// If `event >= self.events()`.
    pub fn event_id(&self, event: usize) -> i64 {
        self.event_ids[event]
    }

    /// When event `event` was recorded, ns: the first module's pulses per second and its ticks of 10 MHz since then.
    ///
    /// # Panics
    /// If `event >= self.events()`.
    pub fn time_ns(&self, event: usize) -> u64 {
        let counters = self.module(event, 0);
        let seconds = u16::from_le_bytes([counters[0], counters[1]]);
        let ticks = u32::from_le_bytes([counters[2], counters[3], counters[4], counters[5]]);
        u64::from(seconds) * 1_000_000_000 + u64::from(ticks) * 100
    }

    /// The [`MODULE_BYTES`] of one module in recorded event `event`.
    ///
    /// # Panics
    /// If `event >= self.events()` or `module >= self.modules()`.
    pub fn module(&self, event: usize, module: usize) -> &[u8] {
        assert!(module < self.modules, "module {module} of {}", self.modules);
        let start = (event * self.modules + module) * MODULE_BYTES;
        &self.bytes[start..start + MODULE_BYTES]
    }
}
