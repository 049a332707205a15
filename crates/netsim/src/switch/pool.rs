// SPDX-License-Identifier: Apache-2.0
//! The frames of all queues of a switch in blocks, each queue a list of them.
//! Promise: first in, first out per queue, side by side in memory; no allocation once there are as many blocks as in the
//! fullest moment, and the block freed last is used first, so that short queues stay in the cache.

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

/// Frames of a block.
const BLOCK: u32 = 16;

/// Frames that wait one behind the other.
#[derive(Debug)]
struct Block {
    /// Those that were popped are `None`.
    places: Vec<Option<(Frame, Held)>>,
    /// The block behind it, of its queue or of those that are free.
    next: u32,
}

/// First and last place of one queue: numbers of blocks, times their length, and of places in them.
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
    blocks: Vec<Block>,
    free: u32,
}

impl Pool {
    pub(super) fn new() -> Self {
        Pool { blocks: Vec::new(), free: NONE }
    }

    pub(super) fn push(&mut self, list: &mut List, frame: Frame, held: Held) {
        if list.is_empty() {
            list.head = self.take_block() * BLOCK;
            list.tail = list.head;
        } else if list.tail % BLOCK < BLOCK - 1 {
            list.tail += 1;
        } else {
            let block = self.take_block();
            self.blocks[(list.tail / BLOCK) as usize].next = block;
            list.tail = block * BLOCK;
        }
        self.blocks[(list.tail / BLOCK) as usize].places.push(Some((frame, held)));
    }

    #[inline]
    fn take_block(&mut self) -> u32 {
        let at = self.free;
        if at == NONE {
            self.blocks.push(Block { places: Vec::with_capacity(BLOCK as usize), next: NONE });
            return self.blocks.len() as u32 - 1;
        }
        self.free = self.blocks[at as usize].next;
        at
    }

    /// Length of the first frame of a queue that is not empty.
    pub(super) fn head_bytes(&self, list: List) -> u32 {
        self.at(list.head).map_or(0, |held| held.bytes)
    }

    fn at(&self, place: u32) -> Option<Held> {
        let block = self.blocks.get((place / BLOCK) as usize)?;
        block.places.get((place % BLOCK) as usize)?.as_ref().map(|(_, held)| *held)
    }

    pub(super) fn pop(&mut self, list: &mut List) -> Option<(Frame, Held)> {
        let at = list.head;
        let block = self.blocks.get_mut((at / BLOCK) as usize)?;
        let first = block.places.get_mut((at % BLOCK) as usize)?.take()?;
        let is_last = at == list.tail;
        if is_last || at % BLOCK == BLOCK - 1 {
            block.places.clear();
            let next = std::mem::replace(&mut block.next, self.free);
            self.free = at / BLOCK;
            *list = if is_last { List::default() } else { List { head: next * BLOCK, ..*list } };
        } else {
            list.head += 1;
        }
        Some(first)
    }

    /// The frames of a queue from the first to the last, for diagnosis.
    pub(super) fn iter(&self, list: List) -> impl Iterator<Item = Held> + '_ {
        let behind = move |place: &u32| match *place {
            last if last == list.tail => None,
            place if place % BLOCK == BLOCK - 1 => Some(self.blocks[(place / BLOCK) as usize].next * BLOCK),
            place => Some(place + 1),
        };
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
                // of a queue's blocks the first and the last may be as good as empty
                fullest = fullest.max(models.iter().map(|model| model.len().div_ceil(BLOCK as usize) + 1).sum());
                prop_assert!(pool.blocks.len() <= fullest);
            }
        }
    }
}
