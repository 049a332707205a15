// SPDX-License-Identifier: Apache-2.0
//! The receiving end of all flows that a host pulls: one scheduler for its link decides which message is read next.
//! Promise: only what a READ has requested travels towards the host, and never more than the scheduler's window;
//! announcements are acknowledged after the delay of any other packet.
//! Source: `penstock_pull`; IBTA vol. 1 clauses 9.4.4 and 9.7 through requester and responder.

use std::collections::VecDeque;

use penstock_pull::{Config, ConfigError, Fragment, Intake, IntakeError, Offer, Scheduler};
use penstock_transport::{
    Access, Memory, MemoryRegion, RecvWr, Reply, Requester, RequesterConfig, RequesterCounters, RequesterState,
    Responder, ResponderConfig, Response, SendStatus, SendWr, Verb, VirtualPayload,
};
use penstock_wire::{
    Announced, Packet, Payload, Qpn, RocePacket, ANNOUNCEMENT_SLOTS, ANNOUNCEMENT_SLOT_LEN, SUCCESSORS_LEN,
};

use super::sender::earlier;
use crate::flow::{Endpoint, FlowId};
use crate::ledger::SharedLedger;
use crate::pull_stats::{CameBytes, PullStats};
use crate::trace::TraceSink;
use crate::units::Time;

/// One flow that a host pulls.
#[derive(Debug, Clone)]
pub struct PulledFlowConfig {
    pub flow: FlowId,
    /// The half of the host's queue pair that reads.
    pub request: RequesterConfig,
    /// The half that takes announcements.
    pub responder: ResponderConfig,
    /// Its messages are fragments, read in the order of their events; otherwise in the order of their announcements.
    pub carries_events: bool,
}

struct Pulled {
    flow: FlowId,
    requester: Requester,
    responder: Responder,
    carries_events: bool,
    intake: Intake,
    /// Bytes of the messages that are to be read, without their successors.
    lengths: VecDeque<u32>,
    /// Bytes of the first of these that have come, and of its successors.
    begun: u32,
    successors: Vec<u8>,
    class: usize,
    /// Whether `sending` holds it.
    is_listed: bool,
    is_over: bool,
}

/// Takes the bytes of an announcement.
#[derive(Default)]
struct Slot(Vec<u8>);

impl Memory for Slot {
    fn write(&mut self, _va: u64, data: &Payload) {
        self.0.extend_from_slice(data.as_bytes().unwrap_or_default());
    }
}

const RECEIVE: RecvWr = RecvWr { wr_id: 0, va: 0, len: ANNOUNCEMENT_SLOT_LEN as u32 };

/// The pulling end of a [`Station`](super::Station), of all its flows that are pulled.
pub struct PullServer {
    scheduler: Scheduler,
    flows: Vec<Pulled>,
    /// Its queue pairs in rising order, each with the index of its flow.
    by_qpn: Vec<(Qpn, usize)>,
    ledger: SharedLedger,
    ack_delay: Time,
    /// Answers that are still delayed, and those ready to leave, by flow.
    delayed: VecDeque<(Time, usize, Reply)>,
    replies: VecDeque<(usize, Reply)>,
    /// Flows with a READ to send.
    sending: VecDeque<usize>,
    /// No ACK timer ends before this time. All have the same length, so the first that was started is looked at first.
    retry_at: Option<Time>,
    announcements: u64,
    malformed: u64,
    came: CameBytes,
    config: Config,
    /// What has been announced and goes to the scheduler now.
    offers: Vec<Offer>,
}

impl PullServer {
    /// A host that pulls these flows. The scheduler's boards are the flows.
    ///
    /// # Errors
    /// Settings with which the scheduler can read nothing.
    pub fn new(
        config: Config,
        flows: Vec<PulledFlowConfig>,
        ack_delay: Time,
        ledger: SharedLedger,
    ) -> Result<Self, ConfigError> {
        let scheduler = Scheduler::new(config, flows.len())?;
        let by_qpn = flows.iter().enumerate().map(|(index, flow)| (flow.request.local.qpn, index));
        let mut by_qpn: Vec<(Qpn, usize)> = by_qpn.collect();
        by_qpn.sort_unstable_by_key(|(qpn, _)| qpn.value());
        let flows = flows.into_iter().map(Pulled::new).collect();
        Ok(PullServer {
            scheduler,
            flows,
            by_qpn,
            ledger,
            ack_delay,
            delayed: VecDeque::new(),
            replies: VecDeque::new(),
            sending: VecDeque::new(),
            retry_at: None,
            announcements: 0,
            malformed: 0,
            came: CameBytes::default(),
            config,
            offers: Vec::new(),
        })
    }

    /// Its queue pairs.
    pub fn queue_pairs(&self) -> Vec<Qpn> {
        self.by_qpn.iter().map(|(qpn, _)| *qpn).collect()
    }

    fn stats(&self) -> PullStats {
        let counters = self.scheduler.counters();
        PullStats {
            window_bytes: self.scheduler.window(),
            in_flight_bytes: self.scheduler.in_flight(),
            highest_in_flight_bytes: counters.highest_in_flight,
            reads: counters.reads,
            announcements: self.announcements,
            refused: counters.refused + self.malformed,
            silences: counters.silences,
            came: self.came,
        }
    }

    /// The counters of the requester of a flow, if this host pulls it.
    pub fn counters(&self, flow: FlowId) -> Option<&RequesterCounters> {
        self.flows.iter().find(|pulled| pulled.flow == flow).map(|pulled| pulled.requester.counters())
    }

    fn index_of(&self, qpn: Qpn) -> Option<usize> {
        let at = self.by_qpn.binary_search_by_key(&qpn.value(), |(qpn, _)| qpn.value()).ok()?;
        Some(self.by_qpn[at].1)
    }

    fn handle_announcement(&mut self, now: Time, index: usize, packet: &RocePacket) {
        let mut slot = Slot::default();
        self.flows[index].responder.handle_packet(now, packet, &mut slot);
        while self.flows[index].responder.poll_completion().is_some() {
            let pulled = &mut self.flows[index];
            pulled.responder.post_receive(RECEIVE);
            self.announcements += 1;
            if pulled.is_over {
                continue;
            }
            let outcome = pulled.intake.take_message(&slot.0, &mut self.offers);
            self.offer(now, index, outcome);
        }
        let pulled = &mut self.flows[index];
        while let Some(reply) = pulled.responder.poll_reply() {
            self.delayed.push_back((now + self.ack_delay, index, reply));
        }
    }

    /// Gives the scheduler what has been announced.
    fn offer(&mut self, now: Time, index: usize, outcome: Result<(), IntakeError>) {
        let pulled = &mut self.flows[index];
        for Offer { fragment, .. } in self.offers.drain(..) {
            let Announced { event, address, length } = fragment;
            let rank = if pulled.carries_events { event } else { now.as_ps() };
            let read = if length > 0 { length + SUCCESSORS_LEN as u32 } else { 0 };
            // The scheduler counts what it refuses.
            let is_taken = self.scheduler.announce(index, Fragment { rank, event, address, length: read }).is_ok();
            pulled.lengths.extend(Some(length).filter(|length| is_taken && *length > 0));
        }
        if let Err(error) = outcome {
            self.malformed += 1;
            self.fail(now, index, &error.to_string());
        }
    }

    fn handle_response(&mut self, now: Time, index: usize, packet: &RocePacket) {
        let pulled = &mut self.flows[index];
        if let Response::ReadData { .. } = pulled.requester.handle_packet(now, packet) {
            let bytes = pulled.take_part(&packet.payload);
            self.ledger.borrow_mut().arrived(pulled.flow, now, bytes.into());
        }
        self.complete(now, index);
    }

    /// READs that have arrived, and a queue pair that has failed. A gap lets the requester send again.
    fn complete(&mut self, now: Time, index: usize) {
        while let Some(done) = self.flows[index].requester.poll_completion() {
            if done.status == SendStatus::Success && self.scheduler.arrive(now, index).is_some_and(|read| read.is_last)
            {
                self.ledger.borrow_mut().delivered(self.flows[index].flow, now);
                self.take_successors(now, index);
            }
        }
        if let RequesterState::Error(fault) = self.flows[index].requester.state() {
            self.fail(now, index, &fault.to_string());
        }
        self.list(index);
    }

    /// A message has been read, and what it is followed by.
    fn take_successors(&mut self, now: Time, index: usize) {
        let pulled = &mut self.flows[index];
        pulled.begun = 0;
        let length = pulled.lengths.pop_front().unwrap_or_default();
        let cost = self.config.wire_bytes(length + SUCCESSORS_LEN as u32) - self.config.wire_bytes(length);
        self.came.carried(cost);
        let bytes = std::mem::take(&mut pulled.successors);
        let Ok(bytes) = bytes.as_slice().try_into() else { return };
        let outcome = pulled.intake.take_successors(bytes, &mut self.offers);
        self.offer(now, index, outcome);
    }

    fn fail(&mut self, now: Time, index: usize, why: &str) {
        let pulled = &mut self.flows[index];
        if !std::mem::replace(&mut pulled.is_over, true) {
            self.scheduler.forget(index);
            self.ledger.borrow_mut().failed(pulled.flow, now, why);
        }
    }

    /// Puts a flow where `poll_transmit` finds it, if it has something to send.
    fn list(&mut self, index: usize) {
        let pulled = &mut self.flows[index];
        if !pulled.is_listed && pulled.requester.can_transmit() {
            pulled.is_listed = true;
            self.sending.push_back(index);
        }
    }

    /// Posts the READs that the window has room for, and releases answers.
    fn settle(&mut self, now: Time) {
        while let Some(read) = self.scheduler.poll_read(now) {
            let wr = SendWr {
                wr_id: 0,
                verb: Verb::Read,
                va: 0,
                len: read.length,
                remote_va: read.address,
                rkey: 0,
                solicited: false,
            };
            let posted = self.flows[read.board].requester.post_send(wr);
            debug_assert!(posted.is_ok(), "the scheduler posts no READ that a queue pair refuses");
            self.list(read.board);
        }
        while self.delayed.front().is_some_and(|(at, ..)| *at <= now) {
            self.replies.extend(self.delayed.pop_front().map(|(_, index, reply)| (index, reply)));
        }
    }

    /// Looks at all ACK timers.
    fn handle_retries(&mut self, now: Time) {
        let mut next = None;
        for index in 0..self.flows.len() {
            let due = self.flows[index].requester.next_timeout();
            if due.is_some_and(|at| at <= now) {
                self.flows[index].requester.handle_timeout(now);
                self.complete(now, index);
            }
            next = earlier(next, self.flows[index].requester.next_timeout());
        }
        self.retry_at = next;
    }
}

impl Pulled {
    fn new(mut config: PulledFlowConfig) -> Self {
        if config.responder.regions.is_empty() {
            let len = u64::from(ANNOUNCEMENT_SLOTS) * ANNOUNCEMENT_SLOT_LEN as u64;
            config.responder.regions.push(MemoryRegion { va: 0, rkey: 0, len, access: Access::RemoteWrite });
        }
        let mut responder = Responder::new(config.responder);
        (0..ANNOUNCEMENT_SLOTS).for_each(|_| responder.post_receive(RECEIVE));
        Pulled {
            flow: config.flow,
            class: usize::from(config.request.marking.dscp >> 3) % 8,
            requester: Requester::new(config.request),
            responder,
            carries_events: config.carries_events,
            intake: Intake::default(),
            lengths: VecDeque::new(),
            begun: 0,
            successors: Vec::new(),
            is_listed: false,
            is_over: false,
        }
    }

    /// The next bytes of a message, or of its successors; returns how many are the message's.
    fn take_part(&mut self, payload: &Payload) -> u32 {
        let (length, part) = (self.lengths.front().copied().unwrap_or_default(), payload.len() as u32);
        let bytes = part.min(length - self.begun.min(length));
        self.begun += part;
        if let Some(rest) = payload.as_bytes().and_then(|payload| payload.get(bytes as usize..)) {
            self.successors.extend_from_slice(rest);
        }
        bytes
    }
}

impl Endpoint for PullServer {
    fn on_packet(&mut self, now: Time, packet: &Packet) {
        if let Packet::Roce(packet) = packet {
            if let Some(index) = self.index_of(packet.bth.dest_qpn) {
                self.came.count(packet);
                match packet.bth.opcode.is_rc_request() {
                    true => self.handle_announcement(now, index, packet),
                    false => self.handle_response(now, index, packet),
                }
            }
        }
        self.settle(now);
    }

    fn next_timeout(&self) -> Option<Time> {
        let waiting = earlier(self.delayed.front().map(|(at, ..)| *at), self.scheduler.poll_timeout());
        earlier(waiting, self.retry_at)
    }

    fn on_timeout(&mut self, now: Time) {
        self.scheduler.handle_timeout(now);
        if self.retry_at.is_some_and(|at| at <= now) {
            self.handle_retries(now);
        }
        self.settle(now);
    }

    fn poll_transmit(&mut self, now: Time) -> Option<Packet> {
        if let Some((index, reply)) = self.replies.pop_front() {
            return Some(Packet::Roce(self.flows[index].responder.packet_of(reply, &mut Slot::default())));
        }
        let index = self.sending.pop_front()?;
        let pulled = &mut self.flows[index];
        pulled.is_listed = false;
        let packet = pulled.requester.poll_transmit(now, &mut VirtualPayload);
        self.retry_at = self.retry_at.or(pulled.requester.next_timeout());
        self.list(index);
        packet.map(Packet::Roce)
    }

    fn is_ready(&self) -> bool {
        !self.replies.is_empty() || !self.sending.is_empty()
    }

    fn class(&self) -> usize {
        let first = self.replies.front().map(|(index, _)| index).or(self.sending.front());
        first.map_or(0, |index| self.flows[*index].class)
    }

    fn pulled(&self) -> Option<PullStats> {
        Some(self.stats())
    }

    fn sample(&mut self, _now: Time, channel: u16, trace: &mut TraceSink) {
        trace.record(channel, "rx_payload_bytes", self.scheduler.counters().bytes as f64);
        self.stats().record(channel, trace);
    }
}
