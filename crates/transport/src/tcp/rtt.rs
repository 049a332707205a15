// SPDX-License-Identifier: Apache-2.0
//! Round-trip time and retransmission timeout.
//! Promise: integers only; the timeout is between its minimum and 60 s.
//! Source: RFC 6298 sections 2 and 5 (alpha 1/8, beta 1/4, K = 4; doubled at each timeout).

use penstock_units::Time;

const MAX_RTO: Time = Time::from_s(60);
/// The timeout before anything was measured (RFC 6298 2.1).
const INITIAL_RTO: Time = Time::from_s(1);

#[derive(Clone, Copy, Debug)]
pub(crate) struct RttEstimator {
    min_rto: Time,
    /// Smoothed round trip and its variation.
    smoothed: Option<(Time, Time)>,
    backoff: u32,
}

impl RttEstimator {
    pub(crate) fn new(min_rto: Time) -> Self {
        RttEstimator { min_rto, smoothed: None, backoff: 0 }
    }

    /// A segment sent once was acknowledged after `rtt` (Karn's rule is the caller's).
    pub(crate) fn measured(&mut self, rtt: Time) {
        self.smoothed = Some(match self.smoothed {
            None => (rtt, rtt / 2),
            Some((srtt, var)) => ((srtt * 7 + rtt) / 8, (var * 3 + srtt.abs_diff(rtt)) / 4),
        });
        self.backoff = 0;
    }

    pub(crate) fn srtt(&self) -> Option<Time> {
        self.smoothed.map(|(srtt, _)| srtt)
    }

    pub(crate) fn rto(&self) -> Time {
        let base = self.smoothed.map_or(INITIAL_RTO, |(srtt, var)| srtt + (var * 4).max(self.min_rto));
        base.max(self.min_rto).saturating_mul(1 << self.backoff.min(16)).min(MAX_RTO)
    }

    /// The timer has expired (5.5).
    pub(crate) fn back_off(&mut self) {
        self.backoff += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_timeout_follows_rfc_6298_and_doubles() {
        let ms = Time::from_ms;
        let mut rtt = RttEstimator::new(ms(1));
        assert_eq!(rtt.rto(), INITIAL_RTO);
        rtt.measured(ms(8));
        assert_eq!((rtt.srtt(), rtt.rto()), (Some(ms(8)), ms(24))); // R + 4 R/2
        rtt.measured(ms(16));
        assert_eq!(rtt.rto(), ms(9 + 4 * 5)); // srtt 7/8 8 + 1/8 16, rttvar 3/4 4 + 1/4 8
        rtt.back_off();
        assert_eq!(rtt.rto(), ms(58));
        (0..40).for_each(|_| rtt.back_off());
        assert_eq!(rtt.rto(), MAX_RTO);
        rtt.measured(ms(9)); // Karn: only a measurement ends the back-off
        assert_eq!(rtt.rto(), ms(9 + 15));
    }
}
