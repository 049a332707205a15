// SPDX-License-Identifier: Apache-2.0
//! A dictionary column of a row group whose keys are known already: the Parquet writer would hash each value again.
//! Promise: the dictionary holds the values that occur, in the order in which they do, each once; a key costs a look at
//! a table and its bits. Source: Apache Parquet format, Encodings.md (PLAIN, RLE_DICTIONARY), one page of each chunk.

use std::io;

use bytes::Bytes;
use parquet::basic::{Compression, Encoding, PageType};
use parquet::column::page::{CompressedPage, Page, PageWriter};
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::ParquetError;
use parquet::file::metadata::{ColumnChunkMetaData, PageEncodingStats};
use parquet::file::writer::{SerializedPageWriter, SerializedRowGroupWriter, TrackedWrite};
use parquet::schema::types::ColumnDescPtr;
use zstd::bulk::Compressor;

/// Writes a column of `keys`; `plain` appends the value of a key as PLAIN has it. `compression` is what `compressor` does.
pub fn append(
    group: &mut SerializedRowGroupWriter<'_, impl io::Write + Send>,
    column: ColumnDescPtr,
    compression: Compression,
    compressor: &mut Compressor<'_>,
    keys: &[u16],
    plain: impl Fn(u16, &mut Vec<u8>),
) -> Result<(), ParquetError> {
    let (local, dictionary) = renumber(keys);
    let mut values = Vec::new();
    dictionary.iter().for_each(|key| plain(*key, &mut values));
    let rows = keys.len() as u32;

    let mut chunk = TrackedWrite::new(Vec::new());
    let mut pages = SerializedPageWriter::new(&mut chunk);
    let mut compress = |bytes: &[u8]| compressor.compress(bytes).map(Bytes::from);
    let words = pages.write_page(CompressedPage::new(
        Page::DictionaryPage {
            buf: compress(&values)?,
            num_values: dictionary.len() as u32,
            encoding: Encoding::PLAIN,
            is_sorted: false,
        },
        values.len(),
    ))?;
    let packed = pack(keys, &local, dictionary.len());
    let data = pages.write_page(CompressedPage::new(
        Page::DataPage {
            buf: compress(&packed)?,
            num_values: rows,
            encoding: Encoding::RLE_DICTIONARY,
            def_level_encoding: Encoding::RLE,
            rep_level_encoding: Encoding::RLE,
            statistics: None,
        },
        packed.len(),
    ))?;

    let page = |page_type, encoding| PageEncodingStats { page_type, encoding, count: 1 };
    let metadata = ColumnChunkMetaData::builder(column)
        .set_encodings(vec![Encoding::PLAIN, Encoding::RLE, Encoding::RLE_DICTIONARY])
        .set_page_encoding_stats(vec![
            page(PageType::DICTIONARY_PAGE, Encoding::PLAIN),
            page(PageType::DATA_PAGE, Encoding::RLE_DICTIONARY),
        ])
        .set_compression(compression)
        .set_num_values(i64::from(rows))
        .set_total_compressed_size((words.compressed_size + data.compressed_size) as i64)
        .set_total_uncompressed_size((words.uncompressed_size + data.uncompressed_size) as i64)
        .set_dictionary_page_offset(Some(words.offset as i64))
        .set_data_page_offset(data.offset as i64)
        .build()?;
    let close = ColumnCloseResult {
        bytes_written: words.bytes_written + data.bytes_written,
        rows_written: u64::from(rows),
        metadata,
        bloom_filter: None,
        column_index: None,
        offset_index: None,
    };
    group.append_column(&Bytes::from(chunk.into_inner()?), close)
}

/// For each key its place in the dictionary, and the keys in the dictionary.
fn renumber(keys: &[u16]) -> (Vec<u16>, Vec<u16>) {
    const NEW: u16 = u16::MAX;
    let highest = keys.iter().copied().max().unwrap_or(0);
    let (mut local, mut dictionary) = (vec![NEW; usize::from(highest) + 1], Vec::new());
    for key in keys {
        let place = &mut local[usize::from(*key)];
        // The 65536th of a dictionary has the number that stands for new, so it is the last; no key is then new.
        if *place == NEW && dictionary.len() <= usize::from(NEW) {
            *place = dictionary.len() as u16;
            dictionary.push(*key);
        }
    }
    (local, dictionary)
}

/// The width, then one run of bit-packed places, the first in the lowest bits; the last group of eight is filled up.
fn pack(keys: &[u16], local: &[u16], values: usize) -> Vec<u8> {
    let width = (usize::BITS - values.saturating_sub(1).leading_zeros()).max(1);
    let groups = keys.len().div_ceil(8);
    let mut packed = Vec::with_capacity(16 + groups * width as usize);
    packed.push(width as u8);
    let mut header = (groups as u64) << 1 | 1;
    while header >= 0x80 {
        packed.push(header as u8 | 0x80);
        header >>= 7;
    }
    packed.push(header as u8);
    let end = packed.len() + groups * width as usize;
    let (mut bits, mut filled) = (0u64, 0);
    for key in keys {
        bits |= u64::from(local[usize::from(*key)]) << filled;
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
