// SPDX-License-Identifier: Apache-2.0
//! The header that a board puts in front of every fragment of an event, inside the RDMA message.
//! 40 bytes, little-endian, naturally aligned; both header and payload are under a CRC-32C, so a
//! fragment proves its own integrity wherever it is read from. Source: ours.
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

use crate::crc32c;

/// First four bytes of every fragment.
const MAGIC: [u8; 4] = *b"PSTF";
/// The only version there is.
const VERSION: u16 = 1;
/// Bytes of the header.
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
    /// Bytes behind the header.
    pub payload_len: u32,
    /// CRC-32C of those bytes.
    pub payload_crc: u32,
}

/// Why bytes are not a fragment, or not the one that was sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum FragmentError {
    /// Fewer bytes than a header.
    #[error("fragment header needs {HEADER_LEN} bytes, there are {available}")]
    Truncated {
        /// Bytes there are.
        available: usize,
    },
    /// Not a fragment at all.
    #[error("fragment begins with {found:02x?} instead of \"PSTF\": the slot holds something else")]
    BadMagic {
        /// First four bytes.
        found: [u8; 4],
    },
    /// A later format.
    #[error("fragment version {found}, this reader knows {VERSION}: update the reader or the board")]
    BadVersion {
        /// Version field.
        found: u16,
    },
    /// The header was damaged.
    #[error("fragment header CRC-32C is {found:#010x}, computed {computed:#010x}")]
    BadHeaderCrc {
        /// In the header.
        found: u32,
        /// Over the header.
        computed: u32,
    },
    /// The payload is shorter than the header says.
    #[error(
        "fragment payload of source {source_id} event {event_number} is {available} bytes, header says {expected}"
    )]
    PayloadLength {
        /// Board.
        source_id: u16,
        /// Event.
        event_number: u64,
        /// Header's length field.
        expected: u32,
        /// Bytes there are.
        available: usize,
    },
    /// The payload was damaged.
    #[error("fragment payload CRC-32C of source {source_id} event {event_number} is {computed:#010x}, header says {expected:#010x}")]
    PayloadCrc {
        /// Board.
        source_id: u16,
        /// Event.
        event_number: u64,
        /// Header's CRC field.
        expected: u32,
        /// Over the payload.
        computed: u32,
    },
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
        let le = |at: usize, size: usize| {
            data[at..at + size].iter().rev().fold(0u64, |value, byte| value << 8 | u64::from(*byte))
        };
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
