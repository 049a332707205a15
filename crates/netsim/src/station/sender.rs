// SPDX-License-Identifier: Apache-2.0
//! The sending end of an RC flow: the requester of `penstock_transport` with the rate limiter of `penstock_cc`.
//! Promise: sends the data of its source as fast as law, pause and peer allow; every failure has a reason.
//! Source: IBTA vol. 1 clause 9.7 through the requester; the gateware's timers, which stop during a pause.

use std::rc::Rc;

use penstock_cc::{CcParams, FlowState, Law};
use penstock_transport::{
    RequestFault, Requester, RequesterConfig, RequesterState, Response, RetryLimits, SendStatus, SendWr, Verb,
    VirtualPayload,
};
use penstock_wire::{Packet, Qpn};

use super::limiter::PacingConfig;
use super::limiter_trace;
use super::look_ahead::LookAhead;
use crate::contents::{Fragments, Outgoing};
use crate::flow::{Endpoint, FlowId, Message, MessageSource};
use crate::ledger::SharedLedger;
use crate::trace::TraceSink;
use crate::units::Time;

/// The operation that carries a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SenderVerb {
    /// RDMA WRITE WITH IMMEDIATE, as the front end sends its events; the immediate counts messages.
    #[default]
    WriteImm,
    /// RDMA WRITE: consumes no receive of the peer, so it never gets an RNR NAK.
    Write,
    /// SEND.
    Send,
}

/// All settings of a sender.
#[derive(Debug, Clone)]
pub struct RcSenderConfig {
    pub flow: FlowId,
    /// Addresses, MTU, PSN, retries, window, AckReq policy, IP marking.
    pub request: RequesterConfig,
    pub pacing: PacingConfig,
    pub verb: SenderVerb,
    /// Key of the peer's memory, which begins at address 0.
    pub rkey: u32,
    /// The contents of the messages and the ring that they fill, with its own key; `None`: only their length.
    pub fragments: Option<Fragments>,
}

impl RcSenderConfig {
    /// WRITE WITH IMMEDIATE under DCQCN, as `PacingConfig::default` has it.
    pub fn new(flow: FlowId, request: RequesterConfig) -> Self {
        let (pacing, verb) = (PacingConfig::default(), SenderVerb::default());
        RcSenderConfig { flow, request, pacing, verb, rkey: 0, fragments: None }
    }

    /// Sets its law with these parameters.
    pub fn with_law(mut self, law: Law, cc: CcParams) -> Self {
        self.pacing = PacingConfig { law, cc, ..self.pacing };
        self
    }

    /// Sets its ACK timer and retries.
    pub fn with_limits(mut self, limits: RetryLimits) -> Self {
        self.request.limits = limits;
        self
    }
}

/// The counters of a sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RcSenderStats {
    /// Packets sent, those sent again included.
    pub packets: u64,
    /// Packets sent again.
    pub retransmitted: u64,
    /// Payload bytes sent, those sent again included.
    pub payload_bytes: u64,
    /// ACK timers that expired.
    pub timeouts: u64,
    /// Sequence NAKs obeyed.
    pub naks: u64,
    /// RNR NAKs obeyed.
    pub rnr_naks: u64,
    /// CNPs received.
    pub cnps: u64,
    /// QCN notifications received.
    pub feedbacks: u64,
    pub posted_messages: u64,
    pub completed_messages: u64,
    /// Why the flow has failed, if it has.
    pub failed: Option<RequestFault>,
}

/// Longest part of a message that is longer than the transport allows: whole packets of any MTU, below 2^31.
pub(super) const MAX_PART: u64 = 1 << 30;

/// The work that a completion belongs to.
pub(super) const PART: u64 = 0;
pub(super) const MESSAGE: u64 = 1;

/// The transport's clock stops while the port may not send.
#[derive(Debug, Clone, Copy, Default)]
struct PausedClock {
    total: Time,
    since: Option<Time>,
}

impl PausedClock {
    fn read(&self, now: Time) -> Time {
        self.since.unwrap_or(now) - self.total
    }

    /// The time at which the clock will read `reading`; `None` while it is stopped.
    fn time_of(&self, reading: Time) -> Option<Time> {
        self.since.is_none().then(|| reading.saturating_add(self.total))
    }

    fn set_paused(&mut self, now: Time, paused: bool) {
        match (self.since, paused) {
            (None, true) => self.since = Some(now),
            (Some(since), false) => {
                self.total += now - since;
                self.since = None;
            }
            _ => {}
        }
    }
}

/// The earlier of two times that may never come.
pub(super) fn earlier(a: Option<Time>, b: Option<Time>) -> Option<Time> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

/// One RC sender of a [`Station`](super::Station).
pub struct RcSender {
    flow: FlowId,
    verb: SenderVerb,
    rkey: u32,
    class: usize,
    requester: Requester,
    limiter: LookAhead,
    clock: PausedClock,
    source: Box<dyn MessageSource>,
    /// The source's next message: its time has not come, or a part of it is not posted yet.
    next: Option<Message>,
    /// Bytes of `next` that are posted.
    posted: u64,
    outgoing: Option<Box<Outgoing>>,
    exhausted: bool,
    ledger: SharedLedger,
    posted_messages: u64,
    completed_messages: u64,
    feedbacks: u64,
    last_feedback: u8,
    failure_reported: bool,
    ready: bool,
    timeout: Option<Time>,
    /// The parts of `timeout` that are due to the limiter, and to other causes.
    start: Option<Time>,
    other_timeout: Option<Time>,
    /// When there will be more to post; a part of `other_timeout`.
    message_at: Option<Time>,
}

impl RcSender {
    /// A sender of the messages of `source`, recorded in `ledger`.
    pub fn new(config: RcSenderConfig, source: Box<dyn MessageSource>, ledger: SharedLedger) -> Self {
        RcSender {
            flow: config.flow,
            verb: config.verb,
            rkey: config.rkey,
            class: usize::from(config.request.marking.dscp >> 3) % 8,
            requester: Requester::new(config.request),
            limiter: LookAhead::new(&config.pacing),
            clock: PausedClock::default(),
            source,
            next: None,
            posted: 0,
            outgoing: config.fragments.map(|fragments| Box::new(Outgoing::new(fragments))),
            exhausted: false,
            ledger,
            posted_messages: 0,
            completed_messages: 0,
            feedbacks: 0,
            last_feedback: 0,
            failure_reported: false,
            ready: false,
            timeout: Some(Time::ZERO),
            start: None,
            other_timeout: None,
            message_at: None,
        }
    }

    /// Keeps the parameters of its law where other senders with the same have theirs: a thousand copies fill a cache.
    pub fn share_parameters(&mut self, pool: &mut Vec<Rc<CcParams>>) {
        self.limiter.share_parameters(pool);
    }

    /// The flow it carries.
    pub fn flow(&self) -> FlowId {
        self.flow
    }

    /// Its queue pair.
    pub fn qpn(&self) -> Qpn {
        self.requester.config().local.qpn
    }

    pub fn stats(&self) -> RcSenderStats {
        let counters = self.requester.counters();
        RcSenderStats {
            packets: counters.sent_pkts,
            retransmitted: counters.retransmitted_pkts,
            payload_bytes: counters.tx_payload_bytes,
            timeouts: counters.local_ack_timeout_err,
            naks: counters.packet_seq_err,
            rnr_naks: counters.rnr_nak,
            cnps: counters.rp_cnp_received,
            feedbacks: self.feedbacks,
            posted_messages: self.posted_messages,
            completed_messages: self.completed_messages,
            failed: match self.requester.state() {
                RequesterState::Ready => None,
                RequesterState::Error(fault) => Some(fault),
            },
        }
    }

    /// Whether it has sent all that its source had, and all of it is acknowledged; or it has failed.
    pub fn is_done(&self) -> bool {
        let all = self.exhausted && self.next.is_none() && self.requester.outstanding_messages() == 0;
        all || self.requester.state() != RequesterState::Ready
    }

    /// The requester, for its counters and its state.
    pub fn requester(&self) -> &Requester {
        &self.requester
    }

    /// The state of the reaction point as visited up to `now`.
    pub fn reaction_point(&mut self, now: Time) -> &FlowState {
        self.limiter.catch_up(now);
        &self.limiter.flow().state
    }

    /// The same as the gateware keeps it (`penstock_cc::Flow::words`).
    pub fn reaction_point_words(&mut self, now: Time) -> [u32; 9] {
        self.limiter.catch_up(now);
        self.limiter.flow().words()
    }

    /// Updates the state that depends on all others: the next message, readiness, the next timeout.
    fn settle(&mut self, now: Time) {
        while let Some(done) = self.requester.poll_completion() {
            if done.wr_id == MESSAGE && done.status == SendStatus::Success {
                self.completed_messages += 1;
                self.outgoing.iter_mut().for_each(|outgoing| outgoing.acknowledged());
            }
        }
        if let (RequesterState::Error(fault), false) = (self.requester.state(), self.failure_reported) {
            self.failure_reported = true;
            self.ledger.borrow_mut().failed(self.flow, now, &fault.to_string());
        }
        self.message_at = self.post(now);
        let has_packet = self.requester.can_transmit();
        self.limiter.set_waiting(now, has_packet);
        self.settle_timeout();
        self.settle_start(now, has_packet);
    }

    /// The part of `settle` that depends on the transport's clock.
    #[inline]
    fn settle_timeout(&mut self) {
        let retry = self.requester.next_timeout().and_then(|at| self.clock.time_of(at));
        self.other_timeout = earlier(retry, self.message_at);
        self.timeout = earlier(self.start, self.other_timeout);
    }

    /// The part of `settle` that depends on the limiter.
    fn settle_start(&mut self, now: Time, has_packet: bool) {
        self.start = if has_packet { self.limiter.next_start(now) } else { None };
        self.ready = has_packet && self.start.is_none();
        self.timeout = earlier(self.start, self.other_timeout);
    }

    /// Posts all messages that are due; returns the time of the next ones.
    fn post(&mut self, now: Time) -> Option<Time> {
        if !self.requester.all_begun() || self.requester.state() != RequesterState::Ready {
            return None;
        }
        if self.next.is_none() && !self.exhausted {
            self.next = self.source.next_message(now);
            self.exhausted = self.next.is_none();
            if self.exhausted {
                self.ledger.borrow_mut().ended(self.flow);
            }
        }
        let message = self.next?;
        if message.at > now {
            return Some(message.at);
        }
        if self.posted == 0 {
            self.ledger.borrow_mut().posted(self.flow, &message);
            self.posted_messages += 1;
            self.outgoing.iter_mut().for_each(|outgoing| outgoing.take(&message));
        }
        let left = message.bytes - self.posted;
        let len = left.min(MAX_PART);
        self.post_part(len, len == left);
        (self.next, self.posted) = if len == left { (None, 0) } else { (Some(message), self.posted + len) };
        None
    }

    /// A message longer than the transport allows goes in parts: WRITEs without an immediate, marked by a solicited
    /// event (which says nothing on those), and the last as the verb says.
    fn post_part(&mut self, len: u64, is_last: bool) {
        let place = self.outgoing.as_ref().map(|outgoing| (outgoing.place(), outgoing.rkey()));
        let imm = place.map_or(self.posted_messages as u32, |(place, _)| place.slot);
        let verb = match self.verb {
            SenderVerb::WriteImm if is_last => Verb::WriteImm(imm),
            SenderVerb::Send if is_last => Verb::Send,
            _ => Verb::Write,
        };
        let wr_id = if is_last { MESSAGE } else { PART };
        let (len, solicited) = (len as u32, !is_last);
        let (va, remote_va, rkey) = place
            .map_or((0, 0, self.rkey), |(place, rkey)| (place.va + self.posted, place.remote_va + self.posted, rkey));
        let wr = SendWr { wr_id, verb, va, len, remote_va, rkey, solicited };
        let posted = self.requester.post_send(wr);
        debug_assert!(posted.is_ok(), "{MAX_PART} is below the transport's limit");
    }
}

impl Endpoint for RcSender {
    fn on_packet(&mut self, now: Time, packet: &Packet) {
        match packet {
            Packet::Roce(packet) => {
                let response = self.requester.handle_packet(self.clock.read(now), packet);
                if response == Response::Cnp {
                    self.limiter.on_cnp(now);
                }
            }
            Packet::Cnm(cnm) => {
                self.feedbacks += 1;
                self.last_feedback = cnm.feedback;
                self.limiter.on_feedback(now, cnm.feedback);
            }
            _ => {}
        }
        self.settle(now);
    }

    fn next_timeout(&self) -> Option<Time> {
        self.timeout
    }

    fn on_timeout(&mut self, now: Time) {
        if self.start.is_some() && self.other_timeout.is_none_or(|at| now < at) {
            return self.settle_start(now, true);
        }
        self.requester.handle_timeout(self.clock.read(now));
        self.settle(now);
    }

    fn poll_transmit(&mut self, now: Time) -> Option<Packet> {
        if !self.requester.can_transmit() || !self.limiter.may_start(now) {
            self.settle(now);
            return None;
        }
        let clock = self.clock.read(now);
        let packet = match &mut self.outgoing {
            None => self.requester.poll_transmit(clock, &mut VirtualPayload),
            Some(outgoing) => self.requester.poll_transmit(clock, &mut **outgoing),
        };
        let packet = packet.map(Packet::Roce);
        if let Some(packet) = &packet {
            self.limiter.started(now, packet.wire_len() as u32);
        }
        self.settle(now);
        packet
    }

    fn is_ready(&self) -> bool {
        self.ready
    }

    fn class(&self) -> usize {
        self.class
    }

    fn on_pause(&mut self, now: Time, paused: bool) {
        self.limiter.set_paused(now, paused);
        self.clock.set_paused(now, paused);
        match self.limiter.law() {
            Law::Qcn => self.settle(now),
            // A pause changes nothing of the limiter.
            Law::Off | Law::Dcqcn => self.settle_timeout(),
        }
    }

    fn sample(&mut self, now: Time, channel: u16, trace: &mut TraceSink) {
        limiter_trace::record(&mut self.limiter, now, channel, self.last_feedback, trace);
        let counters = self.requester.counters();
        trace.record(channel, "tx_payload_bytes", counters.tx_payload_bytes as f64);
        trace.record(channel, "retransmissions", counters.retransmitted_pkts as f64);
    }
}
