// SPDX-License-Identifier: Apache-2.0
//! Fields of fewer than eight bits, counted from the high end of their byte as in the tables of IBTA clause 12.

/// Bytes of a message, after the header of its MAD.
pub(super) const MESSAGE_LEN: usize = 232;

/// The `width` bits from bit `from` on, 0 being the high one.
pub(super) fn bits(data: &[u8], at: usize, from: u32, width: u32) -> u8 {
    ((u32::from(data[at]) >> (8 - from - width)) & ((1 << width) - 1)) as u8
}

/// Writes them over zeros.
pub(super) fn put_bits(data: &mut [u8], at: usize, from: u32, width: u32, value: u8) {
    data[at] |= ((u32::from(value) & ((1 << width) - 1)) << (8 - from - width)) as u8;
}

/// `N` bytes.
pub(super) fn array<const N: usize>(data: &[u8], at: usize) -> [u8; N] {
    core::array::from_fn(|i| data[at + i])
}
