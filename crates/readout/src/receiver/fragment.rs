// SPDX-License-Identifier: Apache-2.0
//! What a message in a slot is: a fragment, or why it is none.
//! Promise: nothing is taken for a fragment whose header, length and CRC-32C are not right.
//! Source: the fragment header of `penstock_wire::fragment`.

use penstock_wire::fragment::{FragmentHeader, HEADER_LEN};
use penstock_wire::FragmentError;

use crate::builder::FragmentId;

/// Why a message is no fragment.
pub(super) enum Refused {
    Malformed,
    Crc,
}

/// Header, length and CRC-32C of a message of `byte_len` bytes, of which the slot may hold fewer. `payload_crc` is that of
/// the bytes behind the header if it is known; then only the header is read.
pub(super) fn read_fragment(
    message: &[u8],
    byte_len: u32,
    payload_crc: Option<u32>,
) -> Result<(FragmentId, u32), Refused> {
    let header = FragmentHeader::parse(message).map_err(|_| Refused::Malformed)?;
    if u64::from(byte_len) != HEADER_LEN as u64 + u64::from(header.payload_len) {
        return Err(Refused::Malformed);
    }
    match payload_crc {
        None => header.check_payload(&message[HEADER_LEN..]).map(|_| ()).map_err(|error| match error {
            FragmentError::PayloadCrc { .. } => Refused::Crc,
            _ => Refused::Malformed,
        }),
        Some(_) if message.len() < byte_len as usize => Err(Refused::Malformed),
        Some(crc) if crc != header.payload_crc => Err(Refused::Crc),
        Some(_) => Ok(()),
    }?;
    let FragmentHeader { source_id: source, event_number: event, timestamp_ns, .. } = header;
    Ok((FragmentId { event, source, timestamp_ns }, header.payload_crc))
}
