// SPDX-License-Identifier: Apache-2.0
//! PRBS-31 as the gateware's message source sends it: one sequence of bits over all messages, the
//! first bit the least significant one of byte 0; generated and checked at memory speed.
//! Source: ITU-T O.150 clause 5.8 (x^31 + x^28 + 1, sent complemented).
//!
//! Bit n is the sum of bits n-31 and n-28. Squaring is linear over GF(2), so the same holds for the
//! bits n-31f and n-28f with every power of two f. With f = 64 each 224 bytes are the sum of those 248
//! and 224 bytes before them; long sequences are generated this way.

use alloc::vec::Vec;

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
    /// Bytes after which the bytes repeat: the period in bits, since that is odd.
    pub const PERIOD: u64 = (1 << 31) - 1;

    /// The sequence after the 31 bits of `seed` (register `prbs_seed`, oldest bit in bit 0; 0 means all
    /// ones), complemented where `invert` says so (register field `prbs_invert`, set by O.150).
    pub const fn new(seed: u32, invert: bool) -> Self {
        let seed = seed & STATE_MASK;
        let state = if seed == 0 { STATE_MASK } else { seed };
        Prbs31 { state, flip: if invert { u64::MAX } else { 0 } }
    }

    /// The continuation of the sequence after four bytes of it, for a reader that joins a stream in the middle.
    /// `None` for bytes that no PRBS-31 holds: 31 bits of the one value that its register never has.
    pub const fn behind(bytes: [u8; 4], invert: bool) -> Option<Self> {
        let flip = if invert { u64::MAX } else { 0 };
        match (u32::from_le_bytes(bytes) ^ flip as u32) >> 1 {
            0 => None,
            state => Some(Prbs31 { state, flip }),
        }
    }

    /// The 31 bits before the next one, the oldest in bit 0, as in a generator that complements nothing.
    pub const fn state(&self) -> u32 {
        self.state
    }

    /// The effect of this number of bytes on each single bit of a state: the state after them is the sum over its bits.
    /// For those who compare long stretches side by side.
    pub fn jump(bytes: u64) -> [u32; 31] {
        bytes_on(bytes)
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
        if self.agrees(data) {
            return 0;
        }
        let mut errors = 0;
        self.compare(data, |_, wrong| errors += u64::from(wrong.count_ones()));
        errors
    }

    /// Where the first wrong byte of `data` is; none if all are right. The sequence does not move on.
    pub fn first_error(&self, data: &[u8]) -> Option<usize> {
        let mut first = None;
        self.clone().compare(data, |at, _| first = first.or(Some(at)));
        first
    }

    /// Whether `data` goes on as the sequence does, which then moves on. The first bytes are compared with the
    /// sequence, each of the others with the sum of two before it, 31 and 28 bytes back, which are right by then.
    fn agrees(&mut self, data: &[u8]) -> bool {
        const FAR: usize = 31;
        const NEAR: usize = 28;
        let (mut expected, mut behind) = ([0; FAR], self.clone());
        let head = data.len().min(FAR);
        behind.fill(&mut expected[..head]);
        if expected[..head] != data[..head] {
            return false;
        }
        if data.len() > FAR {
            let flip = self.flip as u8;
            let sums = data.iter().zip(&data[FAR - NEAR..]).map(|(far, near)| far ^ near ^ flip);
            let wrong = data[FAR..].iter().zip(sums).fold(0, |wrong, (byte, sum)| wrong | (byte ^ sum));
            if wrong != 0 {
                return false;
            }
            let last = [4, 3, 2, 1].map(|back| data[data.len() - back] ^ flip);
            behind.state = u32::from_le_bytes(last) >> 1;
        }
        *self = behind;
        true
    }

    /// Reports every wrong byte of `data`: its position, and its wrong bits. The sequence advances.
    fn compare(&mut self, data: &[u8], mut wrong: impl FnMut(usize, u8)) {
        let mut expected = [0; FAR + 64 * NEAR];
        let whole = expected.len();
        for (piece, from) in data.chunks(whole).zip((0..).step_by(whole)) {
            let expected = &mut expected[..piece.len()];
            self.fill(expected);
            let differing = expected.iter().zip(piece).enumerate().filter(|(_, (a, b))| a != b);
            differing.for_each(|(at, (a, b))| wrong(from + at, a ^ b));
        }
    }

    /// How many bytes of the sequence lie between here and `there`, which is a place of the same one: below the period,
    /// 2^31 - 1. Shanks' giant steps; takes milliseconds and a megabyte.
    pub fn bytes_to(&self, there: &Prbs31) -> u64 {
        const STEP: u32 = 46_341; // its square exceeds the period
        let (byte, giant) = (bytes_on(1), bytes_on(STEP.into()));
        let mut near: Vec<(u32, u32)> = Vec::with_capacity(STEP as usize);
        let mut state = there.state;
        for back in 0..STEP {
            near.push((state, back));
            state = apply(&byte, state);
        }
        near.sort_unstable();
        let mut state = self.state;
        for steps in 0..=u64::from(STEP) {
            if let Ok(found) = near.binary_search_by_key(&state, |(state, _)| *state) {
                // Where several are equal the sequence has gone round; which of them is found does not matter.
                let (ahead, back) = (steps * u64::from(STEP), u64::from(near[found].1));
                return (ahead + Self::PERIOD - back) % Self::PERIOD;
            }
            state = apply(&giant, state);
        }
        0
    }

    /// Moves on by `bytes` without making them: over messages that went elsewhere, or were lost.
    pub fn skip(&mut self, bytes: u64) {
        self.state = apply(&bytes_on(bytes), self.state);
    }
}

/// The step over `bytes` bytes. The step is linear in the state: square the step of one byte once per bit of `bytes`.
fn bytes_on(bytes: u64) -> [u32; 31] {
    let mut columns: [u32; 31] = core::array::from_fn(|i| {
        let mut unit = Prbs31 { state: 1 << i, flip: 0 };
        unit.step(8);
        unit.state
    });
    let mut all = core::array::from_fn(|i| 1 << i);
    let mut left = bytes;
    while left != 0 {
        if left & 1 == 1 {
            all = all.map(|column| apply(&columns, column));
        }
        columns = columns.map(|column| apply(&columns, column));
        left >>= 1;
    }
    all
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
    fn the_first_wrong_byte_is_found_wherever_it_is() {
        let data = stream(Prbs31::new(5, true), 40_000);
        assert_eq!(Prbs31::new(5, true).first_error(&data), None);
        for at in [0, 30, 31, 32, 58, 59, 247, 14_583, 14_584, 39_999] {
            let mut wrong = data.clone();
            wrong[at] ^= 0x10;
            wrong[39_999] ^= 0x80;
            assert_eq!(Prbs31::new(5, true).first_error(&wrong), Some(at));
        }
    }

    #[test]
    fn the_way_between_two_places_is_measured() {
        let here = Prbs31::new(0x2A5C_91D3, true);
        for bytes in [0, 1, 31, 46_340, 46_341, 1_000_000, Prbs31::PERIOD - 46_341, Prbs31::PERIOD - 1] {
            let mut there = here.clone();
            there.skip(bytes);
            assert_eq!(here.bytes_to(&there), bytes);
        }
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
        round.skip(Prbs31::PERIOD); // the period in bits, eight times over
        assert_eq!(round, Prbs31::new(77, true));
        assert_eq!(Prbs31::behind([1, 0, 0, 0], false), None);
        assert_eq!(Prbs31::behind([0xFF; 4], true), None);
    }
}
