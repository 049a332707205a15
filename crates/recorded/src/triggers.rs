// SPDX-License-Identifier: Apache-2.0
//! Random triggers: a Poisson process in integer picoseconds.
//! Promise: one seed gives one sequence, on every machine and every build; no floating point is involved.
//! Source: exponential deviates by comparison of uniforms, von Neumann 1951 (NBS Applied Mathematics Series 12);
//! ChaCha8 as the generator, whose output `rand_chacha` guarantees to be portable and stable.

use penstock_units::Time;
use rand_chacha::rand_core::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Keeps this stream apart from every other user of the same run seed.
const STREAM_NAME: &[u8; 16] = b"penstock trigger";

/// An endless iterator over trigger times, from the start of the run, never decreasing.
///
/// ```
/// use penstock_recorded::Triggers;
/// use penstock_units::Time;
///
/// let mean = Time::from_us(100); // 10 kHz
/// let times: Vec<Time> = Triggers::new(1, mean).take(3).collect();
/// assert!(times.is_sorted());
/// assert_eq!(times, Triggers::new(1, mean).take(3).collect::<Vec<_>>());
/// ```
#[derive(Debug, Clone)]
pub struct Triggers {
    rng: ChaCha8Rng,
    mean_interval: Time,
    now: Time,
}

impl Triggers {
    /// Triggers whose intervals are exponential with the given mean (10 kHz: 100 us).
    pub fn new(seed: u64, mean_interval: Time) -> Triggers {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&seed.to_le_bytes());
        key[16..].copy_from_slice(STREAM_NAME);
        Triggers { rng: ChaCha8Rng::from_seed(key), mean_interval, now: Time::ZERO }
    }

    /// One exponential deviate of mean 1 as Q64.64.
    ///
    /// A uniform `u` starts a run of uniforms that fall as long as they can; the run is of odd length with probability
    /// exp(-u), which is the density wanted on [0, 1). Each rejection moves one unit on.
    fn exponential_q64(&mut self) -> u128 {
        let mut units: u128 = 0;
        loop {
            let first = self.rng.next_u64();
            let (mut last, mut odd) = (first, true);
            loop {
                let next = self.rng.next_u64();
                if next >= last {
                    break;
                }
                (last, odd) = (next, !odd);
            }
            if odd {
                return (units << 64) | u128::from(first);
            }
            units += 1;
        }
    }
}

impl Iterator for Triggers {
    type Item = Time;

    fn next(&mut self) -> Option<Time> {
        let deviate = self.exponential_q64();
        let (units, fraction) = ((deviate >> 64) as u64, deviate as u64);
        let part = (u128::from(fraction) * u128::from(self.mean_interval.as_ps())) >> 64;
        let interval = self.mean_interval.saturating_mul(units).saturating_add(Time(part as u64));
        self.now = self.now.saturating_add(interval);
        Some(self.now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEAN: Time = Time::from_us(100);

    fn intervals(seed: u64, n: usize) -> Vec<u64> {
        let times: Vec<Time> = std::iter::once(Time::ZERO).chain(Triggers::new(seed, MEAN)).take(n + 1).collect();
        times.windows(2).map(|w| (w[1] - w[0]).as_ps()).collect()
    }

    #[test]
    fn a_seed_gives_the_same_times_for_ever() {
        let times: Vec<u64> = Triggers::new(2008, MEAN).take(5).map(Time::as_ps).collect();
        assert_eq!(times, [132_000_666, 247_490_591, 351_695_773, 612_036_575, 737_916_162]);
    }

    #[test]
    fn seeds_differ() {
        assert_ne!(intervals(1, 8), intervals(2, 8));
    }

    /// Exponential: mean m, variance m^2, and P(interval > k m) = exp(-k). Tolerances are 5 sigma of 200,000 draws.
    #[test]
    fn intervals_are_exponential() {
        let (n, mean) = (200_000, MEAN.as_ps() as f64);
        let gaps: Vec<f64> = intervals(7, n).iter().map(|&gap| gap as f64 / mean).collect();
        let (sum, squares) = gaps.iter().fold((0.0, 0.0), |(s, q), g| (s + g, q + g * g));
        let (m1, m2) = (sum / n as f64, squares / n as f64);
        assert!((m1 - 1.0).abs() < 5.0 / (n as f64).sqrt(), "mean {m1}");
        assert!((m2 - 2.0).abs() < 5.0 * (20.0 / n as f64).sqrt(), "second moment {m2}");
        for k in [0.1, 0.5, 1.0, 2.0, 4.0] {
            let (p, found) = (f64::exp(-k), gaps.iter().filter(|&&g| g > k).count() as f64 / n as f64);
            assert!((found - p).abs() < 5.0 * (p * (1.0 - p) / n as f64).sqrt(), "P(>{k}) = {found}, expected {p}");
        }
    }
}
