// SPDX-License-Identifier: Apache-2.0
//! A faulty link: it loses, repeats, delays (and so reorders) and damages frames, with a seed.

use bytes::Bytes;
use std::collections::BTreeMap;

/// SplitMix64, so that a failing case replays from the seed that proptest prints.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    pub fn percent(&mut self, chance: u8) -> bool {
        self.below(100) < u64::from(chance)
    }
}

/// Chances in percent; delay in ticks.
#[derive(Clone, Copy, Debug)]
pub struct Faults {
    pub loss: u8,
    pub duplicate: u8,
    pub corrupt: u8,
    pub max_delay: u64,
}

#[derive(Default)]
pub struct Channel {
    in_flight: BTreeMap<(u64, u64), Bytes>,
    sent: u64,
}

impl Channel {
    pub fn send(&mut self, now: u64, frame: &Bytes, faults: &Faults, random: &mut Random) {
        let copies = 1 + u64::from(random.percent(faults.duplicate));
        for _ in 0..copies {
            if random.percent(faults.loss) {
                continue;
            }
            let mut frame = frame.to_vec();
            if random.percent(faults.corrupt) {
                let at = random.below(frame.len() as u64) as usize;
                frame[at] ^= 1 << random.below(8);
            }
            let due = now + 1 + random.below(faults.max_delay);
            self.sent += 1;
            self.in_flight.insert((due, self.sent), Bytes::from(frame));
        }
    }

    /// The frames that have arrived by now.
    pub fn arrived(&mut self, now: u64) -> Vec<Bytes> {
        let later = self.in_flight.split_off(&(now + 1, 0));
        std::mem::replace(&mut self.in_flight, later).into_values().collect()
    }
}
