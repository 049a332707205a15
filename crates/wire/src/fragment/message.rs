// SPDX-License-Identifier: Apache-2.0
//! A whole fragment of either version as it is stored in a slot: its identity, the range of its payload, its parts.
//! Gateware makes version 2 while the payload arrives, so length and CRC-32C are in a trailer. Source: ours.
//!
//! ```text
//! header, 32 bytes                            trailer, 16 bytes
//! offset size field                           offset size field
//!      0    4 magic, the letters "PSTF"            0    4 payload length in bytes
//!      4    2 version, 2                           4    1 entries of the table of parts, 0 .. 16
//!      6    2 source id                            5    1 reserved, 0
//!      8    8 event number                         6    2 flags of all parts (`PartFlags`)
//!     16    8 timestamp, ns                        8    4 magic, the letters "PSTE"
//!     24    2 trigger type                        12    4 CRC-32C of everything before it
//!     26    6 reserved, 0
//!
//! header | payload | zeros up to a multiple of 8 | table of parts (`parts`) | trailer
//! ```

use alloc::vec::Vec;

use super::error::FragmentError;
use super::header::{FragmentHeader, HEADER_LEN, MAGIC, VERSION};
use super::id::{le, FragmentId};
use super::part::{Part, PartFlags, MAX_PARTS, PART_ALIGN, PART_LEN};
use super::parts::Parts;
use crate::crc::crc32c;
use crate::crc::crc32c_combine;

/// The version with length and CRC-32C in a trailer.
pub const VERSION_2: u16 = 2;
/// Bytes of the header of version 2.
pub const HEADER_2_LEN: usize = 32;
/// Bytes of the trailer.
pub const TRAILER_LEN: usize = 16;
/// First bytes of the word with the CRC-32C.
const TRAILER_MAGIC: [u8; 4] = *b"PSTE";

/// A fragment that has been checked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FragmentMessage<'a> {
    /// Whose it is.
    pub id: FragmentId,
    /// Its bytes; those of several inputs follow each other, see [`Self::parts`].
    pub payload: &'a [u8],
    /// Bytes before the payload.
    pub payload_at: usize,
    /// CRC-32C of the payload.
    pub payload_crc: u32,
    /// The flags of all parts, set by the board; none in version 1.
    pub flags: PartFlags,
    /// The table of parts.
    pub parts: Parts<'a>,
}

/// Payload and the bytes after it up to the table of parts.
const fn aligned(payload_len: usize) -> usize {
    payload_len.next_multiple_of(PART_ALIGN)
}

/// Bytes of a version 2 message with this payload length and number of table entries.
pub const fn message_2_len(payload_len: usize, parts: usize) -> usize {
    HEADER_2_LEN + aligned(payload_len) + parts * PART_LEN + TRAILER_LEN
}

impl FragmentId {
    /// The identity of the fragment at the start of `data`; version 1: the header's CRC-32C is checked, version 2:
    /// nothing is.
    ///
    /// # Errors
    /// `Truncated`, `BadMagic`, `BadVersion`, `BadHeaderCrc`.
    pub fn peek(data: &[u8]) -> Result<FragmentId, FragmentError> {
        if version_of(data)? != VERSION_2 {
            return FragmentHeader::parse(data).map(|header| header.id());
        }
        let data = data.get(..HEADER_2_LEN).ok_or(FragmentError::Truncated { available: data.len() })?;
        let (source_id, trigger_type) = (le(data, 6, 2) as u16, le(data, 24, 2) as u16);
        Ok(FragmentId { source_id, event_number: le(data, 8, 8), timestamp_ns: le(data, 16, 8), trigger_type })
    }

    /// The message of version 2 with this payload and table, as the gateware makes it. `flags` are those of all parts.
    ///
    /// # Panics
    /// When `payload` is 4 GiB or more, or there are more than [`MAX_PARTS`] parts.
    pub fn message_2(&self, payload: &[u8], flags: PartFlags, parts: &[Part]) -> Vec<u8> {
        assert!(parts.len() <= MAX_PARTS, "{} parts, {MAX_PARTS} at most", parts.len());
        let payload_len = u32::try_from(payload.len()).expect("a fragment is below 4 GiB");
        let mut data = Vec::with_capacity(message_2_len(payload.len(), parts.len()));
        data.extend_from_slice(&MAGIC);
        data.extend_from_slice(&VERSION_2.to_le_bytes());
        data.extend_from_slice(&self.source_id.to_le_bytes());
        data.extend_from_slice(&self.event_number.to_le_bytes());
        data.extend_from_slice(&self.timestamp_ns.to_le_bytes());
        data.extend_from_slice(&self.trigger_type.to_le_bytes());
        data.resize(HEADER_2_LEN, 0);
        data.extend_from_slice(payload);
        data.resize(HEADER_2_LEN + aligned(payload.len()), 0);
        parts.iter().for_each(|part| data.extend_from_slice(&part.to_bytes()));
        data.extend_from_slice(&payload_len.to_le_bytes());
        data.extend_from_slice(&[parts.len() as u8, 0]);
        data.extend_from_slice(&flags.0.to_le_bytes());
        data.extend_from_slice(&TRAILER_MAGIC);
        let crc = crc32c(&data);
        data.extend_from_slice(&crc.to_le_bytes());
        data
    }
}

/// The version field after the magic.
fn version_of(data: &[u8]) -> Result<u16, FragmentError> {
    let start = data.get(..6).ok_or(FragmentError::Truncated { available: data.len() })?;
    if start[..4] != MAGIC {
        return Err(FragmentError::BadMagic { found: [start[0], start[1], start[2], start[3]] });
    }
    match le(start, 4, 2) as u16 {
        found @ (VERSION | VERSION_2) => Ok(found),
        found => Err(FragmentError::BadVersion { found }),
    }
}

impl<'a> FragmentMessage<'a> {
    /// Reads a whole message and checks all of it: lengths, CRC-32C, table of parts.
    ///
    /// # Errors
    /// Any [`FragmentError`]. In version 2, `MessageCrc` covers any damage that did not change the lengths.
    pub fn parse(message: &'a [u8]) -> Result<FragmentMessage<'a>, FragmentError> {
        if version_of(message)? == VERSION_2 {
            return Self::parse_2(message);
        }
        let header = FragmentHeader::parse(message)?;
        let behind = &message[HEADER_LEN..];
        let payload = header.check_payload(behind)?;
        let id = header.id();
        if behind.len() > payload.len() {
            return Err(FragmentError::PayloadLength {
                source_id: id.source_id,
                event_number: id.event_number,
                expected: header.payload_len,
                available: behind.len(),
            });
        }
        let (payload_crc, payload_at) = (header.payload_crc, HEADER_LEN);
        let (flags, parts) = (PartFlags::default(), Parts::default());
        Ok(FragmentMessage { id, payload, payload_at, payload_crc, flags, parts })
    }

    fn parse_2(message: &'a [u8]) -> Result<FragmentMessage<'a>, FragmentError> {
        let id = FragmentId::peek(message)?;
        let Some(trailer_at) = message.len().checked_sub(TRAILER_LEN).filter(|&at| at >= HEADER_2_LEN) else {
            return Err(FragmentError::Truncated { available: message.len() });
        };
        let (front, trailer) = message.split_at(trailer_at);
        if trailer[8..12] != TRAILER_MAGIC {
            let found = [trailer[8], trailer[9], trailer[10], trailer[11]];
            return Err(FragmentError::BadTrailer { event_number: id.event_number, found });
        }
        let (payload_len, parts) = (le(trailer, 0, 4) as u32, usize::from(trailer[4]));
        let expected = message_2_len(payload_len as usize, parts);
        if expected != message.len() {
            let (event_number, available) = (id.event_number, message.len());
            return Err(FragmentError::MessageLength { event_number, payload_len, parts, expected, available });
        }
        // The payload is read once: the message's CRC-32C follows from its parts'.
        let (payload, rest) = front[HEADER_2_LEN..].split_at(payload_len as usize);
        let payload_crc = crc32c(payload);
        let last = &message[HEADER_2_LEN + payload.len()..message.len() - 4];
        let computed = crc32c_combine(crc32c(&front[..HEADER_2_LEN]), payload_crc, payload.len());
        let computed = crc32c_combine(computed, crc32c(last), last.len());
        let found = le(trailer, 12, 4) as u32;
        if found != computed {
            return Err(FragmentError::MessageCrc { event_number: id.event_number, found, computed });
        }
        let table = &rest[rest.len() - parts * PART_LEN..];
        let (parts, flags) = (Parts::parse(table, payload_len)?, PartFlags(le(trailer, 6, 2) as u16));
        Ok(FragmentMessage { id, payload, payload_at: HEADER_2_LEN, payload_crc, flags, parts })
    }
}
