// SPDX-License-Identifier: Apache-2.0
//! Dictionary columns of a row group whose keys are known already: the Parquet writer would hash each value again.
//! Promise: the dictionary holds what the column holds; a run of equal keys costs as much as one key.
//! Source: Apache Parquet format, Encodings.md (PLAIN, RLE_DICTIONARY), one page of each chunk.

use std::io;

use bytes::Bytes;
use parquet::basic::{Compression, Encoding, PageType};
use parquet::column::page::{CompressedPage, Page, PageWriter};
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::ParquetError;
use parquet::file::metadata::{ColumnChunkMetaData, PageEncodingStats};
use parquet::file::statistics::Statistics;
use parquet::file::writer::{SerializedPageWriter, SerializedRowGroupWriter, TrackedWrite};
use parquet::schema::types::ColumnDescPtr;
use zstd::bulk::Compressor;

/// A column as a dictionary and the places of its rows in it.
pub struct Column {
    /// The values as PLAIN has them, one after the other.
    pub plain: Vec<u8>,
    pub values: usize,
    /// As RLE_DICTIONARY has them.
    places: Vec<u8>,
    rows: usize,
    pub statistics: Option<Statistics>,
}

impl Column {
    /// Of runs of equal keys; `plain` appends the value of a key. Each key's value is written once.
    pub fn of_runs(runs: impl Iterator<Item = (u16, u32)>, plain: impl Fn(u16, &mut Vec<u8>)) -> Self {
        let mut local: Vec<Option<u32>> = Vec::new();
        let (mut bytes, mut values, mut rows) = (Vec::new(), 0, 0);
        let mut merged: Vec<(u32, u64)> = Vec::new();
        for (key, length) in runs {
            if local.len() <= usize::from(key) {
                local.resize(usize::from(key) + 1, None);
            }
            let place = *local[usize::from(key)].get_or_insert_with(|| {
                plain(key, &mut bytes);
                values += 1;
                values - 1
            });
            rows += length as usize;
            match merged.last_mut() {
                Some((before, lengths)) if *before == place => *lengths += u64::from(length),
                _ => merged.push((place, u64::from(length))),
            }
        }
        let width = width(values as usize);
        let mut places = vec![width as u8];
        for (place, length) in merged {
            varint(length << 1, &mut places);
            places.extend_from_slice(&place.to_le_bytes()[..width.div_ceil(8) as usize]);
        }
        Column { plain: bytes, values: values as usize, places, rows, statistics: None }
    }

    /// Of a place for each row in a dictionary of so many values.
    pub fn of_places(plain: Vec<u8>, values: usize, places: &[u32], statistics: Option<Statistics>) -> Self {
        Column { plain, values, places: pack(places, width(values)), rows: places.len(), statistics }
    }

    /// Writes the column as the next of the group; `compression` is what `compressor` does.
    pub fn append(
        self,
        group: &mut SerializedRowGroupWriter<'_, impl io::Write + Send>,
        description: ColumnDescPtr,
        compression: Compression,
        compressor: &mut Compressor<'_>,
    ) -> Result<(), ParquetError> {
        let mut chunk = TrackedWrite::new(Vec::new());
        let mut pages = SerializedPageWriter::new(&mut chunk);
        let mut compress = |bytes: &[u8]| compressor.compress(bytes).map(Bytes::from);
        let words = pages.write_page(CompressedPage::new(
            Page::DictionaryPage {
                buf: compress(&self.plain)?,
                num_values: self.values as u32,
                encoding: Encoding::PLAIN,
                is_sorted: false,
            },
            self.plain.len(),
        ))?;
        let data = pages.write_page(CompressedPage::new(
            Page::DataPage {
                buf: compress(&self.places)?,
                num_values: self.rows as u32,
                encoding: Encoding::RLE_DICTIONARY,
                def_level_encoding: Encoding::RLE,
                rep_level_encoding: Encoding::RLE,
                statistics: None,
            },
            self.places.len(),
        ))?;

        let page = |page_type, encoding| PageEncodingStats { page_type, encoding, count: 1 };
        let mut metadata = ColumnChunkMetaData::builder(description)
            .set_encodings(vec![Encoding::PLAIN, Encoding::RLE, Encoding::RLE_DICTIONARY])
            .set_page_encoding_stats(vec![
                page(PageType::DICTIONARY_PAGE, Encoding::PLAIN),
                page(PageType::DATA_PAGE, Encoding::RLE_DICTIONARY),
            ])
            .set_compression(compression)
            .set_num_values(self.rows as i64)
            .set_total_compressed_size((words.compressed_size + data.compressed_size) as i64)
            .set_total_uncompressed_size((words.uncompressed_size + data.uncompressed_size) as i64)
            .set_dictionary_page_offset(Some(words.offset as i64))
            .set_data_page_offset(data.offset as i64);
        if let Some(statistics) = self.statistics {
            metadata = metadata.set_statistics(statistics);
        }
        let close = ColumnCloseResult {
            bytes_written: words.bytes_written + data.bytes_written,
            rows_written: self.rows as u64,
            metadata: metadata.build()?,
            bloom_filter: None,
            column_index: None,
            offset_index: None,
        };
        group.append_column(&Bytes::from(chunk.into_inner()?), close)
    }
}

/// Bits of a place among so many values.
fn width(values: usize) -> u32 {
    (usize::BITS - values.saturating_sub(1).leading_zeros()).max(1)
}

fn varint(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// The width, then one run of bit-packed places, the first in the lowest bits; the last group of eight is filled up.
fn pack(places: &[u32], width: u32) -> Vec<u8> {
    let groups = places.len().div_ceil(8);
    let mut packed = Vec::with_capacity(16 + groups * width as usize);
    packed.push(width as u8);
    varint((groups as u64) << 1 | 1, &mut packed);
    let end = packed.len() + groups * width as usize;
    let (mut bits, mut filled) = (0u64, 0);
    for place in places {
        bits |= u64::from(*place) << filled;
        filled += width;
        if filled >= 32 {
            packed.extend_from_slice(&(bits as u32).to_le_bytes());
            bits >>= 32;
            filled -= 32;
        }
    }
    packed.extend_from_slice(&bits.to_le_bytes());
    packed.resize(end, 0);
    packed
}
