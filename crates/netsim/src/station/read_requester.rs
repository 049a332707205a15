// SPDX-License-Identifier: Apache-2.0
//! The receiving end of an RC flow that is read: the server requests each message of its source by RDMA READ.
//! Promise: reports every byte to the ledger once, in order; answers marked responses with CNPs; with a consumer that is
//! too slow it requests nothing more.
//! Source: IBTA vol. 1 clauses 9.4.4 and 9.7 through the requester; annex A17.9 (CNP).

use std::collections::VecDeque;

use penstock_transport::{
    Reply, Requester, RequesterConfig, RequesterCounters, RequesterState, Responder, ResponderConfig, Response,
    SendStatus, SendWr, Verb, VirtualPayload,
};
use penstock_wire::{wire_len, Ecn, Packet, Qpn, RocePacket};

use super::readable::Readable;
use super::receiver::{Consumer, NotifyAbove};
use super::sender::{earlier, MAX_PART, MESSAGE, PART};
use crate::flow::{Endpoint, FlowId, Message, MessageSource};
use crate::ledger::SharedLedger;
use crate::rate_window::RateWindow;
use crate::trace::TraceSink;
use crate::units::Time;

/// All settings of an end that reads.
#[derive(Debug, Clone)]
pub struct ReadRequesterConfig {
    pub flow: FlowId,
    /// Addresses, MTU, PSN, retries, READs outstanding, IP marking.
    pub request: RequesterConfig,
    /// The other half of its queue pair, which makes the CNPs.
    pub responder: ResponderConfig,
    /// Time from the last bit of a marked packet to the first of its CNP.
    pub ack_delay: Time,
    /// `None`: messages are gone as soon as they are whole.
    pub consumer: Option<Consumer>,
    /// `None`: CNPs answer marked packets only.
    pub notify_above: Option<NotifyAbove>,
}

/// One end that reads, of a [`Station`](super::Station).
pub struct ReadRequester {
    flow: FlowId,
    requester: Requester,
    responder: Responder,
    ack_delay: Time,
    measured: Option<(NotifyAbove, RateWindow)>,
    consumer: Option<Consumer>,
    /// When the messages that have arrived will have been consumed, in order.
    consumed_at: VecDeque<Time>,
    /// Bytes of the message that is arriving, in parts that have arrived.
    message_bytes: u64,
    source: Box<dyn MessageSource>,
    /// The source's next message: its time has not come, or a part of it is not requested yet.
    next: Option<Message>,
    /// Bytes of `next` that are requested.
    posted: u64,
    exhausted: bool,
    ledger: SharedLedger,
    /// When CNPs may leave, and those that may.
    delayed_cnps: VecDeque<Time>,
    cnps: u32,
    /// Marked responses.
    marked: u64,
    failure_reported: bool,
    class: usize,
    cnp_class: usize,
    timeout: Option<Time>,
    /// When there will be more to request.
    message_at: Option<Time>,
}

impl ReadRequester {
    /// An end that reads the messages of `source` and records them in `ledger`.
    pub fn new(config: ReadRequesterConfig, source: Box<dyn MessageSource>, ledger: SharedLedger) -> Self {
        let class = |dscp: u8| usize::from(dscp >> 3) % 8;
        ReadRequester {
            flow: config.flow,
            class: class(config.request.marking.dscp),
            cnp_class: class(config.responder.marking.cnp_dscp),
            requester: Requester::new(config.request),
            responder: Responder::new(config.responder),
            ack_delay: config.ack_delay,
            measured: config.notify_above.map(|above| (above, RateWindow::new(above.window))),
            consumer: config.consumer,
            consumed_at: VecDeque::new(),
            message_bytes: 0,
            source,
            next: None,
            posted: 0,
            exhausted: false,
            ledger,
            delayed_cnps: VecDeque::new(),
            cnps: 0,
            marked: 0,
            failure_reported: false,
            timeout: Some(Time::ZERO),
            message_at: None,
        }
    }

    /// The flow it reads.
    pub fn flow(&self) -> FlowId {
        self.flow
    }

    /// Its queue pair.
    pub fn qpn(&self) -> Qpn {
        self.requester.config().local.qpn
    }

    /// The counters of its requester.
    pub fn counters(&self) -> &RequesterCounters {
        self.requester.counters()
    }

    /// The requester, for its settings and its state.
    pub fn requester(&self) -> &Requester {
        &self.requester
    }

    fn handle_response(&mut self, now: Time, packet: &RocePacket) {
        if packet.ecn == Ecn::Ce {
            self.marked += 1;
            self.notify(now);
        }
        if let Some((above, window)) = &mut self.measured {
            let start = now.saturating_sub(above.line.time_for(wire_len(packet.frame_len()) as u64));
            if window.pass(start, now, packet.payload.len()) > above.threshold {
                self.notify(now);
            }
        }
        if let Response::ReadData { .. } = self.requester.handle_packet(now, packet) {
            self.ledger.borrow_mut().arrived(self.flow, now, packet.payload.len() as u64);
        }
    }

    fn notify(&mut self, now: Time) {
        self.responder.notify(now);
        while self.responder.poll_reply().is_some() {
            self.delayed_cnps.push_back(now + self.ack_delay);
        }
    }

    /// Updates the state that depends on all others: completions, CNPs that may leave, the next message and timeout.
    fn settle(&mut self, now: Time) {
        while let Some(done) = self.requester.poll_completion() {
            if done.status == SendStatus::Success {
                self.message_bytes += u64::from(done.byte_len);
                if done.wr_id == MESSAGE {
                    self.message_arrived(now);
                }
            }
        }
        if let (RequesterState::Error(fault), false) = (self.requester.state(), self.failure_reported) {
            self.failure_reported = true;
            self.ledger.borrow_mut().failed(self.flow, now, &fault.to_string());
        }
        while self.consumed_at.front().is_some_and(|at| *at <= now) {
            self.consumed_at.pop_front();
        }
        while self.delayed_cnps.front().is_some_and(|at| *at <= now) {
            self.delayed_cnps.pop_front();
            self.cnps += 1;
        }
        self.message_at = self.post(now);
        let waiting = earlier(self.message_at, self.delayed_cnps.front().copied());
        self.timeout = earlier(self.requester.next_timeout(), waiting);
    }

    fn message_arrived(&mut self, now: Time) {
        self.ledger.borrow_mut().delivered(self.flow, now);
        let bytes = std::mem::take(&mut self.message_bytes);
        if let Some(consumer) = self.consumer {
            let begin = self.consumed_at.back().map_or(now, |last| now.max(*last));
            self.consumed_at.push_back(begin.saturating_add(consumer.time_for(bytes)));
        }
    }

    /// Whether the consumer has a slot for one more message.
    fn has_slot(&self) -> bool {
        let taken = self.requester.outstanding_messages() + self.consumed_at.len();
        self.consumer.is_none_or(|consumer| taken < consumer.slots.max(1) as usize)
    }

    /// Requests the next message if it is there; returns the time at which there will be more to request.
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
            if !self.has_slot() {
                return self.consumed_at.front().copied();
            }
            self.ledger.borrow_mut().posted(self.flow, &message);
        }
        let left = message.bytes - self.posted;
        let len = left.min(MAX_PART);
        self.post_part(len as u32, len == left);
        (self.next, self.posted) = if len == left { (None, 0) } else { (Some(message), self.posted + len) };
        None
    }

    /// A message longer than the transport allows is read in parts.
    fn post_part(&mut self, len: u32, is_last: bool) {
        let wr_id = if is_last { MESSAGE } else { PART };
        let wr = SendWr { wr_id, verb: Verb::Read, va: 0, len, remote_va: self.posted, rkey: 0, solicited: false };
        let posted = self.requester.post_send(wr);
        debug_assert!(posted.is_ok(), "{MAX_PART} is below the transport's limit, and READs are allowed");
    }
}

impl Endpoint for ReadRequester {
    fn on_packet(&mut self, now: Time, packet: &Packet) {
        if let Packet::Roce(packet) = packet {
            self.handle_response(now, packet);
        }
        self.settle(now);
    }

    fn next_timeout(&self) -> Option<Time> {
        self.timeout
    }

    fn on_timeout(&mut self, now: Time) {
        self.requester.handle_timeout(now);
        self.settle(now);
    }

    fn poll_transmit(&mut self, now: Time) -> Option<Packet> {
        let packet = if self.cnps > 0 {
            self.cnps -= 1;
            Some(self.responder.packet_of(Reply::Cnp, &mut Readable::Lengths))
        } else {
            self.requester.poll_transmit(now, &mut VirtualPayload)
        };
        self.settle(now);
        packet.map(Packet::Roce)
    }

    fn is_ready(&self) -> bool {
        self.cnps > 0 || self.requester.can_transmit()
    }

    fn class(&self) -> usize {
        if self.cnps > 0 {
            self.cnp_class
        } else {
            self.class
        }
    }

    fn sample(&mut self, _now: Time, channel: u16, trace: &mut TraceSink) {
        let counters = self.requester.counters();
        trace.record(channel, "rx_payload_bytes", counters.rx_payload_bytes as f64);
        trace.record(channel, "np_cnp_sent", self.responder.counters().np_cnp_sent as f64);
        trace.record(channel, "np_ecn_marked_roce_packets", self.marked as f64);
    }
}
