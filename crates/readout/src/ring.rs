// SPDX-License-Identifier: Apache-2.0
//! One board's ring of slots: the memory that its RDMA WRITEs fill, and the credits for them. Or a pool of
//! slots for the SENDs of all boards, which the back end lends to them.
//! Promise: a slot whose fragment is still needed is never overwritten; slots of a ring are posted only in ring order.
//! Source: ARCHITECTURE.md, "The way of a fragment" (a full ring answers RNR NAK); IBTA 9.7.5.1: only the
//! last packet of a WRITE WITH IMMEDIATE needs a receive, so if it gets an RNR NAK the packets before it have already
//! been written. One free slot, the next one, therefore always stays without a receive: these packets are written
//! there, and never over a fragment that is still held.
//!
//! ```text
//!            take_credits          complete              release
//! Released --------------> Posted ----------> Held -----------------> Released
//! ```

use std::collections::VecDeque;

use penstock_transport::{RecvWr, Window};
use penstock_wire::Payload;
use serde::Serialize;

use crate::sys::{MemoryError, Pages, RingMemory};

/// `wr_id` of a receive that stands for no slot: it was spent by a completion that filled none. A WRITE WITH IMMEDIATE
/// may use it; a SEND finds no room in it.
pub const NO_SLOT: u64 = u64::MAX;

/// Address and key of a memory region, as the board's queue pair must know them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Region {
    /// First virtual address.
    pub va: u64,
    /// Bytes.
    pub len: u64,
    pub rkey: u32,
}

/// Shape of a ring. Slot `i` begins at `va + i * slot_bytes`; its index is the immediate of the WRITE that fills it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RingConfig {
    /// First virtual address.
    pub va: u64,
    pub rkey: u32,
    /// Slots, at least 2; one less than that is the most receives ever posted.
    pub slots: u32,
    /// Bytes of a slot; the largest fragment, header included.
    pub slot_bytes: u32,
}

impl Default for RingConfig {
    /// 64 slots of 128 KiB: a 100 kB fragment each, 5 ms of a board at 10 Gb/s.
    fn default() -> Self {
        RingConfig { va: 0x1000_0000, rkey: 0x1000, slots: 64, slot_bytes: 128 * 1024 }
    }
}

impl RingConfig {
    /// This ring's shape for board `board`: its own addresses (with an unmapped gap after each ring) and key.
    #[must_use]
    pub fn for_board(self, board: u16) -> RingConfig {
        const GAP_BYTES: u64 = 1 << 20;
        let ring_bytes = u64::from(self.slots).saturating_mul(u64::from(self.slot_bytes));
        let step = (ring_bytes + GAP_BYTES).next_multiple_of(GAP_BYTES);
        let va = self.va.saturating_add(step.saturating_mul(u64::from(board)));
        RingConfig { va, rkey: self.rkey.wrapping_add(u32::from(board)), ..self }
    }

    /// Bytes of all slots.
    #[allow(clippy::len_without_is_empty, reason = "a ring is never empty")]
    pub fn len(&self) -> usize {
        self.slots as usize * self.slot_bytes as usize
    }

    fn check(&self) -> Result<(), RingConfigError> {
        let &RingConfig { va, slots, slot_bytes, .. } = self;
        if slots < 2 || slot_bytes == 0 {
            return Err(RingConfigError::TooSmall { slots, slot_bytes });
        }
        let end = va.checked_add(u64::from(slots) * u64::from(slot_bytes));
        end.map(|_| ()).ok_or(RingConfigError::PastEnd { va, slots, slot_bytes })
    }
}

/// Why a ring cannot be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RingConfigError {
    #[error("a ring needs at least two slots of at least one byte, not {slots} slots of {slot_bytes} bytes")]
    TooSmall { slots: u32, slot_bytes: u32 },
    #[error(
        "a ring of {slots} slots of {slot_bytes} bytes at {va:#x} passes the end of the address space; lower `va`"
    )]
    PastEnd { va: u64, slots: u32, slot_bytes: u32 },
    #[error("{slots} slots of {slot_bytes} bytes do not fit into the {memory} bytes given")]
    MemoryTooSmall { memory: usize, slots: u32, slot_bytes: u32 },
    #[error(transparent)]
    NoMemory(#[from] MemoryError),
}

/// A completion that the ring cannot accept. Its receive is posted again; the slots are left as they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RingError {
    #[error(
        "the board says that it filled slot {slot}, but its next slot is {expected}; do both ends have the same slots?"
    )]
    UnexpectedSlot { slot: u32, expected: u32 },
    #[error("the board filled slot {slot}, which was not posted; it must wait for credits")]
    NotPosted { slot: u32 },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Slot {
    Released,
    Posted,
    /// Holds a fragment of this number of bytes.
    Held(u32),
}

/// Counts since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct RingCounters {
    /// Bytes of messages written into slots.
    pub bytes_written: u64,
    /// Writes that missed the region, crossed a slot's end or aimed at a slot that is still needed: not done.
    pub writes_refused: u64,
    pub completions: u64,
    /// Completions that named a wrong slot.
    pub completions_refused: u64,
}

/// A pool's slots that are free, in the order in which they came free; a ring has none of this.
#[derive(Debug)]
struct Pool {
    free: VecDeque<u32>,
    posted: u32,
}

/// The ring of one board, or the pool of all.
#[derive(Debug)]
pub struct Ring {
    config: RingConfig,
    memory: RingMemory,
    slots: Vec<Slot>,
    /// The slot that the board fills next.
    next_fill: u32,
    /// The slot that the board's next message goes to. The messages in those before it are here, though not every one
    /// of them has been reported ([`Self::complete`]).
    next_write: u32,
    /// The slot that is posted next; released and open to writes until then.
    next_post: u32,
    /// Receives used up by completions that filled no slot.
    spent_receives: u32,
    pool: Option<Pool>,
    counters: RingCounters,
}

impl Ring {
    /// A ring with no slot posted yet: [`Self::take_credits`] posts all but one.
    ///
    /// # Errors
    /// [`RingConfigError`] if it has no room or no address.
    pub fn new(config: RingConfig) -> Result<Ring, RingConfigError> {
        config.check()?;
        Ring::with_memory(config, RingMemory::allocate(config.len(), Pages::Normal)?)
    }

    /// The same over memory that is there already, as a NIC has registered it.
    ///
    /// # Errors
    /// [`RingConfigError`] if the memory is too small, or as [`Self::new`].
    pub fn with_memory(config: RingConfig, memory: RingMemory) -> Result<Ring, RingConfigError> {
        config.check()?;
        let RingConfig { slots, slot_bytes, .. } = config;
        if memory.bytes().len() < config.len() {
            return Err(RingConfigError::MemoryTooSmall { memory: memory.bytes().len(), slots, slot_bytes });
        }
        Ok(Ring {
            config,
            memory,
            slots: vec![Slot::Released; slots as usize],
            next_fill: 0,
            next_write: 0,
            next_post: 0,
            spent_receives: 0,
            pool: None,
            counters: RingCounters::default(),
        })
    }

    /// Slots in no order, for SENDs: every receive belongs to a free slot, filled by the board that is served first.
    ///
    /// # Errors
    /// As [`Self::with_memory`].
    pub fn pool(config: RingConfig, memory: RingMemory) -> Result<Ring, RingConfigError> {
        let free = VecDeque::from_iter(0..config.slots);
        let pool = Some(Pool { free, posted: 0 });
        Ok(Ring { pool, ..Ring::with_memory(config, memory)? })
    }

    pub fn region(&self) -> Region {
        Region { va: self.config.va, len: self.config.len() as u64, rkey: self.config.rkey }
    }

    pub fn config(&self) -> &RingConfig {
        &self.config
    }

    pub fn counters(&self) -> &RingCounters {
        &self.counters
    }

    /// How many receives to post now, one per slot that came free; the caller must post them. For boards that WRITE.
    pub fn take_credits(&mut self) -> u32 {
        let mut credits = 0;
        self.take_receives(|_| credits += 1);
        credits
    }

    /// Slots that have a receive and wait for a message.
    pub fn posted(&self) -> u32 {
        if let Some(pool) = &self.pool {
            return pool.posted;
        }
        self.slots.iter().filter(|slot| **slot == Slot::Posted).count() as u32
    }

    /// Returns the receives to post now, in ring order. `wr_id` is the slot, whose memory a SEND fills, or
    /// [`NO_SLOT`].
    pub fn take_receives(&mut self, post: impl FnMut(RecvWr)) {
        self.take_receives_up_to(u32::MAX, post);
    }

    /// The same, but no more than `most` are then posted.
    pub fn take_receives_up_to(&mut self, most: u32, mut post: impl FnMut(RecvWr)) {
        if self.pool.is_some() {
            return self.take_pool(post);
        }
        for _ in 0..std::mem::take(&mut self.spent_receives) {
            post(RecvWr { wr_id: NO_SLOT, va: self.config.va, len: 0 });
        }
        let is_free = |ring: &Ring, slot: u32| ring.slots[slot as usize] == Slot::Released;
        // Slots are counted only where that matters: at the end of a run.
        let mut more = if most < self.config.slots { most.saturating_sub(self.posted()) } else { self.config.slots };
        while more > 0 && is_free(self, self.next_post) && is_free(self, self.after(self.next_post)) {
            let slot = self.next_post;
            self.slots[slot as usize] = Slot::Posted;
            self.next_post = self.after(slot);
            more -= 1;
            let va = self.config.va + self.offset(slot) as u64;
            post(RecvWr { wr_id: slot.into(), va, len: self.config.slot_bytes });
        }
    }

    /// Slots of a pool that hold a message.
    pub fn held(&self) -> u32 {
        self.pool.as_ref().map_or(0, |pool| self.config.slots - pool.posted - pool.free.len() as u32)
    }

    fn take_pool(&mut self, mut post: impl FnMut(RecvWr)) {
        let Some(pool) = &mut self.pool else { return };
        for slot in pool.free.drain(..) {
            self.slots[slot as usize] = Slot::Posted;
            pool.posted += 1;
            let va = self.config.va + u64::from(slot) * u64::from(self.config.slot_bytes);
            post(RecvWr { wr_id: slot.into(), va, len: self.config.slot_bytes });
        }
    }

    /// The receive of a pool's slot has ended without a message: its queue pair was closed.
    pub fn unfilled(&mut self, slot: u32) {
        if let (Some(pool), Some(state @ Slot::Posted)) = (&mut self.pool, self.slots.get_mut(slot as usize)) {
            *state = Slot::Released;
            pool.posted -= 1;
            pool.free.push_back(slot);
        }
    }

    /// The board's queue pair was closed and begins again at slot 0, under a new key; posted receives are gone.
    /// False, and nothing has happened, while a slot is held: a board must not write over what is still needed.
    #[must_use = "a ring that holds fragments has not begun again"]
    pub fn restart(&mut self, rkey: u32) -> bool {
        if self.slots.iter().any(|slot| matches!(slot, Slot::Held(_))) {
            return false;
        }
        self.slots.fill(Slot::Released);
        (self.next_fill, self.next_write, self.next_post, self.spent_receives) = (0, 0, 0, 0);
        self.config.rkey = rkey;
        true
    }

    /// The board has filled `slot` with a message of `byte_len` bytes (at most the slot's are held).
    ///
    /// # Errors
    /// [`RingError`] if the slot is not the one that must come next, or a pool's that has no receive.
    pub fn complete(&mut self, slot: u32, byte_len: u32) -> Result<(), RingError> {
        if let Some(pool) = &mut self.pool {
            let Some(state @ Slot::Posted) = self.slots.get_mut(slot as usize) else {
                self.counters.completions_refused += 1;
                return Err(RingError::NotPosted { slot });
            };
            *state = Slot::Held(byte_len.min(self.config.slot_bytes));
            pool.posted -= 1;
            self.counters.completions += 1;
            return Ok(());
        }
        let expected = self.next_fill;
        let refusal = if slot != expected {
            RingError::UnexpectedSlot { slot, expected }
        } else if self.slots[slot as usize] != Slot::Posted {
            RingError::NotPosted { slot }
        } else {
            self.slots[slot as usize] = Slot::Held(byte_len.min(self.config.slot_bytes));
            self.next_fill = self.after(slot);
            if self.next_write == slot {
                self.next_write = self.next_fill;
            }
            self.counters.completions += 1;
            return Ok(());
        };
        self.next_write = expected;
        self.spent_receives += 1;
        self.counters.completions_refused += 1;
        Err(refusal)
    }

    /// A message of the board has arrived and will be reported.
    pub fn message_ended(&mut self) {
        if self.pool.is_none() {
            self.next_write = self.after(self.next_write);
        }
    }

    /// The slot that the board's next message goes to, where one of `len` bytes at `va` would lie elsewhere: over what
    /// is still needed, or where nothing will be looked for.
    pub fn refuses(&self, va: u64, len: u32) -> Option<Window> {
        let slot = self.next_write;
        let window = Window { va: self.config.va + self.offset(slot) as u64, len: self.config.slot_bytes };
        let is_open = self.slots[slot as usize] == Slot::Posted || slot == self.next_post;
        let is_inside = va >= window.va && va - window.va + u64::from(len) <= u64::from(window.len);
        (len > 0 && !(is_open && is_inside)).then_some(window)
    }

    /// The message in a held slot; empty for any other slot.
    pub fn message(&self, slot: u32) -> &[u8] {
        match self.slots.get(slot as usize) {
            Some(Slot::Held(len)) => &self.memory.bytes()[self.offset(slot)..][..*len as usize],
            _ => &[],
        }
    }

    /// All bytes of a slot in any state; none if there is no such slot.
    pub(crate) fn slot(&self, slot: u32) -> Option<&[u8]> {
        (slot < self.config.slots).then(|| &self.memory.bytes()[self.offset(slot)..][..self.config.slot_bytes as usize])
    }

    /// The bytes from an address on, up to the end of its slot; none outside of the ring.
    pub(crate) fn bytes_at(&self, va: u64) -> &[u8] {
        let offset = va.checked_sub(self.config.va).map_or(usize::MAX, |offset| offset as usize);
        let slot_bytes = self.config.slot_bytes as usize;
        self.memory.bytes()[..self.config.len()]
            .get(offset..)
            .map_or(&[], |rest| &rest[..slot_bytes - offset % slot_bytes])
    }

    /// The fragment in `slot` is no longer needed. Releasing a slot that is not held does nothing.
    pub fn release(&mut self, slot: u32) {
        if let Some(state @ Slot::Held(_)) = self.slots.get_mut(slot as usize) {
            *state = Slot::Released;
            if let Some(pool) = &mut self.pool {
                pool.free.push_back(slot);
            }
        }
    }

    /// Writes `data` at `va` if it fits within one slot that the board may write; otherwise only counts.
    pub fn write(&mut self, va: u64, data: &Payload) {
        let len = data.len();
        let Some(offset) = self.place(va, len) else {
            self.counters.writes_refused += 1;
            return;
        };
        let target = &mut self.memory.bytes_mut()[offset..offset + len];
        match data {
            Payload::Bytes(bytes) => target.copy_from_slice(bytes),
            Payload::Virtual(_) => target.fill(0),
        }
        self.counters.bytes_written += len as u64;
    }

    /// `len` bytes at `va`, to be filled in place, if they are within one slot that the board may write; otherwise
    /// counts. [`Self::placed`] counts those that are filled, which may be fewer.
    pub fn place_mut(&mut self, va: u64, len: usize) -> Option<&mut [u8]> {
        match self.place(va, len) {
            Some(offset) => Some(&mut self.memory.bytes_mut()[offset..offset + len]),
            None => {
                self.counters.writes_refused += 1;
                None
            }
        }
    }

    /// So many bytes were filled in place.
    pub fn placed(&mut self, len: u32) {
        self.counters.bytes_written += u64::from(len);
    }

    fn after(&self, slot: u32) -> u32 {
        if slot + 1 == self.config.slots {
            0
        } else {
            slot + 1
        }
    }

    fn offset(&self, slot: u32) -> usize {
        slot as usize * self.config.slot_bytes as usize
    }

    /// The place of `len` bytes at `va`, if they are within one slot that the board may write.
    fn place(&self, va: u64, len: usize) -> Option<usize> {
        let offset = usize::try_from(va.checked_sub(self.config.va)?).ok()?;
        let slot_bytes = self.config.slot_bytes as usize;
        let fits = offset < self.config.len() && offset % slot_bytes + len <= slot_bytes;
        let slot = offset / slot_bytes;
        let next = self.pool.is_none() && slot == self.next_post as usize;
        (fits && (self.slots[slot] == Slot::Posted || next)).then_some(offset)
    }
}
