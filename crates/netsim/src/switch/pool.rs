// SPDX-License-Identifier: Apache-2.0
//! The frames of all queues of a switch in one array, each queue a list through it.
//! Promise: first in, first out per queue; no allocation once the array has the size of the fullest moment, and the
//! place freed last is used first, so that short queues stay in the cache.

use crate::node::Frame;

const NONE: u32 = u32::MAX;

/// A frame that waits, and what the buffer must know when it leaves.
#[derive(Debug, Clone, Copy)]
pub(super) struct Held {
    pub(super) bytes: u32,
    /// Port it came in by, or `OWN`.
    pub(super) ingress: u16,
    pub(super) class: u8,
}

#[derive(Debug)]
struct Place {
    frame: Option<Frame>,
    held: Held,
    next: u32,
}

/// First and last place of one queue.
#[derive(Debug, Clone, Copy)]
pub(super) struct List {
    head: u32,
    tail: u32,
}

impl Default for List {
    fn default() -> Self {
        List { head: NONE, tail: NONE }
    }
}

#[derive(Debug)]
pub(super) struct Pool {
    places: Vec<Place>,
    free: u32,
}

impl Pool {
    pub(super) fn new() -> Self {
        Pool { places: Vec::new(), free: NONE }
    }

    pub(super) fn push(&mut self, list: &mut List, frame: Frame, held: Held) {
        let at = self.free;
        let at = if at == NONE {
            self.places.push(Place { frame: Some(frame), held, next: NONE });
            self.places.len() as u32 - 1
        } else {
            let place = &mut self.places[at as usize];
            self.free = place.next;
            place.frame = Some(frame);
            place.held = held;
            place.next = NONE;
            at
        };
        if list.head == NONE {
            list.head = at;
        } else {
            self.places[list.tail as usize].next = at;
        }
        list.tail = at;
    }

    /// Length of the first frame of a queue that is not empty.
    pub(super) fn head_bytes(&self, list: List) -> u32 {
        self.places[list.head as usize].held.bytes
    }

    pub(super) fn pop(&mut self, list: &mut List) -> Option<(Frame, Held)> {
        let at = list.head;
        let place = self.places.get_mut(at as usize)?;
        let frame = place.frame.take()?;
        let held = place.held;
        list.head = std::mem::replace(&mut place.next, self.free);
        self.free = at;
        Some((frame, held))
    }

    /// The frames of a queue from the first to the last, for diagnosis.
    pub(super) fn iter(&self, list: List) -> impl Iterator<Item = Held> + '_ {
        let first = self.places.get(list.head as usize);
        std::iter::successors(first, |place| self.places.get(place.next as usize)).map(|place| place.held)
    }
}

impl List {
    pub(super) fn is_empty(self) -> bool {
        self.head == NONE
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use penstock_wire::Packet;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    proptest! {
        #[test]
        fn each_queue_is_first_in_first_out(
            ops in proptest::collection::vec((0usize..3, proptest::option::of(0u32..5000)), 0..300)
        ) {
            let (mut pool, mut lists) = (Pool::new(), [List::default(); 3]);
            let mut models: [VecDeque<u32>; 3] = Default::default();
            let mut fullest = 0;
            for (queue, op) in ops {
                match op {
                    Some(bytes) => {
                        let frame = Frame::new(Packet::Raw(vec![bytes as u8].into()));
                        pool.push(&mut lists[queue], frame, Held { bytes, ingress: 0, class: 0 });
                        models[queue].push_back(bytes);
                    }
                    None => {
                        let got = pool.pop(&mut lists[queue]);
                        let bytes = got.as_ref().map(|(_, held)| held.bytes);
                        prop_assert_eq!(bytes, models[queue].pop_front());
                        let right = got.is_none_or(|(frame, held)| {
                            matches!(frame.packet(), Packet::Raw(bytes) if bytes[0] == held.bytes as u8)
                        });
                        prop_assert!(right);
                    }
                }
                prop_assert!(pool.iter(lists[queue]).map(|held| held.bytes).eq(models[queue].iter().copied()));
                prop_assert_eq!(lists[queue].is_empty(), models[queue].is_empty());
                fullest = fullest.max(models.iter().map(VecDeque::len).sum());
                prop_assert_eq!(pool.places.len(), fullest);
            }
        }
    }
}
