// SPDX-License-Identifier: Apache-2.0
//! The seeded shift register from which QCN takes its jitter, equal to `rtl/cc/qcn_lengths.sv`.

/// A 32-bit Galois LFSR, x^32 + x^22 + x^2 + x + 1, of period 2^32 - 1; eight shifts a draw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lfsr(pub u32);

impl Lfsr {
    /// The feedback mask, applied when a one is shifted out.
    const TAPS: u32 = 0x8020_0003;
    /// Keeps the registers of neighbouring queue pairs far apart (2^32 / golden ratio).
    const SPREAD: u32 = 0x9E37_79B9;

    /// The register of queue pair `index`. The all-zero state would never change, so it is replaced by one.
    pub fn new(seed: u32, index: u8) -> Self {
        let start = seed ^ Self::SPREAD.wrapping_mul(u32::from(index));
        Self(if start == 0 { 1 } else { start })
    }

    /// The next byte.
    pub fn draw(&mut self) -> u8 {
        for _ in 0..8 {
            self.0 = (self.0 >> 1) ^ if self.0 & 1 == 1 { Self::TAPS } else { 0 };
        }
        self.0 as u8
    }
}

/// `base * (1 - jitter/256 .. 1 + jitter/256)`, selected by `random`, or half of
/// that; rounded up, saturating.
pub fn jittered(base: u32, jitter: u8, random: u8, half: bool) -> u32 {
    let factor = 256 - u64::from(jitter) + ((u64::from(random) * (2 * u64::from(jitter) + 1)) >> 8);
    let product = u64::from(base) * factor;
    let length = if half { (product + 511) >> 9 } else { (product + 255) >> 8 };
    u32::try_from(length).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::jittered;

    #[test]
    fn lengths_are_rounded_up_whole_or_halved_and_stay_at_the_highest_value() {
        assert_eq!(jittered(1, 1, 0, false), 1); // 255/256
        assert_eq!(jittered(3, 0, 0, true), 2);
        assert_eq!(jittered(u32::MAX, 127, 255, false), u32::MAX);
        assert_eq!([jittered(1000, 0, 99, false), jittered(1000, 0, 99, true)], [1000, 500]);
    }
}
