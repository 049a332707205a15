// SPDX-License-Identifier: Apache-2.0
//! Converts a register's number to a physical quantity with the board's clock, and back.
//! Promise: the displayed quantity, written back to the register, gives the same number, with as few digits as that
//! needs.

use super::Unit;
use penstock_units::{Rate, Time};
use std::net::Ipv4Addr;

/// Fractional bits of a rate.
const RATE_FRACTION: u32 = 24;
const TICK: u64 = 1_024_000; // ps

/// The clock of a board.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scale {
    #[allow(missing_docs)]
    pub clock_khz: u32,
}

impl Scale {
    /// Bits per second of a rate register.
    pub fn rate(self, word: u64) -> u64 {
        let bits = u128::from(word) * 8 * u128::from(self.clock_khz) * 1000;
        rounded(bits, 1 << RATE_FRACTION)
    }

    /// The rate register that comes nearest.
    pub fn rate_word(self, rate: Rate) -> u64 {
        rounded(u128::from(rate.0) << RATE_FRACTION, 8 * u128::from(self.clock_khz.max(1)) * 1000)
    }

    /// The time of this number of cycles.
    pub fn time(self, cycles: u64) -> u64 {
        rounded(u128::from(cycles) * 1_000_000_000, u128::from(self.clock_khz.max(1)))
    }

    /// Cycles that come nearest to a time.
    pub fn cycles(self, time: Time) -> u64 {
        rounded(u128::from(time.0) * u128::from(self.clock_khz), 1_000_000_000)
    }

    /// A number as people read it.
    pub fn show(self, unit: Unit, number: u64) -> String {
        match unit {
            Unit::Plain => number.to_string(),
            Unit::Hex => format!("0x{number:x}"),
            Unit::Bytes => format!("{number}B"),
            Unit::Milliseconds => format!("{number}ms"),
            Unit::SignedNanoseconds => format!("{}ns", number as u32 as i32),
            Unit::Kilohertz => format!("{number}kHz"),
            Unit::Rate => {
                let exact = self.rate(number);
                shortest(exact, |bits| self.rate_word(Rate(bits)) == number)
                    .map_or(number.to_string(), |bits| Rate(bits).to_string())
            }
            Unit::Cycles => {
                let exact = self.time(number);
                shortest(exact, |ps| self.cycles(Time(ps)) == number)
                    .map_or(number.to_string(), |ps| Time(ps).to_string())
            }
            Unit::Ticks => Time(number * TICK).to_string(),
            Unit::Fraction => format!("{:.5}", number as f64 / 65536.0),
            Unit::Ipv4 => Ipv4Addr::from_bits(number as u32).to_string(),
            Unit::Mac => {
                let bytes = number.to_be_bytes();
                let octets: Vec<String> = bytes[2..].iter().map(|octet| format!("{octet:02x}")).collect();
                octets.join(":")
            }
        }
    }

    /// A number in its own unit for machines: bits per second, seconds, bytes, a fraction of 1; None: it has none.
    pub fn quantity(self, unit: Unit, number: u64) -> Option<f64> {
        match unit {
            Unit::Rate => Some(self.rate(number) as f64),
            Unit::Cycles => Some(self.time(number) as f64 * 1e-12),
            Unit::Ticks => Some((number * TICK) as f64 * 1e-12),
            Unit::Milliseconds => Some(number as f64 * 1e-3),
            Unit::SignedNanoseconds => Some(f64::from(number as u32 as i32) * 1e-9),
            Unit::Fraction => Some(number as f64 / 65536.0),
            _ => None,
        }
    }

    /// The text of a quantity in its own unit, as [`Scale::quantity`] gives it; None: a number without one has a fraction.
    pub fn text(unit: Unit, quantity: f64) -> Option<String> {
        match unit {
            Unit::Rate => Some(format!("{quantity:.0}bps")),
            Unit::Cycles | Unit::Ticks | Unit::Milliseconds => Some(format!("{:.0}ps", quantity * 1e12)),
            Unit::SignedNanoseconds => Some(format!("{:.0}ns", quantity * 1e9)),
            Unit::Fraction => Some(format!("{quantity:.9}")),
            _ if quantity.fract() == 0.0 => Some(format!("{quantity:.0}")),
            _ => None,
        }
    }

    /// Reads a quantity with its unit; None: the text is a plain number, or none at all.
    pub fn parse(self, unit: Unit, text: &str) -> Option<Result<u64, String>> {
        let is_number = text.bytes().all(|byte| byte.is_ascii_digit()) || text.starts_with("0x");
        match unit {
            _ if is_number => None,
            Unit::Rate => {
                Some(text.parse::<Rate>().map(|rate| self.rate_word(rate)).map_err(|error| error.to_string()))
            }
            Unit::Cycles => Some(text.parse::<Time>().map(|time| self.cycles(time)).map_err(|error| error.to_string())),
            Unit::Ticks => Some(
                text.parse::<Time>()
                    .map(|time| rounded(u128::from(time.0), u128::from(TICK)))
                    .map_err(|error| error.to_string()),
            ),
            Unit::Milliseconds => Some(
                text.parse::<Time>()
                    .map(|time| rounded(u128::from(time.0), 1_000_000_000))
                    .map_err(|error| error.to_string()),
            ),
            Unit::SignedNanoseconds => Some(
                text.strip_suffix("ns")
                    .and_then(|number| number.parse::<i32>().ok())
                    .map(|number| u64::from(number as u32))
                    .ok_or_else(|| format!("{text:?}: allowed are whole nanoseconds with a sign, such as -12ns")),
            ),
            Unit::Bytes => {
                Some(text.parse::<penstock_units::ByteSize>().map(|size| size.0).map_err(|error| error.to_string()))
            }
            Unit::Ipv4 => Some(
                text.parse::<Ipv4Addr>()
                    .map(|ip| u64::from(ip.to_bits()))
                    .map_err(|_| format!("{text:?} is no IPv4 address; write one as 10.0.0.1")),
            ),
            Unit::Mac => Some(mac(text)),
            Unit::Fraction => Some(match text.parse::<f64>() {
                Ok(part) if (0.0..=1.0).contains(&part) => Ok((part * 65536.0).round() as u64),
                _ => Err(format!("{text:?}: allowed is 0 to 1")),
            }),
            Unit::Plain | Unit::Kilohertz | Unit::Hex => None,
        }
    }
}

fn mac(text: &str) -> Result<u64, String> {
    let octets: Vec<u8> = text
        .split(':')
        .map(|octet| u8::from_str_radix(octet, 16).ok().filter(|_| octet.len() == 2))
        .collect::<Option<_>>()
        .filter(|octets: &Vec<u8>| octets.len() == 6)
        .ok_or_else(|| format!("{text:?} is no MAC address; write one as 02:00:0a:00:00:02"))?;
    if octets[0] & 1 == 1 {
        return Err(format!("{text}: a group address; a board's has an even first octet"));
    }
    Ok(octets.iter().fold(0, |number, octet| number << 8 | u64::from(*octet)))
}

fn rounded(number: u128, by: u128) -> u64 {
    u64::try_from((number + by / 2) / by).unwrap_or(u64::MAX)
}

/// The number of fewest digits near `exact` that `is_right`.
fn shortest(exact: u64, is_right: impl Fn(u64) -> bool) -> Option<u64> {
    let digits = exact.checked_ilog10().unwrap_or(0);
    let candidates = (0..=digits).rev().map(|zeros| {
        let step = 10u64.pow(zeros);
        (u128::from(exact) + u128::from(step / 2)) / u128::from(step) * u128::from(step)
    });
    candidates.filter_map(|candidate| u64::try_from(candidate).ok()).find(|candidate| is_right(*candidate))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEN: Scale = Scale { clock_khz: 156_250 };

    #[test]
    fn quantities_are_shown_as_they_were_written() {
        for scale in [TEN, Scale { clock_khz: 390_625 }, Scale { clock_khz: 322_266 }] {
            for text in ["40Mbps", "10Gbps", "48Mbps", "1.5Gbps", "500kbps"] {
                let word = scale.parse(Unit::Rate, text).unwrap().unwrap();
                assert_eq!(scale.show(Unit::Rate, word), text);
            }
            for text in ["3us", "40us", "2ms", "55us", "1s"] {
                let word = scale.parse(Unit::Cycles, text).unwrap().unwrap();
                assert_eq!(scale.show(Unit::Cycles, word), text);
            }
        }
        assert_eq!(TEN.parse(Unit::Rate, "10Gbps").unwrap().unwrap(), 8 << 24);
        assert_eq!(TEN.show(Unit::Ipv4, 0x0A00_0002), "10.0.0.2");
        assert_eq!(TEN.show(Unit::Mac, 0x0200_0A00_0002), "02:00:0a:00:00:02");
        assert_eq!(TEN.parse(Unit::Mac, "02:00:0a:00:00:02").unwrap().unwrap(), 0x0200_0A00_0002);
        assert_eq!(TEN.show(Unit::Fraction, 65536), "1.00000");
        assert_eq!(TEN.show(Unit::SignedNanoseconds, 0xFFFF_FFF4), "-12ns");
    }

    #[test]
    fn every_word_that_is_shown_is_read_back_as_itself() {
        let mut word = 1u64;
        while word <= u64::from(u32::MAX) {
            for unit in [
                Unit::Rate,
                Unit::Cycles,
                Unit::Bytes,
                Unit::Ticks,
                Unit::Milliseconds,
                Unit::SignedNanoseconds,
                Unit::Ipv4,
            ] {
                let shown = TEN.show(unit, word);
                let read = TEN.parse(unit, &shown).map_or_else(|| shown.parse().unwrap(), Result::unwrap);
                assert_eq!(read, word, "{unit:?} {shown}");
            }
            word = word * 7 / 4 + 1;
        }
    }

    #[test]
    fn what_is_no_quantity_is_refused_with_what_is() {
        for (unit, text, words) in [
            (Unit::Rate, "40Mb", "is no unit of a rate"),
            (Unit::Cycles, "3 miles", "is no unit of a time"),
            (Unit::Ipv4, "10.0.0", "no IPv4 address"),
            (Unit::Mac, "01:00:00:00:00:00", "group address"),
            (Unit::Mac, "2:0:0:0:0:0", "no MAC address"),
            (Unit::Fraction, "1.5", "allowed is 0 to 1"),
        ] {
            let message = TEN.parse(unit, text).unwrap().unwrap_err();
            assert!(message.contains(words), "{message}");
        }
    }
}
