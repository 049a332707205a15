// SPDX-License-Identifier: Apache-2.0
//! PRBS-31 as the gateware's message source sends it: one sequence of bits over all messages, the
//! first bit the least significant one of byte 0; made and checked at the speed of memory.
//! Source: ITU-T O.150 clause 5.8 (x^31 + x^28 + 1, sent complemented).
//!
//! Bit n is the sum of bits n-31 and n-28. Squaring is linear over GF(2), so the same holds for the
//! bits n-31f and n-28f with every power of two f. With f = 64 each 224 bytes are the sum of those 248
//! and 224 bytes before them, which is how long stretches are made.

const STATE_MASK: u32 = 0x7FFF_FFFF;
/// Bytes that are made from others, 31 f and 28 f bits back with f = 64.
const FAR: usize = 31 * 8;
const NEAR: usize = 28 * 8;

/// A place in the sequence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prbs31 {
    /// The 31 bits before the next one, the oldest in bit 0, as in a generator that complements nothing.
    state: u32,
    /// XORed onto every word: all ones where the complement is sent.
    flip: u64,
}

impl Prbs31 {
    /// The sequence behind the 31 bits of `seed` (register `prbs_seed`, oldest bit in bit 0; 0 means all
    /// ones), complemented where `invert` says so (register field `prbs_invert`, set by O.150).
    pub const fn new(seed: u32, invert: bool) -> Self {
        let seed = seed & STATE_MASK;
        let state = if seed == 0 { STATE_MASK } else { seed };
        Prbs31 { state, flip: if invert { u64::MAX } else { 0 } }
    }

    /// The sequence that goes on behind four bytes of it: how a reader joins a stream in the middle.
    /// `None` for bytes that no PRBS-31 holds: 31 bits of the one value that its register never has.
    pub const fn behind(bytes: [u8; 4], invert: bool) -> Option<Self> {
        let flip = if invert { u64::MAX } else { 0 };
        match (u32::from_le_bytes(bytes) ^ flip as u32) >> 1 {
            0 => None,
            state => Some(Prbs31 { state, flip }),
        }
    }

    /// The next 64 bits, not complemented, least significant first; the sequence moves on by `bits` of them.
    fn step(&mut self, bits: u32) -> u64 {
        // Three times 28 bits, each from the 31 before them.
        let mut b = u128::from(self.state);
        for have in [31, 59, 87] {
            let from = b >> (have - 31);
            b |= ((from ^ (from >> 3)) & 0x0FFF_FFFF) << have;
        }
        self.state = (b >> bits) as u32 & STATE_MASK;
        (b >> 31) as u64
    }

    /// Writes the next bytes of the sequence.
    pub fn fill(&mut self, out: &mut [u8]) {
        let first = out.len().min(FAR);
        for word in out[..first].chunks_mut(8) {
            let bits = self.step(8 * word.len() as u32) ^ self.flip;
            word.copy_from_slice(&bits.to_le_bytes()[..word.len()]);
        }
        let flip = self.flip as u8;
        for at in (FAR..out.len()).step_by(NEAR) {
            let (past, next) = out.split_at_mut(at);
            let sums = past[at - FAR..].iter().zip(&past[at - NEAR..]);
            next.iter_mut().zip(sums).for_each(|(byte, (far, near))| *byte = far ^ near ^ flip);
        }
        if out.len() > FAR {
            let last = [0, 1, 2, 3].map(|i| out[out.len() - 4 + i] ^ flip);
            self.state = u32::from_le_bytes(last) >> 1;
        }
    }

    /// Compares `data` with the next bytes of the sequence and returns the number of wrong bits.
    /// The sequence moves on as if all had been right, so one error is counted once.
    pub fn errors(&mut self, data: &[u8]) -> u64 {
        let mut errors = 0;
        let mut expected = [0; FAR + 64 * NEAR];
        for piece in data.chunks(expected.len()) {
            let expected = &mut expected[..piece.len()];
            self.fill(expected);
            if expected != piece {
                errors += expected.iter().zip(piece).map(|(a, b)| u64::from((a ^ b).count_ones())).sum::<u64>();
            }
        }
        errors
    }

    /// Moves on by `bytes` without making them: over messages that went elsewhere, or were lost.
    pub fn skip(&mut self, bytes: u64) {
        // The state is linear in itself: square the step of one byte as often as `bytes` has bits.
        let mut columns: [u32; 31] = core::array::from_fn(|i| {
            let mut unit = Prbs31 { state: 1 << i, flip: 0 };
            unit.step(8);
            unit.state
        });
        let mut left = bytes;
        while left != 0 {
            if left & 1 == 1 {
                self.state = apply(&columns, self.state);
            }
            columns = columns.map(|column| apply(&columns, column));
            left >>= 1;
        }
    }
}

/// The state that a linear step, given by what it makes of each single bit, makes of `state`.
fn apply(columns: &[u32; 31], state: u32) -> u32 {
    let chosen = columns.iter().enumerate().filter(|(i, _)| state >> i & 1 == 1);
    chosen.fold(0, |sum, (_, column)| sum ^ column)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use alloc::vec::Vec;

    /// O.150 as it is drawn: 31 stages, the sum of stages 28 and 31 goes into stage 1 and is the next bit.
    fn shift_register(seed: u32, invert: bool, len: usize) -> Vec<u8> {
        let mut stages: Vec<u32> = (1..=31).map(|stage| seed >> (31 - stage) & 1).collect();
        let mut next = || {
            let bit = stages[27] ^ stages[30];
            stages.pop();
            stages.insert(0, bit);
            bit ^ u32::from(invert)
        };
        (0..len).map(|_| (0..8).fold(0, |byte, i| byte | (next() as u8) << i)).collect()
    }

    fn stream(mut prbs: Prbs31, len: usize) -> Vec<u8> {
        let mut out = vec![0; len];
        prbs.fill(&mut out);
        out
    }

    /// Made by tb/lib/source_model.py, which the gateware is tested against.
    #[test]
    fn the_bytes_are_those_of_the_gateware() {
        let standard = [0xff, 0xff, 0xff, 0x8f, 0xff, 0xff, 0xff, 0xc0, 0xff, 0xff, 0x8f, 0xe3, 0xff, 0xff, 0x00, 0xf0];
        assert_eq!(stream(Prbs31::new(0, true), 1000)[..16], standard);
        assert_eq!(stream(Prbs31::new(0, true), 1000)[992..], [0x8f, 0xb0, 0x1c, 0x80, 0xb0, 0x6c, 0xf0, 0xb7]);
        let plain = [0xb7, 0xdc, 0x72, 0xe0, 0x90, 0x43, 0x3e, 0x7e, 0xf1, 0xc5, 0xfc, 0xa8, 0xa7, 0xae, 0xf1, 0xae];
        assert_eq!(stream(Prbs31::new(0x1234_5678, false), 1000)[..16], plain);
        assert_eq!(
            stream(Prbs31::new(0x1234_5678, false), 1000)[992..],
            [0x0b, 0x60, 0x99, 0x12, 0x05, 0x26, 0x65, 0xd8]
        );
    }

    #[test]
    fn any_length_in_any_pieces_is_one_sequence() {
        for (seed, invert) in [(1, false), (0x7FFF_FFFF, true), (0x2A5C_91D3, false), (0x2A5C_91D3, true)] {
            let expected = shift_register(seed, invert, 3000);
            assert_eq!(stream(Prbs31::new(seed, invert), 3000), expected);
            let (mut prbs, mut at) = (Prbs31::new(seed, invert), 0);
            for size in [1, 2, 3, 4, 7, 8, 9, 247, 248, 249, 250, 251, 472, 473, 600] {
                assert_eq!(prbs.errors(&expected[at..at + size]), 0, "{size} bytes from {at}");
                at += size;
            }
        }
    }

    #[test]
    fn each_wrong_bit_is_counted_once() {
        let mut data = stream(Prbs31::new(5, true), 40_000);
        for (at, bits) in [(0, 0x01), (3, 0x80), (250, 0x11), (15_000, 0xFF), (39_999, 0x40)] {
            data[at] ^= bits;
        }
        let mut prbs = Prbs31::new(5, true);
        assert_eq!(prbs.errors(&data), 1 + 1 + 2 + 8 + 1);
        assert_eq!(prbs.errors(&stream(Prbs31::new(5, true), 40_010)[40_000..]), 0);
    }

    #[test]
    fn skipped_bytes_and_bytes_seen_lead_to_the_same_place() {
        for invert in [false, true] {
            let all = stream(Prbs31::new(77, invert), 5000);
            for at in [0, 1, 4, 249, 4096, 4990] {
                let mut skipped = Prbs31::new(77, invert);
                skipped.skip(at as u64);
                assert_eq!(skipped.errors(&all[at..]), 0, "skipped {at}");
                if at >= 4 {
                    let seen = all[at - 4..at].try_into().unwrap();
                    assert_eq!(Prbs31::behind(seen, invert).unwrap().errors(&all[at..]), 0, "joined at {at}");
                }
            }
        }
        let mut round = Prbs31::new(77, true);
        round.skip((1 << 31) - 1); // the period in bits, eight times over
        assert_eq!(round, Prbs31::new(77, true));
        assert_eq!(Prbs31::behind([1, 0, 0, 0], false), None);
        assert_eq!(Prbs31::behind([0xFF; 4], true), None);
    }
}
