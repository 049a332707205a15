// SPDX-License-Identifier: Apache-2.0
//! Recorded events, as the readout sends them and the network laboratory replays them, and random triggers for them.
//! Promise: a file is read exactly as NumPy reads it, or refused with its name and what was expected; never a panic.
//! Source: `docs/your-data.md`, `data/lst1_run2008/README.md`.
//!
//! Only [`Dataset::load`] opens a file; [`Dataset::read`] takes an open one.
#![forbid(unsafe_code)]

mod dataset;
mod inputs;
mod npz;
mod triggers;

pub use dataset::{Dataset, COUNTER_BYTES, MODULE_BYTES, SAMPLE_SHAPE};
pub use npz::{has_countable_shape, DatasetError};
pub use triggers::Triggers;
