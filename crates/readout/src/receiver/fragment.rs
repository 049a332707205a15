// SPDX-License-Identifier: Apache-2.0
//! Classifies the message in a slot: a fragment, or the reason why it is not one.
//! Promise: only a message with correct header, length and CRC-32C is accepted as a fragment.
//! Source: the fragment header of `penstock_wire::fragment`.

use penstock_wire::fragment::{FragmentHeader, HEADER_LEN};
use penstock_wire::{FragmentError, FragmentMessage};

use super::slots::Place;
use super::storing::Held;
use crate::builder::FragmentId;

/// Why a message is no fragment.
pub(super) enum Refused {
    Malformed(FragmentError),
    Crc,
}

/// Header, length and CRC-32C of a message of `byte_len` bytes in `place`, of which the slot may hold fewer.
/// `payload_crc` is that of the bytes after a version 1 header, if known; then only the header is read.
pub(super) fn read_fragment(
    message: &[u8],
    place: Place,
    byte_len: u32,
    payload_crc: Option<u32>,
) -> Result<(FragmentId, Held), Refused> {
    let whole = message.get(..byte_len as usize).ok_or(FragmentError::Truncated { available: message.len() });
    let (id, held) = match payload_crc {
        None => whole.and_then(FragmentMessage::parse).map(|found| {
            let parts = found.parts.len() as u8;
            let (at, len) = (found.payload_at as u8, found.payload.len() as u32);
            let trigger_type = found.id.trigger_type;
            (found.id, Held { place, crc32c: found.payload_crc, at, len, trigger_type, parts })
        }),
        Some(computed) => whole.and_then(|whole| header_alone(whole, computed)).map(|header| {
            let (at, len) = (HEADER_LEN as u8, header.payload_len);
            (header.id(), Held { place, crc32c: header.payload_crc, at, len, trigger_type: 0, parts: 0 })
        }),
    }
    .map_err(|error| match error {
        FragmentError::PayloadCrc { .. } | FragmentError::MessageCrc { .. } => Refused::Crc,
        other => Refused::Malformed(other),
    })?;
    let (source, event, timestamp_ns) = (id.source_id, id.event_number, id.timestamp_ns);
    Ok((FragmentId { event, source, timestamp_ns }, held))
}

/// The header of version 1 of a message whose other bytes have this CRC-32C.
fn header_alone(message: &[u8], computed: u32) -> Result<FragmentHeader, FragmentError> {
    let header = FragmentHeader::parse(message)?;
    let FragmentHeader { source_id, event_number, payload_len: expected, .. } = header;
    let available = message.len() - HEADER_LEN;
    if available as u64 != u64::from(expected) {
        return Err(FragmentError::PayloadLength { source_id, event_number, expected, available });
    }
    if computed != header.payload_crc {
        let expected = header.payload_crc;
        return Err(FragmentError::PayloadCrc { source_id, event_number, expected, computed });
    }
    Ok(header)
}
