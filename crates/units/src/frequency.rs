// SPDX-License-Identifier: Apache-2.0
//! Frequencies of events.

use crate::quantity::{quantity, Kind};
use crate::time::Time;

const FREQUENCY: Kind = Kind {
    what: "frequency",
    example: "\"10kHz\"",
    smallest: "0.001Hz",
    units: &[("GHz", 1_000_000_000_000), ("MHz", 1_000_000_000), ("kHz", 1_000_000), ("Hz", 1_000)],
    shown: 4,
};

/// Events per second, kept in millihertz.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[repr(transparent)]
pub struct Frequency(pub u64);

quantity!(Frequency, FREQUENCY);

impl Frequency {
    /// `hz` events per second.
    #[inline]
    pub const fn from_hz(hz: u64) -> Self {
        Frequency(hz * 1_000)
    }

    /// Hertz, for people and plots only.
    #[inline]
    pub fn as_hz_f64(self) -> f64 {
        self.0 as f64 * 1e-3
    }

    /// The mean time between two events, rounded down; `Time::MAX` at frequency 0.
    #[inline]
    pub fn period(self) -> Time {
        1_000_000_000_000_000u64.checked_div(self.0).map_or(Time::MAX, Time)
    }
}
