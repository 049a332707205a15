// SPDX-License-Identifier: Apache-2.0
//! One entry of the table of parts: 16 bytes, little-endian. Source: ours; the gateware's is `rtl/event/event_pkg.sv`.
//!
//! ```text
//! offset size field
//!      0    1 input, 0 .. 15
//!      1    1 reserved, 0
//!      2    2 flags (`PartFlags`)
//!      4    4 offset of the part's first byte in the payload, a multiple of 8
//!      8    4 length of the part in bytes
//!     12    4 reserved, 0
//! ```

use super::id::le;

/// Bytes of one entry of the table.
pub const PART_LEN: usize = 16;
/// Inputs of one board, and entries of a table.
pub const MAX_PARTS: usize = 16;
/// Parts start at multiples of this number of bytes.
pub const PART_ALIGN: usize = 8;

/// The flags of a part from its path through the board; bits of one number. The trailer has those of all parts.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct PartFlags(pub u16);

impl PartFlags {
    /// Nothing came from this input in time, or its next fragment is of a later event; the length is 0.
    pub const MISSING: PartFlags = PartFlags(1);
    /// Longer than the board takes: the rest was dropped.
    pub const CUT: PartFlags = PartFlags(1 << 1);
    /// The stream stopped within the fragment: the board closed the part after its timeout.
    pub const STOPPED: PartFlags = PartFlags(1 << 2);
    /// Fragments of this input were dropped before this event: duplicates, or numbers that had gone by.
    pub const DROPPED: PartFlags = PartFlags(1 << 3);
    /// Its trigger type is not the one in the header.
    pub const TRIGGER_DIFFERS: PartFlags = PartFlags(1 << 4);

    /// Whether all bits of `other` are set.
    pub fn contains(self, other: PartFlags) -> bool {
        self.0 & other.0 == other.0
    }

    /// The bits of both.
    #[must_use]
    pub fn union(self, other: PartFlags) -> PartFlags {
        PartFlags(self.0 | other.0)
    }
}

/// One input's part of a payload.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Part {
    /// Number of the input, below [`MAX_PARTS`].
    pub input: u8,
    /// Its flags.
    pub flags: PartFlags,
    /// First byte in the payload.
    pub offset: u32,
    /// Bytes.
    pub len: u32,
}

impl Part {
    /// The entry's bytes.
    pub fn to_bytes(&self) -> [u8; PART_LEN] {
        let mut data = [0; PART_LEN];
        data[0] = self.input;
        data[2..4].copy_from_slice(&self.flags.0.to_le_bytes());
        data[4..8].copy_from_slice(&self.offset.to_le_bytes());
        data[8..12].copy_from_slice(&self.len.to_le_bytes());
        data
    }

    pub(super) fn from_bytes(data: &[u8]) -> Part {
        let flags = PartFlags(le(data, 2, 2) as u16);
        Part { input: data[0], flags, offset: le(data, 4, 4) as u32, len: le(data, 8, 4) as u32 }
    }
}
