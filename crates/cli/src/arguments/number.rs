// SPDX-License-Identifier: Apache-2.0
//! Numbers on the command line: read, or refused with what is allowed.

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
