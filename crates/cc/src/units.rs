// SPDX-License-Identifier: Apache-2.0
//! Conversion from physical units to register values.

use crate::cycle_rate::CycleRate;
use crate::error::ParamError;
use penstock_units::{ByteSize, Rate, Time};

/// A rate in register format.
pub fn rate(name: &'static str, value: Rate, clock_hz: u64) -> Result<CycleRate, ParamError> {
    CycleRate::from_rate(value, clock_hz).ok_or(ParamError::Rate { name, value, clock_hz })
}

/// An interval in cycles, rounded to the nearest; only 0 gives 0, which switches the interval off.
pub fn cycles(name: &'static str, value: Time, clock_hz: u64) -> Result<u32, ParamError> {
    let cycles = (u128::from(value.as_ps()) * u128::from(clock_hz) + 500_000_000_000) / 1_000_000_000_000;
    let cycles = if value > Time::ZERO { cycles.max(1) } else { 0 };
    u32::try_from(cycles).map_err(|_| ParamError::Interval { name, value, clock_hz })
}

/// A number of bytes in 32 bits.
pub fn bytes(name: &'static str, value: ByteSize) -> Result<u32, ParamError> {
    u32::try_from(value.bytes()).map_err(|_| ParamError::Bytes { name, value })
}

/// A small number in its range.
pub fn within(name: &'static str, value: u8, low: u8, high: u8) -> Result<u8, ParamError> {
    (low..=high).contains(&value).then_some(value).ok_or(ParamError::Range { name, value, low, high })
}
