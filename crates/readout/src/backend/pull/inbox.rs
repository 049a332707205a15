// SPDX-License-Identifier: Apache-2.0
//! The ring of a queue pair that its board writes announcements to.
//! Promise: a board reaches these bytes alone; an announcement is read before its slot has a receive again.
//! Source: `penstock_wire::Announcement`.

use penstock_transport::{Memory, RecvWr};
use penstock_wire::{Payload, ANNOUNCEMENT_SLOTS, ANNOUNCEMENT_SLOT_LEN};

/// Bytes of the ring.
pub(in crate::backend) const INBOX_LEN: usize = ANNOUNCEMENT_SLOTS as usize * ANNOUNCEMENT_SLOT_LEN;

pub(super) struct Inbox {
    base: u64,
    bytes: Vec<u8>,
}

impl Inbox {
    /// A ring at this address of the board's view.
    pub(super) fn new(base: u64) -> Inbox {
        Inbox { base, bytes: vec![0; INBOX_LEN] }
    }

    /// The receive of a slot.
    pub(super) fn receive(&self, slot: u32) -> RecvWr {
        let va = self.base + u64::from(slot) * ANNOUNCEMENT_SLOT_LEN as u64;
        RecvWr { wr_id: slot.into(), va, len: ANNOUNCEMENT_SLOT_LEN as u32 }
    }

    /// The `len` bytes at `va`; none if they are not in the ring.
    pub(super) fn message(&self, va: u64, len: u32) -> Option<&[u8]> {
        let at = usize::try_from(va.checked_sub(self.base)?).ok()?;
        self.bytes.get(at..at.checked_add(len as usize)?)
    }
}

impl Memory for Inbox {
    fn write(&mut self, va: u64, data: &Payload) {
        let at = va.checked_sub(self.base).and_then(|at| usize::try_from(at).ok());
        let place = at.and_then(|at| self.bytes.get_mut(at..at.checked_add(data.len())?));
        if let (Some(place), Payload::Bytes(bytes)) = (place, data) {
            place.copy_from_slice(bytes);
        }
    }
}
