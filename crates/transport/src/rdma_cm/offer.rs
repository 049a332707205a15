// SPDX-License-Identifier: Apache-2.0
//! Penstock's private data in REQ and REP: the ring that a peer may write, which FEROCE's messages carry in part.
//! Promise: an end without it is none of ours, and is connected with the settings that both ends have.
//!
//! ```text
//!  0..3     4         8..15          16..19   20..23   24..27
//! | PNSK | version 1 | ring address | rkey  | slots | bytes of a slot |     big-endian
//! ```

use penstock_wire::CmInfo;

/// Bytes of it.
pub const RDMA_CM_OFFER_LEN: usize = 28;

const MAGIC: [u8; 4] = *b"PNSK";
const VERSION: u8 = 1;

/// A ring of slots; without address and key, one of the peer's slots that the sender counts on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RdmaCmOffer {
    /// First address.
    pub base: u64,
    /// Its key.
    pub rkey: u32,
    /// Slots.
    pub slots: u32,
    /// Bytes of a slot.
    pub slot_bytes: u32,
}

impl RdmaCmOffer {
    /// The ring of `info`.
    pub fn of(info: &CmInfo, slots: u32, slot_bytes: u32) -> Self {
        RdmaCmOffer { base: info.base, rkey: info.rkey, slots, slot_bytes }
    }

    /// What does not fit a ring of so many slots of so many bytes; 0 slots, at either end: a pool, of any size.
    pub fn mismatch(&self, slots: u32, slot_bytes: u32) -> Option<String> {
        let is_ring = self.slots != 0 && slots != 0;
        ((is_ring && self.slots != slots) || self.slot_bytes != slot_bytes).then(|| {
            format!(
                "has {} slots of {} bytes, this end {slots} of {slot_bytes}: set --slots and --slot-size equal at both \
                 ends",
                self.slots, self.slot_bytes
            )
        })
    }

    /// Reads it; none if it is something else.
    pub fn read(private: &[u8]) -> Option<Self> {
        if private.len() < RDMA_CM_OFFER_LEN || private[..4] != MAGIC || private[4] != VERSION {
            return None;
        }
        let word = |at: usize| u32::from_be_bytes([private[at], private[at + 1], private[at + 2], private[at + 3]]);
        let base = u64::from(word(8)) << 32 | u64::from(word(12));
        Some(RdmaCmOffer { base, rkey: word(16), slots: word(20), slot_bytes: word(24) })
    }

    /// Writes it at the start of private data over zeros.
    pub fn write(&self, private: &mut [u8]) {
        private[..4].copy_from_slice(&MAGIC);
        private[4] = VERSION;
        private[8..16].copy_from_slice(&self.base.to_be_bytes());
        private[16..20].copy_from_slice(&self.rkey.to_be_bytes());
        private[20..24].copy_from_slice(&self.slots.to_be_bytes());
        private[24..28].copy_from_slice(&self.slot_bytes.to_be_bytes());
    }
}
