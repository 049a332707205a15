// SPDX-License-Identifier: Apache-2.0
//! Writes one event file: encoded row groups in, a valid Parquet file under its final name out.
//! Promise: a row group is written whole or the file stays as it was; the final name appears only with the valid file.
//! A file that is removed while it is open is written again with all its contents, or the caller gets an error.
//! Source: the layout of `segment.rs` and docs/storage.md.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use bytes::Bytes;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};

use crate::medium::{device_of_folder_of, sync_folder_of, CreateMedium, Medium};
use crate::schema::SCHEMA_KEY;
use crate::segment::{encode, Footer, Frame, FRAME_LEN, PARQUET_MAGIC};
use crate::sink::StoreError;
use crate::writer_options::WriterOptions;

/// The suffix of a file's name before it is closed.
pub const PARTIAL: &str = ".partial";

/// Makes segments of batches; the same batch gives the same bytes in any thread.
#[derive(Debug, Clone)]
pub(crate) struct Encoder {
    schema: SchemaRef,
    properties: WriterProperties,
}

impl Encoder {
    pub fn new(options: &WriterOptions) -> Result<Encoder, ParquetError> {
        Ok(Encoder { schema: options.table.schema(), properties: properties(options)? })
    }

    pub fn encode(&self, batch: &RecordBatch) -> Result<Bytes, ParquetError> {
        encode(batch, &self.properties).map(Bytes::from)
    }
}

/// A file that is open as `<path>.partial`. Dropped without [`Self::complete`] it stays so, for recovery.
#[derive(Debug)]
pub(crate) struct EventFile {
    path: PathBuf,
    partial: PathBuf,
    sync_row_groups: bool,
    medium: Box<dyn Medium>,
    create: CreateMedium,
    /// The file system that it was begun on.
    device: u64,
    footer: Footer,
    /// Bytes of the file that are right: where the next frame goes.
    end: u64,
    /// The file has its name, but maybe its folder does not know it for good.
    renamed: bool,
}

impl EventFile {
    /// Begins a file that will be called `path`; an older file of that name stays until this one is complete.
    pub fn create(path: PathBuf, sync_row_groups: bool, create: CreateMedium) -> Result<EventFile, StoreError> {
        let mut partial = path.clone().into_os_string();
        partial.push(PARTIAL);
        let partial = PathBuf::from(partial);
        let fail = |action, source| StoreError::Io { file: partial.clone(), action, source };
        let mut medium = create(&partial).map_err(|source| fail("created", source))?;
        medium.write_at(&PARQUET_MAGIC, 0).map_err(|source| fail("written", source))?;
        let device = device_of_folder_of(&partial).map_err(|source| fail("created", source))?;
        let (footer, end) = (Footer::default(), PARQUET_MAGIC.len() as u64);
        Ok(EventFile { path, partial, sync_row_groups, medium, create, device, footer, end, renamed: false })
    }

    /// The name that the file has, or will have.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Bytes that are right on disk.
    pub fn bytes_written(&self) -> u64 {
        self.end
    }

    /// The name that it has until it is complete.
    pub fn partial(&self) -> &PathBuf {
        &self.partial
    }

    /// Writes an encoded row group. A failed step can be retried.
    pub fn write(&mut self, segment: &Bytes) -> Result<(), StoreError> {
        self.stay()?;
        let frame = Frame::of(self.footer.row_groups() as u32, segment).to_bytes();
        let begin = self.end + FRAME_LEN as u64;
        // The frame is written last, so that an incomplete segment is never taken for a whole one.
        let mut written = self.medium.write_at(segment, begin).and_then(|()| self.medium.write_at(&frame, self.end));
        if self.sync_row_groups {
            written = written.and_then(|()| self.medium.sync());
        }
        if let Err(source) = written {
            // The room that the torn bytes take may be what is missing; where they stay they are harmless.
            let _ = self.medium.truncate(self.end);
            return Err(StoreError::Io { file: self.partial.clone(), action: "written", source });
        }
        self.footer
            .add(segment.clone(), begin)
            .map_err(|source| StoreError::Parquet { file: self.partial.clone(), source })?;
        self.end = begin + segment.len() as u64;
        Ok(())
    }

    /// Writes the footer, syncs, renames. A failed step can be retried.
    pub fn complete(&mut self, encoder: &Encoder) -> Result<(), StoreError> {
        if !self.renamed {
            self.stay()?;
            self.write_footer(encoder)?;
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

    /// Whether it is still where it is written, as far as can be found out.
    pub fn is_there(&self) -> bool {
        self.renamed || self.medium.is_at(&self.partial).unwrap_or(true)
    }

    /// Checks that the file is still at its path: data written to a deleted or moved file, or to one of an unmounted
    /// file system, would be lost.
    fn stay(&mut self) -> Result<(), StoreError> {
        let fail = |source| StoreError::Io { file: self.partial.clone(), action: "found where it is written", source };
        if self.medium.is_at(&self.partial).map_err(fail)? {
            return Ok(());
        }
        // The mount point of an absent file system is an empty folder of another file system, which is not the intended
        // one.
        if device_of_folder_of(&self.partial).map_err(fail)? != self.device {
            return Err(fail(std::io::Error::new(ErrorKind::CrossesDevices, "another file system is in its place")));
        }
        let mut again = (self.create)(&self.partial).map_err(fail)?;
        self.medium.copy_to(&mut *again, self.end).and_then(|()| again.sync()).map_err(fail)?;
        let file = self.partial.display();
        tracing::warn!("{file} was deleted or moved; it is written anew, with the {} bytes that it held", self.end);
        self.medium = again;
        Ok(())
    }

    fn write_footer(&mut self, encoder: &Encoder) -> Result<(), StoreError> {
        let parquet = |source| StoreError::Parquet { file: self.partial.clone(), source };
        let fail = |action, source| StoreError::Io { file: self.partial.clone(), action, source };
        if self.footer.row_groups() == 0 {
            // A file of no events is the footer of an empty batch, at its place.
            let empty = encoder.encode(&RecordBatch::new_empty(encoder.schema.clone())).map_err(parquet)?;
            self.footer.add(empty, 0).map_err(parquet)?;
        }
        let footer = self.footer.to_bytes().map_err(parquet)?.unwrap_or_default();
        let whole = self.end + footer.len() as u64;
        let written = self.medium.write_at(&footer, self.end).and_then(|()| self.medium.truncate(whole));
        if let Err(source) = written {
            let _ = self.medium.truncate(self.end);
            return Err(fail("completed with its footer", source));
        }
        self.medium.sync().map_err(|source| fail("synced", source))
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
