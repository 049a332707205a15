// SPDX-License-Identifier: Apache-2.0
//! The responder of one reliable connection: WRITEs, SENDs and READs in, memory, completions and replies out.
//! It delivers every message once and in order, even if the network loses, repeats or reorders packets.
//! Source: IBTA vol. 1, clause 9.7.4 (checks, in this order: PSN, opcode sequence, opcode, receive
//! resources, length, R_Key) and 9.7.5 (responses); 9.4.4 (READ).

use crate::config::pkeys_match;
use crate::config::{CreditPolicy, ResponderConfig};
use crate::counters::ResponderCounters;
use crate::fault::Fault;
use crate::memory::{check_read, check_write};
use crate::memory::{Memory, Window};
use crate::read::{Read, RecentReads, Responses};
use crate::receive::{RecvCompletion, RecvOpcode, RecvStatus, RecvWr};
use crate::replies::Replies;
use crate::reply::Reply;
use penstock_cc::NotificationPoint;
use penstock_units::Time;
use penstock_wire::{
    AethRepr, Credits, Ecn, NakCode, Opcode, Operation, Payload, Position, Psn, RethRepr, RocePacket, Syndrome,
};
use std::cmp::Ordering;
use std::collections::VecDeque;

/// Longest message (IBTA 9.3.3).
const MAX_MESSAGE: u32 = 1 << 31;

/// State of the queue pair.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum QpState {
    /// Requests are served.
    Ready,
    /// Requests are dropped and receives flushed, because of this fault. Open a new queue pair.
    Error(Fault),
}

/// The message whose FIRST has arrived and whose LAST has not.
#[derive(Clone, Copy, Debug)]
enum Message {
    Write { reth: RethRepr, done: u32 },
    Send { wr: RecvWr, done: u32 },
}

/// Why the packet in turn is not accepted.
enum Refusal {
    /// No receive is posted: try again later.
    NotReady,
    /// Never.
    Fatal(Fault),
}

impl From<Fault> for Refusal {
    fn from(fault: Fault) -> Self {
        Refusal::Fatal(fault)
    }
}

/// Responder of one queue pair.
///
/// Call [`handle_packet`](Self::handle_packet) for every packet, then take out replies
/// ([`poll_transmit`](Self::poll_transmit)) and completions
/// ([`poll_completion`](Self::poll_completion)) until both give `None`. It has no timers.
///
/// READ responses are made by `poll_transmit` one at a time, so an owner may pace them. Their bytes are those that are
/// in memory then: a WRITE that follows a READ without waiting for its end may be in them (IBTA 10.8.3, no fence).
#[derive(Clone, Debug)]
pub struct Responder {
    config: ResponderConfig,
    state: QpState,
    expected: Psn,
    msn: u32,
    /// A NAK or RNR NAK for `expected` is out: whatever lies ahead of it arrives for nothing and is
    /// answered with silence until `expected` comes (IBTA 9.7.5.2; one NAK per gap).
    refused: bool,
    /// PSN of the last packet that came ahead of its turn, since `expected` was there or another asked for it.
    last_ahead: Option<Psn>,
    message: Option<Message>,
    receives: VecDeque<RecvWr>,
    completions: VecDeque<RecvCompletion>,
    reads: RecentReads,
    replies: Replies,
    notification: NotificationPoint,
    /// Whether CNPs may be sent.
    may_notify: bool,
    counters: ResponderCounters,
}

impl Responder {
    /// A queue pair ready to receive.
    pub fn new(config: ResponderConfig) -> Self {
        Responder {
            state: QpState::Ready,
            expected: config.expected_psn,
            msn: 0,
            refused: false,
            last_ahead: None,
            message: None,
            receives: VecDeque::new(),
            completions: VecDeque::new(),
            reads: RecentReads::default(),
            replies: Replies::default(),
            notification: NotificationPoint::new(config.cnp_interval),
            may_notify: true,
            counters: ResponderCounters::default(),
            config,
        }
    }

    /// Takes one packet at `now`. Packets that are not the peer's for this queue pair
    /// are counted and dropped.
    pub fn handle_packet(&mut self, now: Time, packet: &RocePacket, mem: &mut (impl Memory + ?Sized)) {
        if !self.admit(packet) {
            return;
        }
        if packet.ecn == Ecn::Ce {
            self.counters.np_ecn_marked_roce_packets += 1;
            self.notify(now);
        }
        match packet.bth.psn.cmp_window(self.expected) {
            Ordering::Less => self.duplicate(packet),
            Ordering::Greater => self.gap(packet.bth.psn),
            Ordering::Equal => self.in_order(packet, mem),
        }
    }

    /// Sends a CNP as for a marked packet that arrived at `now`: none if the last one is younger than the interval.
    pub fn notify(&mut self, now: Time) {
        if self.may_notify && self.notification.on_marked(now) {
            self.replies.push_cnp();
        }
    }

    /// Forbids CNPs, and allows them again: for owners with a limit over several queue pairs.
    pub fn allow_cnps(&mut self, is_allowed: bool) {
        self.may_notify = is_allowed;
    }

    /// The next packet to send; CNPs come first. The payload of a READ response is read from `mem`.
    pub fn poll_transmit(&mut self, mem: &mut (impl Memory + ?Sized)) -> Option<RocePacket> {
        self.poll_reply().map(|reply| self.packet_of(reply, mem))
    }

    /// The next reply, which counts as sent: the same as `poll_transmit` for owners who make the packet later, by
    /// [`packet_of`](Self::packet_of).
    #[inline]
    pub fn poll_reply(&mut self) -> Option<Reply> {
        self.replies.pop(&mut self.counters)
    }

    /// The packet of a reply. In place of a READ response of unreadable memory it is the NAK that ends the queue pair.
    #[inline]
    pub fn packet_of(&mut self, reply: Reply, mem: &mut (impl Memory + ?Sized)) -> RocePacket {
        match reply {
            Reply::ReadResponse { psn, va, len, .. } if len > 0 => match mem.read(va, len) {
                Ok(payload) if payload.len() == len as usize => {
                    self.counters.tx_payload_bytes += u64::from(len);
                    reply.packet(&self.config, payload)
                }
                _ => self.unreadable(psn, va, len),
            },
            _ => reply.packet(&self.config, Payload::EMPTY),
        }
    }

    /// The next receive that ended, in the order they were posted.
    #[inline]
    pub fn poll_completion(&mut self) -> Option<RecvCompletion> {
        self.completions.pop_front()
    }

    /// Posts a receive. In the error state it is flushed at once.
    pub fn post_receive(&mut self, wr: RecvWr) {
        match self.state {
            QpState::Ready => self.receives.push_back(wr),
            QpState::Error(_) => self.complete_failed(&wr, RecvStatus::WrFlushErr),
        }
    }

    /// Receives posted and not yet taken by a message.
    pub fn posted_receives(&self) -> usize {
        self.receives.len()
    }

    /// Puts the queue pair into error and flushes its receives. The peer gets no message; a queue
    /// pair already in error keeps its fault.
    pub fn close(&mut self) {
        if self.state == QpState::Ready {
            self.fail(Fault::Closed);
        }
    }

    /// State of the queue pair.
    pub fn state(&self) -> QpState {
        self.state
    }

    /// PSN of the next packet in order.
    pub fn expected_psn(&self) -> Psn {
        self.expected
    }

    /// The settings.
    pub fn config(&self) -> &ResponderConfig {
        &self.config
    }

    /// The counters.
    pub fn counters(&self) -> &ResponderCounters {
        &self.counters
    }

    /// Header validation (IBTA 9.6): silent drops, as nothing in the packet can be trusted.
    #[inline]
    fn admit(&mut self, packet: &RocePacket) -> bool {
        let (config, bth) = (&self.config, &packet.bth);
        let wrong_port = config.peer_udp_sport.is_some_and(|port| port != packet.udp_sport);
        let counters = &mut self.counters;
        let drop_counter = if bth.dest_qpn != config.local.qpn || packet.ip_dst != config.local.ip {
            &mut counters.dropped_not_for_us
        } else if packet.ip_src != config.peer.ip || wrong_port {
            &mut counters.dropped_wrong_peer
        } else if !pkeys_match(bth.pkey, config.pkey) {
            &mut counters.dropped_bad_pkey
        } else if !bth.opcode.is_rc_request() {
            &mut counters.dropped_not_request
        } else if self.state != QpState::Ready {
            &mut counters.dropped_in_error
        } else {
            counters.rcvd_pkts += 1;
            return true;
        };
        *drop_counter += 1;
        false
    }

    /// A packet already executed, or a ghost: acknowledged again up to the latest PSN, as the first
    /// ACK may be lost (C9-105). Nothing is written and nothing is completed twice.
    #[cold]
    fn duplicate(&mut self, packet: &RocePacket) {
        self.counters.duplicate_request += 1;
        match packet.bth.opcode.operation() {
            // Not beyond the next READ, whose responses may have to be sent again: an ACK that precedes them would
            // make the peer request them once more.
            Operation::Write | Operation::Send => {
                let end = self.reads.first_between(packet.bth.psn, self.expected).unwrap_or(self.expected);
                self.acknowledge(end.sub(1));
            }
            Operation::ReadRequest => self.repeat_read(packet),
            _ => {}
        }
    }

    /// A READ that was executed, or the rest of it, is answered again from memory (IBTA 9.7.5.1); a request that is
    /// no part of a recent READ has no answer.
    fn repeat_read(&mut self, packet: &RocePacket) {
        let part = packet.reth.map(|reth| Read::new(packet.bth.psn, reth, self.config.mtu));
        let Some((part, whole)) = part.and_then(|part| Some((part, *self.reads.whole_of(&part)?))) else {
            self.counters.dropped_stale_reads += 1;
            return;
        };
        let aeth = self.aeth(self.ack_syndrome());
        self.replies.repeat(&whole, Responses::new(part, aeth, true));
    }

    /// A packet ahead of its turn: one NAK, then silence until the expected one arrives. Where `nak_again` is set,
    /// packets that begin anew without the expected one are a gap of their own: what was sent again for the NAK was
    /// lost too.
    #[cold]
    fn gap(&mut self, psn: Psn) {
        self.counters.out_of_sequence += 1;
        let anew = self.config.nak_again && self.last_ahead.is_some_and(|last| psn.cmp_window(last) == Ordering::Less);
        self.last_ahead = Some(psn);
        if !self.refused || anew {
            self.refused = true;
            self.counters.nak_sequence_sent += 1;
            self.reply(self.expected, Syndrome::Nak(NakCode::PsnSequenceError));
        }
    }

    fn in_order(&mut self, packet: &RocePacket, mem: &mut (impl Memory + ?Sized)) {
        let is_read = packet.bth.opcode == Opcode::ReadRequest;
        match if is_read { self.execute_read(packet).map_err(Refusal::from) } else { self.execute(packet, mem) } {
            Ok(()) => {
                self.refused = false;
                self.last_ahead = None;
                if is_read {
                    return; // its responses acknowledge it
                }
                self.expected = self.expected.next();
                if packet.bth.opcode.position().is_end() {
                    self.finish(packet, mem);
                }
                if packet.bth.ack_req {
                    self.acknowledge(packet.bth.psn);
                }
            }
            Err(Refusal::NotReady) => {
                self.refused = true;
                self.last_ahead = None;
                self.counters.out_of_buffer += 1;
                self.reply(self.expected, Syndrome::RnrNak(self.config.rnr_timer));
            }
            Err(Refusal::Fatal(fault)) => self.fail(fault),
        }
    }

    /// Checks a READ request and lines up its responses, which take one PSN each. The MSN counts it now (IBTA C9-148).
    fn execute_read(&mut self, packet: &RocePacket) -> Result<(), Fault> {
        let (opcode, resources) = (packet.bth.opcode, self.config.responder_resources);
        self.check_sequence(opcode)?;
        let reth = packet.reth.ok_or(Fault::MissingHeader { opcode: opcode.into() })?;
        if self.reads.oldest(resources).is_some_and(|oldest| self.replies.is_unanswered(oldest)) {
            return Err(Fault::TooManyReads { resources });
        }
        if !packet.payload.is_empty() {
            return Err(Fault::ReadPayload { len: packet.payload.len() });
        }
        if reth.dma_len > MAX_MESSAGE {
            return Err(Fault::ReadTooLong { len: reth.dma_len });
        }
        check_read(&self.config.regions, &reth)?;
        if let Some(oldest) = self.reads.oldest(resources) {
            self.replies.forget(oldest); // a repetition that its peer no longer needs
        }
        let read = Read::new(packet.bth.psn, reth, self.config.mtu);
        self.reads.push(read, resources);
        self.expected = self.expected.add(read.packets());
        self.msn = (self.msn + 1) & 0x00FF_FFFF;
        self.counters.rx_read_requests += 1;
        let aeth = self.aeth(self.ack_syndrome());
        self.replies.push_responses(Responses::new(read, aeth, false));
        Ok(())
    }

    /// Checks one packet in full and only then moves its payload; `self.message` is then the message
    /// with this packet in it.
    fn execute(&mut self, packet: &RocePacket, mem: &mut (impl Memory + ?Sized)) -> Result<(), Refusal> {
        let opcode = packet.bth.opcode;
        self.check_sequence(opcode)?;
        if opcode.has_imm() && packet.imm.is_none() {
            return Err(Fault::MissingHeader { opcode: opcode.into() }.into());
        }
        let message = self.message_of(packet)?;
        self.check_payload_len(packet)?;
        if opcode.position().is_start() {
            if let Some(event) = mem.foreign(&packet.payload) {
                return Err(Fault::NotOurs { event }.into());
            }
        }
        let len = packet.payload.len() as u32;
        let (va, message) = match message {
            Message::Write { reth, done } => {
                check_dma_len(packet, &reth, done)?;
                if opcode.position().is_start() {
                    check_write(&self.config.regions, &reth)?;
                    if let Some(Window { va: slot_va, len: slot_bytes }) = mem.refuses(reth.va, reth.dma_len) {
                        let (va, len) = (reth.va, reth.dma_len);
                        return Err(Fault::NotTheNextSlot { va, len, slot_va, slot_bytes }.into());
                    }
                }
                (reth.va.wrapping_add(done.into()), Message::Write { reth, done: done + len })
            }
            Message::Send { wr, done } => {
                check_buffer(&wr, done, len)?;
                (wr.va.wrapping_add(done.into()), Message::Send { wr, done: done + len })
            }
        };
        if opcode.position().is_end() && !admit(&message, packet, mem) {
            return Err(Refusal::NotReady);
        }
        if !packet.payload.is_empty() {
            mem.write(va, &packet.payload);
            self.counters.rx_payload_bytes += u64::from(len);
        }
        self.take_receive(&message, opcode.position());
        self.message = Some(message);
        Ok(())
    }

    /// Opcode sequence and opcode (IBTA 9.7.4.1).
    #[inline]
    fn check_sequence(&self, opcode: Opcode) -> Result<(), Fault> {
        let (operation, code) = (opcode.operation(), opcode.into());
        match operation {
            Operation::Write | Operation::Send => {}
            Operation::ReadRequest if self.config.responder_resources > 0 => {}
            _ => return Err(Fault::UnsupportedOpcode { opcode: code }),
        }
        let fits = match self.message {
            None => opcode.position().is_start(),
            Some(_) if opcode.position().is_start() => false,
            Some(Message::Write { .. }) => operation == Operation::Write,
            Some(Message::Send { .. }) => operation == Operation::Send,
        };
        let in_message = self.message.is_some();
        fits.then_some(()).ok_or(Fault::OpcodeSequence { opcode: code, in_message })
    }

    /// The message the packet belongs to, begun if need be, provided that the receive it needs is
    /// posted (IBTA 9.7.4.1): a SEND takes one at its start, a WRITE with immediate at its end.
    #[inline]
    fn message_of(&self, packet: &RocePacket) -> Result<Message, Refusal> {
        let opcode = packet.bth.opcode;
        let next_receive = || self.receives.front().copied().ok_or(Refusal::NotReady);
        if opcode.operation() == Operation::Write && opcode.has_imm() {
            next_receive()?;
        }
        match (self.message, opcode.operation()) {
            (Some(message), _) => Ok(message),
            (None, Operation::Send) => Ok(Message::Send { wr: next_receive()?, done: 0 }),
            (None, _) => match packet.reth {
                Some(reth) => Ok(Message::Write { reth, done: 0 }),
                None => Err(Fault::MissingHeader { opcode: opcode.into() }.into()),
            },
        }
    }

    /// Packet length against the path MTU (IBTA 9.7.4.1).
    #[inline]
    fn check_payload_len(&self, packet: &RocePacket) -> Result<(), Fault> {
        let (mtu, len) = (self.config.mtu.bytes(), packet.payload.len());
        let fits = match packet.bth.opcode.position() {
            Position::First | Position::Middle => len == mtu,
            Position::Last => (1..=mtu).contains(&len),
            Position::Only => len <= mtu,
        };
        let opcode = packet.bth.opcode.into();
        fits.then_some(()).ok_or(Fault::PayloadLength { opcode, len, mtu })
    }

    /// A SEND holds its receive from its first packet on.
    #[inline]
    fn take_receive(&mut self, message: &Message, position: Position) {
        if matches!(message, Message::Send { .. }) && position.is_start() {
            self.receives.pop_front();
        }
    }

    /// End of a message: it counts, and reports if it consumed a receive.
    fn finish(&mut self, packet: &RocePacket, mem: &mut (impl Memory + ?Sized)) {
        self.msn = (self.msn + 1) & 0x00FF_FFFF;
        let imm = packet.imm.filter(|_| packet.bth.opcode.has_imm());
        let (opcode, wr_id, va, byte_len) = match self.message.take() {
            Some(Message::Write { reth, .. }) => {
                self.counters.rx_write_requests += 1;
                // Without an immediate there is no completion, and no receive is consumed (IBTA 9.4.3).
                let Some(wr) = imm.and_then(|_| self.receives.pop_front()) else {
                    return;
                };
                (RecvOpcode::WriteImm, wr.wr_id, reth.va, reth.dma_len)
            }
            Some(Message::Send { wr, done }) => {
                self.counters.rx_send_requests += 1;
                (RecvOpcode::Send, wr.wr_id, wr.va, done)
            }
            None => return,
        };
        let (qpn, solicited) = (self.config.local.qpn, packet.bth.solicited);
        let status = RecvStatus::Success;
        let completion = RecvCompletion { qpn, wr_id, status, opcode, imm, byte_len, va, solicited };
        self.completions.push_back(completion);
        if let Some(region) = self.config.regions.first() {
            mem.message_ended(region.va);
        }
    }

    /// Memory that cannot be read ends the queue pair at this response; replies to later requests are dropped.
    #[cold]
    fn unreadable(&mut self, psn: Psn, va: u64, len: u32) -> RocePacket {
        self.replies.clear();
        if self.state == QpState::Ready {
            self.enter_error(Fault::Unreadable { va, len });
        }
        let aeth = self.aeth(Syndrome::Nak(NakCode::RemoteOperationalError));
        Reply::Acknowledgement { psn, aeth }.packet(&self.config, Payload::EMPTY)
    }

    /// The queue pair dies: the peer gets the responses of earlier READs and its NAK, every receive its end. A closed
    /// queue pair reads no more memory.
    #[cold]
    fn fail(&mut self, fault: Fault) {
        self.enter_error(fault);
        match fault.nak_code() {
            Some(code) => self.reply(self.expected, Syndrome::Nak(code)),
            None => self.replies.forget_reads(),
        }
    }

    #[cold]
    fn enter_error(&mut self, fault: Fault) {
        let in_use = match self.message.take() {
            Some(Message::Send { wr, .. }) => Some(wr),
            _ => None,
        };
        self.state = QpState::Error(fault);
        match fault.nak_code() {
            Some(NakCode::RemoteAccessError) => self.counters.resp_remote_access_errors += 1,
            Some(NakCode::RemoteOperationalError) => self.counters.resp_remote_operational_errors += 1,
            Some(_) => self.counters.resp_invalid_requests += 1,
            None => {}
        }
        if let Fault::ReceiveTooSmall { .. } = fault {
            self.counters.resp_local_length_error += 1;
            // Too long in its first packet: the receive is still the first of the queue.
            if let Some(wr) = in_use.or_else(|| self.receives.pop_front()) {
                self.complete_failed(&wr, RecvStatus::LocLenErr);
            }
        } else if let Some(wr) = in_use {
            let closed = fault == Fault::Closed;
            let status = if closed { RecvStatus::WrFlushErr } else { RecvStatus::RemInvReqErr };
            self.complete_failed(&wr, status);
        }
        for wr in std::mem::take(&mut self.receives) {
            self.complete_failed(&wr, RecvStatus::WrFlushErr);
        }
    }

    #[cold]
    fn complete_failed(&mut self, wr: &RecvWr, status: RecvStatus) {
        self.completions.push_back(RecvCompletion::failed(self.config.local.qpn, wr, status));
    }

    fn acknowledge(&mut self, psn: Psn) {
        self.reply(psn, self.ack_syndrome());
    }

    #[inline]
    fn ack_syndrome(&self) -> Syndrome {
        Syndrome::Ack(match self.config.credits {
            CreditPolicy::Unlimited => Credits::UNLIMITED,
            CreditPolicy::Posted => Credits::from_receives(self.receives.len()),
        })
    }

    #[inline]
    fn aeth(&self, syndrome: Syndrome) -> AethRepr {
        AethRepr { syndrome, msn: self.msn }
    }

    fn reply(&mut self, psn: Psn, syndrome: Syndrome) {
        self.replies.push(psn, self.aeth(syndrome));
    }
}

/// Whether a message that ends with this packet may end; one that ends without a completion always may.
#[inline]
fn admit(message: &Message, packet: &RocePacket, mem: &mut (impl Memory + ?Sized)) -> bool {
    let va = match message {
        Message::Write { .. } if !packet.bth.opcode.has_imm() => return true,
        Message::Write { reth, .. } => reth.va,
        Message::Send { wr, .. } => wr.va,
    };
    mem.admit(va, packet.bth.opcode.position().is_start().then_some(&packet.payload))
}

/// Checks the payload against the rest of the RETH length: after a FIRST or MIDDLE more must be left,
/// after a LAST or ONLY nothing.
#[inline]
fn check_dma_len(packet: &RocePacket, reth: &RethRepr, done: u32) -> Result<(), Fault> {
    let (len, dma_len, remaining) = (packet.payload.len(), reth.dma_len, reth.dma_len - done);
    let fits = match packet.bth.opcode.position().is_end() {
        true => remaining as usize == len,
        false => remaining as usize > len,
    };
    let opcode = packet.bth.opcode.into();
    let fits = fits && dma_len <= MAX_MESSAGE;
    fits.then_some(()).ok_or(Fault::DmaLength { opcode, len, remaining, dma_len })
}

#[inline]
fn check_buffer(wr: &RecvWr, done: u32, len: u32) -> Result<(), Fault> {
    let total = u64::from(done) + u64::from(len);
    let &RecvWr { wr_id, len: buffer_len, .. } = wr;
    let fits = total <= u64::from(buffer_len);
    fits.then_some(()).ok_or(Fault::ReceiveTooSmall { wr_id, len: total, buffer_len })
}
