// SPDX-License-Identifier: Apache-2.0
//! Instants and spans of time.

use core::ops::{Add, AddAssign, Div, Mul, Sub};
use core::time::Duration;

use crate::quantity::{quantity, Kind};

const TIME: Kind = Kind {
    what: "time",
    example: "\"4us\"",
    smallest: "1ps",
    units: &[("s", 1_000_000_000_000), ("ms", 1_000_000_000), ("us", 1_000_000), ("ns", 1_000), ("ps", 1)],
    shown: 5,
};

/// An instant, or a span between two instants, in picoseconds: 0 to 213 days.
///
/// An instant counts from the begin of its run: simulated time, or what the caller of a state machine has measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[repr(transparent)]
pub struct Time(pub u64);

quantity!(Time, TIME);

impl Time {
    /// No time, or the begin of a run.
    pub const ZERO: Time = Time(0);
    /// The end of the range; deadlines use it for "never".
    pub const MAX: Time = Time(u64::MAX);

    /// `ps` picoseconds.
    #[inline]
    pub const fn from_ps(ps: u64) -> Self {
        Time(ps)
    }

    /// `ns` nanoseconds, at most 18 446 744 073 709 551.
    #[inline]
    pub const fn from_ns(ns: u64) -> Self {
        Time(ns * 1_000)
    }

    /// `us` microseconds, at most 18 446 744 073 709.
    #[inline]
    pub const fn from_us(us: u64) -> Self {
        Time(us * 1_000_000)
    }

    /// `ms` milliseconds, at most 18 446 744 073.
    #[inline]
    pub const fn from_ms(ms: u64) -> Self {
        Time(ms * 1_000_000_000)
    }

    /// `s` seconds, at most 18 446 744.
    #[inline]
    pub const fn from_s(s: u64) -> Self {
        Time(s * 1_000_000_000_000)
    }

    /// `s` seconds, as people write them on a command line, rounded down; the ends of the range beyond them.
    #[inline]
    pub fn from_secs_f64(s: f64) -> Self {
        Time((s * 1e12) as u64)
    }

    /// Picoseconds, as files, registers and traces hold them.
    #[inline]
    pub const fn as_ps(self) -> u64 {
        self.0
    }

    /// A span that the operating system has measured; [`Time::MAX`] above the range.
    pub fn from_duration(span: Duration) -> Self {
        Time(u64::try_from(span.as_nanos() * 1_000).unwrap_or(u64::MAX))
    }

    /// A span that the operating system is to wait, rounded up to a nanosecond.
    #[inline]
    pub const fn to_duration(self) -> Duration {
        Duration::from_nanos(self.0.div_ceil(1_000))
    }

    /// Seconds, for people and plots only.
    #[inline]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 * 1e-12
    }

    /// The sum, or [`Time::MAX`] above the range.
    #[inline]
    pub const fn saturating_add(self, other: Time) -> Time {
        Time(self.0.saturating_add(other.0))
    }

    /// The difference, or [`Time::ZERO`] where `other` is later.
    #[inline]
    pub const fn saturating_sub(self, other: Time) -> Time {
        Time(self.0.saturating_sub(other.0))
    }

    /// `n` times as long, or [`Time::MAX`] above the range.
    #[inline]
    pub const fn saturating_mul(self, n: u64) -> Time {
        Time(self.0.saturating_mul(n))
    }

    /// How often `span` fits, rounded up; panics at [`Time::ZERO`].
    #[inline]
    pub const fn div_ceil(self, span: Time) -> u64 {
        self.0.div_ceil(span.0)
    }

    /// The span between two instants, whichever is later.
    #[inline]
    pub const fn abs_diff(self, other: Time) -> Time {
        Time(self.0.abs_diff(other.0))
    }
}

impl Add for Time {
    type Output = Time;
    #[inline]
    fn add(self, other: Time) -> Time {
        Time(self.0 + other.0)
    }
}

impl AddAssign for Time {
    #[inline]
    fn add_assign(&mut self, other: Time) {
        self.0 += other.0;
    }
}

impl Sub for Time {
    type Output = Time;
    #[inline]
    fn sub(self, other: Time) -> Time {
        Time(self.0 - other.0)
    }
}

impl Mul<u64> for Time {
    type Output = Time;
    #[inline]
    fn mul(self, n: u64) -> Time {
        Time(self.0 * n)
    }
}

/// The `n`th part, rounded down; panics at 0.
impl Div<u64> for Time {
    type Output = Time;
    #[inline]
    fn div(self, n: u64) -> Time {
        Time(self.0 / n)
    }
}

/// How often `span` fits, rounded down; panics at [`Time::ZERO`].
impl Div for Time {
    type Output = u64;
    #[inline]
    fn div(self, span: Time) -> u64 {
        self.0 / span.0
    }
}
