// SPDX-License-Identifier: Apache-2.0
//! BIC's window growth: a binary search for the window at which a packet was last lost, then a probe beyond it.
//! Source: Xu, Harfoush and Rhee, INFOCOM 2004, with the constants of Linux: S_max 16, beta 0.2 (819/1024 remain),
//! New Reno below 14 segments.

/// Largest growth in a round trip, segments (S_max).
const MAX_INCREMENT: u64 = 16;
/// Smallest growth in a round trip, hundredths of a segment (S_min).
const MIN_INCREMENT_PERCENT: u64 = 1;
/// Below as many segments BIC is New Reno.
const LOW_WINDOW: u64 = 14;
/// 1 - beta, in 1/1024.
const REMAINS: u64 = 819;

#[derive(Clone, Debug, Default)]
pub(super) struct Bic {
    /// The window at the last loss (W_max); 0 before the first.
    max: u64,
}

impl Bic {
    /// Bytes to grow in this round trip.
    pub(super) fn increment(&self, cwnd: u64, mss: u64) -> u64 {
        if cwnd <= LOW_WINDOW * mss {
            return mss;
        }
        // Towards the midpoint to the maximum, and above the maximum with a step that doubles every round trip.
        let distance = if cwnd < self.max { (self.max - cwnd) / 2 } else { (cwnd - self.max).max(mss) };
        distance.clamp((mss * MIN_INCREMENT_PERCENT).div_ceil(100), MAX_INCREMENT * mss)
    }

    /// The window after a loss. Who loses below the last maximum makes room for others (fast convergence).
    pub(super) fn reduced(&mut self, cwnd: u64, mss: u64) -> u64 {
        self.max = if cwnd < self.max { cwnd * (1024 + REMAINS) / 2048 } else { cwnd };
        if cwnd <= LOW_WINDOW * mss {
            cwnd / 2
        } else {
            cwnd * REMAINS / 1024
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u64 = 1000;

    #[test]
    fn the_search_halves_the_distance_and_the_probe_doubles_it() {
        let mut bic = Bic::default();
        assert_eq!(bic.reduced(100 * MSS, MSS), 79_980);
        assert_eq!(bic.increment(80 * MSS, MSS), 10 * MSS);
        assert_eq!(bic.increment(60 * MSS, MSS), 16 * MSS);
        assert_eq!(bic.increment(100 * MSS - 1, MSS), 10);
        assert_eq!(bic.increment(100 * MSS, MSS), MSS);
        assert_eq!(bic.increment(104 * MSS, MSS), 4 * MSS);
        assert_eq!(bic.increment(10 * MSS, MSS), MSS);
    }

    #[test]
    fn a_loss_below_the_last_maximum_lowers_it_further() {
        let mut bic = Bic::default();
        bic.reduced(100 * MSS, MSS);
        bic.reduced(80 * MSS, MSS);
        assert_eq!(bic.max, 80 * MSS * (1024 + 819) / 2048);
    }
}
