// SPDX-License-Identifier: Apache-2.0
//! Events as one Parquet file, zstd, readable by pyarrow, pandas, Polars, DuckDB and Awkward.
//! Promise: the file has its name only once it is valid. However its writer ends, also by `kill -9`, every row group
//! that was written can be recovered ([`crate::recover`]). A full disk loses nothing: rows stay in memory until written.
//! Source: the tables are ours ([`Table`]); the layout on disk is at `segment.rs` and in docs/storage.md.

use std::path::{Path, PathBuf};

use bytes::Bytes;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};

use crate::medium::{create_file, sync_folder_of, CreateMedium, Medium};
use crate::schema::{Rows, Table, SCHEMA_KEY};
use crate::segment::{encode, Footer, Frame, FRAME_LEN, PARQUET_MAGIC};
use crate::sink::{Event, EventSink, StoreError};

/// Largest sum of the payloads in one row group: Arrow's 32-bit offsets, with room to spare.
const MAX_BATCH_BYTES: usize = 1 << 30;

/// What a file is called before it is closed: its name and this.
pub const PARTIAL: &str = ".partial";

/// How to write. The default suits 300 kB events at 10 Gb/s.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WriterOptions {
    pub table: Table,
    /// zstd level, 1 (fast) to 22; others are moved to the nearest of these.
    pub zstd_level: i32,
    /// Payload bytes after which a row group is written; at most 1 GiB is used. A killed process loses less than this.
    pub row_group_bytes: usize,
    /// Time after which a row group is written though it is small, in ps; none waits for the bytes.
    pub row_group_ps: Option<u64>,
    /// Every row group is made to survive a power failure before the next one (fsync); files are so in any case.
    pub sync_row_groups: bool,
    /// Further keys and values for the file's metadata: seed, scenario, run number.
    pub metadata: Vec<(String, String)>,
}

impl Default for WriterOptions {
    fn default() -> Self {
        WriterOptions {
            table: Table::Events,
            zstd_level: 1,
            row_group_bytes: 16 << 20,
            row_group_ps: None,
            sync_row_groups: false,
            metadata: Vec::new(),
        }
    }
}

/// Writes `<path>.partial`, and renames it to `path` when it is closed (also by being dropped).
#[derive(Debug)]
pub struct EventWriter {
    path: PathBuf,
    partial: PathBuf,
    options: WriterOptions,
    properties: WriterProperties,
    rows: Rows,
    /// When the first of `rows` came, as far as is known.
    rows_since_ps: Option<u64>,
    now_ps: u64,
    /// A row group that is encoded and not yet on disk.
    unwritten: Option<Bytes>,
    footer: Footer,
    /// Bytes of the file that are right: where the next frame goes.
    end: u64,
    /// The file has its name, but maybe its folder does not know it for good.
    renamed: bool,
    /// None once closed.
    medium: Option<Box<dyn Medium>>,
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
        let mut partial = path.clone().into_os_string();
        partial.push(PARTIAL);
        let partial = PathBuf::from(partial);
        let fail = |action, source| StoreError::Io { file: partial.clone(), action, source };
        let mut medium = create(&partial).map_err(|source| fail("created", source))?;
        medium.write_at(&PARQUET_MAGIC, 0).map_err(|source| fail("written", source))?;
        let properties = properties(options).map_err(|source| StoreError::Parquet { file: partial.clone(), source })?;
        Ok(EventWriter {
            rows: Rows::new(options.table),
            options: WriterOptions {
                row_group_bytes: options.row_group_bytes.clamp(1, MAX_BATCH_BYTES),
                ..options.clone()
            },
            properties,
            path,
            partial,
            rows_since_ps: None,
            now_ps: 0,
            unwritten: None,
            footer: Footer::default(),
            end: PARQUET_MAGIC.len() as u64,
            renamed: false,
            medium: Some(medium),
        })
    }

    /// The name that the file has, or will have once closed.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Bytes on disk, without the rows that wait for their row group.
    pub fn bytes_written(&self) -> u64 {
        self.end
    }

    /// Events that are in memory only.
    pub fn events_waiting(&self) -> u64 {
        self.rows.events()
    }

    /// Encodes the rows that wait, and writes them.
    fn write_row_group(&mut self) -> Result<(), StoreError> {
        self.write_unwritten()?;
        self.rows_since_ps = None;
        let parquet = |source| StoreError::Parquet { file: self.partial.clone(), source };
        let batch = self.rows.take().map_err(|error| parquet(error.into()))?;
        if batch.num_rows() > 0 {
            self.unwritten = Some(encode(&batch, &self.properties).map_err(parquet)?.into());
        }
        self.write_unwritten()
    }

    /// Writes the encoded row group, if there is one. If that fails it is kept, and the file is as it was.
    fn write_unwritten(&mut self) -> Result<(), StoreError> {
        let (Some(segment), Some(medium)) = (&self.unwritten, &mut self.medium) else {
            return Ok(());
        };
        let frame = Frame::of(self.footer.row_groups() as u32, segment).to_bytes();
        let begin = self.end + FRAME_LEN as u64;
        // The frame goes last: nobody takes a segment for whole that is not.
        let mut written = medium.write_at(segment, begin).and_then(|()| medium.write_at(&frame, self.end));
        if self.options.sync_row_groups {
            written = written.and_then(|()| medium.sync());
        }
        if let Err(source) = written {
            // The room that the torn bytes take may be what is missing; where they stay they are harmless.
            let _ = medium.truncate(self.end);
            return Err(StoreError::Io { file: self.partial.clone(), action: "written", source });
        }
        let added = self.footer.add(segment.clone(), begin);
        added.map_err(|source| StoreError::Parquet { file: self.partial.clone(), source })?;
        self.end = begin + segment.len() as u64;
        self.unwritten = None;
        Ok(())
    }

    /// Footer, fsync, the name. What has failed can be asked for again.
    fn complete_file(&mut self) -> Result<(), StoreError> {
        if !self.renamed {
            self.write_footer()?;
            std::fs::rename(&self.partial, &self.path).map_err(|source| StoreError::Io {
                file: self.path.clone(),
                action: "renamed from its .partial",
                source,
            })?;
            self.renamed = true;
        }
        let fail = |source| StoreError::Io { file: self.path.clone(), action: "synced in its folder", source };
        sync_folder_of(&self.path).map_err(fail)
    }

    fn write_footer(&mut self) -> Result<(), StoreError> {
        let parquet = |source| StoreError::Parquet { file: self.partial.clone(), source };
        let fail = |action, source| StoreError::Io { file: self.partial.clone(), action, source };
        if self.footer.row_groups() == 0 {
            // A file of no events is the footer of an empty batch, at its place.
            let batch = arrow_array::RecordBatch::new_empty(self.options.table.schema());
            self.footer.add(encode(&batch, &self.properties).map_err(parquet)?.into(), 0).map_err(parquet)?;
        }
        let footer = self.footer.to_bytes().map_err(parquet)?.unwrap_or_default();
        let Some(medium) = &mut self.medium else {
            return Ok(());
        };
        let whole = self.end + footer.len() as u64;
        let written = medium.write_at(&footer, self.end).and_then(|()| medium.truncate(whole));
        if let Err(source) = written {
            let _ = medium.truncate(self.end);
            return Err(fail("completed with its footer", source));
        }
        medium.sync().map_err(|source| fail("synced", source))
    }
}

impl EventSink for EventWriter {
    fn store(&mut self, event: &Event<'_>) -> Result<(), StoreError> {
        if self.medium.is_none() {
            return Err(StoreError::Closed { file: self.path.clone(), event: event.number });
        }
        let bytes = event.payload_bytes();
        if bytes > MAX_BATCH_BYTES {
            return Err(StoreError::TooLarge { event: event.number, bytes, limit: MAX_BATCH_BYTES });
        }
        self.write_unwritten()?;
        if self.rows.payload_bytes() + bytes > MAX_BATCH_BYTES {
            self.write_row_group()?;
        }
        self.rows.push(event);
        self.rows_since_ps.get_or_insert(self.now_ps);
        if self.rows.payload_bytes() < self.options.row_group_bytes {
            return Ok(());
        }
        match self.write_row_group() {
            // The event is taken already: the next one will be told.
            Err(error) if error.is_retriable() => Ok(()),
            other => other,
        }
    }

    fn handle_timeout(&mut self, now_ps: u64) -> Result<(), StoreError> {
        self.now_ps = now_ps;
        if self.poll_timeout().is_some_and(|due| due <= now_ps) {
            self.write_row_group()?;
        }
        Ok(())
    }

    fn poll_timeout(&self) -> Option<u64> {
        Some(self.rows_since_ps?.saturating_add(self.options.row_group_ps?))
    }

    fn close(&mut self) -> Result<(), StoreError> {
        if self.medium.is_some() {
            self.write_row_group()?;
            self.complete_file()?;
            self.medium = None;
        }
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

/// Payloads are noise to a dictionary and to minimum and maximum: both are off for them. Row groups carry no page
/// index: it would lie outside the segments.
fn properties(options: &WriterOptions) -> Result<WriterProperties, ParquetError> {
    let keys = std::iter::once((SCHEMA_KEY.to_owned(), options.table.version().to_owned()))
        .chain(options.metadata.iter().cloned())
        .map(|(key, value)| KeyValue::new(key, value));
    let mut builder = WriterProperties::builder()
        .set_created_by(concat!("penstock ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(options.zstd_level.clamp(1, 22))?))
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_offset_index_disabled(true)
        .set_max_row_group_row_count(None)
        .set_max_row_group_bytes(None)
        .set_key_value_metadata(Some(keys.collect()));
    for leaf in options.table.noise() {
        builder = builder
            .set_column_dictionary_enabled(leaf.clone(), false)
            .set_column_statistics_enabled(leaf, EnabledStatistics::None);
    }
    Ok(builder.build())
}
