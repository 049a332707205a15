// SPDX-License-Identifier: Apache-2.0
//! Time, rate, size, frequency and probability as newtypes over integers, written with their units ("4us", "10Gbps").
//!
//! | type | counts | range of its `u64` | written as |
//! |---|---|---|---|
//! | [`Time`] | picoseconds, of an instant or a span | 0 to 213 days | `s ms us ns ps` |
//! | [`Rate`] | bits per second | 0 to 18 million Tb/s | `Tbps Gbps Mbps kbps bps`, `GB/s MB/s kB/s KB/s B/s` |
//! | [`ByteSize`] | bytes | 0 to 18 EB | `GB MB KB kB B`, `GiB MiB KiB` |
//! | [`Frequency`] | millihertz | 0 to 18 PHz | `GHz MHz kHz Hz` |
//! | [`Probability`] | 2^-53 | 0 to 1 | a plain number |
//!
//! Promise: text is parsed exactly or refused with a [`UnitError`], and `FromStr` reads back what `Display` writes.
//! The operators `+ - *` follow `u64`: an overflow panics in every profile of this workspace, because the profiles
//! check for overflow. The methods named `saturating_` stop at the ends of the range instead.
//!
//! Source: ARCHITECTURE.md, "Time"; SI prefixes for powers of 1000, IEC prefixes for powers of 1024.
#![no_std]

extern crate alloc;

mod byte_size;
mod frequency;
mod probability;
mod quantity;
mod rate;
mod time;

pub use byte_size::ByteSize;
pub use frequency::Frequency;
pub use probability::Probability;
pub use quantity::UnitError;
pub use rate::Rate;
pub use time::Time;
