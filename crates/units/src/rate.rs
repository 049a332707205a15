// SPDX-License-Identifier: Apache-2.0
//! Rates of data.

use crate::byte_size::ByteSize;
use crate::quantity::{quantity, Kind};
use crate::time::Time;

const RATE: Kind = Kind {
    what: "rate",
    example: "\"10Gbps\"",
    smallest: "1bps",
    units: &[
        ("Tbps", 1_000_000_000_000),
        ("Gbps", 1_000_000_000),
        ("Mbps", 1_000_000),
        ("kbps", 1_000),
        ("bps", 1),
        ("GB/s", 8_000_000_000),
        ("MB/s", 8_000_000),
        ("kB/s", 8_000),
        ("KB/s", 8_000),
        ("B/s", 8),
    ],
    shown: 5,
};

/// Bits per second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[repr(transparent)]
pub struct Rate(pub u64);

quantity!(Rate, RATE);

impl Rate {
    /// `kbps` * 10^3 bits per second.
    #[inline]
    pub const fn from_kbps(kbps: u64) -> Self {
        Rate(kbps * 1_000)
    }

    /// `mbps` * 10^6 bits per second.
    #[inline]
    pub const fn from_mbps(mbps: u64) -> Self {
        Rate(mbps * 1_000_000)
    }

    /// `gbps` * 10^9 bits per second.
    #[inline]
    pub const fn from_gbps(gbps: u64) -> Self {
        Rate(gbps * 1_000_000_000)
    }

    /// Bits per second.
    #[inline]
    pub const fn bits_per_second(self) -> u64 {
        self.0
    }

    /// How long `bytes` take at this rate, rounded up to a picosecond; `Time::MAX` at rate 0.
    #[inline]
    pub fn time_for(self, bytes: u64) -> Time {
        if self.0 == 0 {
            return Time::MAX;
        }
        let ps = (u128::from(bytes) * 8_000_000_000_000).div_ceil(u128::from(self.0));
        Time(u64::try_from(ps).unwrap_or(u64::MAX))
    }

    /// How long `bytes` take at this rate, rounded down to a picosecond; `Time::MAX` at rate 0.
    #[inline]
    pub fn whole_time_for(self, bytes: u64) -> Time {
        let ps = (u128::from(bytes) * 8_000_000_000_000).checked_div(u128::from(self.0));
        Time(ps.and_then(|ps| u64::try_from(ps).ok()).unwrap_or(u64::MAX))
    }

    /// Whole bytes that pass in `span`, rounded up (used to size headroom).
    #[inline]
    pub fn bytes_in(self, span: Time) -> ByteSize {
        let bytes = (u128::from(self.0) * u128::from(span.0)).div_ceil(8_000_000_000_000);
        ByteSize(u64::try_from(bytes).unwrap_or(u64::MAX))
    }
}
