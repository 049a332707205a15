// SPDX-License-Identifier: Apache-2.0
//! All boards that an RDMA NIC reads: what has completed, and which READ is next.
//! Promise: an error of one queue pair ends that board's connection alone.
//! Source: `penstock_pull`; docs/recv.md.

use std::collections::BTreeMap;

use penstock_transport::Memory;
use penstock_units::Time;
use penstock_wire::PULL_READS;

use super::board::{failed, tag, Board};
use super::reads::Reads;
use crate::backend::pull::{Pull, PullCounters, PullSettings, Reading};
use crate::backend::{BackendError, Completion, Counters};
use crate::sys::verbs::{CompletionQueue, Outgoing, WorkCompletion};

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
                reads.fail(format!("a READ of what the board has announced was not posted: {error}"));
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
