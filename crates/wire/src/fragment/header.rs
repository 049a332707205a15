// SPDX-License-Identifier: Apache-2.0
//! The header of version 1: 40 bytes, little-endian, naturally aligned. Header and payload each have a CRC-32C.
//!
//! ```text
//! offset size field
//!      0    4 magic, the letters "PSTF"
//!      4    2 version, 1
//!      6    2 source id
//!      8    4 payload length in bytes
//!     12    4 CRC-32C of the payload
//!     16    8 event number
//!     24    8 timestamp, ns
//!     32    4 reserved, 0
//!     36    4 CRC-32C of bytes 0 .. 35
//! ```

use super::error::FragmentError;
use super::id::{le, FragmentId};
use crate::crc::crc32c;

/// First four bytes of every fragment.
pub(super) const MAGIC: [u8; 4] = *b"PSTF";
/// The version with length and CRC-32C of the payload in the header.
pub(super) const VERSION: u16 = 1;
/// Bytes of the header of version 1.
pub const HEADER_LEN: usize = 40;

/// Header of one fragment.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct FragmentHeader {
    /// Which board it comes from.
    pub source_id: u16,
    /// Event it belongs to.
    pub event_number: u64,
    /// Time of the event at the board, nanoseconds.
    pub timestamp_ns: u64,
    /// Bytes after the header.
    pub payload_len: u32,
    /// CRC-32C of those bytes.
    pub payload_crc: u32,
}

impl FragmentHeader {
    /// The header for `payload`, its length and CRC computed.
    ///
    /// # Panics
    /// When `payload` is 4 GiB or more, which no RDMA message carries.
    pub fn for_payload(source_id: u16, event_number: u64, timestamp_ns: u64, payload: &[u8]) -> Self {
        let payload_len = u32::try_from(payload.len()).expect("a fragment is below 4 GiB");
        FragmentHeader { source_id, event_number, timestamp_ns, payload_len, payload_crc: crc32c(payload) }
    }

    /// The header's bytes.
    pub fn to_bytes(&self) -> [u8; HEADER_LEN] {
        let mut data = [0; HEADER_LEN];
        data[0..4].copy_from_slice(&MAGIC);
        data[4..6].copy_from_slice(&VERSION.to_le_bytes());
        data[6..8].copy_from_slice(&self.source_id.to_le_bytes());
        data[8..12].copy_from_slice(&self.payload_len.to_le_bytes());
        data[12..16].copy_from_slice(&self.payload_crc.to_le_bytes());
        data[16..24].copy_from_slice(&self.event_number.to_le_bytes());
        data[24..32].copy_from_slice(&self.timestamp_ns.to_le_bytes());
        let crc = crc32c(&data[..36]);
        data[36..40].copy_from_slice(&crc.to_le_bytes());
        data
    }

    /// Reads and checks the header at the start of `data`; the payload is not looked at.
    ///
    /// # Errors
    /// Everything but the two payload errors.
    pub fn parse(data: &[u8]) -> Result<Self, FragmentError> {
        let data = data.get(..HEADER_LEN).ok_or(FragmentError::Truncated { available: data.len() })?;
        let le = |at, size| le(data, at, size);
        if data[..4] != MAGIC {
            return Err(FragmentError::BadMagic { found: [data[0], data[1], data[2], data[3]] });
        }
        if le(4, 2) != u64::from(VERSION) {
            return Err(FragmentError::BadVersion { found: le(4, 2) as u16 });
        }
        let (found, computed) = (le(36, 4) as u32, crc32c(&data[..36]));
        if found != computed {
            return Err(FragmentError::BadHeaderCrc { found, computed });
        }
        Ok(FragmentHeader {
            source_id: le(6, 2) as u16,
            payload_len: le(8, 4) as u32,
            payload_crc: le(12, 4) as u32,
            event_number: le(16, 8),
            timestamp_ns: le(24, 8),
        })
    }

    /// The identity of the fragment.
    pub fn id(&self) -> FragmentId {
        let &FragmentHeader { source_id, event_number, timestamp_ns, .. } = self;
        FragmentId { source_id, event_number, timestamp_ns, trigger_type: 0 }
    }

    /// Takes the payload out of the bytes that follow the header, and checks length and CRC.
    ///
    /// # Errors
    /// `PayloadLength` or `PayloadCrc`.
    pub fn check_payload<'a>(&self, behind: &'a [u8]) -> Result<&'a [u8], FragmentError> {
        let &FragmentHeader { source_id, event_number, payload_len, payload_crc, .. } = self;
        let payload = behind.get(..payload_len as usize).ok_or(FragmentError::PayloadLength {
            source_id,
            event_number,
            expected: payload_len,
            available: behind.len(),
        })?;
        match crc32c(payload) {
            computed if computed == payload_crc => Ok(payload),
            computed => Err(FragmentError::PayloadCrc { source_id, event_number, expected: payload_crc, computed }),
        }
    }
}
