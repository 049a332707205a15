// SPDX-License-Identifier: Apache-2.0
//! Time, rate, size and frequency as newtypes, written with their units ("4us", "10Gbps", "150KB").
//! Promise: integers only, parsed exactly or refused; what `Display` writes, `FromStr` reads back.
//! Source: ARCHITECTURE.md, "Time" (u64 picoseconds); SI prefixes, IEC prefixes for powers of 1024.

use std::fmt;
use std::ops::{Add, AddAssign, Mul, Sub};
use std::str::FromStr;

/// A quantity that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnitError {
    #[error("`{text}` has no unit; write a {what} with one of {allowed}, for example {example}")]
    NoUnit { text: String, what: &'static str, allowed: String, example: &'static str },
    #[error("`{unit}` in `{text}` is no unit of a {what}; allowed are {allowed}, for example {example}")]
    UnknownUnit { text: String, unit: String, what: &'static str, allowed: String, example: &'static str },
    #[error("`{text}` does not start with a decimal number; write a {what} such as {example}")]
    NoNumber { text: String, what: &'static str, example: &'static str },
    #[error("`{text}` is finer than the smallest {what} that can be kept, {smallest}")]
    TooFine { text: String, what: &'static str, smallest: &'static str },
    #[error("`{text}` is more than the largest {what} that can be kept, {largest}")]
    TooLarge { text: String, what: &'static str, largest: String },
}

/// What one kind of quantity is called and in which units it may be written.
struct Kind {
    what: &'static str,
    example: &'static str,
    smallest: &'static str,
    /// (unit, how many base units it is), largest first; `Display` uses the first `shown` of them.
    units: &'static [(&'static str, u64)],
    shown: usize,
}

impl Kind {
    fn allowed(&self) -> String {
        let names: Vec<&str> = self.units.iter().map(|(name, _)| *name).collect();
        names.join(", ")
    }

    fn parse(&self, text: &str) -> Result<u64, UnitError> {
        let trimmed = text.trim();
        let end = trimmed.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(trimmed.len());
        let (number, unit) = (&trimmed[..end], trimmed[end..].trim());
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        let (what, example) = (self.what, self.example);
        if whole.is_empty() || fraction.contains('.') {
            return Err(UnitError::NoNumber { text: text.to_owned(), what, example });
        }
        if unit.is_empty() {
            return Err(UnitError::NoUnit { text: text.to_owned(), what, allowed: self.allowed(), example });
        }
        let Some((_, scale)) = self.units.iter().find(|(name, _)| *name == unit) else {
            let (unit, allowed) = (unit.to_owned(), self.allowed());
            return Err(UnitError::UnknownUnit { text: text.to_owned(), unit, what, allowed, example });
        };
        self.scaled(text, whole, fraction.trim_end_matches('0'), u128::from(*scale))
    }

    fn scaled(&self, text: &str, whole: &str, fraction: &str, scale: u128) -> Result<u64, UnitError> {
        let too_large =
            || UnitError::TooLarge { text: text.to_owned(), what: self.what, largest: self.display(u64::MAX) };
        let too_fine = || UnitError::TooFine { text: text.to_owned(), what: self.what, smallest: self.smallest };
        if fraction.len() > 18 {
            return Err(too_fine());
        }
        let whole: u64 = whole.parse().map_err(|_| too_large())?;
        let part: u128 = if fraction.is_empty() { 0 } else { fraction.parse().map_err(|_| too_fine())? };
        let divisor = 10u128.pow(fraction.len() as u32);
        if !(part * scale).is_multiple_of(divisor) {
            return Err(too_fine());
        }
        u64::try_from(u128::from(whole) * scale + part * scale / divisor).map_err(|_| too_large())
    }

    fn display(&self, value: u64) -> String {
        let shown = &self.units[..self.shown];
        let (unit, scale) = shown.iter().find(|(_, scale)| value >= *scale).unwrap_or(&shown[shown.len() - 1]);
        let (whole, part) = (value / scale, value % scale);
        if part == 0 {
            return format!("{whole}{unit}");
        }
        // scale is a power of ten for every shown unit, so these digits are exact
        let digits = scale.ilog10() as usize;
        let fraction = format!("{part:0digits$}");
        format!("{whole}.{}{unit}", fraction.trim_end_matches('0'))
    }
}

macro_rules! quantity {
    ($name:ident, $kind:expr) => {
        impl FromStr for $name {
            type Err = UnitError;
            fn from_str(text: &str) -> Result<Self, UnitError> {
                $kind.parse(text).map(Self)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&$kind.display(self.0))
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}

const TIME: Kind = Kind {
    what: "time",
    example: "\"4us\"",
    smallest: "1ps",
    units: &[("s", 1_000_000_000_000), ("ms", 1_000_000_000), ("us", 1_000_000), ("ns", 1_000), ("ps", 1)],
    shown: 5,
};

/// A point in simulated time or a span of it, in picoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Time(pub u64);

quantity!(Time, TIME);

impl Time {
    pub const ZERO: Time = Time(0);
    pub const MAX: Time = Time(u64::MAX);

    pub const fn from_ps(ps: u64) -> Self {
        Time(ps)
    }

    pub const fn from_ns(ns: u64) -> Self {
        Time(ns * 1_000)
    }

    pub const fn from_us(us: u64) -> Self {
        Time(us * 1_000_000)
    }

    pub const fn from_ms(ms: u64) -> Self {
        Time(ms * 1_000_000_000)
    }

    pub const fn from_s(s: u64) -> Self {
        Time(s * 1_000_000_000_000)
    }

    pub const fn as_ps(self) -> u64 {
        self.0
    }

    /// Seconds, for people and plots only.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 * 1e-12
    }

    pub const fn saturating_add(self, other: Time) -> Time {
        Time(self.0.saturating_add(other.0))
    }

    pub const fn saturating_sub(self, other: Time) -> Time {
        Time(self.0.saturating_sub(other.0))
    }
}

impl Add for Time {
    type Output = Time;
    fn add(self, other: Time) -> Time {
        Time(self.0 + other.0)
    }
}

impl AddAssign for Time {
    fn add_assign(&mut self, other: Time) {
        self.0 += other.0;
    }
}

impl Sub for Time {
    type Output = Time;
    fn sub(self, other: Time) -> Time {
        Time(self.0 - other.0)
    }
}

impl Mul<u64> for Time {
    type Output = Time;
    fn mul(self, n: u64) -> Time {
        Time(self.0 * n)
    }
}

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
pub struct Rate(pub u64);

quantity!(Rate, RATE);

impl Rate {
    pub const fn from_gbps(gbps: u64) -> Self {
        Rate(gbps * 1_000_000_000)
    }

    pub const fn bits_per_second(self) -> u64 {
        self.0
    }

    /// How long `bytes` take at this rate, rounded up to a picosecond; `Time::MAX` at rate 0.
    pub fn time_for(self, bytes: u64) -> Time {
        if self.0 == 0 {
            return Time::MAX;
        }
        let ps = (u128::from(bytes) * 8_000_000_000_000).div_ceil(u128::from(self.0));
        Time(u64::try_from(ps).unwrap_or(u64::MAX))
    }

    /// Whole bytes that pass in `span`, rounded up (used to size headroom).
    pub fn bytes_in(self, span: Time) -> ByteSize {
        let bytes = (u128::from(self.0) * u128::from(span.0)).div_ceil(8_000_000_000_000);
        ByteSize(u64::try_from(bytes).unwrap_or(u64::MAX))
    }
}

const SIZE: Kind = Kind {
    what: "size",
    example: "\"150KB\"",
    smallest: "1B",
    units: &[
        ("GB", 1_000_000_000),
        ("MB", 1_000_000),
        ("KB", 1_000),
        ("B", 1),
        ("kB", 1_000),
        ("GiB", 1 << 30),
        ("MiB", 1 << 20),
        ("KiB", 1 << 10),
    ],
    shown: 4,
};

/// A number of bytes. "KB" is 1000 bytes, "KiB" is 1024.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ByteSize(pub u64);

quantity!(ByteSize, SIZE);

impl ByteSize {
    pub const fn bytes(self) -> u64 {
        self.0
    }
}

const FREQUENCY: Kind = Kind {
    what: "frequency",
    example: "\"10kHz\"",
    smallest: "0.001Hz",
    units: &[("GHz", 1_000_000_000_000), ("MHz", 1_000_000_000), ("kHz", 1_000_000), ("Hz", 1_000)],
    shown: 4,
};

/// Events per second, kept in millihertz.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Frequency(pub u64);

quantity!(Frequency, FREQUENCY);

impl Frequency {
    pub const fn from_hz(hz: u64) -> Self {
        Frequency(hz * 1_000)
    }

    pub fn as_hz_f64(self) -> f64 {
        self.0 as f64 * 1e-3
    }

    /// The mean time between two events, rounded down; `Time::MAX` at frequency 0.
    pub fn period(self) -> Time {
        1_000_000_000_000_000u64.checked_div(self.0).map_or(Time::MAX, Time)
    }
}

/// A probability, kept as a threshold over 53 random bits so that a decision is an integer comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Probability {
    threshold: u64,
    /// The number as given (its IEEE 754 bits), for people.
    given: u64,
}

impl Probability {
    pub const NEVER: Probability = Probability { threshold: 0, given: 0 };
    const ONE: u64 = 1 << 53;

    /// `None` when `p` does not lie in 0 ..= 1.
    pub fn new(p: f64) -> Option<Self> {
        let p = p + 0.0; // minus zero becomes zero
        let threshold = (p * Self::ONE as f64) as u64;
        (0.0..=1.0).contains(&p).then(|| Probability { threshold, given: p.to_bits() })
    }

    pub const fn is_never(self) -> bool {
        self.threshold == 0
    }

    pub fn as_f64(self) -> f64 {
        f64::from_bits(self.given)
    }

    /// The decision for 64 random bits.
    pub const fn decide(self, random: u64) -> bool {
        (random >> 11) < self.threshold
    }
}

impl fmt::Display for Probability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.as_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn quantities_are_read_exactly() {
        assert_eq!("4us".parse(), Ok(Time::from_us(4)));
        assert_eq!("6.4ns".parse(), Ok(Time(6_400)));
        assert_eq!(" 1.5 ms ".parse(), Ok(Time::from_us(1500)));
        assert_eq!("10Gbps".parse(), Ok(Rate::from_gbps(10)));
        assert_eq!("6MB/s".parse(), Ok(Rate(48_000_000)));
        assert_eq!("150KB".parse(), Ok(ByteSize(150_000)));
        assert_eq!("2MiB".parse(), Ok(ByteSize(2 << 20)));
        assert_eq!("10kHz".parse(), Ok(Frequency::from_hz(10_000)));
        assert_eq!(Frequency::from_hz(10_000).period(), Time::from_us(100));
    }

    #[test]
    fn a_refused_quantity_names_the_value_and_what_is_allowed() {
        let errors: Vec<String> = ["4", "4 parsecs", "", "us", "1.2.3us", "0.5ps", "400000000s", "-1us"]
            .iter()
            .map(|text| text.parse::<Time>().unwrap_err().to_string())
            .collect();
        insta::assert_snapshot!(errors.join("\n"));
    }

    #[test]
    fn serialisation_times_are_exact_at_ethernet_rates() {
        assert_eq!(Rate::from_gbps(10).time_for(1), Time(800));
        assert_eq!(Rate::from_gbps(100).time_for(4178), Time(4178 * 80));
        assert_eq!(Rate(3).time_for(1), Time(2_666_666_666_667));
        assert_eq!(Rate::from_gbps(10).bytes_in(Time::from_us(1)), ByteSize(1250));
    }

    #[test]
    fn probabilities_hold_at_both_ends() {
        assert!(!Probability::new(0.0).unwrap().decide(0));
        assert!(Probability::new(1.0).unwrap().decide(u64::MAX));
        assert_eq!(Probability::new(1.1), None);
        assert_eq!(Probability::new(f64::NAN), None);
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(value in any::<u64>()) {
            prop_assert_eq!(Time(value).to_string().parse(), Ok(Time(value)));
            prop_assert_eq!(Rate(value).to_string().parse(), Ok(Rate(value)));
            prop_assert_eq!(ByteSize(value).to_string().parse(), Ok(ByteSize(value)));
            prop_assert_eq!(Frequency(value).to_string().parse(), Ok(Frequency(value)));
        }

        #[test]
        fn any_text_is_read_or_refused_without_panic(text in ".{0,30}") {
            let _ = text.parse::<Time>();
            let _ = text.parse::<Rate>();
        }
    }
}
