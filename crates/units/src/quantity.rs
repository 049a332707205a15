// SPDX-License-Identifier: Apache-2.0
//! Reading and writing a number with its unit, once for all quantities.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// A quantity that could not be read.
#[allow(missing_docs)]
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnitError {
    /// A number alone.
    #[error("`{text}` has no unit; write a {what} with one of {allowed}, for example {example}")]
    NoUnit { text: String, what: &'static str, allowed: String, example: &'static str },
    /// A unit of something else, or of nothing.
    #[error("`{unit}` in `{text}` is no unit of a {what}; allowed are {allowed}, for example {example}")]
    UnknownUnit { text: String, unit: String, what: &'static str, allowed: String, example: &'static str },
    /// No number, or more than a number and a unit.
    #[error("`{text}` does not start with a decimal number; write a {what} such as {example}")]
    NoNumber { text: String, what: &'static str, example: &'static str },
    /// A fraction of the unit that is counted.
    #[error("`{text}` is finer than the smallest {what} that can be kept, {smallest}")]
    TooFine { text: String, what: &'static str, smallest: &'static str },
    /// More than a `u64` of the unit that is counted.
    #[error("`{text}` is more than the largest {what} that can be kept, {largest}")]
    TooLarge { text: String, what: &'static str, largest: String },
}

/// What one kind of quantity is called and in which units it may be written.
pub(crate) struct Kind {
    pub what: &'static str,
    pub example: &'static str,
    pub smallest: &'static str,
    /// (unit, how many base units it is), largest first; `Display` uses the first `shown` of them.
    pub units: &'static [(&'static str, u64)],
    pub shown: usize,
}

impl Kind {
    fn allowed(&self) -> String {
        let names: Vec<&str> = self.units.iter().map(|(name, _)| *name).collect();
        names.join(", ")
    }

    pub fn parse(&self, text: &str) -> Result<u64, UnitError> {
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

    pub fn display(&self, value: u64) -> String {
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

/// `FromStr`, `Display`, and serde's two as the same text, for a newtype over `u64`.
macro_rules! quantity {
    ($name:ident, $kind:expr) => {
        impl core::str::FromStr for $name {
            type Err = $crate::UnitError;
            fn from_str(text: &str) -> Result<Self, $crate::UnitError> {
                $kind.parse(text).map(Self)
            }
        }

        impl core::fmt::Display for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
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
                let text = alloc::string::String::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}

pub(crate) use quantity;
