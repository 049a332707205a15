// SPDX-License-Identifier: Apache-2.0
//! The sending end of an RC flow that its server pulls: it announces the messages of its source and answers READs.
//! Promise: a message is announced as soon as it has a slot; a slot is free again when its READ can never be repeated.
//! Source: IBTA vol. 1 clauses 9.4.4 and 9.7.5.1.4; `penstock_pull` is the other end's scheduler.

use std::collections::VecDeque;
use std::sync::Arc;

use penstock_pull::Announcements;
use penstock_transport::RequesterConfig;
use penstock_wire::{Announced, Opcode, Packet, RocePacket};

use super::announcer::Announcer;
use super::read_responder::{ReadResponder, ReadResponderConfig, ReadResponderStats};
use super::readable::Messages;
use super::sender::earlier;
use crate::contents::{Contents, Fragments};
use crate::flow::{Endpoint, FlowId, Message, MessageSource};
use crate::ledger::SharedLedger;
use crate::trace::TraceSink;
use crate::units::Time;

/// Addresses from one message to the next: more than the longest message. The memory is as long as it needs to be, because
/// nobody looks at it; what a board may hold is limited by its slots.
const STRIDE: u32 = 3 << 30;

/// The address of the message that was taken up as this one.
fn address_of(index: u64) -> u64 {
    index * u64::from(STRIDE)
}

/// All settings of a board that is pulled.
#[derive(Debug, Clone)]
pub struct PullBoardConfig {
    /// The half of its queue pair that answers.
    pub read: ReadResponderConfig,
    /// The half that announces.
    pub request: RequesterConfig,
    /// Messages that it holds: announced, or read less than the READs outstanding ago. More than these READs, else the
    /// last slots are never free again.
    pub slots: u32,
    /// Bytes of messages that are taken up before the server has begun to read them, for a source that always has more;
    /// `None`: all that are there.
    pub ahead: Option<u64>,
    /// Servers of the events, of which each gets one in this number.
    pub servers: u64,
    /// The bytes of its messages, and the ring that takes its announcements with its key; `None`: only their length, and
    /// a ring at address 0.
    pub fragments: Option<Fragments>,
}

/// One board that is pulled, of a [`Station`](super::Station).
pub struct PullBoard {
    responder: ReadResponder,
    announcer: Announcer,
    source: Box<dyn MessageSource>,
    /// The bytes of its messages; `None`: only their length.
    contents: Option<Arc<dyn Contents>>,
    /// The source's next message: its time has not come, or there is no slot.
    next: Option<Message>,
    exhausted: bool,
    ledger: SharedLedger,
    slots: usize,
    ahead: u64,
    servers: u64,
    /// READs outstanding at most.
    resources: usize,
    /// Bytes of the messages that hold slots, and how many messages were taken up before them.
    held: VecDeque<u64>,
    before: u64,
    /// How many of these the server has begun to read, and the bytes of the others.
    begun: usize,
    unread: u64,
    failure_reported: bool,
    message_at: Option<Time>,
    timeout: Option<Time>,
}

impl PullBoard {
    /// A board with the messages of `source`, recorded in `ledger`.
    pub fn new(config: PullBoardConfig, source: Box<dyn MessageSource>, ledger: SharedLedger) -> Self {
        let ring = config.fragments.as_ref().map_or((0, 0), |fragments| (fragments.ring.va, fragments.ring.rkey));
        let resources = config.read.responder.responder_resources.into();
        let announcements = Announcements::new(0, STRIDE, config.request.mtu.bytes());
        PullBoard {
            resources,
            responder: ReadResponder::new(config.read).with_messages(Messages::new(announcements)),
            announcer: Announcer::new(config.request, ring),
            contents: config.fragments.map(|fragments| fragments.contents),
            source,
            next: None,
            exhausted: false,
            ledger,
            slots: config.slots as usize,
            ahead: config.ahead.unwrap_or(u64::MAX),
            servers: config.servers.max(1),
            held: VecDeque::new(),
            before: 0,
            begun: 0,
            unread: 0,
            failure_reported: false,
            message_at: None,
            timeout: Some(Time::ZERO),
        }
    }

    /// The flow that it sends.
    pub fn flow(&self) -> FlowId {
        self.responder.flow()
    }

    /// The half that answers READs.
    pub fn responder(&self) -> &ReadResponder {
        &self.responder
    }

    /// The counters of its READ responses.
    pub fn stats(&self) -> ReadResponderStats {
        self.responder.stats()
    }

    /// The most wire bytes of announcements that were outstanding at a time.
    pub fn announcing_bytes(&self) -> u64 {
        self.announcer.highest_outstanding()
    }

    /// Retransmissions and timeouts of announcements.
    pub fn announcement_repeats(&self) -> (u64, u64) {
        let counters = self.announcer.requester().counters();
        (counters.retransmitted_pkts, counters.local_ack_timeout_err)
    }

    fn handle_packet(&mut self, now: Time, packet: &RocePacket) {
        match packet.bth.opcode {
            Opcode::Acknowledge => self.announcer.handle_packet(now, packet),
            opcode => {
                // A READ of no bytes is of no message.
                if let (Opcode::ReadRequest, Some(reth)) = (opcode, packet.reth.filter(|reth| reth.dma_len > 0)) {
                    self.read_begins(reth.va / u64::from(STRIDE));
                }
                self.responder.on_packet(now, &Packet::Roce(packet.clone()));
            }
        }
    }

    /// A READ of the message that was taken up as number `index` is requested: every message has one READ at least, so those that precede it by more
    /// messages than READs may be outstanding have arrived.
    fn read_begins(&mut self, index: u64) {
        let at = index.saturating_sub(self.before) as usize;
        while self.begun <= at && self.begun < self.held.len() {
            self.unread -= self.held[self.begun];
            self.begun += 1;
        }
        let free = at.min(self.begun).saturating_sub(self.resources);
        self.held.drain(..free);
        self.begun -= free;
        self.before += free as u64;
        if let Some(messages) = self.responder.messages() {
            messages.release_before(address_of(self.before));
        }
    }

    /// Updates the state that depends on all others: messages taken up, announcements, the next timeout.
    fn settle(&mut self, now: Time) {
        self.message_at = self.take_up(now);
        if let Some(messages) = self.responder.messages() {
            self.announcer.settle(&mut messages.announcements);
        }
        if let (Some(fault), false) = (self.announcer.fault(), self.failure_reported) {
            self.failure_reported = true;
            self.ledger.borrow_mut().failed(self.flow(), now, &fault.to_string());
        }
        let next = earlier(self.message_at, self.announcer.requester().next_timeout());
        self.timeout = earlier(next, self.responder.next_timeout());
    }

    /// Takes up the messages that are there, while there are slots; returns the time of the next one.
    fn take_up(&mut self, now: Time) -> Option<Time> {
        while self.held.len() < self.slots && self.unread < self.ahead && !self.failure_reported {
            if self.next.is_none() && !self.exhausted {
                self.next = self.source.next_message(now);
                self.exhausted = self.next.is_none();
                if self.exhausted {
                    self.ledger.borrow_mut().ended(self.flow());
                }
            }
            let message = self.next?;
            if message.at > now {
                return Some(message.at);
            }
            self.next = None;
            self.ledger.borrow_mut().posted(self.flow(), &message);
            let (event, length) = (message.event / self.servers, message.bytes as u32);
            let address = address_of(self.before + self.held.len() as u64);
            let bytes = self.contents.as_ref().map(|contents| contents.message(message.event, message.at));
            if let Some(messages) = self.responder.messages() {
                messages.keep(address, message.bytes, bytes);
                messages.announcements.push(Announced { event, address, length });
            }
            self.held.push_back(message.bytes);
            self.unread += message.bytes;
        }
        None
    }
}

impl Endpoint for PullBoard {
    fn on_packet(&mut self, now: Time, packet: &Packet) {
        match packet {
            Packet::Roce(packet) => self.handle_packet(now, packet),
            other => self.responder.on_packet(now, other),
        }
        self.settle(now);
    }

    fn next_timeout(&self) -> Option<Time> {
        self.timeout
    }

    fn on_timeout(&mut self, now: Time) {
        self.announcer.handle_timeout(now);
        self.responder.on_timeout(now);
        self.settle(now);
    }

    fn poll_transmit(&mut self, now: Time) -> Option<Packet> {
        let packet = match self.announcer.requester().can_transmit() {
            true => self.announcer.poll_transmit(now).map(Packet::Roce),
            false => self.responder.poll_transmit(now),
        };
        self.settle(now);
        packet
    }

    fn is_ready(&self) -> bool {
        self.announcer.requester().can_transmit() || self.responder.is_ready()
    }

    fn class(&self) -> usize {
        self.responder.class()
    }

    fn on_pause(&mut self, now: Time, paused: bool) {
        self.responder.on_pause(now, paused);
    }

    fn sample(&mut self, now: Time, channel: u16, trace: &mut TraceSink) {
        self.responder.sample(now, channel, trace);
    }
}
