// SPDX-License-Identifier: Apache-2.0
//! Rates in the gateware's format, bytes per clock cycle.

use core::fmt;

use penstock_units::Rate;

/// A rate in bytes per clock cycle, unsigned Q8.24: 1 byte per cycle is `1 << 24`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CycleRate(pub u32);

impl CycleRate {
    /// Fractional bits.
    pub const FRACTION_BITS: u32 = 24;

    /// The nearest representable rate, or `None` at 256 bytes per cycle and above.
    pub fn from_rate(rate: Rate, clock_hz: u64) -> Option<Self> {
        let clock_bits = u128::from(clock_hz) * 8;
        if clock_bits == 0 {
            return None;
        }
        let scaled = u128::from(rate.bits_per_second()) << Self::FRACTION_BITS;
        u32::try_from((scaled + clock_bits / 2) / clock_bits).ok().map(Self)
    }

    /// The rate at this clock, rounded to the nearest bit per second.
    pub fn to_rate(self, clock_hz: u64) -> Rate {
        let scaled = u128::from(self.0) * u128::from(clock_hz) * 8;
        Rate(((scaled + (1 << (Self::FRACTION_BITS - 1))) >> Self::FRACTION_BITS) as u64)
    }
}

impl fmt::Display for CycleRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#010x} (Q8.24 bytes per cycle)", self.0)
    }
}
