// SPDX-License-Identifier: Apache-2.0
//! The announcement of a board that is read by its server (pull): which events it has, where their fragments lie, and
//! how long they are. A server that knows this requests each fragment by RDMA READ. Little-endian, as fragments are.
//! Promise: what is parsed and written again is the same; no length or address of it overflows. Source: ours.
//!
//! ```text
//! offset size field
//!      0    4 magic, the letters "PSTA"
//!      4    2 version, 1
//!      6    2 number n of events, 1 .. 120
//!      8    8 number of the first event; the others follow it
//!     16    8 address of the first event's fragment
//!     24    4 key of the memory region
//!     28    4 stride: bytes from one fragment's address to the next
//!     32   4n length of each fragment in bytes, at most the stride; 0: the board has nothing of this event
//! ```

use alloc::vec::Vec;

use crate::bytesio::{le16, le32, le64};

/// First four bytes of every announcement.
const MAGIC: [u8; 4] = *b"PSTA";
const VERSION: u16 = 1;
/// Bytes before the lengths.
pub const ANNOUNCEMENT_HEADER_LEN: usize = 32;
/// Bytes of a length.
const LENGTH_LEN: usize = 4;

/// Bytes of a slot of the ring that a board writes its announcements to, and slots of that ring.
pub const ANNOUNCEMENT_SLOT_LEN: usize = 512;
/// Slots of that ring.
pub const ANNOUNCEMENT_SLOTS: u32 = 16;
/// Most events of one announcement, which fill a slot.
pub const ANNOUNCEMENT_EVENTS: usize = (ANNOUNCEMENT_SLOT_LEN - ANNOUNCEMENT_HEADER_LEN) / LENGTH_LEN;

/// READs that a server may have outstanding at a board. A board may fill a slot again when so many READs have come
/// after the one of that slot, because the first of them is answered then and never repeated.
pub const PULL_READS: u8 = 16;

/// Why bytes are not an announcement; each variant carries the offending value.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum AnnouncementError {
    /// Fewer bytes than the header.
    #[error("announcement of {available} bytes: its header alone has {ANNOUNCEMENT_HEADER_LEN}")]
    Truncated {
        /// Bytes there are.
        available: usize,
    },
    /// Not an announcement at all.
    #[error("announcement begins with {found:02x?} instead of \"PSTA\": does the board send fragments (no --pull)?")]
    BadMagic {
        /// First four bytes.
        found: [u8; 4],
    },
    /// A later format.
    #[error("announcement version {found}, this reader has 1: update the reader or the board")]
    BadVersion {
        /// Version field.
        found: u16,
    },
    /// No event, or more than a slot holds.
    #[error("announcement of {count} events: allowed are 1 to {ANNOUNCEMENT_EVENTS}")]
    BadCount {
        /// Number of events.
        count: u16,
    },
    /// The lengths are not those of all events.
    #[error("announcement of {count} events has {available} bytes: it needs {expected}")]
    BadLength {
        /// Number of events.
        count: u16,
        /// Bytes of such an announcement.
        expected: usize,
        /// Bytes there are.
        available: usize,
    },
    /// The last event's number exceeds 64 bits.
    #[error("announcement of {count} events from {first_event} on: there are no such events")]
    NoSuchEvent {
        /// First event.
        first_event: u64,
        /// Number of events.
        count: u16,
    },
    /// The last fragment ends beyond the address space.
    #[error("announcement of {count} fragments at {address:#x}, {stride} bytes apart: they pass the last address")]
    PastEnd {
        /// Address of the first fragment.
        address: u64,
        /// Bytes from one fragment to the next.
        stride: u32,
        /// Number of events.
        count: u16,
    },
    /// A fragment reaches into the next one.
    #[error("announcement of event {event}: {length} bytes, but the next fragment begins after {stride}")]
    Overlap {
        /// The event.
        event: u64,
        /// Its fragment's bytes.
        length: u32,
        /// Bytes from one fragment to the next.
        stride: u32,
    },
}

/// An announcement that has been checked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Announcement<'a> {
    /// Number of the first event.
    pub first_event: u64,
    /// Address of its fragment.
    pub address: u64,
    /// Key of the memory region.
    pub rkey: u32,
    /// Bytes from one fragment to the next.
    pub stride: u32,
    lengths: &'a [u8],
}

/// One event of an announcement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Announced {
    /// Number of the event.
    pub event: u64,
    /// Address of its fragment.
    pub address: u64,
    /// Bytes of it; 0: the board has nothing of this event.
    pub length: u32,
}

impl<'a> Announcement<'a> {
    /// Checks an announcement.
    ///
    /// # Errors
    /// [`AnnouncementError`].
    pub fn parse(data: &'a [u8]) -> Result<Announcement<'a>, AnnouncementError> {
        let available = data.len();
        let (header, lengths) =
            data.split_at_checked(ANNOUNCEMENT_HEADER_LEN).ok_or(AnnouncementError::Truncated { available })?;
        if header[..4] != MAGIC {
            return Err(AnnouncementError::BadMagic { found: [header[0], header[1], header[2], header[3]] });
        }
        let (found, count) = (le16(header, 4), le16(header, 6));
        if found != VERSION {
            return Err(AnnouncementError::BadVersion { found });
        }
        if !(1..=ANNOUNCEMENT_EVENTS).contains(&count.into()) {
            return Err(AnnouncementError::BadCount { count });
        }
        let expected = announcement_len(count.into());
        if available != expected {
            return Err(AnnouncementError::BadLength { count, expected, available });
        }
        let (first_event, address) = (le64(header, 8), le64(header, 16));
        let announcement =
            Announcement { first_event, address, rkey: le32(header, 24), stride: le32(header, 28), lengths };
        announcement.check(count)?;
        Ok(announcement)
    }

    fn check(&self, count: u16) -> Result<(), AnnouncementError> {
        let &Announcement { first_event, address, stride, .. } = self;
        if first_event.checked_add(count.into()).is_none() {
            return Err(AnnouncementError::NoSuchEvent { first_event, count });
        }
        if address.checked_add(u64::from(count) * u64::from(stride)).is_none() {
            return Err(AnnouncementError::PastEnd { address, stride, count });
        }
        match self.iter().find(|one| one.length > stride) {
            Some(Announced { event, length, .. }) => Err(AnnouncementError::Overlap { event, length, stride }),
            None => Ok(()),
        }
    }

    /// Number of events.
    #[allow(clippy::len_without_is_empty, reason = "an announcement is never empty")]
    pub fn len(&self) -> usize {
        self.lengths.len() / LENGTH_LEN
    }

    /// Its events in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Announced> + 'a {
        let &Announcement { first_event, address, stride, lengths, .. } = self;
        lengths.chunks_exact(LENGTH_LEN).enumerate().map(move |(at, length)| Announced {
            event: first_event + at as u64,
            address: address + at as u64 * u64::from(stride),
            length: le32(length, 0),
        })
    }
}

/// Bytes of an announcement of this number of events.
pub const fn announcement_len(events: usize) -> usize {
    ANNOUNCEMENT_HEADER_LEN + events * LENGTH_LEN
}

/// The bytes of an announcement: `first` is its first event's number and its fragment's address, `lengths` are the
/// fragments' bytes.
///
/// # Panics
/// When there are no lengths, or more than [`ANNOUNCEMENT_EVENTS`].
pub fn announcement(first: (u64, u64), rkey: u32, stride: u32, lengths: &[u32]) -> Vec<u8> {
    let count = lengths.len();
    assert!((1..=ANNOUNCEMENT_EVENTS).contains(&count), "{count} events, 1 to {ANNOUNCEMENT_EVENTS} are allowed");
    let mut data = Vec::with_capacity(announcement_len(count));
    data.extend_from_slice(&MAGIC);
    data.extend_from_slice(&VERSION.to_le_bytes());
    data.extend_from_slice(&(count as u16).to_le_bytes());
    data.extend_from_slice(&first.0.to_le_bytes());
    data.extend_from_slice(&first.1.to_le_bytes());
    data.extend_from_slice(&rkey.to_le_bytes());
    data.extend_from_slice(&stride.to_le_bytes());
    lengths.iter().for_each(|length| data.extend_from_slice(&length.to_le_bytes()));
    data
}
