// SPDX-License-Identifier: Apache-2.0
//! A board that a back end without a NIC reads: the packets of its READs, and the memory of its announcements.
//! Promise: bytes that have come twice are written once; a READ that is not answered is requested again by its timer.
//! Source: IBTA 9.4.4 (READ), 9.7.5 (retries).

use penstock_transport::{
    Memory, RecvCompletion, RecvStatus, RecvWr, RequestFault, Requester, RequesterConfig, RequesterState, Response,
    SendStatus, SendWr, Verb, VirtualPayload,
};
use penstock_units::Time;
use penstock_wire::{Payload, RocePacket, PULL_READS};

use super::counters::PullCounters;
use super::inbox::Inbox;
use super::puller::{Around, Post, Puller};
use crate::backend::Completion;

pub(in crate::backend) struct Requests {
    pub(in crate::backend) puller: Puller,
    requester: Requester,
    inbox: Inbox,
}

impl Requests {
    /// `base`: address of the announcements' ring; `longest`: bytes of a slot that a fragment must fit into.
    pub(in crate::backend) fn new(config: RequesterConfig, base: u64, longest: u32) -> Requests {
        let requester = Requester::new(RequesterConfig { initiator_depth: PULL_READS, ..config });
        Requests { puller: Puller::new(longest), requester, inbox: Inbox::new(base) }
    }

    /// Where the board's announcements are written.
    pub(in crate::backend) fn memory(&mut self) -> &mut impl Memory {
        &mut self.inbox
    }

    /// The next receive of the inbox to be posted.
    pub(in crate::backend) fn take_inbox_receive(&mut self) -> Option<RecvWr> {
        self.puller.take_inbox_slot().map(|slot| self.inbox.receive(slot))
    }

    /// A message has come into the inbox.
    pub(in crate::backend) fn take_message(&mut self, done: &RecvCompletion) {
        if done.status == RecvStatus::Success {
            let message = self.inbox.message(done.va, done.byte_len).unwrap_or_default();
            self.puller.take_message(done.wr_id as u32, message);
        }
    }

    /// Why the connection must end.
    pub(in crate::backend) fn fault(&self) -> Option<String> {
        let of_requester = || match self.requester.state() {
            RequesterState::Ready => None,
            RequesterState::Error(fault) => Some(format!("a READ of what the board has announced failed: {fault}")),
        };
        self.puller.fault().map(str::to_owned).or_else(of_requester)
    }

    /// Whether it must end because the board does not answer.
    pub(in crate::backend) fn is_unanswered(&self) -> bool {
        self.puller.fault().is_none()
            && matches!(self.requester.state(), RequesterState::Error(RequestFault::RetriesSpent { .. }))
    }

    /// Whether the board has been sent all that frees its slots, and has answered; or does not work any more.
    pub(in crate::backend) fn is_settled(&self) -> bool {
        self.fault().is_some() || self.puller.is_settled()
    }

    /// The counts of this connection.
    pub(in crate::backend) fn counters(&self) -> PullCounters {
        self.puller.counters(self.requester.counters().retransmitted_pkts)
    }

    /// Takes an answer of the board; false: it was not this connection's.
    pub(super) fn handle_packet(
        &mut self,
        around: &mut Around<'_>,
        packet: &RocePacket,
        out: &mut Vec<Completion>,
    ) -> bool {
        let before = self.requester.counters().rcvd_pkts;
        if let Response::ReadData { va, .. } = self.requester.handle_packet(around.now, packet) {
            self.take_part(around, va, &packet.payload);
        }
        while let Some(done) = self.requester.poll_completion() {
            if done.status == SendStatus::Success {
                self.puller.arrive(around, out);
            }
        }
        self.requester.counters().rcvd_pkts > before
    }

    /// Takes the next bytes of a fragment, or of its successors after it.
    fn take_part(&mut self, around: &mut Around<'_>, va: u64, payload: &Payload) {
        let (Some((receive, length)), Payload::Bytes(bytes)) = (self.puller.arriving(), payload) else { return };
        let end = receive.va + u64::from(length);
        let (part, rest) = bytes.split_at(bytes.len().min(end.saturating_sub(va) as usize));
        self.puller.extend_successors(rest);
        if va == receive.va {
            self.puller.compare(around.board, part);
        }
        if !part.is_empty() {
            around.memory.write(va, &Payload::Bytes(bytes.slice(..part.len())));
        }
    }

    pub(super) fn handle_timeout(&mut self, now: Time) {
        self.requester.handle_timeout(now);
    }

    /// The next request to the board.
    pub(super) fn poll_transmit(&mut self, now: Time) -> Option<RocePacket> {
        while let Some(post) = self.puller.poll_post() {
            self.post_send(&post);
        }
        if self.puller.fault().is_some() {
            self.requester.close();
        }
        self.requester.poll_transmit(now, &mut VirtualPayload)
    }

    fn post_send(&mut self, post: &Post) {
        let len = post.of_fragment + post.of_successors.1;
        let &Post { address: remote_va, rkey, va, .. } = post;
        let wr = SendWr { wr_id: post.slot, verb: Verb::Read, va, len, remote_va, rkey, solicited: false };
        if let Err(error) = self.requester.post_send(wr) {
            self.puller.fail(error.to_string());
        }
    }

    /// When its timer has something to do.
    pub(super) fn due(&self) -> Time {
        self.requester.next_timeout().unwrap_or(Time::MAX)
    }
}
