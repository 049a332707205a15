// SPDX-License-Identifier: Apache-2.0
//! A board that an RDMA NIC reads: its announcements, and the READs of its fragments.
//! Promise: the board may write its announcements and nothing else; a fragment lies in its slot when its last READ has
//! completed, and the list of its successors in memory of the queue pair. Announcements and READs complete in one queue,
//! so what a board has announced before it answered is taken before the answer.
//! Source: docs/fragments.md (announcements); ibv_post_send(3).

use std::io;
use std::sync::Arc;

use penstock_transport::RecvWr;
use penstock_wire::fragment::HEADER_LEN;
use penstock_wire::{Payload, ANNOUNCEMENT_SLOTS, ANNOUNCEMENT_SLOT_LEN, PULL_READS, SUCCESSORS_LEN};

use crate::backend::pull::{Around, Puller, Reading, INBOX_LEN};
use crate::backend::responders::NO_ANNOUNCEMENT;
use crate::backend::Completion;
use crate::sys::verbs::{status_name, Domain, QueuePair, ReadWr, Registration, WorkCompletion, Written, FLUSHED};
use crate::sys::{Pages, RingMemory};

/// Announcements and READs of a board that have not completed, at most.
pub(super) const MOST_COMPLETIONS: u32 = ANNOUNCEMENT_SLOTS + PULL_READS as u32;
/// Bit of a work request's number: it is a READ.
const READ: u64 = 1 << 31;
const UNANSWERED: &str = "IBV_WC_RETRY_EXC_ERR";

/// The READs of one board.
pub(super) struct Reads {
    pub(super) puller: Puller,
    /// The ring of announcements, and then the lists of successors, one for each slot.
    memory: RingMemory,
    /// The slots that fragments fill.
    ring: Registration,
    /// What failed first.
    failed: Option<String>,
    is_unanswered: bool,
}

impl Reads {
    /// Reads into `slots` slots of a registered ring.
    ///
    /// # Errors
    /// The kernel has no memory.
    pub(super) fn new(ring: Registration, slots: u32, reading: Reading) -> io::Result<Reads> {
        let memory = RingMemory::allocate(INBOX_LEN + slots as usize * SUCCESSORS_LEN, Pages::Normal);
        let memory = memory.map_err(io::Error::other)?;
        Ok(Reads { puller: Puller::new(reading.longest), memory, ring, failed: None, is_unanswered: false })
    }

    /// The memory of a queue pair that is read.
    ///
    /// # Errors
    /// The limit of locked memory; the driver's.
    pub(super) fn register(&self, domain: &Arc<Domain>) -> io::Result<Registration> {
        let mapping = self.memory.mapping();
        Registration::new(domain, Written::Host(mapping.clone()), mapping.len())
    }

    /// Where the board's announcements begin.
    pub(super) fn base(&self) -> u64 {
        self.memory.mapping().addr()
    }

    /// Posts receives for announcements, and the READs that have been chosen. `tag`: of the numbers of work requests.
    ///
    /// # Errors
    /// The driver's.
    pub(super) fn post(&mut self, qp: &QueuePair, tag: u64) -> io::Result<()> {
        let base = self.base();
        while let Some(slot) = self.puller.take_inbox_slot() {
            let (wr_id, va) = (tag | u64::from(slot), base + u64::from(slot) * ANNOUNCEMENT_SLOT_LEN as u64);
            qp.post(&[RecvWr { wr_id, va, len: ANNOUNCEMENT_SLOT_LEN as u32 }])?;
        }
        while let Some(post) = self.puller.poll_post() {
            let (first, len) = post.of_successors;
            qp.post_read(&ReadWr {
                wr_id: tag | READ,
                address: post.address,
                rkey: post.rkey,
                into: (&self.ring, post.va, post.of_fragment),
                rest: (base + self.list(post.slot) as u64 + u64::from(first), len),
            })?;
        }
        Ok(())
    }

    /// Takes a completion of the board.
    pub(super) fn complete(&mut self, around: &mut Around<'_>, wc: &WorkCompletion, out: &mut Vec<Completion>) {
        let status = status_name(wc.status);
        if wc.status != 0 {
            self.is_unanswered |= self.failed.is_none() && status == UNANSWERED;
            match wc.wr_id & READ {
                _ if status == FLUSHED => {}
                0 => self.fail(format!("{status}: a request of the board was refused{NO_ANNOUNCEMENT}")),
                _ => self.fail(format!("a READ of what the board has announced failed: {status}")),
            }
        } else if wc.wr_id & READ != 0 {
            self.take_successors(around);
            self.puller.arrive(around, out);
        } else {
            let slot = wc.wr_id as u32 & !(READ as u32);
            // Receives are posted again in any order: a WRITE lies where its immediate says, only a SEND in the receive.
            let at = wc.imm.filter(|_| wc.is_write).unwrap_or(slot) as usize * ANNOUNCEMENT_SLOT_LEN;
            let len = (wc.byte_len as usize).min(ANNOUNCEMENT_SLOT_LEN);
            let message = self.memory.bytes()[..INBOX_LEN].get(at..at + len);
            self.puller.take_message(slot, message.unwrap_or_default());
        }
    }

    /// The last READ of a fragment has brought its successors.
    fn take_successors(&mut self, around: &mut Around<'_>) {
        let Some((receive, length)) = self.puller.arriving().filter(|_| self.puller.is_last()) else { return };
        if let Ok(Payload::Bytes(bytes)) = around.memory.read(receive.va, length.min(HEADER_LEN as u32)) {
            self.puller.compare(around.board, &bytes);
        }
        let list = self.list(receive.wr_id);
        if let Some(bytes) = self.memory.bytes().get(list..list + SUCCESSORS_LEN) {
            self.puller.extend_successors(bytes);
        }
    }

    /// Why the connection must end.
    pub(super) fn fault(&self) -> Option<String> {
        self.puller.fault().map(str::to_owned).or_else(|| self.failed.clone())
    }

    pub(super) fn fail(&mut self, why: String) {
        self.failed.get_or_insert(why);
    }

    pub(super) fn is_unanswered(&self) -> bool {
        self.puller.fault().is_none() && self.is_unanswered
    }

    pub(super) fn is_settled(&self) -> bool {
        self.fault().is_some() || self.puller.is_settled()
    }

    /// Where the list of successors of a slot begins in the memory.
    fn list(&self, slot: u64) -> usize {
        INBOX_LEN + slot as usize * SUCCESSORS_LEN
    }
}
