// SPDX-License-Identifier: Apache-2.0
//! Where built events go: the interface between the receiver and storage.
//! Promise: a sink that answers `Ok` has taken all the bytes it needs; the slots behind them may be reused.
//! Source: design.md section 2 ("the writer stores them, the slot is posted again").

use std::path::PathBuf;

/// One event as a sink sees it; the payloads still lie in the rings.
#[derive(Debug, Clone, Copy)]
pub struct Event<'a> {
    pub number: u64,
    /// Timestamp of the fragment that came first, in ns; none if none came.
    pub timestamp_ns: Option<u64>,
    pub complete: bool,
    /// Source and payload (without fragment header), by source.
    pub fragments: &'a [(u16, &'a [u8])],
    /// Sources whose fragments did not come.
    pub missing: &'a [u16],
}

/// Why an event could not be stored.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("{file}: cannot be {action}: {source}; check that the folder exists, is writable and has room")]
    Io { file: PathBuf, action: &'static str, source: std::io::Error },
    #[error("{file}: the Parquet writer failed: {source}; if the disk is full, make room and run again")]
    Parquet { file: PathBuf, source: parquet::errors::ParquetError },
    #[error("event {event} has {bytes} bytes, more than the {limit} that one row can hold; send smaller fragments")]
    TooLarge { event: u64, bytes: usize, limit: usize },
    #[error("{file}: event {event} comes after the file was closed; open a new one")]
    Closed { file: PathBuf, event: u64 },
}

/// Takes events in order of their number.
pub trait EventSink {
    /// # Errors
    /// [`StoreError`]; the event is then not stored.
    fn store(&mut self, event: &Event<'_>) -> Result<(), StoreError>;

    /// Makes everything stored so far permanent. Later calls of `store` may fail.
    ///
    /// # Errors
    /// [`StoreError`] if the last events cannot be made permanent.
    fn close(&mut self) -> Result<(), StoreError>;
}

/// Counts events and forgets them; for benchmarks, and for runs that only check.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Discard {
    pub events: u64,
    pub bytes: u64,
}

impl EventSink for Discard {
    fn store(&mut self, event: &Event<'_>) -> Result<(), StoreError> {
        self.events += 1;
        self.bytes += event.fragments.iter().map(|(_, payload)| payload.len() as u64).sum::<u64>();
        Ok(())
    }

    fn close(&mut self) -> Result<(), StoreError> {
        Ok(())
    }
}
