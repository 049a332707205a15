// SPDX-License-Identifier: Apache-2.0
//! The sending end of an RC flow that is read: the responder of `penstock_transport` answers READs at the pace of the
//! rate limiter of `penstock_cc`.
//! Promise: responses leave in order, as fast as law and pause allow; other replies are not paced.
//! Source: IBTA vol. 1 clauses 9.4.4 and 9.7.5 through the responder; annex A17.9 (CNPs act on the data's sender).

use std::collections::VecDeque;
use std::rc::Rc;

use penstock_cc::{CcParams, FlowState, Law};
use penstock_transport::{Access, MemoryRegion, Reply, Responder, ResponderConfig, ResponderCounters};
use penstock_wire::{Opcode, Packet, Psn, Qpn, RocePacket};

use super::limiter::PacingConfig;
use super::limiter_trace;
use super::look_ahead::LookAhead;
use super::readable::{Messages, Readable};
use super::sender::earlier;
use crate::flow::{Endpoint, FlowId};
use crate::trace::TraceSink;
use crate::units::Time;

/// All settings of an end that is read.
#[derive(Debug, Clone)]
pub struct ReadResponderConfig {
    pub flow: FlowId,
    /// Addresses, MTU, PSN, READs outstanding, IP marking. Without a memory region any address may be read with key 0.
    pub responder: ResponderConfig,
    /// Time from the last bit of a request to the first of its answer.
    pub ack_delay: Time,
    pub pacing: PacingConfig,
}

/// The counters of an end that is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReadResponderStats {
    /// READ responses sent, those sent again included.
    pub packets: u64,
    /// READ responses sent again.
    pub retransmitted: u64,
    /// CNPs received.
    pub cnps: u64,
    /// QCN notifications received.
    pub feedbacks: u64,
}

/// One end that is read, of a [`Station`](super::Station).
pub struct ReadResponder {
    flow: FlowId,
    class: usize,
    cnp_class: usize,
    responder: Responder,
    memory: Readable,
    limiter: LookAhead,
    ack_delay: Time,
    /// Requests that are answered later.
    delayed: VecDeque<(Time, RocePacket)>,
    /// The reply that leaves next.
    reply: Option<Reply>,
    /// The PSN after the last response that was sent.
    sent_end: Option<Psn>,
    stats: ReadResponderStats,
    last_feedback: u8,
    timeout: Option<Time>,
    /// The part of `timeout` that is due to the limiter.
    start: Option<Time>,
}

impl ReadResponder {
    pub fn new(mut config: ReadResponderConfig) -> Self {
        if config.responder.regions.is_empty() {
            let everywhere = MemoryRegion { va: 0, rkey: 0, len: u64::MAX, access: Access::RemoteRead };
            config.responder.regions.push(everywhere);
        }
        let class = |dscp: u8| usize::from(dscp >> 3) % 8;
        ReadResponder {
            flow: config.flow,
            class: class(config.responder.marking.ack_dscp),
            cnp_class: class(config.responder.marking.cnp_dscp),
            responder: Responder::new(config.responder),
            memory: Readable::Lengths,
            limiter: LookAhead::new(&config.pacing),
            ack_delay: config.ack_delay,
            delayed: VecDeque::new(),
            reply: None,
            sent_end: None,
            stats: ReadResponderStats::default(),
            last_feedback: 0,
            timeout: None,
            start: None,
        }
    }

    /// Gives it the messages of a board, which are all that may be read then.
    pub(super) fn with_messages(mut self, messages: Messages) -> Self {
        self.memory = Readable::Messages(messages);
        self
    }

    /// The messages of a board.
    pub(super) fn messages(&mut self) -> Option<&mut Messages> {
        match &mut self.memory {
            Readable::Messages(messages) => Some(messages),
            Readable::Lengths => None,
        }
    }

    /// Keeps the parameters of its law where other senders with the same have theirs: a thousand copies fill a cache.
    pub fn share_parameters(&mut self, pool: &mut Vec<Rc<CcParams>>) {
        self.limiter.share_parameters(pool);
    }

    /// The flow it answers.
    pub fn flow(&self) -> FlowId {
        self.flow
    }

    /// Its queue pair.
    pub fn qpn(&self) -> Qpn {
        self.responder.config().local.qpn
    }

    pub fn stats(&self) -> ReadResponderStats {
        self.stats
    }

    /// The counters of its responder.
    pub fn counters(&self) -> &ResponderCounters {
        self.responder.counters()
    }

    /// The responder, for its settings and its state.
    pub fn responder(&self) -> &Responder {
        &self.responder
    }

    /// The state of the reaction point as visited up to `now`.
    pub fn reaction_point(&mut self, now: Time) -> &FlowState {
        self.limiter.catch_up(now);
        &self.limiter.flow().state
    }

    fn handle_packet(&mut self, now: Time, packet: &RocePacket) {
        match packet.bth.opcode {
            Opcode::Cnp => {
                self.stats.cnps += 1;
                self.limiter.on_cnp(now);
            }
            _ => self.delayed.push_back((now + self.ack_delay, packet.clone())),
        }
    }

    /// Updates the state that depends on all others: the next reply, readiness, the next timeout.
    fn settle(&mut self, now: Time) {
        while self.delayed.front().is_some_and(|(at, _)| *at <= now) {
            if let Some((at, request)) = self.delayed.pop_front() {
                self.responder.handle_packet(at, &request, &mut self.memory);
            }
        }
        if self.reply.is_none() {
            self.reply = self.responder.poll_reply();
        }
        let has_response = self.has_response();
        self.limiter.set_waiting(now, has_response);
        self.start = if has_response { self.limiter.next_start(now) } else { None };
        self.timeout = earlier(self.start, self.delayed.front().map(|(at, _)| *at));
    }

    fn has_response(&self) -> bool {
        matches!(self.reply, Some(Reply::ReadResponse { .. }))
    }

    /// Counts a response, and whether it was sent before.
    fn count_response(&mut self, psn: Psn) {
        self.stats.packets += 1;
        if self.sent_end.is_some_and(|end| psn.distance_from(end) < 0) {
            self.stats.retransmitted += 1;
        } else {
            self.sent_end = Some(psn.next());
        }
    }
}

impl Endpoint for ReadResponder {
    fn on_packet(&mut self, now: Time, packet: &Packet) {
        match packet {
            Packet::Roce(packet) => self.handle_packet(now, packet),
            Packet::Cnm(cnm) => {
                self.stats.feedbacks += 1;
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
        self.settle(now);
    }

    fn poll_transmit(&mut self, now: Time) -> Option<Packet> {
        if self.has_response() && !self.limiter.may_start(now) {
            self.settle(now);
            return None;
        }
        let reply = self.reply.take()?;
        let packet = Packet::Roce(self.responder.packet_of(reply, &mut self.memory));
        if let Reply::ReadResponse { psn, .. } = reply {
            self.count_response(psn);
            self.limiter.started(now, packet.wire_len() as u32);
        }
        self.settle(now);
        Some(packet)
    }

    fn is_ready(&self) -> bool {
        self.reply.is_some() && self.start.is_none()
    }

    fn class(&self) -> usize {
        match self.reply {
            Some(Reply::Cnp) => self.cnp_class,
            _ => self.class,
        }
    }

    fn on_pause(&mut self, now: Time, paused: bool) {
        self.limiter.set_paused(now, paused);
        if self.limiter.law() == Law::Qcn {
            self.settle(now);
        }
    }

    fn sample(&mut self, now: Time, channel: u16, trace: &mut TraceSink) {
        limiter_trace::record(&mut self.limiter, now, channel, self.last_feedback, trace);
        trace.record(channel, "tx_payload_bytes", self.responder.counters().tx_payload_bytes as f64);
        trace.record(channel, "retransmissions", self.stats.retransmitted as f64);
    }
}
