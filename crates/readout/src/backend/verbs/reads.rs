// SPDX-License-Identifier: Apache-2.0
//! A board that an RDMA NIC reads: its announcements, and the READs of its fragments.
//! Promise: the board may write its announcements and nothing else; a fragment lies in its slot when its last READ has
//! completed, and the list of its successors in memory of the queue pair.
//! Source: docs/fragments.md (announcements); ibv_post_send(3).

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use penstock_transport::{Memory, RecvWr};
use penstock_units::Time;
use penstock_wire::fragment::HEADER_LEN;
use penstock_wire::{Payload, ANNOUNCEMENT_SLOTS, ANNOUNCEMENT_SLOT_LEN, PULL_READS, SUCCESSORS_LEN};

use super::{failed, tag, Board, FLUSHED};
use crate::backend::pull::{Around, Pull, PullCounters, PullSettings, Puller, Reading, INBOX_LEN};
use crate::backend::{BackendError, Completion, Counters};
use crate::sys::verbs::{
    status_name, CompletionQueue, Domain, Outgoing, QueuePair, ReadWr, Registration, WorkCompletion, Written,
};
use crate::sys::{Pages, RingMemory};

/// Announcements and READs of a board that have not completed, at most.
pub(super) const MOST_COMPLETIONS: u32 = ANNOUNCEMENT_SLOTS + PULL_READS as u32;
/// Bit of a work request's number: it is a READ.
const READ: u64 = 1 << 31;
const UNANSWERED: &str = "IBV_WC_RETRY_EXC_ERR";

/// All boards that are read.
pub(super) struct Pulled {
    pull: Pull,
    came: Vec<WorkCompletion>,
    /// Counts of earlier connections.
    ended: BTreeMap<u16, PullCounters>,
}

impl Pulled {
    pub(super) fn new(settings: &PullSettings) -> Result<Pulled, BackendError> {
        let pull = Pull::new(settings).map_err(|error| BackendError::Unavailable(format!("--pull: {error}")))?;
        Ok(Pulled { pull, came: Vec::new(), ended: BTreeMap::new() })
    }

    pub(super) fn reading(&self) -> Reading {
        self.pull.reading()
    }

    pub(super) fn outgoing(&self) -> Outgoing {
        Outgoing { reads: PULL_READS, ack_timeout: self.pull.reading().ack_timeout }
    }

    /// When [`Self::turn`] has something to do, if nothing comes.
    pub(super) fn due(&self) -> Time {
        self.pull.due
    }

    /// There may be other slots now, and a run may take other events.
    pub(super) fn wake(&mut self) {
        self.pull.due = Time::ZERO;
    }

    /// Takes what has completed, and posts what may be read.
    pub(super) fn turn(
        &mut self,
        now: Time,
        completions: &CompletionQueue,
        boards: &mut BTreeMap<u16, Board>,
        memory: &mut dyn Memory,
        out: &mut Vec<Completion>,
    ) -> Result<(), BackendError> {
        completions.poll(|wc| self.came.push(wc)).map_err(failed("polling the completion queue"))?;
        if self.came.is_empty() && now < self.pull.due {
            return Ok(());
        }
        for wc in self.came.drain(..) {
            let (board, life) = ((wc.wr_id >> 48) as u16, (wc.wr_id >> 32) as u16);
            let of = boards.get_mut(&board).filter(|of| of.life == life);
            let Some(reads) = of.and_then(|of| of.reads.as_mut()) else { continue };
            reads.complete(&mut self.pull.around((now, board), memory), &wc, out);
        }
        self.pull.handle_timeout(now);
        for (&board, of) in boards.iter_mut().filter(|(_, of)| of.connected) {
            if let Some(reads) = &mut of.reads {
                self.pull.feed((now, board), &mut reads.puller, memory);
            }
        }
        while let Some(read) = self.pull.poll_read(now) {
            let reads = boards.get_mut(&(read.board as u16)).and_then(|of| of.reads.as_mut());
            reads.into_iter().for_each(|reads| reads.puller.read(&read));
        }
        for (&board, Board { qp, reads, life, .. }) in boards.iter_mut().filter(|(_, of)| of.connected) {
            let Some(reads) = reads.as_mut().filter(|reads| reads.fault().is_none()) else { continue };
            // A queue pair that takes no READ any more has failed; the device may be well.
            if let Err(error) = reads.post(qp, tag(board, *life)) {
                reads.failed.get_or_insert_with(|| error.to_string());
            }
            self.pull.wait_for(&reads.puller);
        }
        Ok(())
    }

    /// The connection of a board ends.
    pub(super) fn end(&mut self, board: u16, reads: &mut Reads) {
        reads.fault().iter().for_each(|why| reads.puller.name_unread(board, why));
        self.pull.forget(board, &mut reads.puller);
        *self.ended.entry(board).or_default() += reads.puller.counters(0);
    }

    pub(super) fn board_counters(&self, board: u16, reads: Option<&Reads>) -> Counters {
        let mut sum = self.ended.get(&board).copied().unwrap_or_default();
        reads.into_iter().for_each(|reads| sum += reads.puller.counters(0));
        let mut named = self.pull.board_counters(board, &sum);
        // The NIC repeats requests, and counts them by port.
        named.retain(|(name, _)| name != "pull_requests_repeated");
        named
    }

    pub(super) fn counters(&self) -> Counters {
        self.pull.counters()
    }
}

/// The READs of one board.
pub(super) struct Reads {
    pub(super) puller: Puller,
    /// The ring of announcements, and then the lists of successors, one for each slot.
    memory: RingMemory,
    /// The slots that fragments fill.
    ring: Registration,
    /// Why the first READ failed.
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
            if status != FLUSHED {
                self.failed.get_or_insert_with(|| status.to_owned());
            }
        } else if wc.wr_id & READ != 0 {
            self.take_successors(around);
            self.puller.arrive(around, out);
        } else {
            let slot = wc.wr_id as u32 & !(READ as u32);
            let at = slot as usize * ANNOUNCEMENT_SLOT_LEN;
            let message = self.memory.bytes().get(at..at + (wc.byte_len as usize).min(ANNOUNCEMENT_SLOT_LEN));
            self.puller.take_message(slot, message.unwrap_or_default());
        }
    }

    /// The last READ of a fragment has brought its successors.
    fn take_successors(&mut self, around: &mut Around<'_>) {
        let Some((receive, length)) = self.puller.arriving().filter(|_| self.puller.is_last()) else { return };
        if let Ok(Payload::Bytes(bytes)) = around.memory.read(receive.va, length.min(HEADER_LEN as u32)) {
            self.puller.compare(around.board(), &bytes);
        }
        let list = self.list(receive.wr_id);
        if let Some(bytes) = self.memory.bytes().get(list..list + SUCCESSORS_LEN) {
            self.puller.extend_successors(bytes);
        }
    }

    /// Why the connection must end.
    pub(super) fn fault(&self) -> Option<String> {
        let of_read = || Some(format!("a READ of what the board has announced failed: {}", self.failed.as_ref()?));
        self.puller.fault().map(str::to_owned).or_else(of_read)
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
