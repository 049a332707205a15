// SPDX-License-Identifier: Apache-2.0
//! The Parquet file of a trace.
//! Promise: it is written in row groups under a temporary name and renamed when closed; it has the columns of
//! `schema`. Columns are encoded with a dictionary, except values of which most differ from the previous one.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parquet::arrow::{add_encoded_arrow_schema_to_metadata, ArrowSchemaConverter};
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::data_type::DoubleType;
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::statistics::{Statistics, ValueStatistics};
use parquet::file::writer::SerializedFileWriter;
use zstd::bulk::Compressor;

use super::dictionary::Column;
use super::error::TraceError;
use super::rows::{schema, Group};
use super::series::Series;

/// A file that is being written.
pub struct TraceFile {
    path: PathBuf,
    temporary: PathBuf,
    writer: SerializedFileWriter<File>,
    compression: Compression,
    /// Compressor of keys; making one takes longer than compressing the keys of a row group.
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
            // Of values side by side mostly exponents are alike, and the last bytes of whole numbers.
            .set_column_encoding("value".into(), Encoding::BYTE_STREAM_SPLIT)
            .set_statistics_enabled(EnabledStatistics::None)
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
    pub fn write(&mut self, rows: &Group, names: &[String]) -> Result<(), TraceError> {
        self.write_group(rows, names).map_err(|source| TraceError::Parquet { path: self.path.clone(), source })
    }

    fn write_group(&mut self, rows: &Group, names: &[String]) -> Result<(), ParquetError> {
        let (compression, compressor) = (self.compression, &mut self.compressor);
        let columns: Vec<_> = self.writer.schema_descr().columns().to_vec();
        let mut group = self.writer.next_row_group()?;
        let runs = |of: fn(&Series) -> u16| rows.runs.iter().map(move |(series, rows)| (of(series), *rows));
        let name = |number: u16, plain: &mut Vec<u8>| {
            let name = &names[usize::from(number)];
            plain.extend_from_slice(&(name.len() as u32).to_le_bytes());
            plain.extend_from_slice(name.as_bytes());
        };
        let number = |number: u16, plain: &mut Vec<u8>| plain.extend_from_slice(&i32::from(number).to_le_bytes());
        let keyed = [
            times(rows),
            Column::of_keys(runs(|series| series.node), name),
            Column::of_keys(runs(|series| series.channel), number),
            Column::of_keys(runs(|series| series.metric), name),
        ];
        let values = (rows.values.len() * 2 <= rows.time.len()).then(|| Column::of_values(&rows.values));
        for (column, description) in keyed.into_iter().chain(values).zip(columns) {
            column.append(&mut group, description, compression, compressor)?;
        }
        // Values that hardly repeat.
        if let Some(mut values) = group.next_column()? {
            values.typed::<DoubleType>().write_batch(&rows.each_value().collect::<Vec<f64>>(), None, None)?;
            values.close()?;
        }
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

/// The column of times, with the first and the last: a reader that looks for a span of time can skip row groups.
fn times(rows: &Group) -> Column {
    let plain = rows.times.iter().flat_map(|time| time.to_le_bytes()).collect();
    // The column is unsigned; only its 64 bits matter.
    let bounds = [rows.times.iter().min(), rows.times.iter().max()].map(|time| time.map(|time| *time as i64));
    let statistics = ValueStatistics::new(bounds[0], bounds[1], None, Some(0), false);
    Column::of_places(plain, rows.times.len(), &rows.time, Some(Statistics::Int64(statistics)))
}
