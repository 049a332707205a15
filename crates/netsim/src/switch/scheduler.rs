// SPDX-License-Identifier: Apache-2.0
//! Selects the class of a port that sends next: strict priority, then deficit round robin among the other classes.
//! Promise: each class that always has data gets the share of its weight to within the quantum of one round
//! and one frame.
//! Source: IEEE 802.1Q 8.6.8.1 (strict priority); Shreedhar and Varghese, "Efficient fair queuing using deficit round
//! robin", IEEE/ACM ToN 1996.

use super::params::Scheduling;
use crate::pause::CLASSES;

/// The settings, the same for all ports.
#[derive(Debug, Clone, Copy)]
pub(super) struct Discipline {
    /// Classes served in strict priority.
    strict: u8,
    /// Bytes a round of the others.
    quanta: [u32; CLASSES],
}

impl Discipline {
    pub(super) fn new(scheduling: Scheduling) -> Self {
        match scheduling {
            Scheduling::Strict => Discipline { strict: u8::MAX, quanta: [0; CLASSES] },
            Scheduling::Weighted { weights, quantum } => {
                let strict = (0..CLASSES).filter(|class| weights[*class] == 0).fold(0, |mask, class| mask | 1 << class);
                let quantum = quantum.bytes().clamp(64, 1 << 15) as u32;
                Discipline { strict, quanta: weights.map(|weight| u32::from(weight) * quantum) }
            }
        }
    }
}

/// The state of one port.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct RoundRobin {
    /// The class being served.
    current: u8,
    deficits: [u32; CLASSES],
}

impl RoundRobin {
    /// The class to send of those in `ready` (not 0), each with a first frame of `head` bytes. It counts as sent;
    /// `emptied` must be called if that was its last.
    pub(super) fn choose(&mut self, discipline: &Discipline, ready: u8, head: impl Fn(usize) -> u32) -> usize {
        let strict = ready & discipline.strict;
        if strict != 0 {
            return strict.ilog2() as usize;
        }
        loop {
            let current = usize::from(self.current);
            if ready >> current & 1 == 1 && self.deficits[current] >= head(current) {
                self.deficits[current] -= head(current);
                return current;
            }
            // the next ready class after this one, cyclically
            let behind = ready.rotate_right(u32::from(self.current) + 1);
            let next = (current + 1 + behind.trailing_zeros() as usize) % CLASSES;
            self.deficits[next] = self.deficits[next].saturating_add(discipline.quanta[next]);
            self.current = next as u8;
        }
    }

    /// The queue of `class` is empty: it saves nothing up for later.
    pub(super) fn emptied(&mut self, discipline: &Discipline, class: usize) {
        if discipline.strict >> class & 1 == 0 {
            self.deficits[class] = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn shares_follow_the_weights_within_a_quantum_and_a_frame(
            weights in proptest::array::uniform8(0u16..20), ready in 1u8.., lengths in proptest::collection::vec(64u32..4200, 1..50)
        ) {
            let discipline = Discipline::new(Scheduling::weighted(weights));
            let ready = ready & !discipline.strict;
            prop_assume!(ready != 0);
            let (mut port, mut sent) = (RoundRobin::default(), [0u64; CLASSES]);
            for turn in 0..2_000 {
                let head = |class: usize| lengths[(turn + class) % lengths.len()];
                let class = port.choose(&discipline, ready, head);
                prop_assert!(ready >> class & 1 == 1);
                sent[class] += u64::from(head(class));
            }
            let quantum = Scheduling::QUANTUM.bytes();
            let rounds = |class: usize| sent[class] as f64 / (u64::from(weights[class]) * quantum) as f64;
            for (a, b) in (0..CLASSES).flat_map(|a| (0..CLASSES).map(move |b| (a, b))) {
                if ready >> a & ready >> b & 1 == 1 {
                    // a class is at most one round ahead, and each may owe a frame
                    let slack = 1.0 + 2.0 * 4200.0 / quantum as f64;
                    prop_assert!((rounds(a) - rounds(b)).abs() <= slack, "{a} {b}: {sent:?} by {weights:?}");
                }
            }
        }

        #[test]
        fn weight_zero_goes_first_highest_class_first(ready in 1u8..) {
            let discipline = Discipline::new(Scheduling::weighted([1, 1, 0, 1, 1, 1, 0, 1]));
            let class = RoundRobin::default().choose(&discipline, ready, |_| 100);
            prop_assert!(ready >> class & 1 == 1);
            let strict = ready & 0b0100_0100;
            prop_assert!(strict == 0 || class == strict.ilog2() as usize);
            let strict = Discipline::new(Scheduling::Strict);
            prop_assert_eq!(RoundRobin::default().choose(&strict, ready, |_| 100), ready.ilog2() as usize);
        }
    }
}
