// SPDX-License-Identifier: Apache-2.0
//! Events as one Parquet file, zstd, readable by pyarrow, pandas, Polars, DuckDB and Awkward.
//! Promise: the file gets its final name only when it is valid. Even if the writer is killed (`kill -9`), every row
//! group that was written can be recovered ([`crate::recover`]). A full disk loses nothing: rows stay in memory until
//! written.
//! Source: the tables are ours ([`crate::Table`]); the layout on disk is at `segment.rs` and in docs/storage.md.

use std::path::{Path, PathBuf};

use bytes::Bytes;

use penstock_units::Time;

use crate::event_file::{Encoder, EventFile};
use crate::medium::{create_file, CreateMedium};
use crate::schema::Rows;
use crate::sink::{Event, EventSink, Kept, StoreError};
use crate::writer_options::{WriterOptions, MAX_BATCH_BYTES};

/// Payload bytes of an event, if one row can hold them.
pub(crate) fn payload_of_one_row(event: &Event<'_>) -> Result<usize, StoreError> {
    match event.payload_bytes() {
        bytes if bytes > MAX_BATCH_BYTES => {
            Err(StoreError::TooLarge { event: event.number, bytes, limit: MAX_BATCH_BYTES })
        }
        bytes => Ok(bytes),
    }
}

/// Writes `<path>.partial`, and renames it to `path` when it is closed (also by being dropped). All of it happens in
/// the calls of its owner: [`crate::RunWriter`] is for those who cannot wait.
#[derive(Debug)]
pub struct EventWriter {
    path: PathBuf,
    options: WriterOptions,
    encoder: Encoder,
    rows: Rows,
    /// When the first of `rows` came, as far as is known.
    rows_since: Option<Time>,
    now: Time,
    /// A row group that is encoded and not yet on disk, and what it holds.
    unwritten: Option<(Bytes, Kept)>,
    kept: Kept,
    bytes_written: u64,
    /// None once closed.
    file: Option<EventFile>,
}

impl EventWriter {
    /// Begins a file that will be called `path`; an older file of that name stays until this one is closed.
    ///
    /// # Errors
    /// [`StoreError::Io`] if the file cannot be created, or another process writes it.
    pub fn create(path: impl Into<PathBuf>, options: &WriterOptions) -> Result<EventWriter, StoreError> {
        EventWriter::create_on(path, options, create_file)
    }

    /// [`Self::create`] on a medium of the caller's.
    ///
    /// # Errors
    /// As [`Self::create`].
    pub fn create_on(
        path: impl Into<PathBuf>,
        options: &WriterOptions,
        create: CreateMedium,
    ) -> Result<EventWriter, StoreError> {
        let path = path.into();
        let encoder = Encoder::new(options).map_err(|source| StoreError::Parquet { file: path.clone(), source })?;
        let file = EventFile::create(path.clone(), options.sync_row_groups, create)?;
        let options = options.clone().checked();
        Ok(EventWriter {
            rows: Rows::new(options.table),
            options,
            encoder,
            path,
            rows_since: None,
            now: Time::ZERO,
            unwritten: None,
            kept: Kept::default(),
            bytes_written: file.bytes_written(),
            file: Some(file),
        })
    }

    /// The name that the file has, or will have once closed.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Bytes on disk, without the rows that wait for their row group.
    pub fn bytes_written(&self) -> u64 {
        self.bytes_written
    }

    /// Events that are in memory only.
    pub fn events_waiting(&self) -> u64 {
        self.rows.events()
    }

    /// Encodes the rows that wait, and writes them.
    fn write_row_group(&mut self) -> Result<(), StoreError> {
        self.write_unwritten()?;
        self.rows_since = None;
        let parquet = |source| StoreError::Parquet { file: self.path.clone(), source };
        let held = Kept { events: self.rows.events(), bytes: self.rows.payload_bytes() as u64, unclosed: 0 };
        let batch = self.rows.take().map_err(|error| parquet(error.into()))?;
        if batch.num_rows() > 0 {
            self.unwritten = Some((self.encoder.encode(&batch).map_err(parquet)?, held));
        }
        self.write_unwritten()
    }

    /// Writes the encoded row group, if there is one. If that fails it is kept.
    fn write_unwritten(&mut self) -> Result<(), StoreError> {
        if let (Some((segment, held)), Some(file)) = (&self.unwritten, &mut self.file) {
            file.write(segment)?;
            self.bytes_written = file.bytes_written();
            self.kept += *held;
            self.unwritten = None;
        }
        Ok(())
    }
}

impl EventSink for EventWriter {
    fn store(&mut self, event: &Event<'_>) -> Result<(), StoreError> {
        if self.file.is_none() {
            return Err(StoreError::Closed { file: self.path.clone(), event: event.number });
        }
        let bytes = payload_of_one_row(event)?;
        self.write_unwritten()?;
        if self.rows.payload_bytes() + bytes > MAX_BATCH_BYTES {
            self.write_row_group()?;
        }
        self.rows.push(event);
        self.rows_since.get_or_insert(self.now);
        if self.rows.payload_bytes() < self.options.row_group_bytes {
            return Ok(());
        }
        match self.write_row_group() {
            // The event is taken already: the next one gets the error.
            Err(error) if error.is_retriable() => Ok(()),
            other => other,
        }
    }

    fn handle_timeout(&mut self, now: Time) -> Result<(), StoreError> {
        self.now = now;
        if self.poll_timeout().is_some_and(|due| due <= now) {
            self.write_row_group()?;
        }
        Ok(())
    }

    fn kept(&self) -> Option<Kept> {
        let unclosed = if self.file.is_some() { self.kept.events } else { 0 };
        Some(Kept { unclosed, ..self.kept })
    }

    fn poll_timeout(&self) -> Option<Time> {
        Some(self.rows_since?.saturating_add(self.options.row_group_time?))
    }

    fn close(&mut self) -> Result<(), StoreError> {
        if self.file.is_some() {
            self.write_row_group()?;
        }
        if let Some(file) = &mut self.file {
            file.complete(&self.encoder)?;
        }
        self.file = None;
        Ok(())
    }
}

impl Drop for EventWriter {
    /// An early end (an error, Ctrl-C handled above us, a panic) leaves a valid file with what came so far.
    fn drop(&mut self) {
        if let Err(error) = self.close() {
            tracing::error!(%error, "the event file could not be closed; `penstock check --recover` completes it");
        }
    }
}
