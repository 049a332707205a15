// SPDX-License-Identifier: Apache-2.0
//! The Parquet file of a trace.
//! Promise: it is written in row groups under a temporary name and renamed when closed; readers find the columns of
//! `schema`. Times and values are encoded without a dictionary, everything else by the keys that it has already.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parquet::arrow::{add_encoded_arrow_schema_to_metadata, ArrowSchemaConverter};
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::data_type::{DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use zstd::bulk::Compressor;

use super::{keys, schema, Rows, TraceError};

/// A file that is being written.
pub struct TraceFile {
    path: PathBuf,
    temporary: PathBuf,
    writer: SerializedFileWriter<File>,
    compression: Compression,
    /// Of keys; to make one takes longer than a row group's keys do.
    compressor: Compressor<'static>,
}

impl TraceFile {
    /// Begins a file that will be `path`; `metadata` goes into its key-value metadata.
    pub fn create(path: &Path, metadata: &[(&str, &str)]) -> Result<Self, TraceError> {
        let mut temporary = path.to_owned().into_os_string();
        temporary.push(".part");
        let temporary = PathBuf::from(temporary);
        let file = File::create(&temporary).map_err(|source| TraceError::Io { path: temporary.clone(), source })?;
        let level = ZstdLevel::default();
        let compression = Compression::ZSTD(level);
        let compressor = Compressor::new(level.compression_level())
            .map_err(|source| TraceError::Io { path: temporary.clone(), source })?;
        let writer = Self::writer(file, compression, metadata)
            .map_err(|source| TraceError::Parquet { path: path.to_owned(), source })?;
        Ok(TraceFile { path: path.to_owned(), temporary, writer, compression, compressor })
    }

    fn writer(
        file: File,
        compression: Compression,
        metadata: &[(&str, &str)],
    ) -> Result<SerializedFileWriter<File>, ParquetError> {
        let pairs = [("penstock.table", "trace"), ("penstock.version", "1")];
        let pairs = pairs.iter().chain(metadata);
        let mut properties = WriterProperties::builder()
            .set_compression(compression)
            .set_dictionary_enabled(false)
            .set_column_encoding("time_ps".into(), Encoding::DELTA_BINARY_PACKED)
            // Of values side by side mostly exponents are alike, and the last bytes of whole numbers.
            .set_column_encoding("value".into(), Encoding::BYTE_STREAM_SPLIT)
            // Whoever looks for a span of time can skip row groups; of values nobody asks the least.
            .set_statistics_enabled(EnabledStatistics::None)
            .set_column_statistics_enabled("time_ps".into(), EnabledStatistics::Chunk)
            .set_offset_index_disabled(true)
            .set_key_value_metadata(Some(
                pairs.map(|(key, value)| KeyValue::new((*key).to_owned(), (*value).to_owned())).collect(),
            ))
            .build();
        let schema = schema();
        add_encoded_arrow_schema_to_metadata(&schema, &mut properties);
        let columns = ArrowSchemaConverter::new().convert(&schema)?;
        SerializedFileWriter::new(file, columns.root_schema_ptr(), Arc::new(properties))
    }

    /// Where the file will be.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes a row group; `names` are those that the numbers of nodes and metrics stand for.
    pub fn write(&mut self, rows: &Rows, names: &[String]) -> Result<(), TraceError> {
        self.write_group(rows, names).map_err(|source| TraceError::Parquet { path: self.path.clone(), source })
    }

    fn write_group(&mut self, rows: &Rows, names: &[String]) -> Result<(), ParquetError> {
        let (compression, compressor) = (self.compression, &mut self.compressor);
        let columns: Vec<_> = self.writer.schema_descr().columns().to_vec();
        let mut group = self.writer.next_row_group()?;
        let name = |number: u16, plain: &mut Vec<u8>| {
            let name = &names[usize::from(number)];
            plain.extend_from_slice(&(name.len() as u32).to_le_bytes());
            plain.extend_from_slice(name.as_bytes());
        };
        // The column is unsigned; its 64 bits are what counts.
        let times: Vec<i64> = rows.time_ps.iter().map(|time| *time as i64).collect();
        append_plain::<Int64Type>(&mut group, &times)?;
        keys::append(&mut group, columns[1].clone(), compression, compressor, &rows.node, name)?;
        keys::append(&mut group, columns[2].clone(), compression, compressor, &rows.channel, |channel, plain| {
            plain.extend_from_slice(&i32::from(channel).to_le_bytes());
        })?;
        keys::append(&mut group, columns[3].clone(), compression, compressor, &rows.metric, name)?;
        append_plain::<DoubleType>(&mut group, &rows.value)?;
        group.close()?;
        Ok(())
    }

    /// Closes the file and gives it its name.
    pub fn close(self) -> Result<(), TraceError> {
        let TraceFile { path, temporary, writer, .. } = self;
        writer.close().map_err(|source| TraceError::Parquet { path: path.clone(), source })?;
        std::fs::rename(temporary, &path).map_err(|source| TraceError::Io { path, source })
    }
}

/// Writes a column as the file's properties say.
fn append_plain<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, File>,
    values: &[T::T],
) -> Result<(), ParquetError> {
    let mut column = group.next_column()?.ok_or_else(|| ParquetError::General("a column too many".to_owned()))?;
    column.typed::<T>().write_batch(values, None, None)?;
    column.close()
}
