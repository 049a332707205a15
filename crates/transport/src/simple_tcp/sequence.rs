// SPDX-License-Identifier: Apache-2.0
//! Comparison of numbers that wrap: sequence numbers and ticks, each 32 bits (RFC 9293 section 3.4).

/// Whether `a` comes before `b`.
#[inline]
pub(super) fn before(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) < 0
}

/// Whether `a` is `b` or comes after it.
#[inline]
pub(super) fn reached(a: u32, b: u32) -> bool {
    !before(a, b)
}

/// The later of both.
#[inline]
pub(super) fn later(a: u32, b: u32) -> u32 {
    if before(a, b) {
        b
    } else {
        a
    }
}
