// SPDX-License-Identifier: Apache-2.0
//! Probabilities of faults and marks.

use core::fmt;

/// A probability, kept as a threshold over 53 random bits so that a decision is an integer comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Probability {
    threshold: u64,
    /// The number as given (its IEEE 754 bits), for people.
    given: u64,
}

impl Probability {
    /// 0.
    pub const NEVER: Probability = Probability { threshold: 0, given: 0 };
    const ONE: u64 = 1 << 53;

    /// `None` when `p` does not lie in 0 ..= 1.
    pub fn new(p: f64) -> Option<Self> {
        let p = p + 0.0; // minus zero becomes zero
        let threshold = (p * Self::ONE as f64) as u64;
        (0.0..=1.0).contains(&p).then(|| Probability { threshold, given: p.to_bits() })
    }

    /// Whether no decision can be "yes".
    #[inline]
    pub const fn is_never(self) -> bool {
        self.threshold == 0
    }

    /// The number as given, in 0 ..= 1.
    pub fn as_f64(self) -> f64 {
        f64::from_bits(self.given)
    }

    /// The decision for 64 random bits.
    #[inline]
    pub const fn decide(self, random: u64) -> bool {
        (random >> 11) < self.threshold
    }
}

impl fmt::Display for Probability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.as_f64())
    }
}
