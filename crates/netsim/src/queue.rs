// SPDX-License-Identifier: Apache-2.0
//! The event queue: a fine wheel of time slots for near events, a coarse wheel for later ones, a heap for the rest.
//! Promise: events leave in key order; no allocation once the queue has reached its working size; the cost of an event
//! hardly depends on the number of waiting events.
//! Source: calendar queues (Brown 1988) and hierarchical wheels (Varghese and Lauck 1987), slots found by a bitmap;
//! d-ary heaps (Johnson 1975).
//! Why no library: the cost of the standard library's heap grows with the number of waiting events, and the wheels of
//! timer libraries keep no order within a slot.
//!
//! ```text
//! time:    ... now | 4096 slots of 33 ns | 4096 slots of 134 us | later ...
//!          `due`     `fine`                `coarse`               `far`
//!          sorted    unordered lists through one array            heap
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
        self.time_ps >> WIDTH_BITS
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

/// A fine slot is 2^15 ps: of about four events where a hundred senders share 100 Gb/s, of less than one at 10 Gb/s.
const WIDTH_BITS: u32 = 15;
/// Slots of a wheel. All fine ones together are one coarse one.
const SLOT_BITS: u32 = 12;
const SLOTS: usize = 1 << SLOT_BITS;

/// An entry of a slot's list.
#[derive(Debug, Clone, Copy)]
struct Place<T> {
    entry: (Key, T),
    next: u32,
}

/// The entries of all slots in one array.
#[derive(Debug)]
struct Places<T> {
    places: Vec<Place<T>>,
    free: u32,
}

impl<T: Copy> Places<T> {
    #[inline]
    fn take(&mut self, entry: (Key, T)) -> u32 {
        let at = self.free;
        let place = Place { entry, next: NONE };
        if at == NONE {
            self.places.push(place);
            return self.places.len() as u32 - 1;
        }
        let free = &mut self.places[at as usize];
        self.free = free.next;
        *free = place;
        at
    }

    /// Makes `next` the successor of the place `at`; returns the old successor.
    fn link(&mut self, at: u32, next: u32) -> u32 {
        std::mem::replace(&mut self.places[at as usize].next, next)
    }
}

/// The slots ahead, each a list.
#[derive(Debug)]
struct Wheel {
    heads: Box<[u32; SLOTS]>,
    /// Bit i of word w: slot 64 w + i is not empty. Bit w of `words`: word w is not 0.
    occupied: [u64; SLOTS / 64],
    words: u64,
}

impl Wheel {
    fn new() -> Self {
        Wheel { heads: Box::new([NONE; SLOTS]), occupied: [0; SLOTS / 64], words: 0 }
    }

    /// Puts the place `at` into a slot.
    #[inline]
    fn push<T: Copy>(&mut self, slot: u64, at: u32, places: &mut Places<T>) {
        let slot = slot as usize % SLOTS;
        places.link(at, self.heads[slot]);
        self.heads[slot] = at;
        self.occupied[slot / 64] |= 1 << (slot % 64);
        self.words |= 1 << (slot / 64);
    }

    /// The first slot after `current` that is not empty, counted from time 0.
    #[inline]
    fn next_slot(&self, current: u64) -> Option<u64> {
        if self.words == 0 {
            return None;
        }
        let begin = current.wrapping_add(1);
        let (word, bit) = (begin as usize % SLOTS / 64, begin as u32 % 64);
        let rest = self.occupied[word] >> bit;
        if rest != 0 {
            return Some(begin + u64::from(rest.trailing_zeros()));
        }
        // the following words, cyclically; this word's lower bits come last
        let behind = self.words.rotate_right(word as u32 + 1);
        let steps = behind.trailing_zeros() as usize + 1;
        let first = self.occupied[(word + steps) % 64].trailing_zeros();
        Some(begin - u64::from(bit) + 64 * steps as u64 + u64::from(first))
    }

    /// The first place of a slot's list.
    #[inline]
    fn head(&self, slot: u64) -> u32 {
        self.heads[slot as usize % SLOTS]
    }

    /// Empties a slot and gives its list.
    #[inline]
    fn take(&mut self, slot: u64) -> u32 {
        let slot = slot as usize % SLOTS;
        self.occupied[slot / 64] &= !(1 << (slot % 64));
        if self.occupied[slot / 64] == 0 {
            self.words &= !(1 << (slot / 64));
        }
        std::mem::replace(&mut self.heads[slot], NONE)
    }
}

/// A priority queue of `T`, smallest key first.
#[derive(Debug)]
pub(crate) struct EventQueue<T> {
    /// The entries of slot `current` when it was reached, the first one last.
    due: Vec<(Key, T)>,
    /// Events pushed later into slots up to `current`.
    early: Heap<T>,
    current: u64,
    places: Places<T>,
    /// Slots above `current`, up to `current + SLOTS`.
    fine: Wheel,
    /// The first of them that is not empty; `u64::MAX` if all are.
    next: u64,
    /// Slots of SLOTS fine ones each, above that of `current`.
    coarse: Wheel,
    /// Those that were later still when they were pushed.
    far: Heap<T>,
    /// No entry of `coarse` or `far` is in a slot below this one.
    late_from: u64,
}

impl<T: Copy> EventQueue<T> {
    pub(crate) fn new() -> Self {
        let heap = || Heap { entries: Vec::with_capacity(64) };
        EventQueue {
            due: Vec::with_capacity(64),
            early: heap(),
            current: 0,
            places: Places { places: Vec::new(), free: NONE },
            fine: Wheel::new(),
            next: u64::MAX,
            coarse: Wheel::new(),
            far: heap(),
            late_from: u64::MAX,
        }
    }

    /// The first key.
    pub(crate) fn peek(&mut self) -> Option<Key> {
        if self.due.is_empty() && self.early.entries.is_empty() {
            self.advance();
        }
        let due = self.due.last().map(|(key, _)| *key);
        due.into_iter().chain(self.early.first()).min()
    }

    #[inline(always)]
    pub(crate) fn push(&mut self, key: Key, item: T) {
        let slot = key.slot();
        if slot <= self.current {
            return self.early.push((key, item));
        }
        if slot - self.current < SLOTS as u64 {
            let at = self.places.take((key, item));
            self.next = self.next.min(slot);
            return self.fine.push(slot, at, &mut self.places);
        }
        self.push_late(key, item);
    }

    #[inline(never)]
    fn push_late(&mut self, key: Key, item: T) {
        let slot = key.slot() >> SLOT_BITS;
        self.late_from = self.late_from.min(slot << SLOT_BITS);
        if slot - (self.current >> SLOT_BITS) < SLOTS as u64 {
            let at = self.places.take((key, item));
            self.coarse.push(slot, at, &mut self.places);
        } else {
            self.far.push((key, item));
        }
    }

    /// Takes the first entry, if its time is not after `last_ps`.
    #[inline]
    pub(crate) fn pop_until(&mut self, last_ps: u64) -> Option<(Key, T)> {
        if !self.early.entries.is_empty() {
            return self.pop_merged(last_ps);
        }
        if self.due.is_empty() {
            match self.next {
                next if next >= self.late_from => self.advance_late(),
                next => match self.alone_in(next) {
                    Some(key) if key.time_ps > last_ps => return None,
                    Some(_) => return Some(self.take_alone(next)),
                    None => self.drain(next),
                },
            }
        }
        if self.due.last()?.0.time_ps > last_ps {
            return None;
        }
        self.due.pop()
    }

    /// The key of the only entry of a fine slot that is not empty; `None` if there are more.
    #[inline]
    fn alone_in(&self, slot: u64) -> Option<Key> {
        let place = &self.places.places[self.fine.head(slot) as usize];
        (place.next == NONE).then_some(place.entry.0)
    }

    /// Advances to a fine slot with one entry and takes it.
    #[inline]
    fn take_alone(&mut self, slot: u64) -> (Key, T) {
        let at = self.take_slot(slot);
        let place = &mut self.places.places[at as usize];
        place.next = std::mem::replace(&mut self.places.free, at);
        place.entry
    }

    /// Advances to a fine slot and returns its list.
    #[inline]
    fn take_slot(&mut self, slot: u64) -> u32 {
        self.current = slot;
        let list = self.fine.take(slot);
        self.next = self.fine.next_slot(slot).unwrap_or(u64::MAX);
        list
    }

    /// The same from `due` and `early`.
    fn pop_merged(&mut self, last_ps: u64) -> Option<(Key, T)> {
        let early = self.early.first()?;
        let due = self.due.last().map(|(key, _)| *key).filter(|due| due.whole() < early.whole());
        if due.unwrap_or(early).time_ps > last_ps {
            return None;
        }
        if due.is_some() {
            self.due.pop()
        } else {
            self.early.pop()
        }
    }

    /// Advances to the next non-empty slot; `due` and `early` are empty.
    fn advance(&mut self) {
        if self.next < self.late_from {
            self.drain(self.next);
        } else {
            self.advance_late();
        }
    }

    /// The same, where something of `coarse` or `far` may come first.
    fn advance_late(&mut self) {
        let in_far = self.far.first().map(Key::slot);
        if let Some(coarse) = self.coarse.next_slot(self.current >> SLOT_BITS) {
            let begin = coarse << SLOT_BITS;
            if begin <= self.next && in_far.is_none_or(|slot| begin <= slot) {
                // no event is earlier, so the fine wheel covers all of it
                self.current = begin - 1;
                self.spill(coarse);
            }
        }
        let next = in_far.map_or(self.next, |slot| slot.min(self.next));
        if next < u64::MAX {
            while self.far.first().is_some_and(|key| key.slot() == next) {
                self.due.extend(self.far.pop());
            }
            self.drain(next);
        }
        let coarse = self.coarse.next_slot(self.current >> SLOT_BITS).map(|slot| slot << SLOT_BITS);
        self.late_from = coarse.into_iter().chain(self.far.first().map(Key::slot)).min().unwrap_or(u64::MAX);
    }

    /// Spreads a coarse slot over the fine wheel.
    fn spill(&mut self, slot: u64) {
        let mut at = self.coarse.take(slot);
        while at != NONE {
            let place = self.places.places[at as usize];
            let fine = place.entry.0.slot();
            self.next = self.next.min(fine);
            self.fine.push(fine, at, &mut self.places);
            at = place.next;
        }
    }

    /// Advances to a fine slot, possibly an empty one, and moves its entries to `due`.
    fn drain(&mut self, slot: u64) {
        let mut at = self.take_slot(slot);
        while at != NONE {
            let place = &mut self.places.places[at as usize];
            self.due.push(place.entry);
            let next = std::mem::replace(&mut place.next, self.places.free);
            self.places.free = at;
            at = next;
        }
        if self.due.len() > 1 {
            self.due.sort_unstable_by_key(|(key, _)| std::cmp::Reverse(key.whole()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::cmp::Reverse;
    use std::collections::BinaryHeap;

    /// A step in time: within a slot, within either wheel, or beyond them; in units that make equal times likely.
    fn delay() -> impl Strategy<Value = u64> {
        let steps = |bits: u32| (0u64..40).prop_map(move |n| n << bits);
        prop_oneof![0u64..4, steps(WIDTH_BITS - 3), steps(WIDTH_BITS + 8), steps(WIDTH_BITS + SLOT_BITS), steps(35)]
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
                        let too_early = first.is_some_and(|(time, _)| time > 0 && queue.pop_until(time - 1).is_some());
                        prop_assert!(!too_early);
                        let got = queue.pop_until(u64::MAX).map(|(key, sequence)| (key.time_ps(), key.rank(), sequence));
                        prop_assert_eq!(got, expected);
                        now = expected.map_or(now, |(time, ..)| time);
                    }
                }
            }
            while let Some(Reverse((time, rank, sequence))) = model.pop() {
                prop_assert_eq!(queue.pop_until(time), Some((Key::new(time, rank, sequence as u64), sequence)));
            }
            prop_assert_eq!(queue.pop_until(u64::MAX), None);
        }
    }
}
