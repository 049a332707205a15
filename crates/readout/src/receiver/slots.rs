// SPDX-License-Identifier: Apache-2.0
//! The memory that holds fragments until they are stored: slots of the boards' rings or of one pool, or copies taken
//! from a pool that runs low.
//! Promise: memory is bounded by the configuration; a slot belongs to one fragment until it is released.
//! Source: ARCHITECTURE.md, "The way of a fragment". A pool full of fragments that wait for those of other boards would
//! exclude these boards for ever; copying fragments out of the pool makes room for them.

use std::collections::TryReserveError;

use penstock_transport::Window;
use penstock_wire::Payload;

use super::error::ReceiverError;
use crate::ring::{Ring, RingConfig, RingCounters};
use crate::sys::RingMemory;

/// The measures of a pool of slots before it is empty.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PoolConfig {
    /// Fragments that wait for others may be copied out of the pool, this number at a time, while more than half of its
    /// slots hold fragments. Memory for a copy is taken when it is first needed.
    pub copies: u32,
}

/// The slot of a fragment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    Slot(u32),
    Copy(u32),
}

impl Default for Place {
    fn default() -> Self {
        Place::Slot(0)
    }
}

/// Fragments that were copied out of a pool. Memory once taken is used again.
#[derive(Debug, Default)]
struct Copies {
    most: usize,
    buffers: Vec<Vec<u8>>,
    free: Vec<u32>,
}

impl Copies {
    /// Keeps a copy; none if there is no room for one more.
    fn keep(&mut self, message: &[u8]) -> Option<u32> {
        let at = match self.free.pop() {
            Some(at) => at,
            None if self.buffers.len() < self.most => {
                self.buffers.push(Vec::new());
                self.buffers.len() as u32 - 1
            }
            None => return None,
        };
        match filled(&mut self.buffers[at as usize], message) {
            Ok(()) => Some(at),
            Err(_) => {
                self.free.push(at);
                None
            }
        }
    }
}

fn filled(buffer: &mut Vec<u8>, message: &[u8]) -> Result<(), TryReserveError> {
    buffer.clear();
    buffer.try_reserve_exact(message.len())?;
    buffer.extend_from_slice(message);
    Ok(())
}

/// The slots of all boards.
#[derive(Debug)]
pub(crate) struct Slots {
    /// One for each board; one pool if they share it.
    rings: Vec<Ring>,
    shared: bool,
    /// First address and board of every ring, by address.
    by_va: Vec<(u64, usize)>,
    copies: Copies,
}

impl Slots {
    /// # Errors
    /// [`ReceiverError`] if a ring cannot be made, or two overlap.
    pub fn new(
        configs: &[RingConfig],
        memories: Vec<RingMemory>,
        pool: Option<PoolConfig>,
    ) -> Result<Slots, ReceiverError> {
        let ring = |(board, (ring, memory)): (usize, (&RingConfig, RingMemory))| {
            let made = match pool {
                Some(_) => Ring::pool(*ring, memory),
                None => Ring::with_memory(*ring, memory),
            };
            made.map_err(|reason| ReceiverError::Ring { board, reason })
        };
        let rings = configs.iter().zip(memories).enumerate().map(ring).collect::<Result<Vec<Ring>, _>>()?;
        let mut by_va: Vec<_> = rings.iter().enumerate().map(|(board, ring)| (ring.region().va, board)).collect();
        by_va.sort_unstable();
        for pair in by_va.windows(2) {
            let ((va, a), (next_va, b)) = (pair[0], pair[1]);
            if va + rings[a].region().len > next_va {
                return Err(ReceiverError::Overlap { a, b });
            }
        }
        let copies = Copies { most: pool.map_or(0, |pool| pool.copies as usize), ..Copies::default() };
        Ok(Slots { rings, shared: pool.is_some(), by_va, copies })
    }

    pub fn is_pool(&self) -> bool {
        self.shared
    }

    fn at(&self, board: u16) -> usize {
        if self.shared {
            0
        } else {
            usize::from(board)
        }
    }

    /// The ring of a board, or the pool; none if there is no such board.
    pub fn ring(&self, board: u16) -> Option<&Ring> {
        self.rings.get(self.at(board))
    }

    pub fn ring_mut(&mut self, board: u16) -> Option<&mut Ring> {
        let at = self.at(board);
        self.rings.get_mut(at)
    }

    /// See [`Ring::unfilled`].
    pub fn unfilled(&mut self, slot: u32) {
        self.rings[0].unfilled(slot);
    }

    /// The message stored there; empty if there is none.
    pub fn message(&self, board: u16, place: Place) -> &[u8] {
        match place {
            Place::Slot(slot) => self.rings[self.at(board)].message(slot),
            Place::Copy(at) => &self.copies.buffers[at as usize],
        }
    }

    /// The data there is no longer needed.
    pub fn release(&mut self, board: u16, place: Place) {
        match place {
            Place::Slot(slot) => {
                let at = self.at(board);
                self.rings[at].release(slot);
            }
            Place::Copy(at) => self.copies.free.push(at),
        }
    }

    /// Whether more than half of a pool holds fragments.
    pub fn is_low(&self) -> bool {
        self.shared && self.rings[0].held() > self.rings[0].config().slots / 2
    }

    /// Copies the message in a pool's slot, and releases the slot; none, and nothing has happened, if there is no room.
    pub fn copy_out(&mut self, slot: u32) -> Option<Place> {
        let at = self.copies.keep(self.rings[0].message(slot))?;
        self.rings[0].release(slot);
        Some(Place::Copy(at))
    }

    pub fn write(&mut self, va: u64, data: &Payload) {
        let board = self.board_at(va);
        self.rings[board].write(va, data);
    }

    /// See [`Ring::place_mut`].
    pub fn place(&mut self, va: u64, len: u32) -> Option<&mut [u8]> {
        let board = self.board_at(va);
        self.rings[board].place_mut(va, len as usize)
    }

    /// See [`Ring::placed`].
    pub fn placed(&mut self, va: u64, len: u32) {
        let board = self.board_at(va);
        self.rings[board].placed(len);
    }

    /// See [`Ring::refuses`].
    pub fn refuses(&self, va: u64, len: u32) -> Option<Window> {
        self.rings[self.board_at(va)].refuses(va, len)
    }

    /// See [`Ring::bytes_at`].
    pub fn bytes_at(&self, va: u64) -> &[u8] {
        self.rings[self.board_at(va)].bytes_at(va)
    }

    /// See [`Ring::message_ended`].
    pub fn message_ended(&mut self, region: u64) {
        let board = self.board_at(region);
        self.rings[board].message_ended();
    }

    /// The board whose ring contains an address, if any.
    fn board_at(&self, va: u64) -> usize {
        let after = self.by_va.partition_point(|&(ring_va, _)| ring_va <= va);
        self.by_va[after.saturating_sub(1)].1
    }

    /// Counters of every ring.
    pub fn counters(&self) -> Vec<RingCounters> {
        self.rings.iter().map(|ring| *ring.counters()).collect()
    }
}
