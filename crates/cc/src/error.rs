// SPDX-License-Identifier: Apache-2.0
//! Why a setting does not fit its register.

use core::fmt;

use penstock_units::{ByteSize, Rate, Time};

/// A setting that does not fit its register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParamError {
    /// A rate of 256 bytes per cycle or more, or a clock of 0 Hz.
    #[allow(missing_docs)]
    Rate { name: &'static str, value: Rate, clock_hz: u64 },
    /// An interval of 2^32 cycles or more.
    #[allow(missing_docs)]
    Interval { name: &'static str, value: Time, clock_hz: u64 },
    /// A byte counter of 4 GiB or more.
    #[allow(missing_docs)]
    Bytes { name: &'static str, value: ByteSize },
    /// A small value out of its range.
    #[allow(missing_docs)]
    Range { name: &'static str, value: u8, low: u8, high: u8 },
    /// The lowest rate lies above the line rate.
    #[allow(missing_docs)]
    MinAboveLine { min: Rate, line: Rate },
}

impl fmt::Display for ParamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Rate { name, value, clock_hz } => {
                write!(f, "{name} = {value} does not fit 256 bytes per cycle of a {clock_hz} Hz clock: lower it")
            }
            Self::Interval { name, value, clock_hz } => write!(
                f,
                "{name} = {value} does not fit 32 bits of cycles of a {clock_hz} Hz clock: shorten it, or 0 for never"
            ),
            Self::Bytes { name, value } => {
                write!(f, "{name} = {value} does not fit 32 bits: lower it, or 0 for no byte counter")
            }
            Self::Range { name, value, low, high } => write!(f, "{name} = {value}: allowed are {low} to {high}"),
            Self::MinAboveLine { min, line } => {
                write!(f, "rate_min = {min} lies above rate_line = {line}: lower rate_min")
            }
        }
    }
}

impl core::error::Error for ParamError {}
