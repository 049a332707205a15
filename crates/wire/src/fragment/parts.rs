// SPDX-License-Identifier: Apache-2.0
//! The table of parts of a fragment of version 2: it maps bytes of the payload to the board input that sent them.
//! Entries are in ascending order of input; each part begins at a multiple of 8 bytes, and zeros fill the gap to the next.

use super::error::FragmentError;
use super::part::{Part, PartFlags, MAX_PARTS, PART_ALIGN, PART_LEN};

/// A table that has been checked; empty where a fragment has none.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Parts<'a>(&'a [u8]);

impl<'a> Parts<'a> {
    /// Checks a table of whole entries against the payload that it describes.
    ///
    /// # Errors
    /// [`FragmentError::BadTable`], [`FragmentError::BadPart`].
    pub fn parse(table: &'a [u8], payload_len: u32) -> Result<Parts<'a>, FragmentError> {
        if !table.len().is_multiple_of(PART_LEN) || table.len() > MAX_PARTS * PART_LEN {
            return Err(FragmentError::BadTable { bytes: table.len() });
        }
        let parts = Parts(table);
        let (mut next_input, mut next_offset) = (0, 0u64);
        for (entry, part) in parts.iter().enumerate() {
            let end = u64::from(part.offset) + u64::from(part.len);
            let bad = |what| FragmentError::BadPart { entry, part, what, payload_len };
            if usize::from(part.input) >= MAX_PARTS || part.input < next_input {
                return Err(bad("inputs must ascend and be below 16"));
            }
            if u64::from(part.offset) != next_offset {
                return Err(bad("it must begin where the part before ends, at the next multiple of 8"));
            }
            if part.len > 0 && end > u64::from(payload_len) {
                return Err(bad("it ends behind the payload"));
            }
            if part.flags.contains(PartFlags::MISSING) && part.len > 0 {
                return Err(bad("a missing part has no bytes"));
            }
            next_input = part.input + 1;
            next_offset = end.next_multiple_of(PART_ALIGN as u64);
        }
        if !table.is_empty() && next_offset != u64::from(payload_len).next_multiple_of(PART_ALIGN as u64) {
            return Err(FragmentError::PartsEnd { end: next_offset, payload_len });
        }
        Ok(parts)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len() / PART_LEN
    }

    /// Whether the fragment has no table.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The table as it was sent.
    pub fn as_bytes(&self) -> &'a [u8] {
        self.0
    }

    /// Its entries in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Part> + 'a {
        self.0.chunks_exact(PART_LEN).map(Part::from_bytes)
    }
}
