// SPDX-License-Identifier: Apache-2.0
//! CUBIC's window growth: a cubic function of the time since the last loss, never slower than New Reno.
//! Promise: integers only; W_cubic within one part in 10^6 of the formula.
//! Source: RFC 9438 sections 4.1 to 4.7 (C = 0.4, beta = 0.7).

use super::acked::Acked;
use penstock_units::Time;

/// The cubic is computed in microseconds.
const US: Time = Time::from_us(1);

#[derive(Clone, Debug, Default)]
pub(super) struct Cubic {
    /// W_max and, at its last change, the window before it; bytes.
    max: u64,
    epoch: Option<Epoch>,
}

/// The state since the last loss.
#[derive(Clone, Debug)]
struct Epoch {
    start: Time,
    /// Microseconds until W_max is reached again.
    k_us: u64,
    /// What New Reno's window would be (W_est), and its growth below one byte.
    reno: u64,
    reno_remainder: u128,
}

impl Cubic {
    /// Bytes to grow in this round trip.
    pub(super) fn increment(&mut self, cwnd: u64, mss: u64, acked: Acked) -> u64 {
        let max = self.max.max(cwnd);
        let epoch = self.epoch.get_or_insert_with(|| {
            // K = cbrt((W_max - cwnd) / (C mss)), in microseconds: 1 / C = 2.5 s^3 a segment.
            let k_cubed = u128::from(max - cwnd) * 2_500_000_000_000_000_000 / u128::from(mss);
            Epoch { start: acked.now, k_us: cube_root(k_cubed), reno: cwnd, reno_remainder: 0 }
        });
        epoch.grow_reno(cwnd, mss, acked.bytes);
        let elapsed = (acked.now - epoch.start) / US;
        // One round trip ahead (4.2), at least the window as it is and at most half as much again (4.4).
        let target = w_cubic(max, mss, elapsed + acked.srtt / US, epoch.k_us).clamp(cwnd, cwnd + cwnd / 2);
        if w_cubic(max, mss, elapsed, epoch.k_us) < epoch.reno {
            return epoch.reno.saturating_sub(cwnd).max(1);
        }
        (target - cwnd).max(1)
    }

    /// The window after a loss, with fast convergence (4.6, 4.7).
    pub(super) fn reduced(&mut self, cwnd: u64) -> u64 {
        self.max = if cwnd < self.max { cwnd * 17 / 20 } else { cwnd };
        self.epoch = None;
        cwnd * 7 / 10
    }
}

impl Epoch {
    /// W_est grows by 3 (1 - beta) / (1 + beta) = 9/17 of a segment a window (4.3).
    fn grow_reno(&mut self, cwnd: u64, mss: u64, bytes: u64) {
        let divisor = 17 * u128::from(cwnd);
        let growth = 9 * u128::from(bytes) * u128::from(mss) + self.reno_remainder;
        self.reno += (growth / divisor) as u64;
        self.reno_remainder = growth % divisor;
    }
}

/// W_cubic(t) = C (t - K)^3 + W_max in bytes, times in microseconds.
fn w_cubic(max: u64, mss: u64, t_us: u64, k_us: u64) -> u64 {
    let distance = i128::from(t_us) - i128::from(k_us);
    let change = distance.pow(3) * i128::from(mss) / 2_500_000_000_000_000_000;
    (i128::from(max) + change).clamp(0, i128::from(u64::MAX >> 1)) as u64
}

/// The largest integer whose cube is not above `value`.
fn cube_root(value: u128) -> u64 {
    let mut root: u128 = 0;
    for bit in (0..42).rev() {
        let candidate = root | 1 << bit;
        if candidate.pow(3) <= value {
            root = candidate;
        }
    }
    root as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cube_root_is_the_integer_one() {
        for root in [1, 7, 1_000_000, 4_000_000_000u64] {
            let cube = u128::from(root).pow(3);
            assert_eq!((cube_root(cube), cube_root(cube + 1)), (root, root));
        }
        assert_eq!(cube_root(999), 9);
    }

    #[test]
    fn the_window_follows_the_cubic_of_the_rfc() {
        let mss = 1000;
        let mut cubic = Cubic::default();
        assert_eq!(cubic.reduced(100 * mss), 70 * mss);
        cubic.increment(70 * mss, mss, Acked { now: Time::ZERO, bytes: mss, srtt: Time::ZERO });
        let k = cubic.epoch.as_ref().unwrap().k_us;
        assert_eq!(k, 4_217_163); // cbrt(30 / 0.4) s
        assert_eq!(w_cubic(100 * mss, mss, 0, k), 70 * mss + 1); // of 70,000.0004
        assert_eq!(w_cubic(100 * mss, mss, k, k), 100 * mss);
        assert_eq!(w_cubic(100 * mss, mss, k + 5_000_000, k), 150 * mss); // 0.4 * 5^3 segments above
    }
}
