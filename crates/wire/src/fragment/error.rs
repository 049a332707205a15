// SPDX-License-Identifier: Apache-2.0
//! Why bytes are not a fragment; each variant carries the offending value.

use super::part::{Part, MAX_PARTS, PART_LEN};

/// Why bytes are not a fragment, or not the one that was sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum FragmentError {
    /// Fewer bytes than a header.
    #[error("fragment header needs 40 bytes, in version 2 32 and a trailer of 16; there are {available}")]
    Truncated {
        /// Bytes there are.
        available: usize,
    },
    /// Not a fragment at all.
    #[error("fragment begins with {found:02x?} instead of \"PSTF\": no fragment, or not at the start of its slot")]
    BadMagic {
        /// First four bytes.
        found: [u8; 4],
    },
    /// A later format.
    #[error("fragment version {found}, this reader knows 1 and 2: update the reader or the board")]
    BadVersion {
        /// Version field.
        found: u16,
    },
    /// The header was damaged.
    #[error("fragment header CRC-32C is {found:#010x}, computed {computed:#010x}")]
    BadHeaderCrc {
        /// Value found in the header.
        found: u32,
        /// The checksum over the header.
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
        /// The CRC over the payload.
        computed: u32,
    },
    /// Version 2 does not end with a trailer: the message is cut, or something else wrote into the slot.
    #[error(
        "fragment of event {event_number} has {found:02x?} in its trailer instead of \"PSTE\": the message was cut"
    )]
    BadTrailer {
        /// Event, if the header is right.
        event_number: u64,
        /// The trailer's magic.
        found: [u8; 4],
    },
    /// The trailer does not describe this message.
    #[error(
        "fragment of event {event_number} has {available} bytes; its trailer says {payload_len} bytes of payload and \
         {parts} parts, which make {expected}"
    )]
    MessageLength {
        /// Event, if the header is right.
        event_number: u64,
        /// Trailer's length field.
        payload_len: u32,
        /// Trailer's number of entries.
        parts: usize,
        /// Bytes of such a message.
        expected: usize,
        /// Bytes there are.
        available: usize,
    },
    /// A message of version 2 was damaged.
    #[error(
        "fragment of event {event_number}: CRC-32C of the message is {computed:#010x}, its trailer says {found:#010x}"
    )]
    MessageCrc {
        /// Event, if the header is right.
        event_number: u64,
        /// Value found in the trailer.
        found: u32,
        /// The CRC over the message.
        computed: u32,
    },
    /// Not a table of parts.
    #[error("table of parts has {bytes} bytes: entries have {PART_LEN}, and there are {MAX_PARTS} at most")]
    BadTable {
        /// Bytes of the table.
        bytes: usize,
    },
    /// An entry of the table of parts contradicts the payload or the entry before.
    #[error(
        "entry {entry} of the table of parts, input {}, has bytes {}..{} of {payload_len}: {what}",
        part.input, part.offset, u64::from(part.offset) + u64::from(part.len)
    )]
    BadPart {
        /// The entry, from 0.
        entry: usize,
        /// The part that was read.
        part: Part,
        /// The rule it breaks.
        what: &'static str,
        /// Bytes of the payload.
        payload_len: u32,
    },
    /// The parts are not the whole payload.
    #[error("the parts end at byte {end} of a payload of {payload_len}: they must make all of it")]
    PartsEnd {
        /// Where the last part ends, at the next multiple of 8.
        end: u64,
        /// Bytes of the payload.
        payload_len: u32,
    },
}
