// SPDX-License-Identifier: Apache-2.0
//! One board that is read: its announcements, the READs of its fragments, and the slots that these fill. A back end
//! posts the READs and says when they have arrived.
//! Promise: fragments complete in the order in which they were announced, each in the next posted receive. What has
//! been read and does not belong to the run stays at the board.
//! Source: docs/fragments.md (when a board may fill a slot again); IBTA 9.4.4 (READ).
//!
//! ```text
//! announcement --> waiting --> (a receive, and the run takes it) --> scheduler --> READs --> completion
//! ```

use std::collections::VecDeque;

use penstock_pull::{Fragment, Intake, IntakeError, Offer, Read, Scheduler};
use penstock_transport::{Memory, RecvOpcode, RecvStatus, RecvWr};
use penstock_units::Time;
use penstock_wire::{Announced, FragmentId, ANNOUNCEMENT_SLOTS, PULL_READS, SUCCESSORS_LEN};

use super::counters::PullCounters;
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

/// A READ to be posted. Its first bytes are of a fragment, the others of the list of successors after it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::backend) struct Post {
    /// Address and key at the board; with no bytes at all, of nothing.
    pub address: u64,
    pub rkey: u32,
    /// Where the fragment's bytes go, and their number.
    pub va: u64,
    pub of_fragment: u32,
    /// The slot of the fragment, and which bytes of its list follow.
    pub slot: u64,
    pub of_successors: (u32, u32),
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
pub(in crate::backend) struct Around<'a> {
    pub(super) now: Time,
    pub(in crate::backend) board: u16,
    pub(super) scheduler: &'a mut Scheduler,
    pub(in crate::backend) memory: &'a mut dyn Memory,
}

pub(in crate::backend) struct Puller {
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
    /// The last ones of them, which the back end has not posted yet.
    to_post: VecDeque<Post>,
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
    /// `longest`: bytes of a slot that a fragment must fit into.
    pub(in crate::backend) fn new(longest: u32) -> Puller {
        Puller {
            longest,
            unposted: (0..ANNOUNCEMENT_SLOTS).rev().collect(),
            intake: Intake::default(),
            offers: Vec::new(),
            waiting: VecDeque::new(),
            receives: VecDeque::new(),
            fetching: VecDeque::new(),
            begun: 0,
            posted: VecDeque::new(),
            to_post: VecDeque::new(),
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

    /// Slots of the receiver's ring that may be filled, in order.
    pub(in crate::backend) fn post(&mut self, receives: &[RecvWr]) {
        self.receives.extend(receives);
    }

    /// The next slot of the inbox whose receive is to be posted.
    pub(in crate::backend) fn take_inbox_slot(&mut self) -> Option<u32> {
        let has_room = self.waiting.len() < MOST_WAITING && self.fault.is_none();
        has_room.then(|| self.unposted.pop()).flatten()
    }

    /// The next READ to be posted.
    pub(in crate::backend) fn poll_post(&mut self) -> Option<Post> {
        self.to_post.pop_front().filter(|_| self.fault.is_none())
    }

    /// What the board has announced that cannot be: the connection must end.
    pub(in crate::backend) fn fault(&self) -> Option<&str> {
        self.fault.as_deref()
    }

    /// Whether the board has been sent all that frees its slots, and has answered.
    pub(in crate::backend) fn is_settled(&self) -> bool {
        !self.is_unconfirmed && self.posted.is_empty()
    }

    /// The counts of this connection; `requests_repeated`: READs that were sent again.
    pub(in crate::backend) fn counters(&self, requests_repeated: u64) -> PullCounters {
        let (repeated, carried) = (self.intake.repeated(), self.intake.carried());
        let announced = self.counters.announced + repeated;
        PullCounters { announced, carried, repeated, requests_repeated, ..self.counters }
    }

    /// Events that were announced and not read: how many, the first, the last.
    fn unread(&self) -> Option<(usize, u64, u64)> {
        let events = || {
            let fetching = self.fetching.iter().map(|fetching| fetching.offer.fragment.event);
            fetching.chain(self.waiting.iter().map(|offer| offer.fragment.event))
        };
        Some((events().count(), events().next()?, events().last()?))
    }

    /// Logs what a board has announced that was not read when its connection failed.
    pub(in crate::backend) fn name_unread(&self, board: u16, why: &str) {
        if let Some((count, first, last)) = self.unread() {
            tracing::warn!(board, "{count} fragments of events {first} to {last} were announced and not read: {why}");
        }
    }

    /// The connection has ended: what was announced is forgotten.
    pub(super) fn forget(&mut self, board: u16, scheduler: &mut Scheduler) {
        self.counters.forgotten += self.unread().map_or(0, |(count, ..)| count as u64);
        scheduler.forget(board.into());
    }

    /// A message has come into a slot of the inbox, which has no receive now.
    pub(in crate::backend) fn take_message(&mut self, slot: u32, message: &[u8]) {
        if self.fault.is_some() {
            return;
        }
        self.unposted.push(slot);
        self.counters.announcements += 1;
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

    pub(super) fn fail(&mut self, fault: String) {
        self.counters.malformed += 1;
        self.fault.get_or_insert(fault);
    }

    /// The receive of the fragment whose next bytes come, and the number of its bytes.
    pub(in crate::backend) fn arriving(&self) -> Option<(RecvWr, u32)> {
        self.fetching.front().map(|first| (first.receive, first.offer.fragment.length))
    }

    /// Whether the oldest READ under way is the last one of its fragment.
    pub(in crate::backend) fn is_last(&self) -> bool {
        matches!(self.posted.front(), Some(Posted::Part { is_last: true }))
    }

    /// The next bytes of the list of successors of the first fragment have come.
    pub(in crate::backend) fn extend_successors(&mut self, bytes: &[u8]) {
        self.successors.extend_from_slice(bytes);
    }

    /// Compares the first bytes of a fragment with its announcement. The receiver finds what is no fragment.
    pub(in crate::backend) fn compare(&mut self, board: u16, bytes: &[u8]) {
        let Some(first) = self.fetching.front() else { return };
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
    pub(in crate::backend) fn arrive(&mut self, around: &mut Around<'_>, out: &mut Vec<Completion>) {
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
            self.to_post.push_back(Post::default());
            self.posted.push_back(Posted::Empty);
        }
    }

    /// No READ is under way, and none will be posted of what the scheduler has.
    fn is_idle(&self) -> bool {
        self.has_arrived() || (self.posted.is_empty() && self.is_over)
    }

    /// Takes a READ that the scheduler has chosen.
    pub(in crate::backend) fn read(&mut self, read: &Read) {
        let Some(Fetching { offer, receive }) = self.fetching.get(self.begun).copied() else { return };
        debug_assert_eq!(offer.fragment.event, read.event, "READs are posted in the order of the fragments");
        let length = offer.fragment.length;
        let of_fragment = read.length.min(length.saturating_sub(read.offset));
        self.to_post.push_back(Post {
            address: read.address,
            rkey: offer.rkey,
            va: receive.va + u64::from(read.offset),
            of_fragment,
            slot: receive.wr_id,
            of_successors: (read.offset.saturating_sub(length), read.length - of_fragment),
        });
        self.begun += usize::from(read.is_last);
        self.posted.push_back(Posted::Part { is_last: read.is_last });
    }

    /// When there is something to do, if nothing comes.
    pub(super) fn due(&self) -> Time {
        match self.is_unconfirmed && self.is_idle() {
            true => self.last_arrival.saturating_add(IDLE),
            false => Time::MAX,
        }
    }
}
