// SPDX-License-Identifier: Apache-2.0
//! The identity of a fragment (source and event), and helpers that read its fields.

/// The identity of a fragment of either version, before anything is checked.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct FragmentId {
    /// Which board it comes from.
    pub source_id: u16,
    /// Event it belongs to.
    pub event_number: u64,
    /// Time of the event at the board, nanoseconds.
    pub timestamp_ns: u64,
    /// The kind of trigger; 0 in version 1, which has none.
    pub trigger_type: u16,
}

/// A little-endian field of `size` bytes.
pub(super) fn le(data: &[u8], at: usize, size: usize) -> u64 {
    data[at..at + size].iter().rev().fold(0u64, |value, byte| value << 8 | u64::from(*byte))
}
