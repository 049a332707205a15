// SPDX-License-Identifier: Apache-2.0
//! The parameters of the reaction points, made from `regs/congestion.rdl`: in physical units, and as the registers hold
//! them.

#![allow(clippy::unreadable_literal)] // of what is generated

use crate::cycle_rate::CycleRate;
use crate::error::ParamError;
use crate::units::{bytes, cycles, rate, within};
use core::ops::RangeInclusive;
use penstock_units::{ByteSize, Rate, Time};

include!(concat!(env!("OUT_DIR"), "/penstock_parameters.rs"));

/// A table of keys that sets parameters, each with the value that it has without its key.
pub trait Keys {
    /// A rate.
    fn rate(&mut self, key: &'static str, default: Rate) -> Rate;
    /// A rate that has no default of its own.
    fn optional_rate(&mut self, key: &'static str) -> Option<Rate>;
    /// An interval.
    fn time(&mut self, key: &'static str, default: Time) -> Time;
    /// A number of bytes.
    fn bytes(&mut self, key: &'static str, default: ByteSize) -> ByteSize;
    /// True or false.
    fn flag(&mut self, key: &'static str, default: bool) -> bool;
    /// A whole number of a range.
    fn number(&mut self, key: &'static str, default: u8, range: RangeInclusive<u8>) -> u8;
    /// One of a few words.
    fn choice<T: Copy + PartialEq>(&mut self, key: &'static str, default: T, words: &[(&'static str, T)]) -> T;
    /// g as a quotient: g_shift and g_factor.
    fn weight(&mut self, key: &'static str, default: (u8, GFactor)) -> (u8, GFactor);
    /// 2^-n.
    fn gain(&mut self, key: &'static str, default: u8) -> u8;
    /// n/256 as a part of 1.
    fn jitter(&mut self, key: &'static str, default: u8) -> u8;
}

impl GFactor {
    /// Eight times it.
    #[inline]
    pub const fn eighths(self) -> u8 {
        match self {
            GFactor::One => 8,
            GFactor::ThreeHalves => 12,
            GFactor::FiveQuarters => 10,
            GFactor::SevenEighths => 7,
        }
    }
}

impl DcqcnParams {
    /// One of the intervals that run on is shorter than a visit of `cycles`: then time is lost, which only visiting counts.
    #[inline]
    pub(crate) fn loses(&self, cycles: u32) -> bool {
        let shorter = |interval: u32| interval != 0 && interval < cycles;
        let ticks = self.cut_on_tick && self.decrease_interval < cycles;
        ticks || shorter(self.alpha_interval) || shorter(self.increase_interval)
    }
}
