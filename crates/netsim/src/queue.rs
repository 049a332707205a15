// SPDX-License-Identifier: Apache-2.0
//! The event queue: a four-ary heap over 128-bit keys.
//! Promise: events leave in key order; no allocation once the heap has reached its working size.
//! Source: d-ary heaps (Johnson 1975); four children keep the compared keys in one or two cache lines.

/// When and in which order an event happens: time, then rank, then sequence number, packed into one integer so that
/// one comparison decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key(u128);

impl Key {
    const SEQUENCE_BITS: u32 = 38;
    const RANK_BITS: u32 = 26;

    pub(crate) fn new(time_ps: u64, rank: u32, sequence: u64) -> Self {
        debug_assert!(rank < 1 << Self::RANK_BITS && sequence < 1 << Self::SEQUENCE_BITS);
        Key(u128::from(time_ps) << 64 | u128::from(rank) << Self::SEQUENCE_BITS | u128::from(sequence))
    }

    pub(crate) fn time_ps(self) -> u64 {
        (self.0 >> 64) as u64
    }
}

/// A priority queue of `T`, smallest key first.
#[derive(Debug)]
pub(crate) struct EventQueue<T> {
    heap: Vec<(Key, T)>,
}

impl<T: Copy> EventQueue<T> {
    const ARITY: usize = 4;

    pub(crate) fn new() -> Self {
        EventQueue { heap: Vec::with_capacity(1024) }
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.heap.len()
    }

    pub(crate) fn peek(&self) -> Option<Key> {
        self.heap.first().map(|(key, _)| *key)
    }

    pub(crate) fn push(&mut self, key: Key, item: T) {
        let mut at = self.heap.len();
        self.heap.push((key, item));
        while at > 0 {
            let parent = (at - 1) / Self::ARITY;
            if self.heap[parent].0 <= key {
                break;
            }
            self.heap[at] = self.heap[parent];
            at = parent;
        }
        self.heap[at] = (key, item);
    }

    pub(crate) fn pop(&mut self) -> Option<(Key, T)> {
        let last = self.heap.pop()?;
        let Some(&first) = self.heap.first() else {
            return Some(last);
        };
        self.sift_down(last);
        Some(first)
    }

    /// Puts `entry` where the root was and lets it sink to its place.
    fn sift_down(&mut self, entry: (Key, T)) {
        let heap = &mut self.heap[..];
        let mut at = 0;
        loop {
            let child = at * Self::ARITY + 1;
            if child >= heap.len() {
                break;
            }
            let end = (child + Self::ARITY).min(heap.len());
            let mut least = child;
            for other in child + 1..end {
                if heap[other].0 < heap[least].0 {
                    least = other;
                }
            }
            if entry.0 <= heap[least].0 {
                break;
            }
            heap[at] = heap[least];
            at = least;
        }
        heap[at] = entry;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::cmp::Reverse;
    use std::collections::BinaryHeap;

    proptest! {
        #[test]
        fn events_leave_in_the_order_of_the_standard_heap(
            ops in proptest::collection::vec(proptest::option::weighted(0.6, (0u64..50, 0u32..4)), 0..400)
        ) {
            let mut queue = EventQueue::new();
            let mut model = BinaryHeap::new();
            for (sequence, op) in ops.into_iter().enumerate() {
                match op {
                    Some((time, rank)) => {
                        let key = Key::new(time, rank, sequence as u64);
                        queue.push(key, sequence);
                        model.push(Reverse((time, rank, sequence)));
                    }
                    None => {
                        let expected = model.pop().map(|Reverse((time, _, sequence))| (time, sequence));
                        let got = queue.pop().map(|(key, sequence)| (key.time_ps(), sequence));
                        prop_assert_eq!(got, expected);
                    }
                }
                prop_assert_eq!(queue.len(), model.len());
            }
        }
    }
}
