// SPDX-License-Identifier: Apache-2.0
//! The timeout for answers, computed from measured round trips.
//! Source: RFC 6298 (Jacobson and Karels); retransmitted packets are not measured (Karn).

use penstock_units::Time;

const FIRST: Time = Time::from_ms(100);
const LEAST: Time = Time::from_ms(20);
const MOST: Time = Time::from_s(1);

/// Smoothed round trip and its variation.
#[derive(Debug, Clone, Copy, Default)]
pub struct RoundTrip(Option<(Time, Time)>);

impl RoundTrip {
    /// Takes a measurement.
    pub fn measured(&mut self, trip: Time) {
        self.0 = Some(match self.0 {
            None => (trip, trip / 2),
            Some((smooth, variation)) => {
                let variation = (variation * 3 + smooth.abs_diff(trip)) / 4;
                ((smooth * 7 + trip) / 8, variation)
            }
        });
    }

    /// How long to wait after `tries` packets before the next.
    pub fn timeout(&self, tries: u32) -> Time {
        let first = self.0.map_or(FIRST, |(smooth, variation)| smooth.saturating_add(variation.saturating_mul(4)));
        first.max(LEAST).saturating_mul(1 << (tries.saturating_sub(1)).min(8)).min(MOST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_timeout_follows_the_round_trips_and_doubles_with_each_try() {
        let mut trip = RoundTrip::default();
        assert_eq!(trip.timeout(1), FIRST);
        assert_eq!(trip.timeout(3), FIRST * 4);
        assert_eq!(trip.timeout(40), MOST);
        for _ in 0..100 {
            trip.measured(Time::from_us(80));
        }
        assert_eq!(trip.timeout(1), LEAST);
        for _ in 0..100 {
            trip.measured(Time::from_ms(200));
        }
        assert!(trip.timeout(1) > Time::from_ms(195), "{}", trip.timeout(1));
    }
}
