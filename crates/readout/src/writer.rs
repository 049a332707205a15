// SPDX-License-Identifier: Apache-2.0
//! Events as a Parquet file: one row per event, zstd, readable by pyarrow, pandas, Polars and DuckDB.
//! Promise: the file has its name only once it is valid, and is valid however the run ends short of a kill.
//! Source: the schema is ours, version 1, and written down at [`event_schema`].

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::builder::{BinaryBuilder, BooleanBuilder, ListBuilder, UInt16Builder, UInt64Builder};
use arrow_array::RecordBatch;
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::schema::types::ColumnPath;

use crate::sink::{Event, EventSink, StoreError};

/// Value of the file's key `penstock.schema`.
pub const SCHEMA_VERSION: &str = "events/1";

/// Largest sum of the payloads in one row group: Arrow's 32-bit offsets, with room to spare.
const MAX_BATCH_BYTES: usize = 1 << 30;

/// How to write. The default suits 300 kB events at 10 Gb/s.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WriterOptions {
    /// zstd level, 1 (fast) to 22; others are moved to the nearest of these.
    pub zstd_level: i32,
    /// Payload bytes after which a row group is closed; at most 1 GiB is used.
    pub row_group_bytes: usize,
    /// Further keys and values for the file's metadata: seed, scenario, run number.
    pub metadata: Vec<(String, String)>,
}

impl Default for WriterOptions {
    fn default() -> Self {
        WriterOptions { zstd_level: 1, row_group_bytes: 16 << 20, metadata: Vec::new() }
    }
}

/// The table: one row per event, in order of event number.
///
/// | column | type | meaning |
/// |---|---|---|
/// | `event_number` | uint64 | |
/// | `timestamp_ns` | uint64, null if no fragment came | trigger time of the fragment that came first |
/// | `complete` | bool | every source is there |
/// | `sources` | list of uint16 | sources that are there, ascending |
/// | `missing` | list of uint16 | sources that are not |
/// | `fragments` | list of binary | payload of each of `sources`, in the same order, without fragment header |
///
/// The file's metadata has `penstock.schema` = [`SCHEMA_VERSION`].
pub fn event_schema() -> SchemaRef {
    let list_of = |item| DataType::new_list(item, true);
    Arc::new(Schema::new(vec![
        Field::new("event_number", DataType::UInt64, false),
        Field::new("timestamp_ns", DataType::UInt64, true),
        Field::new("complete", DataType::Boolean, false),
        Field::new("sources", list_of(DataType::UInt16), false),
        Field::new("missing", list_of(DataType::UInt16), false),
        Field::new("fragments", list_of(DataType::Binary), false),
    ]))
}

/// The rows of the row group that is being filled.
#[derive(Debug, Default)]
struct Rows {
    event_number: UInt64Builder,
    timestamp_ns: UInt64Builder,
    complete: BooleanBuilder,
    sources: ListBuilder<UInt16Builder>,
    missing: ListBuilder<UInt16Builder>,
    fragments: ListBuilder<BinaryBuilder>,
    payload_bytes: usize,
}

impl Rows {
    fn push(&mut self, event: &Event<'_>, payload_bytes: usize) {
        self.event_number.append_value(event.number);
        self.timestamp_ns.append_option(event.timestamp_ns);
        self.complete.append_value(event.complete);
        for &(source, payload) in event.fragments {
            self.sources.values().append_value(source);
            self.fragments.values().append_value(payload);
        }
        self.missing.values().append_slice(event.missing);
        self.sources.append(true);
        self.missing.append(true);
        self.fragments.append(true);
        self.payload_bytes += payload_bytes;
    }

    fn take(&mut self) -> Result<RecordBatch, ParquetError> {
        self.payload_bytes = 0;
        let batch = RecordBatch::try_new(
            event_schema(),
            vec![
                Arc::new(self.event_number.finish()),
                Arc::new(self.timestamp_ns.finish()),
                Arc::new(self.complete.finish()),
                Arc::new(self.sources.finish()),
                Arc::new(self.missing.finish()),
                Arc::new(self.fragments.finish()),
            ],
        )?;
        Ok(batch)
    }
}

/// Writes `<path>.partial`, and renames it to `path` when it is closed (also by being dropped).
#[derive(Debug)]
pub struct EventWriter {
    path: PathBuf,
    partial: PathBuf,
    row_group_bytes: usize,
    rows: Rows,
    /// None once closed.
    writer: Option<ArrowWriter<File>>,
}

impl EventWriter {
    /// Begins a file that will be called `path`; an older file of that name stays until this one is closed.
    ///
    /// # Errors
    /// [`StoreError::Io`] if the file cannot be created.
    pub fn create(path: impl Into<PathBuf>, options: &WriterOptions) -> Result<EventWriter, StoreError> {
        let path = path.into();
        let mut partial = path.clone().into_os_string();
        partial.push(".partial");
        let partial = PathBuf::from(partial);
        let file = File::create(&partial).map_err(|source| StoreError::Io {
            file: partial.clone(),
            action: "created",
            source,
        })?;
        let writer = properties(options).and_then(|p| ArrowWriter::try_new(file, event_schema(), Some(p)));
        let writer = writer.map_err(|source| StoreError::Parquet { file: partial.clone(), source })?;
        let row_group_bytes = options.row_group_bytes.clamp(1, MAX_BATCH_BYTES);
        Ok(EventWriter { path, partial, row_group_bytes, rows: Rows::default(), writer: Some(writer) })
    }

    /// The name that the file has, or will have once closed.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn write_row_group(&mut self) -> Result<(), StoreError> {
        let Some(writer) = &mut self.writer else {
            return Ok(());
        };
        let written = self.rows.take().and_then(|batch| {
            if batch.num_rows() == 0 {
                return Ok(());
            }
            writer.write(&batch)?;
            writer.flush()
        });
        written.map_err(|source| StoreError::Parquet { file: self.partial.clone(), source })
    }
}

impl EventSink for EventWriter {
    fn store(&mut self, event: &Event<'_>) -> Result<(), StoreError> {
        if self.writer.is_none() {
            return Err(StoreError::Closed { file: self.path.clone(), event: event.number });
        }
        let bytes = event.fragments.iter().map(|(_, payload)| payload.len()).sum();
        if bytes > MAX_BATCH_BYTES {
            return Err(StoreError::TooLarge { event: event.number, bytes, limit: MAX_BATCH_BYTES });
        }
        if self.rows.payload_bytes + bytes > MAX_BATCH_BYTES {
            self.write_row_group()?;
        }
        self.rows.push(event, bytes);
        if self.rows.payload_bytes >= self.row_group_bytes {
            self.write_row_group()?;
        }
        Ok(())
    }

    fn close(&mut self) -> Result<(), StoreError> {
        self.write_row_group()?;
        let Some(writer) = self.writer.take() else {
            return Ok(());
        };
        let file = writer.into_inner().map_err(|source| StoreError::Parquet { file: self.partial.clone(), source })?;
        file.sync_all().map_err(|source| StoreError::Io { file: self.partial.clone(), action: "synced", source })?;
        std::fs::rename(&self.partial, &self.path).map_err(|source| StoreError::Io {
            file: self.path.clone(),
            action: "renamed from its .partial",
            source,
        })
    }
}

impl Drop for EventWriter {
    /// An early end (an error, Ctrl-C handled above us, a panic) leaves a valid file with what came so far.
    fn drop(&mut self) {
        if let Err(error) = self.close() {
            tracing::error!(%error, "the event file could not be closed");
        }
    }
}

/// Payloads are noise to a dictionary and to minimum and maximum: both are off for them.
fn properties(options: &WriterOptions) -> Result<WriterProperties, ParquetError> {
    let payload = ColumnPath::from(vec!["fragments".into(), "list".into(), "item".into()]);
    let keys = std::iter::once(("penstock.schema".to_owned(), SCHEMA_VERSION.to_owned()))
        .chain(options.metadata.iter().cloned())
        .map(|(key, value)| KeyValue::new(key, value));
    Ok(WriterProperties::builder()
        .set_created_by(concat!("penstock ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(options.zstd_level.clamp(1, 22))?))
        .set_column_dictionary_enabled(payload.clone(), false)
        .set_column_statistics_enabled(payload, EnabledStatistics::None)
        .set_key_value_metadata(Some(keys.collect()))
        .build())
}
