// SPDX-License-Identifier: Apache-2.0
//! Dictionary columns of a row group whose runs of equal values are known: the Parquet writer would hash every row.
//! Promise: the dictionary contains exactly the values of the column; a run of equal values costs as much as one value.
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

use super::rows::Run;

/// A column as a dictionary and the places of its rows in it.
pub struct Column {
    /// The values as PLAIN has them, one after the other.
    pub plain: Vec<u8>,
    pub values: usize,
    /// The places as RLE_DICTIONARY has them.
    places: Vec<u8>,
    rows: usize,
    pub statistics: Option<Statistics>,
}

impl Column {
    /// The column of runs of equal keys; `plain` appends the value of a key. Each key's value is written once.
    pub fn of_keys(runs: impl Iterator<Item = (u16, u32)>, plain: impl Fn(u16, &mut Vec<u8>)) -> Self {
        let mut local: Vec<Option<u32>> = Vec::new();
        let (mut bytes, mut values) = (Vec::new(), 0);
        let mut merged: Vec<(u32, u32)> = Vec::new();
        for (key, rows) in runs {
            if local.len() <= usize::from(key) {
                local.resize(usize::from(key) + 1, None);
            }
            let place = *local[usize::from(key)].get_or_insert_with(|| {
                plain(key, &mut bytes);
                values += 1;
                values - 1
            });
            match merged.last_mut() {
                Some((before, lengths)) if *before == place => *lengths += rows,
                _ => merged.push((place, rows)),
            }
        }
        Self::of_runs(bytes, values as usize, &merged)
    }

    /// The column of runs of equal numbers. Each number is written once.
    pub fn of_values(runs: &[Run]) -> Self {
        let mut distinct = Numbered::with_room_for(runs.len());
        let places: Vec<(u32, u32)> = runs.iter().map(|run| (distinct.place(run.bits), run.rows)).collect();
        let plain = distinct.numbers.iter().flat_map(|bits| bits.to_le_bytes()).collect();
        Self::of_runs(plain, distinct.numbers.len(), &places)
    }

    /// Encodes runs of equal indices into a dictionary of this number of values.
    fn of_runs(plain: Vec<u8>, values: usize, runs: &[(u32, u32)]) -> Self {
        let mut places = Places::new(width(values));
        for (place, rows) in runs {
            places.push(*place, *rows as usize);
        }
        let rows = runs.iter().map(|(_, rows)| *rows as usize).sum();
        Column { plain, values, places: places.finish(), rows, statistics: None }
    }

    /// Encodes an index per row into a dictionary of this number of values.
    pub fn of_places(plain: Vec<u8>, values: usize, places: &[u32], statistics: Option<Statistics>) -> Self {
        let mut packed = Places::new(width(values));
        packed.pack(places);
        Column { plain, values, places: packed.bytes, rows: places.len(), statistics }
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

/// Bits of an index into this number of values.
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

/// Places as RLE_DICTIONARY has them: the width, then runs of one place and runs of bit-packed places.
struct Places {
    width: u32,
    bytes: Vec<u8>,
    /// Short runs that are packed next: whole groups of eight, except at the column's end.
    single: Vec<u32>,
}

impl Places {
    /// The shortest run that is written as one.
    const LONG: usize = 8;

    fn new(width: u32) -> Self {
        Places { width, bytes: vec![width as u8], single: Vec::new() }
    }

    fn push(&mut self, place: u32, rows: usize) {
        let gap = self.single.len().next_multiple_of(8) - self.single.len();
        if rows < gap + Self::LONG {
            self.single.extend(std::iter::repeat_n(place, rows));
            return;
        }
        self.single.extend(std::iter::repeat_n(place, gap));
        self.pack_single();
        varint(((rows - gap) as u64) << 1, &mut self.bytes);
        self.bytes.extend_from_slice(&place.to_le_bytes()[..self.width.div_ceil(8) as usize]);
    }

    fn finish(mut self) -> Vec<u8> {
        self.pack_single();
        self.bytes
    }

    fn pack_single(&mut self) {
        if !self.single.is_empty() {
            let single = std::mem::take(&mut self.single);
            self.pack(&single);
            self.single = single;
            self.single.clear();
        }
    }

    /// One run of bit-packed places, the first in the lowest bits; the last group of eight is filled up.
    fn pack(&mut self, places: &[u32]) {
        let (width, packed) = (self.width, &mut self.bytes);
        let groups = places.len().div_ceil(8);
        varint((groups as u64) << 1 | 1, packed);
        let end = packed.len() + groups * width as usize;
        packed.reserve(end - packed.len() + 8);
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
    }
}

/// Different numbers in the order in which they came, found again by an open table (Knuth, TAOCP 6.4, algorithm L).
struct Numbered {
    numbers: Vec<u64>,
    /// The place of each number plus one; 0: free. At most half full.
    table: Vec<u32>,
    shift: u32,
}

impl Numbered {
    fn with_room_for(numbers: usize) -> Self {
        let bits = (numbers * 2).next_power_of_two().ilog2().max(1);
        Numbered { numbers: Vec::new(), table: vec![0; 1 << bits], shift: 64 - bits }
    }

    fn place(&mut self, number: u64) -> u32 {
        // The golden ratio's multiplicative hash (TAOCP 6.4): its upper bits depend on all of the number.
        let mut at = (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> self.shift) as usize;
        loop {
            match self.table[at] {
                0 => {
                    self.numbers.push(number);
                    self.table[at] = self.numbers.len() as u32;
                    return self.numbers.len() as u32 - 1;
                }
                place if self.numbers[place as usize - 1] == number => return place - 1,
                _ => at = (at + 1) % self.table.len(),
            }
        }
    }
}
