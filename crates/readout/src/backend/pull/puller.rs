// SPDX-License-Identifier: Apache-2.0
//! One board that is read: its announcements, the READs of its fragments, and the slots that these fill.
//! Promise: fragments complete in the order in which they were announced, each in the next posted receive. What has
//! been read and does not belong to the run stays at the board.
//! Source: docs/fragments.md (when a board may fill a slot again); IBTA 9.4.4 (READ).
//!
//! ```text
//! announcement --> waiting --> (a receive, and the run takes it) --> scheduler --> READs --> completion
//! ```

use std::collections::VecDeque;

use penstock_pull::{Fragment, Intake, IntakeError, Offer, Read, Scheduler};
use penstock_transport::{
    Memory, RecvCompletion, RecvOpcode, RecvStatus, RecvWr, RequestFault, Requester, RequesterConfig, RequesterState,
    Response, SendStatus, SendWr, Verb, VirtualPayload,
};
use penstock_units::Time;
use penstock_wire::{Announced, FragmentId, Payload, RocePacket, ANNOUNCEMENT_SLOTS, PULL_READS, SUCCESSORS_LEN};

use super::counters::PullCounters;
use super::inbox::Inbox;
use crate::backend::Completion;

/// Time without anything to read after which a board is sent the READs of no bytes that free its slots.
const IDLE: Time = Time::from_ms(100);
/// Announced fragments above which a board's next announcement finds no receive.
const MOST_WAITING: usize = 1 << 16;
/// Announced fragments above which successors of further ones end the connection: no board has this number of slots.
const MOST_SUCCEEDING: usize = 1 << 20;

/// A fragment that the scheduler has, and the slot that it fills.
#[derive(Debug, Clone, Copy)]
struct Fetching {
    offer: Offer,
    receive: RecvWr,
}

/// A READ under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Posted {
    Part {
        is_last: bool,
    },
    /// A READ of no bytes, by which the board counts an earlier one as answered.
    Empty,
}

/// What a puller works with.
pub(super) struct Around<'a> {
    pub(super) now: Time,
    pub(super) board: u16,
    pub(super) scheduler: &'a mut Scheduler,
    pub(super) memory: &'a mut dyn Memory,
}

pub(in crate::backend) struct Puller {
    requester: Requester,
    inbox: Inbox,
    /// Bytes of a slot of the receiver's ring.
    longest: u32,
    /// Slots of the inbox without a receive.
    unposted: Vec<u32>,
    intake: Intake,
    /// What has been announced since it was looked at last.
    offers: Vec<Offer>,
    waiting: VecDeque<Offer>,
    receives: VecDeque<RecvWr>,
    fetching: VecDeque<Fetching>,
    /// How many of these have all their READs posted.
    begun: usize,
    posted: VecDeque<Posted>,
    /// What has come of the successors of the first fragment.
    successors: Vec<u8>,
    /// READs arrived after the last one of the last fragment that the run has taken.
    after_last: u8,
    /// The board may not have noticed that its fragments have arrived.
    is_unconfirmed: bool,
    /// The run has ended before a fragment that was read: nothing more is read over this connection.
    is_over: bool,
    last_arrival: Time,
    last_event: Option<u64>,
    fault: Option<String>,
    counters: PullCounters,
}

impl Puller {
    /// `base`: address of the announcements' ring; `longest`: bytes of a slot that a fragment must fit into.
    pub(in crate::backend) fn new(config: RequesterConfig, base: u64, longest: u32) -> Puller {
        Puller {
            requester: Requester::new(RequesterConfig { initiator_depth: PULL_READS, ..config }),
            inbox: Inbox::new(base),
            longest,
            unposted: (0..ANNOUNCEMENT_SLOTS).rev().collect(),
            intake: Intake::default(),
            offers: Vec::new(),
            waiting: VecDeque::new(),
            receives: VecDeque::new(),
            fetching: VecDeque::new(),
            begun: 0,
            posted: VecDeque::new(),
            successors: Vec::with_capacity(SUCCESSORS_LEN),
            after_last: 0,
            is_unconfirmed: false,
            is_over: false,
            last_arrival: Time::ZERO,
            last_event: None,
            fault: None,
            counters: PullCounters::default(),
        }
    }

    /// Where the board's announcements are written.
    pub(in crate::backend) fn memory(&mut self) -> &mut impl Memory {
        &mut self.inbox
    }

    /// Slots of the receiver's ring that may be filled, in order.
    pub(in crate::backend) fn post(&mut self, receives: &[RecvWr]) {
        self.receives.extend(receives);
    }

    /// The next receive of the inbox to be posted.
    pub(in crate::backend) fn take_inbox_receive(&mut self) -> Option<RecvWr> {
        let has_room = self.waiting.len() < MOST_WAITING;
        has_room.then(|| self.unposted.pop()).flatten().map(|slot| self.inbox.receive(slot))
    }

    /// Why the connection must end.
    pub(in crate::backend) fn fault(&self) -> Option<String> {
        let of_requester = || match self.requester.state() {
            RequesterState::Ready => None,
            RequesterState::Error(fault) => Some(format!("a READ of what the board has announced failed: {fault}")),
        };
        self.fault.clone().or_else(of_requester)
    }

    /// Whether it must end because the board does not answer.
    pub(in crate::backend) fn is_unanswered(&self) -> bool {
        self.fault.is_none()
            && matches!(self.requester.state(), RequesterState::Error(RequestFault::RetriesSpent { .. }))
    }

    /// Whether the board has been sent all that frees its slots, and has answered; or does not work any more.
    pub(in crate::backend) fn is_settled(&self) -> bool {
        self.requester.state() != RequesterState::Ready || (!self.is_unconfirmed && self.posted.is_empty())
    }

    /// The counts of this connection.
    pub(in crate::backend) fn counters(&self) -> PullCounters {
        let requests_repeated = self.requester.counters().retransmitted_pkts;
        let (repeated, carried) = (self.intake.repeated(), self.intake.carried());
        let announced = self.counters.announced + repeated;
        PullCounters { announced, carried, repeated, requests_repeated, ..self.counters }
    }

    /// Events that were announced and not read: how many, the first, the last.
    pub(in crate::backend) fn unread(&self) -> Option<(usize, u64, u64)> {
        let events = || {
            let fetching = self.fetching.iter().map(|fetching| fetching.offer.fragment.event);
            fetching.chain(self.waiting.iter().map(|offer| offer.fragment.event))
        };
        Some((events().count(), events().next()?, events().last()?))
    }

    /// The connection has ended: what was announced is forgotten.
    pub(super) fn forget(&mut self, board: u16, scheduler: &mut Scheduler) {
        self.counters.forgotten += self.unread().map_or(0, |(count, ..)| count as u64);
        scheduler.forget(board.into());
    }

    /// A message has come into the inbox.
    pub(in crate::backend) fn take_message(&mut self, done: &RecvCompletion) {
        if done.status != RecvStatus::Success || self.fault.is_some() {
            return;
        }
        self.unposted.push(done.wr_id as u32);
        self.counters.announcements += 1;
        let message = self.inbox.message(done.va, done.byte_len).unwrap_or_default();
        let before = self.intake.repeated();
        let outcome = self.intake.take_message(message, &mut self.offers);
        if before == 0 && self.intake.repeated() > 0 {
            tracing::warn!(
                "an announcement of events at or before event {:?}; further ones are only counted",
                self.last_event
            );
        }
        self.take_offers(outcome);
    }

    /// A fragment has been read, and what it is followed by.
    fn take_successors(&mut self) {
        let bytes = std::mem::replace(&mut self.successors, Vec::with_capacity(SUCCESSORS_LEN));
        if let (Ok(bytes), None) = (bytes.as_slice().try_into(), &self.fault) {
            let outcome = self.intake.take_successors(bytes, &mut self.offers);
            self.take_offers(outcome);
        }
    }

    fn take_offers(&mut self, outcome: Result<(), IntakeError>) {
        let mut offers = std::mem::take(&mut self.offers);
        for offer in offers.drain(..) {
            self.counters.announced += 1;
            let Announced { event, length, .. } = offer.fragment;
            self.last_event = Some(event);
            if length == 0 {
                self.counters.empty += 1;
            } else if length > self.longest {
                let longest = self.longest;
                self.fail(format!("event {event} of {length} bytes was announced: --slot-size has {longest}"));
            } else {
                self.waiting.push_back(offer);
            }
        }
        self.offers = offers;
        if let Err(error) = outcome {
            self.fail(error.to_string());
        } else if self.waiting.len() > MOST_SUCCEEDING {
            self.fail(format!("{} fragments were announced that have not been read", self.waiting.len()));
        }
    }

    fn fail(&mut self, fault: String) {
        self.counters.malformed += 1;
        self.fault.get_or_insert(fault);
        self.requester.close();
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
                self.arrive(around, out);
            }
        }
        self.requester.counters().rcvd_pkts > before
    }

    /// Takes the next bytes of the first fragment, or of its successors after it.
    fn take_part(&mut self, around: &mut Around<'_>, va: u64, payload: &Payload) {
        let (Some(first), Payload::Bytes(bytes)) = (self.fetching.front(), payload) else { return };
        let end = first.receive.va + u64::from(first.offer.fragment.length);
        let (part, rest) = bytes.split_at(bytes.len().min(end.saturating_sub(va) as usize));
        self.successors.extend_from_slice(rest);
        if !part.is_empty() {
            let part = Payload::Bytes(bytes.slice(..part.len()));
            self.compare(around.board, va, &part);
            around.memory.write(va, &part);
        }
    }

    /// Compares the first bytes of a fragment with its announcement. The receiver finds what is no fragment.
    fn compare(&mut self, board: u16, va: u64, payload: &Payload) {
        let Some(first) = self.fetching.front().filter(|fetching| fetching.receive.va == va) else { return };
        let Payload::Bytes(bytes) = payload else { return };
        let Ok(id) = FragmentId::peek(bytes) else { return };
        let event = first.offer.fragment.event;
        if (id.event_number, id.source_id) == (event, board) {
            return;
        }
        self.counters.mislabelled += 1;
        if self.counters.mislabelled == 1 {
            let (found, source) = (id.event_number, id.source_id);
            tracing::warn!(
                board,
                "event {event} was announced, event {found} of source {source} was there; further ones are only counted"
            );
        }
    }

    /// The oldest READ under way has arrived whole.
    fn arrive(&mut self, around: &mut Around<'_>, out: &mut Vec<Completion>) {
        let Some(Posted::Part { is_last }) = self.posted.pop_front() else { return };
        let board = around.board;
        around.scheduler.arrive(around.now, board.into());
        self.last_arrival = around.now;
        self.after_last = self.after_last.saturating_add(1);
        self.is_unconfirmed = true;
        if !is_last {
            return;
        }
        let Some(Fetching { offer, receive }) = self.fetching.pop_front() else { return };
        self.begun -= 1;
        self.take_successors();
        if self.is_over || !around.memory.admit_arrival(board, offer.fragment.event) {
            self.counters.after_end += 1;
            if !std::mem::replace(&mut self.is_over, true) {
                around.scheduler.forget(board.into());
            }
            return;
        }
        self.after_last = 0;
        self.counters.read += 1;
        let (status, opcode) = (RecvStatus::Success, RecvOpcode::Send);
        let (wr_id, byte_len) = (receive.wr_id, offer.fragment.length);
        out.push(Completion { board, wr_id, status, opcode, imm: None, byte_len, payload_crc: None });
    }

    /// Gives the scheduler what may be read: a slot is free for it, and the run takes its event now.
    pub(super) fn feed(&mut self, around: &mut Around<'_>) {
        while !self.is_over && self.fault.is_none() {
            let (Some(offer), Some(receive)) = (self.waiting.front().copied(), self.receives.front().copied()) else {
                break;
            };
            let Announced { event, address, length } = offer.fragment;
            if !around.memory.admit_read(around.board, event) {
                if self.has_arrived() {
                    // Nothing of this board is missing before the run's end.
                    around.memory.admit_arrival(around.board, event);
                }
                break;
            }
            self.waiting.pop_front();
            let fragment = Fragment { rank: event, event, address, length: length + SUCCESSORS_LEN as u32 };
            if let Err(refusal) = around.scheduler.announce(around.board.into(), fragment) {
                self.fail(refusal.to_string());
                break;
            }
            self.receives.pop_front();
            self.fetching.push_back(Fetching { offer, receive });
        }
        if self.is_unconfirmed && self.is_at_rest(around) {
            self.confirm();
        }
    }

    /// All that the scheduler had is here.
    fn has_arrived(&self) -> bool {
        self.posted.is_empty() && self.fetching.is_empty()
    }

    /// Nothing more is read for now: the run has ended for this board, or nothing has come for a while.
    fn is_at_rest(&self, around: &mut Around<'_>) -> bool {
        let after_last = || self.last_event.unwrap_or(0).saturating_add(1);
        let next = self.waiting.front().map_or_else(after_last, |offer| offer.fragment.event);
        self.is_over
            || around.now >= self.last_arrival.saturating_add(IDLE)
            || (self.has_arrived() && !around.memory.admit_arrival(around.board, next))
    }

    /// Sends as many READs of no bytes as make the board sure that the last fragment taken has arrived, and not a
    /// later one.
    fn confirm(&mut self) {
        if !self.is_idle() || !std::mem::take(&mut self.is_unconfirmed) {
            return;
        }
        for _ in self.after_last..PULL_READS {
            self.post_send(SendWr {
                wr_id: 0,
                verb: Verb::Read,
                va: 0,
                len: 0,
                remote_va: 0,
                rkey: 0,
                solicited: false,
            });
            self.posted.push_back(Posted::Empty);
        }
    }

    /// No READ is under way, and none will be posted of what the scheduler has.
    fn is_idle(&self) -> bool {
        self.has_arrived() || (self.posted.is_empty() && self.is_over)
    }

    /// Posts a READ that the scheduler has chosen.
    pub(in crate::backend) fn read(&mut self, read: &Read) {
        let Some(Fetching { offer, receive }) = self.fetching.get(self.begun).copied() else { return };
        debug_assert_eq!(offer.fragment.event, read.event, "READs are posted in the order of the fragments");
        self.post_send(SendWr {
            wr_id: read.event,
            verb: Verb::Read,
            va: receive.va + u64::from(read.offset),
            len: read.length,
            remote_va: read.address,
            rkey: offer.rkey,
            solicited: false,
        });
        self.begun += usize::from(read.is_last);
        self.posted.push_back(Posted::Part { is_last: read.is_last });
    }

    fn post_send(&mut self, wr: SendWr) {
        if let Err(error) = self.requester.post_send(wr) {
            self.fail(error.to_string());
        }
    }

    pub(super) fn handle_timeout(&mut self, now: Time) {
        self.requester.handle_timeout(now);
    }

    /// The next request to the board.
    pub(super) fn poll_transmit(&mut self, now: Time) -> Option<RocePacket> {
        self.requester.poll_transmit(now, &mut VirtualPayload)
    }

    /// When there is something to do, if nothing comes.
    pub(super) fn due(&self) -> Time {
        let timer = self.requester.next_timeout().unwrap_or(Time::MAX);
        match self.is_unconfirmed && self.is_idle() {
            true => timer.min(self.last_arrival.saturating_add(IDLE)),
            false => timer,
        }
    }
}
