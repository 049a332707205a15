// SPDX-License-Identifier: Apache-2.0
//! The retransmission timeout in ticks, computed from measured round trips.
//! Source: RFC 6298 sections 2, 3 and 5, in the scaled integers of Jacobson 1988, appendix A. Rule 5.7 is
//! not implemented, because the first timeout is a parameter.

use super::{Parameters, Row};

/// The longest round trip that is represented: 27 bits.
const MAX_RTT: u32 = (1 << 27) - 1;
/// The most doublings.
pub(super) const MAX_BACKOFF: u8 = 15;

/// The present timeout, with its doublings (RFC 6298 sections 2.3, 2.4, 2.5 and 5.5).
pub(super) fn timeout(row: &Row, parameters: &Parameters) -> u32 {
    let base = if parameters.adaptive && row.measured {
        // SRTT + max(G, 4 RTTVAR) with a clock granularity G of one tick.
        ((row.srtt >> 3) + row.rttvar.max(1)).max(parameters.rto_min)
    } else {
        parameters.rto_initial
    };
    (u64::from(base) << row.backoff).min(u64::from(parameters.rto_max)) as u32
}

/// The timer begins again.
pub(super) fn restart(row: &mut Row, parameters: &Parameters, now: u32) {
    row.timer_on = true;
    row.deadline = now.wrapping_add(timeout(row, parameters));
}

/// The measured segment was acknowledged (RFC 6298 sections 2.2 and 2.3).
pub(super) fn measure(row: &mut Row, now: u32) {
    let rtt = now.wrapping_sub(row.timed_at).min(MAX_RTT);
    if row.measured {
        // alpha = 1/8, beta = 1/4; RTTVAR first, by the old SRTT. Both stay within their bits.
        let error = rtt as i32 - (row.srtt >> 3) as i32;
        row.rttvar = row.rttvar - (row.rttvar >> 2) + error.unsigned_abs();
        row.srtt = row.srtt.wrapping_add_signed(error);
    } else {
        row.srtt = rtt << 3;
        row.rttvar = rtt << 1;
    }
    row.measured = true;
    row.timing = false;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(row: &mut Row, rtt: u32) {
        row.timed_at = 1000;
        measure(row, 1000u32.wrapping_add(rtt));
    }

    #[test]
    fn the_timeout_follows_rfc_6298_and_doubles() {
        let parameters = Parameters { rto_min: 1000, ..Parameters::default() };
        let mut row = Row::default();
        assert_eq!(timeout(&row, &parameters), 1_000_000);
        measured(&mut row, 8000);
        assert_eq!(timeout(&row, &parameters), 24_000); // R + 4 R/2
        measured(&mut row, 16_000);
        assert_eq!(timeout(&row, &parameters), 29_000); // srtt 7/8 8 + 1/8 16, rttvar 3/4 4 + 1/4 8
        row.backoff = 1;
        assert_eq!(timeout(&row, &parameters), 58_000);
        row.backoff = MAX_BACKOFF;
        assert_eq!(timeout(&row, &parameters), 60_000_000);
    }

    #[test]
    fn the_longest_round_trips_fit_the_row() {
        let parameters = Parameters::default();
        let mut row = Row::default();
        for rtt in [u32::MAX, 0, u32::MAX, u32::MAX, 0, 0].into_iter().cycle().take(600) {
            measured(&mut row, rtt);
            assert!(row.srtt < 1 << 30 && row.rttvar < 1 << 29, "{row:?}");
            assert!(timeout(&row, &parameters) <= parameters.rto_max);
        }
    }

    #[test]
    fn a_fixed_timeout_is_not_measured() {
        let parameters = Parameters { adaptive: false, rto_initial: 10_000, rto_min: 10_000, ..Parameters::default() };
        let mut row = Row::default();
        measured(&mut row, 500_000);
        assert_eq!(timeout(&row, &parameters), 10_000);
    }
}
