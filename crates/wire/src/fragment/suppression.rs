// SPDX-License-Identifier: Apache-2.0
//! Zero suppression of 16-bit samples: the model that `rtl/event/zero_suppression.sv` matches bit for bit, and the
//! decoder.
//!
//! ```text
//! words kept of block 0 | mask of block 0 | words of block 1 | mask of block 1 | ... | bytes u32, "PSTZ"
//! ```
//! A word is four samples, a block 64 words; bit j of a mask is set if word j is kept. Everything is little-endian. A
//! reader starts at the end: the trailer holds the original number of bytes, hence the numbers of words and blocks.

use alloc::vec::Vec;

/// Bytes of a word of four samples, of a mask, and of the trailer.
pub const SUPPRESSION_WORD: usize = 8;
/// Words that share a mask.
pub const SUPPRESSION_BLOCK: usize = 64;
const MAGIC: [u8; 4] = *b"PSTZ";

/// Pedestal and threshold of one sample.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Channel {
    /// Subtracted from the sample.
    pub pedestal: u16,
    /// A value that reaches it keeps its word.
    pub threshold: i16,
}

/// The contents of the gateware's table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ChannelTable {
    /// Samples of a beat, the columns: 4 at 64 bits, 32 at 512.
    pub lanes: usize,
    /// Beats that share a row.
    pub hold: usize,
    /// Row after row.
    pub channels: Vec<Channel>,
}

impl ChannelTable {
    /// That of sample `index` of a fragment.
    fn of(&self, index: usize) -> Channel {
        let rows = self.channels.len() / self.lanes;
        let row = index / self.lanes / self.hold.max(1) % rows;
        self.channels[row * self.lanes + index % self.lanes]
    }
}

/// Why bytes are not the output of zero suppression.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SuppressionError {
    /// The length is no number of words, or there is no trailer.
    #[error("{available} bytes; zero-suppressed data is whole words of 8 bytes with a trailer of 8")]
    Length {
        /// Bytes there are.
        available: usize,
    },
    /// The last four bytes.
    #[error("zero-suppressed data ends with {found:02x?} instead of \"PSTZ\": it was stored without suppression")]
    BadMagic {
        /// What stands there.
        found: [u8; 4],
    },
    /// Masks and words do not fit together.
    #[error("mask {mask:#018x} of block {block} does not fit: {why}")]
    Mask {
        /// Block, from 0.
        block: usize,
        /// Its mask.
        mask: u64,
        /// What is wrong.
        why: &'static str,
    },
    /// Words before the first block.
    #[error("{words} words in front of block 0; the trailer says {bytes} bytes")]
    Rest {
        /// Words that no mask speaks of.
        words: usize,
        /// Bytes by the trailer.
        bytes: u32,
    },
}

/// The gateware's output for a payload of samples.
///
/// # Panics
///
/// If the table has no whole row.
pub fn suppress(table: &ChannelTable, payload: &[u8]) -> Vec<u8> {
    assert!(table.lanes > 0 && table.channels.len() >= table.lanes, "the table has no row of {} samples", table.lanes);
    let mut out = Vec::with_capacity(payload.len() + payload.len() / 64 + 16);
    for (block, words) in payload.chunks(SUPPRESSION_BLOCK * SUPPRESSION_WORD).enumerate() {
        let mut mask = 0_u64;
        for (at, word) in words.chunks(SUPPRESSION_WORD).enumerate() {
            let first = (block * SUPPRESSION_BLOCK + at) * SUPPRESSION_WORD / 2;
            let mut values = [0_u8; SUPPRESSION_WORD];
            let mut stays = false;
            for (lane, sample) in word.chunks_exact(2).enumerate() {
                let channel = table.of(first + lane);
                let sample = u16::from_le_bytes([sample[0], sample[1]]);
                let difference = i32::from(sample) - i32::from(channel.pedestal);
                let value = difference.clamp(i16::MIN.into(), i16::MAX.into()) as i16;
                stays |= value >= channel.threshold;
                values[2 * lane..2 * lane + 2].copy_from_slice(&value.to_le_bytes());
            }
            if stays {
                mask |= 1 << at;
                out.extend_from_slice(&values);
            }
        }
        out.extend_from_slice(&mask.to_le_bytes());
    }
    out.extend_from_slice(&(payload.len() as u32).to_le_bytes());
    out.extend_from_slice(&MAGIC);
    out
}

/// The values of all samples, 0 where their word was left out.
///
/// # Errors
///
/// [`SuppressionError`], if the bytes are no output of [`suppress`].
pub fn expand(bytes: &[u8]) -> Result<Vec<i16>, SuppressionError> {
    if bytes.is_empty() || !bytes.len().is_multiple_of(SUPPRESSION_WORD) {
        return Err(SuppressionError::Length { available: bytes.len() });
    }
    let word = |index: usize| {
        let at = index * SUPPRESSION_WORD;
        u64::from_le_bytes(bytes[at..at + SUPPRESSION_WORD].try_into().expect("a word has 8 bytes"))
    };
    let mut left = bytes.len() / SUPPRESSION_WORD - 1;
    let trailer = word(left).to_le_bytes();
    let found = [trailer[4], trailer[5], trailer[6], trailer[7]];
    if found != MAGIC {
        return Err(SuppressionError::BadMagic { found });
    }
    let total = u32::from_le_bytes([trailer[0], trailer[1], trailer[2], trailer[3]]);
    let words = (total as usize).div_ceil(SUPPRESSION_WORD);
    let blocks = words.div_ceil(SUPPRESSION_BLOCK);
    if blocks > left {
        return Err(SuppressionError::Mask { block: left, mask: 0, why: "there are fewer masks than blocks" });
    }
    let mut values = alloc::vec![0_i16; total as usize / 2];
    for block in (0..blocks).rev() {
        let first = block * SUPPRESSION_BLOCK;
        let here = (words - first).min(SUPPRESSION_BLOCK);
        let Some(at) = left.checked_sub(1) else {
            return Err(SuppressionError::Mask { block, mask: 0, why: "it is missing" });
        };
        let mask = word(at);
        if here < SUPPRESSION_BLOCK && mask >> here != 0 {
            return Err(SuppressionError::Mask { block, mask, why: "it keeps words behind the end" });
        }
        let Some(begin) = at.checked_sub(mask.count_ones() as usize) else {
            return Err(SuppressionError::Mask { block, mask, why: "there are fewer words" });
        };
        let kept = (0..here).filter(|bit| mask >> bit & 1 == 1);
        for (bit, source) in kept.zip(begin..at) {
            for (lane, value) in word(source).to_le_bytes().chunks_exact(2).enumerate() {
                if let Some(place) = values.get_mut((first + bit) * 4 + lane) {
                    *place = i16::from_le_bytes([value[0], value[1]]);
                }
            }
        }
        left = begin;
    }
    match left {
        0 => Ok(values),
        words => Err(SuppressionError::Rest { words, bytes: total }),
    }
}
