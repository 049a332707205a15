// SPDX-License-Identifier: Apache-2.0
//! Quantities on the command line: with their unit, as in `128KiB` or `1kHz`, or a number alone in the unit that the
//! option's help names.
//! Promise: a quantity with a unit is read exactly or refused, whole numbers of a unit are not rounded.

use super::number::number;
use penstock_units::{ByteSize, Frequency, Rate, Time, UnitError};
use std::net::SocketAddr;
use std::str::FromStr;

/// Seconds: `1.5` or `1500ms`.
pub fn seconds(text: &str) -> Result<f64, String> {
    decimal(text, |time: Time| time.as_secs_f64())
}

/// Milliseconds with a fraction: `0.5` or `500us`.
pub fn fine_milliseconds(text: &str) -> Result<f64, String> {
    decimal(text, |time: Time| time.0 as f64 / Time::from_ms(1).0 as f64)
}

/// Gb/s: `10` or `10Gbps`.
pub fn gbps(text: &str) -> Result<f64, String> {
    decimal(text, |rate: Rate| rate.0 as f64 * 1e-9)
}

/// Megabytes per second: `200` or `200MB/s`.
pub fn megabytes_per_second(text: &str) -> Result<f64, String> {
    decimal(text, |rate: Rate| rate.0 as f64 / 8e6)
}

/// Events per second: `1000` or `1kHz`.
pub fn hertz(text: &str) -> Result<f64, String> {
    decimal(text, Frequency::as_hz_f64)
}

fn decimal<Q: FromStr<Err = UnitError>>(text: &str, in_unit: impl Fn(Q) -> f64) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(alone) => Ok(alone),
        Err(_) => text.parse().map(in_unit).map_err(|error| error.to_string()),
    }
}

/// Bytes: `131072`, `0x20000` or `128KiB`.
pub fn bytes<T: TryFrom<u64>>(text: &str) -> Result<T, String> {
    whole(text, |size: ByteSize| size.0, 1, "bytes")
}

/// Whole milliseconds: `1500` or `1.5s`.
pub fn milliseconds<T: TryFrom<u64>>(text: &str) -> Result<T, String> {
    whole(text, |time: Time| time.0, Time::from_ms(1).0, "milliseconds")
}

/// Whole microseconds: `640` or `0.64ms`.
pub fn microseconds<T: TryFrom<u64>>(text: &str) -> Result<T, String> {
    whole(text, |time: Time| time.0, Time::from_us(1).0, "microseconds")
}

/// Whole seconds: `600` or `10000ms`.
pub fn whole_seconds<T: TryFrom<u64>>(text: &str) -> Result<T, String> {
    whole(text, |time: Time| time.0, Time::from_s(1).0, "seconds")
}

fn whole<Q: FromStr<Err = UnitError>, T: TryFrom<u64>>(
    text: &str,
    count: impl Fn(Q) -> u64,
    unit: u64,
    of: &str,
) -> Result<T, String> {
    let quantity = match text.parse::<Q>() {
        Ok(quantity) => count(quantity),
        Err(UnitError::NoUnit { .. } | UnitError::UnknownUnit { .. }) if is_alone(text) => return number(text),
        Err(error) => return Err(error.to_string()),
    };
    if !quantity.is_multiple_of(unit) {
        return Err(format!("{text:?} is no whole number of {of}"));
    }
    T::try_from(quantity / unit).map_err(|_| format!("{text:?}: allowed are {} bits of {of}", 8 * size_of::<T>()))
}

/// Whether it is a number without a unit.
fn is_alone(text: &str) -> bool {
    text.starts_with("0x") || text.bytes().all(|byte| byte.is_ascii_digit())
}

/// What was read, if it is above 0.
pub fn above_zero<T: PartialEq + From<u8>>(read: Result<T, String>) -> Result<T, String> {
    match read {
        Ok(value) if value == T::from(0) => Err("allowed is more than 0".to_owned()),
        read => read,
    }
}

/// An address to listen at: `127.0.0.1:9100`, `localhost:9100`, or `:9100` of the loopback.
pub fn listen_address(text: &str) -> Result<SocketAddr, String> {
    penstock_dashboard::address(text).ok_or_else(|| format!("{text:?} is no address; write ADDRESS:PORT, or :PORT"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_have_a_unit_or_that_of_their_option() {
        assert_eq!([seconds("1.5"), seconds("1500ms")], [Ok(1.5), Ok(1.5)]);
        assert_eq!([fine_milliseconds("0.5"), fine_milliseconds("500us")], [Ok(0.5), Ok(0.5)]);
        assert_eq!([gbps("10"), gbps("10Gbps"), gbps("1.25GB/s")], [Ok(10.0), Ok(10.0), Ok(10.0)]);
        assert_eq!([hertz("1e3"), hertz("1kHz")], [Ok(1000.0), Ok(1000.0)]);
        assert_eq!([megabytes_per_second("200"), megabytes_per_second("1.6Gbps")], [Ok(200.0), Ok(200.0)]);
        let of_bytes = ["131072", "0x20000", "128KiB"].map(bytes::<u32>);
        assert_eq!(of_bytes, [Ok(131_072), Ok(131_072), Ok(131_072)]);
        assert_eq!([milliseconds::<u64>("1500"), milliseconds("1.5s")], [Ok(1500), Ok(1500)]);
        assert_eq!([microseconds::<u32>("640"), microseconds("0.64ms")], [Ok(640), Ok(640)]);
        assert_eq!([whole_seconds::<u64>("600"), whole_seconds("600s")], [Ok(600), Ok(600)]);
    }

    #[test]
    fn refusals_name_what_is_allowed() {
        assert!(gbps("10Gb").unwrap_err().contains("Gbps"));
        assert!(hertz("1kb").unwrap_err().contains("kHz"));
        assert!(bytes::<u32>("1kilo").unwrap_err().contains("KiB"));
        assert!(bytes::<u16>("128KiB").unwrap_err().contains("16 bits of bytes"));
        assert!(bytes::<u32>("1.5").unwrap_err().contains("no unit"));
        assert!(milliseconds::<u64>("1.5ms").unwrap_err().contains("no whole number of milliseconds"));
        assert_eq!(above_zero(bytes::<u32>("0KiB")).unwrap_err(), "allowed is more than 0");
        assert!(milliseconds::<u64>("-1").unwrap_err().contains("decimal number"));
    }

    #[test]
    fn an_address_to_listen_at_may_be_a_port_alone() {
        assert_eq!(listen_address(":9100").unwrap().to_string(), "127.0.0.1:9100");
        assert_eq!(listen_address("127.0.0.1:9100").unwrap().to_string(), "127.0.0.1:9100");
        assert!(listen_address("localhost:9100").unwrap().ip().is_loopback());
        assert!(listen_address("9100").unwrap_err().contains(":PORT"));
    }
}
