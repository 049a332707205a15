// SPDX-License-Identifier: Apache-2.0
//! The announcement of a board that is read by its server (pull): which events it has, where their fragments lie, and
//! how long they are. A server that knows this requests each fragment by RDMA READ. Little-endian, as fragments are.
//! Promise: what is parsed and written again is the same; no length or address of it overflows. Source: ours.
//!
//! ```text
//! offset size field
//!      0    4 magic, the letters "PSTA"
//!      4    2 version, 2
//!      6    1 number n of fragments, 1 .. 96
//!      7    1 fragments that lists of successors have named over this connection, modulo 256
//!      8    8 number of an event: the first fragment is of this one, or of one that is skipped to
//!     16    8 address of the first fragment
//!     24    4 key of the memory region
//!     28    4 stride: bytes from one fragment's address to the next
//!     32   5n entries, one for each fragment
//!
//! An entry:  0    1 events without a fragment between the fragment before and this one
//!            1    4 length in bytes, at most the stride without the list after it; 0: the board has nothing of this event
//! ```
//!
//! In the board's memory, a list of two entries follows each fragment and is read with it: the fragments' successors, that
//! is those that follow all that were named before. An entry of length 0 names nothing there.

use alloc::vec::Vec;

use crate::bytesio::{le16, le32, le64};

/// First four bytes of every announcement.
const MAGIC: [u8; 4] = *b"PSTA";
const VERSION: u16 = 2;
/// Bytes before the entries.
pub const ANNOUNCEMENT_HEADER_LEN: usize = 32;
/// Bytes of an entry.
const ENTRY_LEN: usize = 5;

/// Successors that are read with a fragment: more would cost more than 1 % of a fragment of 1 kB, and with one a board
/// that has fallen behind could not catch up.
pub const SUCCESSORS: usize = 2;
/// Bytes of their list.
pub const SUCCESSORS_LEN: usize = SUCCESSORS * ENTRY_LEN;

/// Bytes of a slot of the ring that a board writes its announcements to, and slots of that ring.
pub const ANNOUNCEMENT_SLOT_LEN: usize = 512;
/// Slots of that ring.
pub const ANNOUNCEMENT_SLOTS: u32 = 16;
/// Most fragments of one announcement, which fill a slot up to three bytes.
pub const ANNOUNCEMENT_EVENTS: usize = (ANNOUNCEMENT_SLOT_LEN - ANNOUNCEMENT_HEADER_LEN) / ENTRY_LEN;

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
    #[error("announcement version {found}, this reader has 2: update the reader or the board")]
    BadVersion {
        /// Version field.
        found: u16,
    },
    /// No fragment, or more than a slot holds.
    #[error("announcement of {count} fragments: allowed are 1 to {ANNOUNCEMENT_EVENTS}")]
    BadCount {
        /// Number of fragments.
        count: u8,
    },
    /// The entries are not those of all fragments.
    #[error("announcement of {count} fragments has {available} bytes: it needs {expected}")]
    BadLength {
        /// Number of fragments.
        count: u8,
        /// Bytes of such an announcement.
        expected: usize,
        /// Bytes there are.
        available: usize,
    },
    /// An event's number exceeds 64 bits.
    #[error("announcement of {skipped} events after event {event}, and another one: there is no such event")]
    NoSuchEvent {
        /// The event before.
        event: u64,
        /// Events that are skipped.
        skipped: u8,
    },
    /// A fragment ends beyond the address space.
    #[error(
        "announcement of a fragment at {address:#x}, {stride} bytes after it is the next one: past the last address"
    )]
    PastEnd {
        /// Address of the fragment.
        address: u64,
        /// Bytes from one fragment to the next.
        stride: u32,
    },
    /// A fragment with the list after it reaches into the next one.
    #[error(
        "announcement of event {event}: {length} bytes and {SUCCESSORS_LEN} of successors, but the next fragment begins \
         after {stride}"
    )]
    Overlap {
        /// The event.
        event: u64,
        /// Its fragment's bytes.
        length: u32,
        /// Bytes from one fragment to the next.
        stride: u32,
    },
}

/// What names a fragment after the one before.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Entry {
    /// Events between them.
    pub skipped: u8,
    /// Bytes of the fragment.
    pub length: u32,
}

impl Entry {
    fn read(bytes: &[u8]) -> Entry {
        Entry { skipped: bytes[0], length: le32(bytes, 1) }
    }

    fn bytes(self) -> [u8; ENTRY_LEN] {
        let [a, b, c, d] = self.length.to_le_bytes();
        [self.skipped, a, b, c, d]
    }
}

/// The fragments that follow those named before.
pub type Successors = [Entry; SUCCESSORS];

/// The bytes of successors.
pub fn successors_to_bytes(entries: Successors) -> [u8; SUCCESSORS_LEN] {
    let mut bytes = [0; SUCCESSORS_LEN];
    bytes.chunks_exact_mut(ENTRY_LEN).zip(entries).for_each(|(place, entry)| place.copy_from_slice(&entry.bytes()));
    bytes
}

/// The successors in these bytes.
pub fn successors_from_bytes(bytes: &[u8; SUCCESSORS_LEN]) -> Successors {
    core::array::from_fn(|at| Entry::read(&bytes[at * ENTRY_LEN..]))
}

/// One fragment that has been announced.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Announced {
    /// Number of the event.
    pub event: u64,
    /// Address of its fragment.
    pub address: u64,
    /// Bytes of it; 0: the board has nothing of this event.
    pub length: u32,
}

impl Announced {
    /// The fragment that an entry names after this one.
    ///
    /// # Errors
    /// [`AnnouncementError`] `NoSuchEvent`, `PastEnd`, `Overlap`.
    pub fn next(&self, entry: Entry, stride: u32) -> Result<Announced, AnnouncementError> {
        let &Announced { event, address, .. } = self;
        let next = event.checked_add(1 + u64::from(entry.skipped)).filter(|next| *next < u64::MAX);
        let event = next.ok_or(AnnouncementError::NoSuchEvent { event, skipped: entry.skipped })?;
        let next = address.checked_add(stride.into());
        let address = next.ok_or(AnnouncementError::PastEnd { address, stride })?;
        Announced { event, address, length: entry.length }.checked(stride)
    }

    /// The entry that names `next` after this one, if one can.
    pub fn entry_of(&self, next: &Announced, stride: u32) -> Option<Entry> {
        let skipped = next.event.checked_sub(self.event)?.checked_sub(1)?;
        let is_after = self.address.checked_add(stride.into()) == Some(next.address);
        Some(Entry { skipped: u8::try_from(skipped).ok()?, length: next.length }).filter(|_| is_after)
    }

    fn checked(self, stride: u32) -> Result<Announced, AnnouncementError> {
        let Announced { event, address, length } = self;
        if u64::from(length) + SUCCESSORS_LEN as u64 > stride.into() {
            return Err(AnnouncementError::Overlap { event, length, stride });
        }
        address.checked_add(stride.into()).map(|_| self).ok_or(AnnouncementError::PastEnd { address, stride })
    }
}

/// An announcement that has been checked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Announcement<'a> {
    /// Fragments that were named as successors before, modulo 256.
    pub carried: u8,
    /// Key of the memory region.
    pub rkey: u32,
    /// Bytes from one fragment to the next.
    pub stride: u32,
    first: Announced,
    entries: &'a [u8],
}

impl<'a> Announcement<'a> {
    /// Checks an announcement.
    ///
    /// # Errors
    /// [`AnnouncementError`].
    pub fn parse(data: &'a [u8]) -> Result<Announcement<'a>, AnnouncementError> {
        let available = data.len();
        let (header, entries) =
            data.split_at_checked(ANNOUNCEMENT_HEADER_LEN).ok_or(AnnouncementError::Truncated { available })?;
        if header[..4] != MAGIC {
            return Err(AnnouncementError::BadMagic { found: [header[0], header[1], header[2], header[3]] });
        }
        let (found, count) = (le16(header, 4), header[6]);
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
        let (event, stride, entry) = (le64(header, 8), le32(header, 28), Entry::read(entries));
        let of_first = event.checked_add(entry.skipped.into()).filter(|event| *event < u64::MAX);
        let first = Announced {
            event: of_first.ok_or(AnnouncementError::NoSuchEvent { event, skipped: entry.skipped })?,
            address: le64(header, 16),
            length: entry.length,
        };
        let rest = entries[ENTRY_LEN..].chunks_exact(ENTRY_LEN).map(Entry::read);
        rest.fold(first.checked(stride), |before, entry| before?.next(entry, stride))?;
        Ok(Announcement { carried: header[7], rkey: le32(header, 24), stride, first, entries })
    }

    /// Number of fragments.
    #[allow(clippy::len_without_is_empty, reason = "an announcement is never empty")]
    pub fn len(&self) -> usize {
        self.entries.len() / ENTRY_LEN
    }

    /// Its fragments in order.
    pub fn iter(&self) -> impl Iterator<Item = Announced> + 'a {
        let (first, stride) = (self.first, self.stride);
        let mut entries = self.entries[ENTRY_LEN..].chunks_exact(ENTRY_LEN).map(Entry::read);
        core::iter::successors(Some(first), move |before| before.next(entries.next()?, stride).ok())
    }
}

/// Bytes of an announcement of this number of fragments.
pub const fn announcement_len(fragments: usize) -> usize {
    ANNOUNCEMENT_HEADER_LEN + fragments * ENTRY_LEN
}

/// The bytes of an announcement of `first` and the fragments that `rest` names after it, after `carried` fragments that
/// were named as successors.
///
/// # Panics
/// When there are more than [`ANNOUNCEMENT_EVENTS`].
pub fn announcement(carried: u8, (rkey, stride): (u32, u32), first: Announced, rest: &[Entry]) -> Vec<u8> {
    let count = 1 + rest.len();
    assert!(count <= ANNOUNCEMENT_EVENTS, "{count} fragments, 1 to {ANNOUNCEMENT_EVENTS} are allowed");
    let mut data = Vec::with_capacity(announcement_len(count));
    data.extend_from_slice(&MAGIC);
    data.extend_from_slice(&VERSION.to_le_bytes());
    data.extend_from_slice(&[count as u8, carried]);
    data.extend_from_slice(&first.event.to_le_bytes());
    data.extend_from_slice(&first.address.to_le_bytes());
    data.extend_from_slice(&rkey.to_le_bytes());
    data.extend_from_slice(&stride.to_le_bytes());
    data.extend_from_slice(&Entry { skipped: 0, length: first.length }.bytes());
    rest.iter().for_each(|entry| data.extend_from_slice(&entry.bytes()));
    data
}
