// SPDX-License-Identifier: Apache-2.0
//! The requester of one reliable connection: messages and READs in, request packets, bytes read and completions out.
//! Every message completes once and in order; lost packets are sent again (go-back-N).
//! Source: IBTA vol. 1, clauses 9.4.4 (READ), 9.7.5 (acknowledgements), 9.7.6 (timer, retries), 9.7.7.2 (credits) and
//! 9.9.2 (errors); the rules are those of `rtl/roce/requester_step.sv`, which has no READ.

mod config;
mod counters;
mod packet;
mod queue;
mod response;
mod work;

use crate::config::pkeys_match;
use penstock_units::Time;
use penstock_wire::{Operation, Psn, RocePacket};
use std::collections::VecDeque;

pub use config::{RequestMarking, RequesterConfig, RetryLimits};
pub use counters::RequesterCounters;
use queue::SendQueue;
pub use work::{PayloadSource, PostError, RequestFault, SendCompletion, SendStatus, SendWr, Verb, VirtualPayload};

/// State of the send queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RequesterState {
    /// Messages are taken and sent.
    Ready,
    /// Messages are flushed, because of this fault. Open a new queue pair.
    Error(RequestFault),
}

/// What a packet given to [`Requester::handle_packet`] was.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Response {
    /// An ACK, NAK or RNR NAK of the peer, stale ones included; or a READ response that ends the queue pair or shows
    /// that an earlier one was lost.
    Acknowledgement,
    /// The next bytes of a READ: the packet's payload belongs at `va`. Every byte comes once, in order, and before the
    /// completion.
    ReadData {
        /// Number of the work request.
        wr_id: u64,
        /// Local address of the first byte.
        va: u64,
    },
    /// A congestion notification for the reaction point.
    Cnp,
    /// Nothing for this queue pair; a counter records the reason.
    Dropped,
}

/// What the one timer of a queue pair is running for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Timer {
    Off,
    /// A packet with AckReq has no ACK yet.
    Ack(Time),
    /// The peer has no receive for this packet; nothing is sent.
    Rnr(Time, u64),
}

/// The peer's receives as its acknowledgements count them (IBTA 9.7.7.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Limit {
    /// It reports no credits, or has not answered yet; without a receive it sends an RNR NAK.
    Unlimited,
    /// Messages below this number have a receive.
    Below(u64),
}

/// Requester of one queue pair.
///
/// Call [`handle_packet`](Self::handle_packet) for every packet, [`handle_timeout`](Self::handle_timeout) when
/// [`next_timeout`](Self::next_timeout) has come, [`post_send`](Self::post_send) for messages; then take out packets
/// ([`poll_transmit`](Self::poll_transmit)), as fast as the pacer allows, and completions
/// ([`poll_completion`](Self::poll_completion)). Times are those of any clock that does not run backwards.
///
/// Packets are numbered from 0 without end here; four numbers divide them, and the PSN is the number plus the first
/// PSN, modulo 2^24:
///
/// ```text
///     una           nxt            sent_end        posted
///      | outstanding | to be resent  |  never sent   |
///      |             | (after a rewind)              |
/// ```
#[derive(Clone, Debug)]
pub struct Requester {
    config: RequesterConfig,
    state: RequesterState,
    una: u64,
    nxt: u64,
    sent_end: u64,
    /// The PSN after the last packet sent with AckReq since the last rewind.
    req_end: u64,
    timer: Timer,
    retry_left: u8,
    rnr_left: u8,
    /// The first missing response of a READ that was requested again because of a gap: once, as the responses of the
    /// first request may still come.
    implied_nak: Option<u64>,
    limit: Limit,
    queue: SendQueue,
    completions: VecDeque<SendCompletion>,
    counters: RequesterCounters,
}

/// PSNs keep their order over half of their circle; a window of a quarter leaves room for late copies.
const MAX_WINDOW: u32 = 1 << 22;
/// The longest READ at the smallest MTU takes this half; it waits until nothing else is outstanding.
const PSN_HALF: u64 = 1 << 23;
/// Longest message (IBTA 9.3.3).
const MAX_MESSAGE: u32 = 1 << 31;
const MAX_RETRIES: u8 = 7;

impl Requester {
    /// A queue pair ready to send.
    pub fn new(mut config: RequesterConfig) -> Self {
        config.window = config.window.clamp(1, MAX_WINDOW);
        config.limits.retry_cnt = config.limits.retry_cnt.min(MAX_RETRIES);
        config.limits.rnr_retry = config.limits.rnr_retry.min(RetryLimits::ENDLESS);
        Requester {
            state: RequesterState::Ready,
            una: 0,
            nxt: 0,
            sent_end: 0,
            req_end: 0,
            timer: Timer::Off,
            retry_left: config.limits.retry_cnt,
            rnr_left: config.limits.rnr_retry,
            implied_nak: None,
            limit: Limit::Unlimited,
            queue: SendQueue::new(config.mtu),
            completions: VecDeque::new(),
            counters: RequesterCounters::default(),
            config,
        }
    }

    /// Posts a message. In the error state it is flushed at once.
    ///
    /// # Errors
    /// `TooLong` above 2^31 bytes, `NoReads` for a READ with an initiator depth of 0; nothing is posted.
    pub fn post_send(&mut self, wr: SendWr) -> Result<(), PostError> {
        if wr.len > MAX_MESSAGE {
            return Err(PostError::TooLong { wr_id: wr.wr_id, len: wr.len });
        }
        if wr.verb == Verb::Read && self.config.initiator_depth == 0 {
            return Err(PostError::NoReads { wr_id: wr.wr_id });
        }
        match self.state {
            RequesterState::Ready => self.queue.post(wr),
            RequesterState::Error(_) => self.complete(&wr, SendStatus::WrFlushErr),
        }
        Ok(())
    }

    /// Takes one packet at `now`. Packets that are not the peer's answer to this queue pair are
    /// counted and dropped.
    #[inline]
    pub fn handle_packet(&mut self, now: Time, packet: &RocePacket) -> Response {
        if !self.admit(packet) {
            return Response::Dropped;
        }
        match (packet.bth.opcode.operation(), packet.aeth) {
            (Operation::Cnp, _) => {
                self.counters.rp_cnp_received += 1;
                Response::Cnp
            }
            (Operation::Acknowledge, Some(aeth)) => self.acknowledgement(now, packet.bth.psn, aeth.syndrome, aeth.msn),
            (Operation::ReadResponse, _) => self.read_response(now, packet),
            _ => {
                self.counters.dropped_not_response += 1;
                Response::Dropped
            }
        }
    }

    /// The time of [`next_timeout`](Self::next_timeout) has come. May be called too early or too often.
    pub fn handle_timeout(&mut self, now: Time) {
        match self.timer {
            Timer::Ack(deadline) if now >= deadline => {
                self.counters.local_ack_timeout_err += 1;
                self.implied_nak = None;
                self.retry();
            }
            Timer::Rnr(deadline, _) if now >= deadline => self.rewind(),
            _ => {}
        }
    }

    /// When `handle_timeout` is wanted. May change after every call.
    #[inline]
    pub fn next_timeout(&self) -> Option<Time> {
        match self.timer {
            Timer::Off => None,
            Timer::Ack(deadline) | Timer::Rnr(deadline, _) => Some(deadline),
        }
    }

    /// Whether `poll_transmit` would give a packet.
    #[inline]
    pub fn can_transmit(&self) -> bool {
        self.nxt < self.send_end()
            && self.state == RequesterState::Ready
            && !matches!(self.timer, Timer::Rnr(..))
            && !self.holds_read()
            && !(self.limited() && self.nxt != self.una && self.req_end == self.nxt)
    }

    /// The next packet to send, its payload read from `source`.
    pub fn poll_transmit(&mut self, now: Time, source: &mut (impl PayloadSource + ?Sized)) -> Option<RocePacket> {
        if !self.can_transmit() {
            return None;
        }
        let limited = self.limited();
        let again = self.nxt < self.sent_end;
        let place = self.queue.place();
        let after = self.nxt + place.packets;
        let ack_req = place.position.is_end()
            || limited
            || after == self.send_end()
            || (again && after == self.sent_end)
            || self.requests_ack_by_turn();
        self.counters.sent_pkts += 1;
        self.counters.retransmitted_pkts += u64::from(again);
        let packet = packet::request(&self.config, &place, self.psn_of(self.nxt), ack_req, source);
        self.counters.tx_payload_bytes += packet.payload.len() as u64;
        self.keep_receive(place.position.is_start());
        self.queue.advance();
        self.nxt = after;
        self.sent_end = self.sent_end.max(after);
        if ack_req {
            self.req_end = after;
            if self.timer == Timer::Off {
                self.start_timer(now);
            }
        }
        Some(packet)
    }

    /// The next message that ended, in the order they were posted.
    #[inline]
    pub fn poll_completion(&mut self) -> Option<SendCompletion> {
        self.completions.pop_front()
    }

    /// Puts the queue pair into error and flushes its messages. The peer is not notified; a queue pair
    /// already in error keeps its fault.
    pub fn close(&mut self) {
        if self.state == RequesterState::Ready {
            self.fail(self.una, RequestFault::Closed);
        }
    }

    /// State of the send queue.
    #[inline]
    pub fn state(&self) -> RequesterState {
        self.state
    }

    /// Whether every packet posted has been sent at least once: the owner may post the next message, if it keeps
    /// no queue here.
    #[inline]
    pub fn all_begun(&self) -> bool {
        self.sent_end == self.queue.posted()
    }

    /// Messages posted and not completed.
    pub fn outstanding_messages(&self) -> usize {
        self.queue.len()
    }

    /// Packets sent and not acknowledged, those of before a rewind included; a READ counts with its responses.
    pub fn outstanding_packets(&self) -> u64 {
        self.sent_end - self.una
    }

    /// Most packets without an ACK from now on; see [`RequesterConfig::window`]. What is under way stays so. At least
    /// `ack_every`, so that one of those under way has asked for an ACK; if that is 0 the window stays as it is.
    pub fn set_window(&mut self, packets: u32) {
        if self.config.ack_every != 0 {
            self.config.window = packets.max(self.config.ack_every).min(MAX_WINDOW);
        }
    }

    /// PSN of the first packet without an ACK.
    pub fn una(&self) -> Psn {
        self.psn_of(self.una)
    }

    /// The settings; limits are those in force.
    pub fn config(&self) -> &RequesterConfig {
        &self.config
    }

    /// The counters.
    pub fn counters(&self) -> &RequesterCounters {
        &self.counters
    }

    #[inline]
    fn psn_of(&self, number: u64) -> Psn {
        // A PSN has 24 bits.
        self.config.init_psn.add((number & 0x00FF_FFFF) as u32)
    }

    /// The PSN after the last packet that may be sent.
    #[inline]
    fn send_end(&self) -> u64 {
        self.queue.posted().min(self.una + u64::from(self.config.window))
    }

    /// One packet in this many has AckReq, independent of message boundaries, so that the window is freed early.
    #[inline]
    fn requests_ack_by_turn(&self) -> bool {
        let every = u64::from(self.config.ack_every);
        every != 0 && (u64::from(self.config.init_psn.value()) + self.nxt + 1).is_multiple_of(every)
    }

    /// Whether the next packet is a READ request that waits for the end of earlier ones.
    #[inline]
    fn holds_read(&self) -> bool {
        let exceeds =
            |end: u64| self.queue.reads_begun() >= self.config.initiator_depth.into() || end - self.una > PSN_HALF;
        self.queue.end_of_next_read().is_some_and(exceeds)
    }

    /// Whether no receive is known for the message at `nxt`. Then its packet is sent only if an acknowledgement must
    /// follow it: with nothing outstanding before it (the probe), or after packets without AckReq.
    #[inline]
    fn limited(&self) -> bool {
        match self.limit {
            Limit::Unlimited => false,
            Limit::Below(limit) => self.queue.consumes_receive() && self.queue.message_number() >= limit,
        }
    }

    /// Whether a message needs a receive: it holds one after its first packet has been accepted.
    #[inline]
    fn keep_receive(&mut self, is_start: bool) {
        if let Limit::Below(limit) = self.limit {
            if self.nxt == self.una && !is_start {
                self.limit = Limit::Below(limit.max(self.queue.message_number() + 1));
            }
        }
    }

    /// Header validation (IBTA 9.6): silent drops, as nothing in the packet can be trusted.
    #[inline]
    fn admit(&mut self, packet: &RocePacket) -> bool {
        let (config, bth) = (&self.config, &packet.bth);
        let counters = &mut self.counters;
        let drop_counter = if bth.dest_qpn != config.local.qpn || packet.ip_dst != config.local.ip {
            &mut counters.dropped_not_for_us
        } else if packet.ip_src != config.peer.ip {
            &mut counters.dropped_wrong_peer
        } else if !pkeys_match(bth.pkey, config.pkey) {
            &mut counters.dropped_bad_pkey
        } else if self.state != RequesterState::Ready {
            &mut counters.dropped_in_error
        } else {
            counters.rcvd_pkts += 1;
            return true;
        };
        *drop_counter += 1;
        false
    }

    fn retry(&mut self) {
        if self.retry_left == 0 {
            let retries = self.config.limits.retry_cnt;
            return self.fail(self.una, RequestFault::RetriesSpent { psn: self.una(), retries });
        }
        self.retry_left -= 1;
        self.rewind();
    }

    /// Go back N: send again from the first packet without an ACK.
    #[cold]
    fn rewind(&mut self) {
        self.nxt = self.una;
        self.req_end = self.una;
        self.timer = Timer::Off;
        self.queue.rewind(self.una);
    }

    /// The timer runs from the last progress, while a packet with AckReq has no ACK.
    #[inline]
    fn start_timer(&mut self, now: Time) {
        self.timer = match self.config.limits.ack_timeout() {
            Some(timeout) if self.req_end != self.una => Timer::Ack(now + timeout),
            _ => Timer::Off,
        };
    }

    /// The send queue fails: the message of packet `number` completes with the fault, all others are flushed. Before it
    /// only READs without all their responses are left.
    #[cold]
    fn fail(&mut self, number: u64, fault: RequestFault) {
        self.state = RequesterState::Error(fault);
        self.timer = Timer::Off;
        let mut at_fault = Some(fault.status());
        while let Some((wr, end)) = self.queue.take_first() {
            let status = if end > number { at_fault.take() } else { None };
            self.complete(&wr, status.unwrap_or(SendStatus::WrFlushErr));
        }
    }

    fn complete(&mut self, wr: &SendWr, status: SendStatus) {
        match status {
            SendStatus::Success => self.counters.messages_ok += 1,
            _ => self.counters.messages_err += 1,
        }
        let qpn = self.config.local.qpn;
        self.completions.push_back(SendCompletion { qpn, wr_id: wr.wr_id, status, byte_len: wr.len });
    }
}
