// SPDX-License-Identifier: Apache-2.0
//! The receiving end of an RC flow: the responder of `penstock_transport` without memory.
//! Promise: reports every byte to the ledger once, in order; answers after its delay; a consumer that is too slow
//! causes RNR NAKs.
//! Source: IBTA vol. 1 clause 9.7 through the responder; ARCHITECTURE.md, "The way of a fragment" (posted receives are
//! the credits).

use std::collections::VecDeque;
use std::rc::Rc;

use penstock_transport::{Access, Memory, MemoryRegion, RecvWr, Reply, Responder, ResponderConfig, ResponderCounters};
use penstock_wire::{wire_len, Opcode, Packet, Payload, Qpn, RocePacket};

use super::cnp_limit::CnpLimit;
use crate::flow::{Endpoint, FlowId};
use crate::ledger::SharedLedger;
use crate::rate_window::RateWindow;
use crate::trace::TraceSink;
use crate::units::{Rate, Time};

/// The consumer that takes messages out of the receiver's ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Consumer {
    /// The maximum number of waiting messages; beyond it the receiver sends RNR NAKs. 0 counts as 1.
    pub slots: u32,
    /// How fast the payload is consumed. A rate of 0 never consumes any.
    pub rate: Rate,
}

/// CNPs by the payload's rate, as AdvCam's emulated switch has its receiver send them (section VI A).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotifyAbove {
    /// A packet with which the payload of the last `window` exceeds this counts as marked.
    pub threshold: Rate,
    pub window: Time,
    /// Rate of the receiver's link, by which a packet's length is a time.
    pub line: Rate,
}

/// All settings of a receiver.
#[derive(Debug, Clone)]
pub struct RcReceiverConfig {
    pub flow: FlowId,
    /// Addresses, MTU, PSN, CNP interval, RNR timer, credits. Without a memory region any address may be written with
    /// key 0.
    pub responder: ResponderConfig,
    /// Time from the last bit of a packet to the first of its answer.
    pub ack_delay: Time,
    /// `None`: messages are gone as soon as they are whole.
    pub consumer: Option<Consumer>,
    /// `None`: CNPs answer marked packets only.
    pub notify_above: Option<NotifyAbove>,
    /// The limit of its host's CNPs; `None`: each queue pair has its interval alone.
    pub cnp_limit: Option<Rc<CnpLimit>>,
}

impl RcReceiverConfig {
    /// Answers at once, consumes at once.
    pub fn new(flow: FlowId, responder: ResponderConfig) -> Self {
        RcReceiverConfig { flow, responder, ack_delay: Time::ZERO, consumer: None, notify_above: None, cnp_limit: None }
    }
}

/// Counts payload and forgets it.
#[derive(Default)]
struct Tally(u64);

impl Memory for Tally {
    fn write(&mut self, _va: u64, data: &Payload) {
        self.0 += data.len() as u64;
    }
}

/// Receives that a receiver without a consumer keeps posted: one is all that a message in turn needs.
const POSTED: u32 = 16;
const RECEIVE: RecvWr = RecvWr { wr_id: 0, va: 0, len: 1 << 31 };

/// One RC receiver of a [`Station`](super::Station).
pub struct RcReceiver {
    flow: FlowId,
    responder: Responder,
    ack_delay: Time,
    consumer: Option<Consumer>,
    measured: Option<(NotifyAbove, RateWindow)>,
    cnp_limit: Option<Rc<CnpLimit>>,
    /// When the messages in the ring will have been consumed, in order.
    consumed_at: VecDeque<Time>,
    /// Bytes of the message that is arriving.
    message_bytes: u64,
    ledger: SharedLedger,
    /// Answers that are still delayed.
    delayed: VecDeque<(Time, Reply)>,
    /// Answers ready to leave: CNPs, which are all equal, and other answers.
    cnps: u32,
    acks: VecDeque<Reply>,
    cnp_class: usize,
    ack_class: usize,
}

impl RcReceiver {
    /// A receiver that reports to `ledger`.
    pub fn new(mut config: RcReceiverConfig, ledger: SharedLedger) -> Self {
        if config.responder.regions.is_empty() {
            let everywhere = MemoryRegion { va: 0, rkey: 0, len: u64::MAX, access: Access::RemoteWrite };
            config.responder.regions.push(everywhere);
        }
        let class = |dscp: u8| usize::from(dscp >> 3) % 8;
        let marking = config.responder.marking;
        let mut responder = Responder::new(config.responder);
        let receives = config.consumer.map_or(POSTED, |consumer| consumer.slots.max(1));
        (0..receives).for_each(|_| responder.post_receive(RECEIVE));
        RcReceiver {
            flow: config.flow,
            responder,
            ack_delay: config.ack_delay,
            consumer: config.consumer,
            measured: config.notify_above.map(|above| (above, RateWindow::new(above.window))),
            cnp_limit: config.cnp_limit,
            consumed_at: VecDeque::new(),
            message_bytes: 0,
            ledger,
            delayed: VecDeque::new(),
            cnps: 0,
            acks: VecDeque::new(),
            cnp_class: class(marking.cnp_dscp),
            ack_class: class(marking.ack_dscp),
        }
    }

    /// The flow it takes.
    pub fn flow(&self) -> FlowId {
        self.flow
    }

    /// Its queue pair.
    pub fn qpn(&self) -> Qpn {
        self.responder.config().local.qpn
    }

    /// The counters of its responder.
    pub fn counters(&self) -> &ResponderCounters {
        self.responder.counters()
    }

    /// The responder, for its state.
    pub fn responder(&self) -> &Responder {
        &self.responder
    }

    fn handle_request(&mut self, now: Time, packet: &RocePacket) {
        self.repost(now);
        if let Some(limit) = &self.cnp_limit {
            self.responder.allow_cnps(limit.is_due(now));
        }
        if let Some((above, window)) = &mut self.measured {
            let start = now.saturating_sub(above.line.time_for(wire_len(packet.frame_len()) as u64));
            if window.pass(start, now, packet.payload.len()) > above.threshold {
                self.responder.notify(now);
                // A marked packet is no reason for a second CNP then.
                self.responder.allow_cnps(self.cnp_limit.is_none());
            }
        }
        let before = self.responder.expected_psn();
        let mut tally = Tally::default();
        self.responder.handle_packet(now, packet, &mut tally);
        if tally.0 > 0 {
            self.message_bytes += tally.0;
            self.ledger.borrow_mut().arrived(self.flow, now, tally.0);
        }
        let opcode = packet.bth.opcode;
        if opcode.position().is_end() && self.responder.expected_psn() != before {
            self.end_of_message(now, opcode, packet.bth.solicited);
        }
        while let Some(reply) = self.responder.poll_reply() {
            if let (Reply::Cnp, Some(limit)) = (reply, &self.cnp_limit) {
                limit.sent(now);
            }
            match self.ack_delay {
                Time::ZERO => self.release(reply),
                delay => self.delayed.push_back((now + delay, reply)),
            }
        }
    }

    fn end_of_message(&mut self, now: Time, opcode: Opcode, solicited: bool) {
        // A WRITE without immediate that requests an event is a part of a longer message (see `RcSender`).
        let is_part = solicited && matches!(opcode, Opcode::WriteLast | Opcode::WriteOnly);
        if !is_part {
            self.ledger.borrow_mut().delivered(self.flow, now);
        }
        while self.responder.poll_completion().is_some() {
            match self.consumer {
                None => self.responder.post_receive(RECEIVE),
                Some(consumer) => {
                    let begin = self.consumed_at.back().map_or(now, |last| now.max(*last));
                    self.consumed_at.push_back(begin.saturating_add(consumer.time_for(self.message_bytes)));
                }
            }
        }
        if !is_part {
            self.message_bytes = 0;
        }
    }

    /// Posts the receives of messages that have been consumed.
    fn repost(&mut self, now: Time) {
        while self.consumed_at.front().is_some_and(|at| *at <= now) {
            self.consumed_at.pop_front();
            self.responder.post_receive(RECEIVE);
        }
    }

    /// A reply may leave. ACKs that meet here become one, the latest, as ACKs are cumulative.
    fn release(&mut self, reply: Reply) {
        match (reply, self.acks.back_mut()) {
            (Reply::Cnp, _) => self.cnps += 1,
            (ack, Some(last)) if last.is_ack() && ack.is_ack() => *last = ack,
            (ack, _) => self.acks.push_back(ack),
        }
    }

    fn release_delayed(&mut self, now: Time) {
        while self.delayed.front().is_some_and(|(at, _)| *at <= now) {
            if let Some((_, reply)) = self.delayed.pop_front() {
                self.release(reply);
            }
        }
    }
}

impl Consumer {
    pub(super) fn time_for(&self, bytes: u64) -> Time {
        if self.rate.bits_per_second() == 0 {
            return Time::MAX;
        }
        self.rate.time_for(bytes)
    }
}

impl Endpoint for RcReceiver {
    fn on_packet(&mut self, now: Time, packet: &Packet) {
        self.release_delayed(now);
        if let Packet::Roce(packet) = packet {
            self.handle_request(now, packet);
        }
    }

    fn next_timeout(&self) -> Option<Time> {
        self.delayed.front().map(|(at, _)| *at)
    }

    fn on_timeout(&mut self, now: Time) {
        self.release_delayed(now);
    }

    fn poll_transmit(&mut self, _now: Time) -> Option<Packet> {
        let reply = if self.cnps > 0 {
            self.cnps -= 1;
            Reply::Cnp
        } else {
            self.acks.pop_front()?
        };
        Some(Packet::Roce(self.responder.packet_of(reply, &mut Tally::default())))
    }

    fn is_ready(&self) -> bool {
        self.cnps > 0 || !self.acks.is_empty()
    }

    fn class(&self) -> usize {
        if self.cnps > 0 {
            self.cnp_class
        } else {
            self.ack_class
        }
    }

    fn sample(&mut self, _now: Time, channel: u16, trace: &mut TraceSink) {
        let counters = self.responder.counters();
        trace.record(channel, "rx_payload_bytes", counters.rx_payload_bytes as f64);
        trace.record(channel, "np_cnp_sent", counters.np_cnp_sent as f64);
        trace.record(channel, "np_ecn_marked_roce_packets", counters.np_ecn_marked_roce_packets as f64);
    }
}
