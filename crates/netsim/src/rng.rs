// SPDX-License-Identifier: Apache-2.0
//! Random sub-streams: one per link direction and switch, derived from the run's seed and a name.
//! Promise: a stream depends only on (seed, name), so adding a link never changes another link's faults.
//! Source: PCG64-DXSM-family generator of `rand_pcg` (value-stable); SplitMix64 finaliser for seeding.

use rand_core::{Rng as _, SeedableRng};
use rand_pcg::Pcg64Mcg;

use crate::units::{Probability, Time};

/// A reproducible source of random numbers.
#[derive(Debug, Clone)]
pub struct Stream(Pcg64Mcg);

impl Stream {
    /// The stream called `name` of the run with this seed.
    pub fn new(seed: u64, name: &str) -> Self {
        let mut state = mix(seed ^ 0x9e37_79b9_7f4a_7c15);
        for byte in name.bytes() {
            state = mix(state ^ u64::from(byte));
        }
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&mix(state ^ 1).to_le_bytes());
        bytes[8..].copy_from_slice(&mix(state ^ 2).to_le_bytes());
        Stream(Pcg64Mcg::from_seed(bytes))
    }

    pub fn next_u32(&mut self) -> u32 {
        self.0.next_u32()
    }

    pub fn next_u64(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number in `0 .. bound` (0 when `bound` is 0); the bias is below 2^-64 * bound.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// A time from the exponential distribution with this mean, in integers throughout.
    ///
    /// A uniform number starts a run of uniform numbers that fall as long as they can; the run is of odd length with
    /// probability exp(-u), which is the density wanted on [0, 1) (von Neumann 1951). Each rejection moves one mean on.
    pub fn exponential(&mut self, mean: Time) -> Time {
        let mut units: u64 = 0;
        loop {
            let first = self.next_u64();
            let (mut last, mut odd) = (first, true);
            loop {
                let next = self.next_u64();
                if next >= last {
                    break;
                }
                (last, odd) = (next, !odd);
            }
            if odd {
                let part = (u128::from(first) * u128::from(mean.0)) >> 64;
                return Time(mean.0.saturating_mul(units).saturating_add(part as u64));
            }
            units += 1;
        }
    }

    /// Puts the elements of a slice into a random order (Fisher and Yates).
    pub fn shuffle<T>(&mut self, slice: &mut [T]) {
        for last in (1..slice.len()).rev() {
            let other = self.below(last as u64 + 1) as usize;
            slice.swap(last, other);
        }
    }

    /// True with probability `p`. A probability of 0 draws nothing.
    pub fn happens(&mut self, p: Probability) -> bool {
        !p.is_never() && p.decide(self.next_u64())
    }
}

fn mix(mut x: u64) -> u64 {
    x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_depend_on_seed_and_name_alone() {
        let first = |seed, name| Stream::new(seed, name).next_u64();
        assert_eq!(first(1, "board0>switch"), first(1, "board0>switch"));
        assert_ne!(first(1, "board0>switch"), first(2, "board0>switch"));
        assert_ne!(first(1, "board0>switch"), first(1, "board1>switch"));
    }

    #[test]
    fn the_first_numbers_never_change_between_versions() {
        let mut stream = Stream::new(42, "board0>switch");
        let numbers: Vec<String> = (0..4).map(|_| format!("{:016x}", stream.next_u64())).collect();
        insta::assert_snapshot!(numbers.join("\n"));
    }

    #[test]
    fn exponential_times_have_their_mean_and_their_tail() {
        let mut stream = Stream::new(11, "exponential");
        let mean = Time::from_us(100);
        let times: Vec<Time> = (0..100_000).map(|_| stream.exponential(mean)).collect();
        let average = times.iter().map(|time| time.0).sum::<u64>() / 100_000;
        assert!((99_000_000..101_000_000).contains(&average), "{average} ps");
        // exp(-2) = 0.1353
        let late = times.iter().filter(|time| **time > mean * 2).count();
        assert!((13_200..13_900).contains(&late), "{late} of 100000");
    }

    #[test]
    fn probabilities_come_out_as_requested() {
        let mut stream = Stream::new(7, "p");
        let p = Probability::new(0.3).unwrap();
        let hits = (0..100_000).filter(|_| stream.happens(p)).count();
        assert!((29_000..31_000).contains(&hits), "{hits} of 100000");
    }
}
