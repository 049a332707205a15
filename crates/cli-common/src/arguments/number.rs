// SPDX-License-Identifier: Apache-2.0
//! Parses numbers on the command line; an error names the allowed values.

use penstock_units::Rate;

/// Where streams of the simplified TCP go, and are listened for.
pub const TCP_PORT: u16 = 10_000;

/// A whole number, decimal or hexadecimal.
pub fn number<T: TryFrom<u64>>(text: &str) -> Result<T, String> {
    let parsed = match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    };
    let wrong = || format!("{text:?}: allowed is a whole number of {} bits, decimal or 0x...", 8 * size_of::<T>());
    parsed.ok().and_then(|value| T::try_from(value).ok()).ok_or_else(wrong)
}

/// The value of `option`, if it is given: finite and above 0.
pub fn positive(option: &str, value: Option<f64>) -> Result<Option<f64>, String> {
    match value {
        Some(value) if !(value > 0.0 && value.is_finite()) => Err(format!("{option} {value}: must be above 0")),
        value => Ok(value),
    }
}

/// A share of a line: a rate above 0, as in 39Mbps.
pub fn share(text: &str) -> Result<Rate, String> {
    match text.parse::<Rate>().map_err(|error| error.to_string())? {
        Rate(0) => Err("allowed is more than 0".to_owned()),
        rate => Ok(rate),
    }
}
