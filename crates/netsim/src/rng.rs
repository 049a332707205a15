// SPDX-License-Identifier: Apache-2.0
//! Random sub-streams: one per link direction and switch, derived from the run's seed and a name.
//! Promise: a stream depends on (seed, name) only, so adding a link never changes another link's faults.
//! Source: PCG64-DXSM-family generator of `rand_pcg` (value-stable); SplitMix64 finaliser for seeding.

use rand_core::{Rng as _, SeedableRng};
use rand_pcg::Pcg64Mcg;

use crate::units::Probability;

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
    fn probabilities_come_out_as_asked() {
        let mut stream = Stream::new(7, "p");
        let p = Probability::new(0.3).unwrap();
        let hits = (0..100_000).filter(|_| stream.happens(p)).count();
        assert!((29_000..31_000).contains(&hits), "{hits} of 100000");
    }
}
