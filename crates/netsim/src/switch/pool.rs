// SPDX-License-Identifier: Apache-2.0
//! The frames of all queues of a switch in blocks, each queue a list of them.
//! Promise: first in, first out per queue, contiguous in memory; no allocation once the peak number of blocks has been
//! allocated; the block freed last is used first, so that short queues stay in the cache.

use super::prefetch::prefetch;
use crate::frame::Frame;

const NONE: u32 = u32::MAX;

/// A waiting frame, with the data that the buffer needs when it leaves.
#[derive(Debug, Clone, Copy)]
pub(super) struct Held {
    pub(super) bytes: u32,
    /// Port it came in by, or `OWN`.
    pub(super) ingress: u16,
    pub(super) class: u8,
}

impl Held {
    fn of(frame: &Frame) -> Self {
        Held { bytes: frame.frame_len() as u32, ingress: frame.ingress, class: frame.class }
    }
}

/// Frames of a block.
const BLOCK: u32 = 16;

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
    /// Block after block. Those that are free or were popped are `None`.
    places: Vec<Option<Frame>>,
    /// The next block of each one, in its queue or in the free list.
    next: Vec<u32>,
    free: u32,
}

impl Pool {
    pub(super) fn new() -> Self {
        Pool { places: Vec::new(), next: Vec::new(), free: NONE }
    }

    pub(super) fn push(&mut self, list: &mut List, frame: Frame, held: Held) {
        if list.is_empty() {
            list.head = self.take_block() * BLOCK;
            list.tail = list.head;
        } else if list.tail % BLOCK < BLOCK - 1 {
            list.tail += 1;
        } else {
            let block = self.take_block();
            self.next[(list.tail / BLOCK) as usize] = block;
            list.tail = block * BLOCK;
        }
        // noted in place: a frame that is written in parts and then moved as a whole waits for the parts
        let place = self.places[list.tail as usize].insert(frame);
        (place.ingress, place.class) = (held.ingress, held.class);
    }

    #[inline]
    fn take_block(&mut self) -> u32 {
        let at = self.free;
        if at == NONE {
            self.places.resize_with(self.places.len() + BLOCK as usize, || None);
            self.next.push(NONE);
            return self.next.len() as u32 - 1;
        }
        self.free = self.next[at as usize];
        at
    }

    /// Length of the first frame of a queue that is not empty.
    pub(super) fn head_bytes(&self, list: List) -> u32 {
        self.at(list.head).map_or(0, |held| held.bytes)
    }

    /// The metadata of the first frame of a queue; `None` if it is empty.
    #[inline]
    fn at(&self, place: u32) -> Option<Held> {
        Some(Held::of(self.places.get(place as usize)?.as_ref()?))
    }

    pub(super) fn pop(&mut self, list: &mut List) -> Option<(Frame, Held)> {
        let at = list.head;
        let place = self.places.get_mut(at as usize)?;
        // read in place: a frame that is looked into on its way is moved in parts, and waits for them
        let held = Held::of(place.as_ref()?);
        let first = place.take()?;
        let is_last = at == list.tail;
        *list = if is_last { List::default() } else { List { head: self.behind(at), ..*list } };
        if is_last || at % BLOCK == BLOCK - 1 {
            let block = at / BLOCK;
            self.next[block as usize] = std::mem::replace(&mut self.free, block);
        }
        // Both were last touched when they joined the queue. The packet is read by the host that the frame may go to.
        prefetch(first.packet_as_sent());
        if let Some(next) = self.places.get(list.head as usize) {
            prefetch(next);
        }
        Some((first, held))
    }

    /// The place after one that is not the last of its queue.
    #[inline]
    fn behind(&self, place: u32) -> u32 {
        match place % BLOCK {
            last if last == BLOCK - 1 => self.next[(place / BLOCK) as usize] * BLOCK,
            _ => place + 1,
        }
    }

    /// The frames of a queue from the first to the last, for diagnosis.
    pub(super) fn iter(&self, list: List) -> impl Iterator<Item = Held> + '_ {
        let behind = move |place: &u32| (*place != list.tail).then(|| self.behind(*place));
        let first = (!list.is_empty()).then_some(list.head);
        std::iter::successors(first, behind).filter_map(|place| self.at(place))
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
            ops in proptest::collection::vec((0usize..3, proptest::option::weighted(0.6, 0u32..5000)), 0..600)
        ) {
            let (mut pool, mut lists) = (Pool::new(), [List::default(); 3]);
            let mut models: [VecDeque<u32>; 3] = Default::default();
            let mut fullest = 0;
            for (queue, op) in ops {
                match op {
                    Some(bytes) => {
                        let frame = Frame::new(Packet::Raw(vec![0; bytes as usize].into()));
                        pool.push(&mut lists[queue], frame, Held { bytes, ingress: bytes as u16, class: queue as u8 });
                        models[queue].push_back(bytes);
                    }
                    None => {
                        let got = pool.pop(&mut lists[queue]);
                        let bytes = got.as_ref().map(|(_, held)| held.bytes);
                        prop_assert_eq!(bytes, models[queue].pop_front());
                        let right = got.is_none_or(|(mut frame, held)| {
                            (held.ingress, usize::from(held.class)) == (held.bytes as u16, queue)
                                && matches!(frame.packet(), Packet::Raw(bytes) if bytes.len() == held.bytes as usize)
                        });
                        prop_assert!(right);
                    }
                }
                prop_assert!(pool.iter(lists[queue]).map(|held| held.bytes).eq(models[queue].iter().copied()));
                prop_assert_eq!(lists[queue].is_empty(), models[queue].is_empty());
                // of a queue's blocks the first and the last may be as good as empty
                fullest = fullest.max(models.iter().map(|model| model.len().div_ceil(BLOCK as usize) + 1).sum());
                prop_assert!(pool.next.len() <= fullest);
            }
        }
    }
}
