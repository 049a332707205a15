// SPDX-License-Identifier: Apache-2.0
//! Fragments that a board keeps in its memory, for servers that READ them (docs/fragments.md, "Announcements").

use crate::board::Board;
use crate::config::{regs, ReadWindow, RingTarget, SetupError};
use crate::top::Top;
use penstock_wire::{Psn, ANNOUNCEMENT_SLOTS, ANNOUNCEMENT_SLOT_LEN, PULL_READS, SUCCESSORS_LEN};

/// Fragments start at multiples of this.
const PLACE_BYTES: u64 = 64;
/// Places that a window has at least. A place is free when so many READs have come after its own as may be outstanding;
/// as many again hold what is to be read.
const LEAST_PLACES: u64 = 2 * PULL_READS as u64;

/// The server that reads the fragments of a queue pair.
#[derive(Debug, Clone, Copy)]
pub struct PullConfig {
    /// PSN of its first READ.
    pub psn: Psn,
    /// The key of the fragments, which announcements name.
    pub rkey: u32,
    /// Where its ring of announcements begins.
    pub ring: u64,
}

/// The longest fragment that a board of this top keeps, bytes; none: it keeps no fragments.
pub fn longest_fragment(top: Top) -> Option<u64> {
    let (_, bytes) = top.window(0)?;
    Some(bytes / LEAST_PLACES / PLACE_BYTES * PLACE_BYTES - SUCCESSORS_LEN as u64)
}

impl Board {
    /// Has the board keep the messages of its rings, none longer than `longest` bytes, and announce them; 0: it sends
    /// them. Before the first queue pair is opened.
    ///
    /// # Errors
    /// The build keeps no fragments, or none of this length.
    pub fn keep_fragments(&mut self, longest: u64) -> Result<(), SetupError> {
        use regs::global as g;
        let most = longest_fragment(self.top()).ok_or(SetupError::NoPull)?;
        if g::OPTIONS_PULL_SLOTS_BITS.of(self.read(g::OPTIONS)?) == 0 {
            return Err(SetupError::NoPull);
        }
        if longest > most {
            return Err(SetupError::LongFragments { longest, most });
        }
        let stride = (longest + SUCCESSORS_LEN as u64).next_multiple_of(PLACE_BYTES);
        Ok(self.write(g::PULL_STRIDE, if longest == 0 { 0 } else { stride as u32 })?)
    }

    /// Gives queue pair `index` its window of the memory and its server's ring; after [`Board::keep_fragments`], before
    /// [`Board::open_qp`].
    ///
    /// # Errors
    /// The build keeps no fragments.
    pub fn set_pull(&mut self, index: u8, config: &PullConfig) -> Result<(), SetupError> {
        let (base, len) = self.top().window(index).ok_or(SetupError::NoPull)?;
        let &PullConfig { psn, rkey, ring: va } = config;
        self.set_read_window(index, &ReadWindow { psn, rkey, base, len, depth: PULL_READS })?;
        let (slots, slot_bytes) = (ANNOUNCEMENT_SLOTS, ANNOUNCEMENT_SLOT_LEN as u32);
        Ok(self.set_ring(index, RingTarget { va, slots, slot_bytes })?)
    }
}
