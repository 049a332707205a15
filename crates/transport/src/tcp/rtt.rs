// SPDX-License-Identifier: Apache-2.0
//! Round-trip time and retransmission timeout.
//! Promise: integers only; the timeout lies between its minimum and 60 s.
//! Source: RFC 6298 sections 2 and 5 (alpha 1/8, beta 1/4, K = 4; doubled at each expiry).

const MAX_RTO_PS: u64 = 60_000_000_000_000;
/// Before anything was measured (RFC 6298 2.1).
const INITIAL_RTO_PS: u64 = 1_000_000_000_000;

#[derive(Clone, Copy, Debug)]
pub(crate) struct RttEstimator {
    min_rto: u64,
    /// Smoothed round trip and its variation.
    smoothed: Option<(u64, u64)>,
    backoff: u32,
}

impl RttEstimator {
    pub(crate) fn new(min_rto: u64) -> Self {
        RttEstimator { min_rto, smoothed: None, backoff: 0 }
    }

    /// A segment sent once was acknowledged after `rtt` (Karn's rule is the caller's).
    pub(crate) fn measured(&mut self, rtt: u64) {
        self.smoothed = Some(match self.smoothed {
            None => (rtt, rtt / 2),
            Some((srtt, var)) => ((7 * srtt + rtt) / 8, (3 * var + srtt.abs_diff(rtt)) / 4),
        });
        self.backoff = 0;
    }

    pub(crate) fn srtt(&self) -> Option<u64> {
        self.smoothed.map(|(srtt, _)| srtt)
    }

    pub(crate) fn rto(&self) -> u64 {
        let base = self.smoothed.map_or(INITIAL_RTO_PS, |(srtt, var)| srtt + (4 * var).max(self.min_rto));
        base.max(self.min_rto).saturating_mul(1 << self.backoff.min(16)).min(MAX_RTO_PS)
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
        let ms = 1_000_000_000;
        let mut rtt = RttEstimator::new(ms);
        assert_eq!(rtt.rto(), INITIAL_RTO_PS);
        rtt.measured(8 * ms);
        assert_eq!((rtt.srtt(), rtt.rto()), (Some(8 * ms), 24 * ms)); // R + 4 R/2
        rtt.measured(16 * ms);
        assert_eq!(rtt.rto(), 9 * ms + 4 * (5 * ms)); // srtt 7/8 8 + 1/8 16, rttvar 3/4 4 + 1/4 8
        rtt.back_off();
        assert_eq!(rtt.rto(), 58 * ms);
        (0..40).for_each(|_| rtt.back_off());
        assert_eq!(rtt.rto(), MAX_RTO_PS);
        rtt.measured(9 * ms); // Karn: only a measurement ends the back-off
        assert_eq!(rtt.rto(), 9 * ms + 4 * (15 * ms / 4));
    }
}
