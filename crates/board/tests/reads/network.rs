// SPDX-License-Identifier: Apache-2.0
//! One direction of a network that loses, repeats and holds back packets.

use penstock_netsim::Stream;
use std::collections::BTreeMap;

/// 1 us.
const DELAY_CYCLES: u64 = 156;
/// How much longer a packet takes at most that others overtake.
const LATE_CYCLES: u64 = 1_000;

/// What has become of the packets.
#[derive(Debug, Default, Clone, Copy)]
pub struct Fates {
    pub lost: u64,
    pub repeated: u64,
    pub late: u64,
}

/// The packets under way, by the cycle in which they arrive.
pub struct Way<T> {
    random: Stream,
    /// The part of packets that is lost; as many are repeated, and as many are late.
    percent: u64,
    packets: BTreeMap<(u64, u64), T>,
    sent: u64,
    pub fates: Fates,
}

impl<T: Clone> Way<T> {
    pub fn new(seed: u64, name: &str, percent: u64) -> Self {
        let random = Stream::new(seed, name);
        Self { random, percent, packets: BTreeMap::new(), sent: 0, fates: Fates::default() }
    }

    pub fn send(&mut self, cycle: u64, packet: T) {
        if self.happens() {
            self.fates.lost += 1;
            return;
        }
        if self.happens() {
            self.fates.repeated += 1;
            let arrival = cycle + DELAY_CYCLES + self.random.below(LATE_CYCLES);
            self.put(arrival, packet.clone());
        }
        let mut arrival = cycle + DELAY_CYCLES;
        if self.happens() {
            self.fates.late += 1;
            arrival += self.random.below(LATE_CYCLES);
        }
        self.put(arrival, packet);
    }

    /// The packets that arrive before this cycle, in the order of their arrival.
    pub fn arrived(&mut self, before: u64) -> Vec<(u64, T)> {
        let later = self.packets.split_off(&(before, 0));
        let arrived = std::mem::replace(&mut self.packets, later);
        arrived.into_iter().map(|((cycle, _), packet)| (cycle, packet)).collect()
    }

    fn put(&mut self, arrival: u64, packet: T) {
        self.sent += 1;
        self.packets.insert((arrival, self.sent), packet);
    }

    fn happens(&mut self) -> bool {
        self.random.below(100) < self.percent
    }
}
