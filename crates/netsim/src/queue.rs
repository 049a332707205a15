// SPDX-License-Identifier: Apache-2.0
//! The event queue: a wheel of time slots for what is near, heaps for what is now and what is far.
//! Promise: events leave in key order; no allocation once the queue has reached its working size; the cost of an event
//! hardly depends on how many wait.
//! Source: calendar queues (Brown 1988) with slots of fixed width, found by a bitmap; d-ary heaps (Johnson 1975).
//!
//! ```text
//! time:    ... now |  slot  |  slot  |  slot  | ... 4096 slots ... |  later ...
//!          `now`: heap      `wheel`: unordered lists                 `far`: heap
//! ```

/// When and in which order an event happens: time, then rank, then sequence number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    time_ps: u64,
    /// Rank and sequence number.
    order: u64,
}

impl Key {
    const SEQUENCE_BITS: u32 = 38;
    const RANK_BITS: u32 = 26;

    pub(crate) fn new(time_ps: u64, rank: u32, sequence: u64) -> Self {
        debug_assert!(rank < 1 << Self::RANK_BITS && sequence < 1 << Self::SEQUENCE_BITS);
        Key { time_ps, order: u64::from(rank) << Self::SEQUENCE_BITS | sequence }
    }

    pub(crate) fn time_ps(self) -> u64 {
        self.time_ps
    }

    pub(crate) fn rank(self) -> u32 {
        (self.order >> Self::SEQUENCE_BITS) as u32
    }

    /// One number to compare by, without a branch.
    fn whole(self) -> u128 {
        u128::from(self.time_ps) << 64 | u128::from(self.order)
    }

    fn slot(self) -> u64 {
        self.time_ps >> Wheel::<()>::WIDTH_BITS
    }
}

/// A heap with four children a node, smallest key first.
#[derive(Debug)]
struct Heap<T> {
    entries: Vec<(Key, T)>,
}

impl<T: Copy> Heap<T> {
    const ARITY: usize = 4;

    fn first(&self) -> Option<Key> {
        self.entries.first().map(|(key, _)| *key)
    }

    fn push(&mut self, entry: (Key, T)) {
        let mut at = self.entries.len();
        self.entries.push(entry);
        while at > 0 {
            let parent = (at - 1) / Self::ARITY;
            if self.entries[parent].0.whole() <= entry.0.whole() {
                break;
            }
            self.entries[at] = self.entries[parent];
            at = parent;
        }
        self.entries[at] = entry;
    }

    fn pop(&mut self) -> Option<(Key, T)> {
        let last = self.entries.pop()?;
        let Some(&first) = self.entries.first() else {
            return Some(last);
        };
        self.sift_down(last);
        Some(first)
    }

    /// Puts `entry` where the root was and lets it sink to its place.
    fn sift_down(&mut self, entry: (Key, T)) {
        let heap = &mut self.entries[..];
        let mut at = 0;
        loop {
            let child = at * Self::ARITY + 1;
            if child >= heap.len() {
                break;
            }
            let end = (child + Self::ARITY).min(heap.len());
            let mut least = child;
            for other in child + 1..end {
                if heap[other].0.whole() < heap[least].0.whole() {
                    least = other;
                }
            }
            if entry.0.whole() <= heap[least].0.whole() {
                break;
            }
            heap[at] = heap[least];
            at = least;
        }
        heap[at] = entry;
    }
}

const NONE: u32 = u32::MAX;

/// An entry of a slot's list.
#[derive(Debug, Clone, Copy)]
struct Place<T> {
    entry: (Key, T),
    next: u32,
}

/// The slots ahead, each a list through one array.
#[derive(Debug)]
struct Wheel<T> {
    heads: Box<[u32; Wheel::<()>::SLOTS]>,
    /// Bit i of word w: slot 64 w + i is not empty. Bit w of `words`: word w is not 0.
    occupied: [u64; Wheel::<()>::SLOTS / 64],
    words: u64,
    places: Vec<Place<T>>,
    free: u32,
}

impl<T> Wheel<T> {
    const SLOTS: usize = 64 * 64;
    /// A slot is 2^19 ps or 0.52 us: of some twenty events where a thousand senders share 100 Gb/s. All are 2.15 ms, so
    /// that pauses are renewed at 10 Gb/s without a way through the heap behind.
    const WIDTH_BITS: u32 = 19;
}

impl<T: Copy> Wheel<T> {
    fn new() -> Self {
        let heads = Box::new([NONE; Wheel::<()>::SLOTS]);
        Wheel { heads, occupied: [0; Wheel::<()>::SLOTS / 64], words: 0, places: Vec::new(), free: NONE }
    }

    fn push(&mut self, slot: u64, entry: (Key, T)) {
        let slot = slot as usize % Wheel::<()>::SLOTS;
        let place = Place { entry, next: self.heads[slot] };
        let at = self.free;
        self.heads[slot] = if at == NONE {
            self.places.push(place);
            self.places.len() as u32 - 1
        } else {
            self.free = self.places[at as usize].next;
            self.places[at as usize] = place;
            at
        };
        self.occupied[slot / 64] |= 1 << (slot % 64);
        self.words |= 1 << (slot / 64);
    }

    /// The first slot after `current` that is not empty, counted from time 0.
    fn next_slot(&self, current: u64) -> Option<u64> {
        if self.words == 0 {
            return None;
        }
        let begin = current.wrapping_add(1);
        let (word, bit) = (begin as usize % Wheel::<()>::SLOTS / 64, begin as u32 % 64);
        let rest = self.occupied[word] >> bit;
        if rest != 0 {
            return Some(begin + u64::from(rest.trailing_zeros()));
        }
        // the words behind this one in a circle; this one's lower bits come last
        let behind = self.words.rotate_right(word as u32 + 1);
        let steps = behind.trailing_zeros() as usize + 1;
        let first = self.occupied[(word + steps) % 64].trailing_zeros();
        Some(begin - u64::from(bit) + 64 * steps as u64 + u64::from(first))
    }

    /// Moves a slot's entries into a heap.
    fn drain(&mut self, slot: u64, heap: &mut Heap<T>) {
        let slot = slot as usize % Wheel::<()>::SLOTS;
        let mut at = std::mem::replace(&mut self.heads[slot], NONE);
        while at != NONE {
            let place = self.places[at as usize];
            heap.push(place.entry);
            self.places[at as usize].next = self.free;
            self.free = at;
            at = place.next;
        }
        self.occupied[slot / 64] &= !(1 << (slot % 64));
        if self.occupied[slot / 64] == 0 {
            self.words &= !(1 << (slot / 64));
        }
    }
}

/// A priority queue of `T`, smallest key first.
#[derive(Debug)]
pub(crate) struct EventQueue<T> {
    /// All entries of slots up to `current`.
    now: Heap<T>,
    current: u64,
    /// Those of the `SLOTS - 1` slots behind it.
    wheel: Wheel<T>,
    /// Those that were later still when they were pushed.
    far: Heap<T>,
}

impl<T: Copy> EventQueue<T> {
    pub(crate) fn new() -> Self {
        let heap = || Heap { entries: Vec::with_capacity(64) };
        EventQueue { now: heap(), current: 0, wheel: Wheel::new(), far: heap() }
    }

    /// The first key.
    #[inline]
    pub(crate) fn peek(&mut self) -> Option<Key> {
        if self.now.entries.is_empty() {
            self.advance();
        }
        self.now.first()
    }

    #[inline]
    pub(crate) fn push(&mut self, key: Key, item: T) {
        let slot = key.slot();
        if slot <= self.current {
            self.now.push((key, item));
        } else if slot - self.current < Wheel::<()>::SLOTS as u64 {
            self.wheel.push(slot, (key, item));
        } else {
            self.far.push((key, item));
        }
    }

    #[inline]
    pub(crate) fn pop(&mut self) -> Option<(Key, T)> {
        if self.now.entries.is_empty() {
            self.advance();
        }
        self.now.pop()
    }

    /// Goes on to the next slot that is not empty.
    fn advance(&mut self) {
        let in_wheel = self.wheel.next_slot(self.current);
        let in_far = self.far.first().map(Key::slot);
        let Some(next) = in_wheel.into_iter().chain(in_far).min() else { return };
        self.current = next;
        if in_wheel == Some(next) {
            self.wheel.drain(next, &mut self.now);
        }
        while self.far.first().is_some_and(|key| key.slot() == next) {
            if let Some(entry) = self.far.pop() {
                self.now.push(entry);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::cmp::Reverse;
    use std::collections::BinaryHeap;

    /// A step in time: within a slot, within the wheel, or beyond it; in units that make equal times likely.
    fn delay() -> impl Strategy<Value = u64> {
        prop_oneof![0u64..4, (0u64..40).prop_map(|n| n << 16), (0u64..40).prop_map(|n| n << 27)]
    }

    proptest! {
        #[test]
        fn events_leave_in_the_order_of_the_standard_heap(
            ops in proptest::collection::vec(proptest::option::weighted(0.6, (delay(), 0u32..4)), 0..400)
        ) {
            let mut queue = EventQueue::new();
            let mut model = BinaryHeap::new();
            let mut now = 0;
            for (sequence, op) in ops.into_iter().enumerate() {
                match op {
                    Some((delay, rank)) => {
                        let key = Key::new(now + delay, rank, sequence as u64);
                        queue.push(key, sequence);
                        model.push(Reverse((now + delay, rank, sequence)));
                    }
                    None => {
                        let expected = model.pop().map(|Reverse(entry)| entry);
                        let first = queue.peek().map(|key| (key.time_ps(), key.rank()));
                        prop_assert_eq!(first, expected.map(|(time, rank, _)| (time, rank)));
                        let got = queue.pop().map(|(key, sequence)| (key.time_ps(), key.rank(), sequence));
                        prop_assert_eq!(got, expected);
                        now = expected.map_or(now, |(time, ..)| time);
                    }
                }
            }
            while let Some(Reverse((time, rank, sequence))) = model.pop() {
                prop_assert_eq!(queue.pop(), Some((Key::new(time, rank, sequence as u64), sequence)));
            }
            prop_assert_eq!(queue.pop(), None);
        }
    }
}
