// SPDX-License-Identifier: Apache-2.0
//! Division of what was counted by the time that it took.
//! Promise: where there is no time, the answer is 0, and never an absurd number that looks like a measurement.

/// `amount` per `span`; 0 where the span is not positive.
pub fn per(amount: f64, span: f64) -> f64 {
    match span > 0.0 {
        true => amount / span,
        false => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_was_done_in_no_time() {
        assert_eq!(
            [per(6.0, 2.0), per(6.0, 0.0), per(6.0, -1.0), per(6.0, f64::NAN), per(0.0, 0.0)],
            [3.0, 0.0, 0.0, 0.0, 0.0]
        );
    }
}
