// SPDX-License-Identifier: Apache-2.0
//! Packet sequence numbers and queue-pair numbers: 24 bits each.
//! PSN comparisons follow the circular window, so they stay right across the wrap at 2^24.
//! Source: IBTA vol. 1, clause 9.7.1 (PSN) and 9.2 (BTH fields).

use core::cmp::Ordering;
use core::fmt;

const MASK: u32 = 0x00FF_FFFF;

/// A packet sequence number, modulo 2^24.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Psn(u32);

impl Psn {
    /// Takes the low 24 bits of `value`.
    pub const fn new(value: u32) -> Self {
        Psn(value & MASK)
    }

    /// The number, 0 .. 2^24 - 1.
    pub const fn value(self) -> u32 {
        self.0
    }

    /// The PSN `n` packets later, round the corner at 2^24.
    pub const fn add(self, n: u32) -> Self {
        Psn(self.0.wrapping_add(n) & MASK)
    }

    /// The PSN `n` packets earlier.
    pub const fn sub(self, n: u32) -> Self {
        Psn(self.0.wrapping_sub(n) & MASK)
    }

    /// The following PSN.
    pub const fn next(self) -> Self {
        self.add(1)
    }

    /// Signed distance from `earlier` to `self` on the circle, -2^23 .. 2^23 - 1.
    pub const fn distance_from(self, earlier: Psn) -> i32 {
        // Shifting the 24-bit difference to the top makes the sign bit the window's half.
        (self.0.wrapping_sub(earlier.0) << 8) as i32 >> 8
    }

    /// Circular order: `Less` if `self` is in the 2^23 PSNs before `other`.
    pub fn cmp_window(self, other: Psn) -> Ordering {
        self.distance_from(other).cmp(&0)
    }

    /// Whether `self` is in `start .. end` on the circle; an empty range contains nothing.
    pub const fn in_range(self, start: Psn, end: Psn) -> bool {
        (self.0.wrapping_sub(start.0) & MASK) < (end.0.wrapping_sub(start.0) & MASK)
    }
}

impl fmt::Debug for Psn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Psn({:#08x})", self.0)
    }
}

impl fmt::Display for Psn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// A queue-pair number, 24 bits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Qpn(u32);

impl Qpn {
    /// Takes the low 24 bits of `value`.
    pub const fn new(value: u32) -> Self {
        Qpn(value & MASK)
    }

    /// The number, 0 .. 2^24 - 1.
    pub const fn value(self) -> u32 {
        self.0
    }
}

impl fmt::Debug for Qpn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Qpn({:#08x})", self.0)
    }
}

impl fmt::Display for Qpn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distance_is_signed_and_wraps_at_24_bits() {
        assert_eq!(Psn::new(0).distance_from(Psn::new(0xFF_FFFF)), 1);
        assert_eq!(Psn::new(0xFF_FFFF).distance_from(Psn::new(0)), -1);
        assert_eq!(Psn::new(0x80_0000).distance_from(Psn::new(0)), -0x80_0000);
        assert_eq!(Psn::new(0x7F_FFFF).distance_from(Psn::new(0)), 0x7F_FFFF);
    }

    #[test]
    fn ranges_wrap_and_empty_ranges_hold_nothing() {
        let (a, b) = (Psn::new(0xFF_FFFE), Psn::new(2));
        assert!(a.in_range(a, b) && Psn::new(1).in_range(a, b));
        assert!(!b.in_range(a, b) && !a.in_range(a, a));
    }
}
