// SPDX-License-Identifier: Apache-2.0
//! Random numbers for the examples that make histories for the gateware.

/// splitmix64 (Steele et al., OOPSLA 2014).
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }

    /// Any magnitude is equally likely, and so are the two ends.
    pub fn magnitude(&mut self, bits: u32) -> u32 {
        match self.below(16) {
            0 => 0,
            1 => (u64::MAX >> (64 - bits)) as u32,
            _ => (self.next() >> 32) as u32 >> (31 - self.below(u64::from(bits)) as u32),
        }
    }
}
