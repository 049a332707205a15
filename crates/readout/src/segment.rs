// SPDX-License-Identifier: Apache-2.0
//! A row group on disk: a whole Parquet file of one row group, preceded by a frame with its length and CRC.
//! Promise: the footer of the enclosing file can be made from the frames alone; a torn frame is detected; every byte of a
//! file has a checksum.
//! Source: ours. Parquet finds column chunks by offsets in the footer, so readers never see the bytes between them
//! (apache/parquet-format, "File format").
//!
//! ```text
//! "PAR1" | frame, segment | frame, segment | ... | seal | footer of all row groups, its length, "PAR1"
//!          32 B   "PAR1" column chunks, footer of this row group, its length, "PAR1"
//!
//! frame, little-endian: magic 8 "PSTKSEG1" | ordinal u32 | CRC-32C of the segment u32 | its length u64 | 0 u32 |
//!                       CRC-32C of the 28 bytes before u32
//! seal: a frame of the footer, with its length and "PAR1", magic "PSTKEND1"; its ordinal is the number of row groups
//! ```

use bytes::Bytes;
use parquet::arrow::ArrowWriter;
use parquet::errors::ParquetError;
use parquet::file::metadata::{
    FileMetaData, ParquetMetaData, ParquetMetaDataReader, ParquetMetaDataWriter, RowGroupMetaData,
};
use parquet::file::properties::WriterProperties;

use arrow_array::RecordBatch;
use penstock_wire::crc32c;

/// First and last bytes of every Parquet file.
pub(crate) const PARQUET_MAGIC: [u8; 4] = *b"PAR1";
/// Bytes of a frame.
pub(crate) const FRAME_LEN: usize = 32;

const FRAME_MAGIC: [u8; 8] = *b"PSTKSEG1";
const SEAL_MAGIC: [u8; 8] = *b"PSTKEND1";

/// The frame before a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Frame {
    /// Which row group of the file it is, from 0.
    pub ordinal: u32,
    pub segment_crc: u32,
    pub segment_len: u64,
}

impl Frame {
    pub fn of(ordinal: u32, segment: &[u8]) -> Frame {
        Frame { ordinal, segment_crc: crc32c(segment), segment_len: segment.len() as u64 }
    }

    pub fn to_bytes(self) -> [u8; FRAME_LEN] {
        self.with_magic(FRAME_MAGIC)
    }

    /// None if these are not the bytes of a frame.
    pub fn parse(bytes: &[u8; FRAME_LEN]) -> Option<Frame> {
        Frame::after_magic(bytes, FRAME_MAGIC)
    }

    /// None if these are not the bytes of a seal, the frame of a footer.
    pub fn parse_seal(bytes: &[u8; FRAME_LEN]) -> Option<Frame> {
        Frame::after_magic(bytes, SEAL_MAGIC)
    }

    fn with_magic(self, magic: [u8; 8]) -> [u8; FRAME_LEN] {
        let mut bytes = [0; FRAME_LEN];
        bytes[..8].copy_from_slice(&magic);
        bytes[8..12].copy_from_slice(&self.ordinal.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.segment_crc.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.segment_len.to_le_bytes());
        let crc = crc32c(&bytes[..28]);
        bytes[28..].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    fn after_magic(bytes: &[u8; FRAME_LEN], magic: [u8; 8]) -> Option<Frame> {
        let u32_at = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let good = bytes[..8] == magic && u32_at(28) == crc32c(&bytes[..28]);
        let segment_len = u64::from(u32_at(16)) | u64::from(u32_at(20)) << 32;
        good.then(|| Frame { ordinal: u32_at(8), segment_crc: u32_at(12), segment_len })
    }
}

/// A batch as a segment.
pub(crate) fn encode(batch: &RecordBatch, properties: &WriterProperties) -> Result<Vec<u8>, ParquetError> {
    let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), Some(properties.clone()))?;
    writer.write(batch)?;
    writer.into_inner()
}

/// The footer's view of the row groups written so far.
#[derive(Debug, Default)]
pub(crate) struct Footer {
    /// That of the first segment: schema, creator, keys and values.
    file: Option<FileMetaData>,
    row_groups: Vec<RowGroupMetaData>,
}

impl Footer {
    pub fn row_groups(&self) -> usize {
        self.row_groups.len()
    }

    pub fn rows(&self) -> u64 {
        self.row_groups.iter().map(|group| group.num_rows().max(0) as u64).sum()
    }

    /// Takes the row groups of a segment at `offset` of the file.
    pub fn add(&mut self, segment: Bytes, offset: u64) -> Result<(), ParquetError> {
        let metadata = ParquetMetaDataReader::new().parse_and_finish(&segment)?;
        for group in metadata.row_groups() {
            let ordinal = self.row_groups.len() as i32;
            self.row_groups.push(moved(group, offset as i64, ordinal)?);
        }
        self.file.get_or_insert_with(|| metadata.file_metadata().clone());
        Ok(())
    }

    /// The bytes that make a Parquet file of the segments: seal and footer. None as long as there is no segment.
    pub fn to_bytes(&self) -> Result<Option<Vec<u8>>, ParquetError> {
        let Some(footer) = self.unsealed()? else { return Ok(None) };
        let seal = Frame::of(self.row_groups.len() as u32, &footer).with_magic(SEAL_MAGIC);
        Ok(Some([&seal[..], &footer].concat()))
    }

    /// The footer alone, with its length and magic.
    pub fn unsealed(&self) -> Result<Option<Vec<u8>>, ParquetError> {
        let Some(first) = &self.file else {
            return Ok(None);
        };
        let file = FileMetaData::new(
            first.version(),
            self.rows() as i64,
            first.created_by().map(str::to_owned),
            first.key_value_metadata().cloned(),
            first.schema_descr_ptr(),
            first.column_orders().cloned(),
        );
        let mut bytes = Vec::new();
        ParquetMetaDataWriter::new(&mut bytes, &ParquetMetaData::new(file, self.row_groups.clone())).finish()?;
        Ok(Some(bytes))
    }
}

/// A row group `by` bytes further on in a file.
fn moved(group: &RowGroupMetaData, by: i64, ordinal: i32) -> Result<RowGroupMetaData, ParquetError> {
    let columns = group.columns().iter().map(|column| {
        let dictionary = column.dictionary_page_offset().map(|at| at + by);
        let data = column.data_page_offset() + by;
        column.clone().into_builder().set_data_page_offset(data).set_dictionary_page_offset(dictionary).build()
    });
    let columns = columns.collect::<Result<Vec<_>, _>>()?;
    let start = group.file_offset().map(|at| at + by).unwrap_or(by);
    group.clone().into_builder().set_column_metadata(columns).set_file_offset(start).set_ordinal(ordinal).build()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_read_back_and_no_flipped_bit_passes() {
        let frame = Frame::of(7, b"segment");
        let bytes = frame.to_bytes();
        assert_eq!(Frame::parse(&bytes), Some(frame));
        for bit in 0..FRAME_LEN * 8 {
            let mut damaged = bytes;
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert_eq!((Frame::parse(&damaged), Frame::parse_seal(&damaged)), (None, None), "bit {bit}");
        }
    }
}
