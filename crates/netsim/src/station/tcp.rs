// SPDX-License-Identifier: Apache-2.0
//! The two ends of a TCP flow: a sender of `penstock_transport` with a rate limiter, and the standard receiver.
//! Promise: messages are written to the stream in order; a message counts as delivered when its last byte arrives. A
//! connection is established from the start, but for a stream of fragments, which opens it.
//! Source: CMS-TCP section 3 (simplified sender), the QCN hardware evaluation (a reaction point in front of a
//! TCP-capable NIC).

use std::collections::VecDeque;

use penstock_cc::{FlowState, Law};
use penstock_transport::simple_tcp::ParametersError;
use penstock_transport::{
    BackOff, SimpleTcpSender, TcpConfig, TcpCounters, TcpReceiver, TcpReceiverCounters, TcpSender,
};
use penstock_wire::{Packet, TcpPacket};

use super::fragment_stream::{framed_len, FragmentStream};
use super::limiter::PacingConfig;
use super::look_ahead::LookAhead;
use crate::contents::Fragments;
use crate::flow::{Endpoint, FlowId, Message, MessageSource};
use crate::ledger::SharedLedger;
use crate::trace::TraceSink;
use crate::units::Time;

/// The TCP implementation of the sender.
#[derive(Debug, Clone, Default)]
pub enum TcpStack {
    /// A host's, with the congestion control of its configuration.
    #[default]
    Standard,
    /// The front end's simplified one.
    Simple(BackOff),
    /// The same with the messages' bytes, to a receiver that accepts connections and reads messages.
    Fragments(BackOff, Fragments),
}

/// The queue of a network card between the host's stack and the rate limiter (QCN hardware evaluation: tunable
/// "rate-limiter queue sizes").
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LimiterQueue {
    /// Bytes of frames that it holds, without FCS; a frame is always taken when it is empty.
    pub bytes: u64,
    pub full: FullQueue,
}

/// What a host sees when its card's queue is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FullQueue {
    /// The card takes no frame: the stack keeps its data until a whole frame has room.
    #[default]
    Wait,
    /// The card drops the frame: the stack finds a loss.
    Drop,
}

/// All settings of a TCP sender.
#[derive(Debug, Clone)]
pub struct TcpFlowConfig {
    pub flow: FlowId,
    pub stack: TcpStack,
    pub tcp: TcpConfig,
    /// Bytes that may be written and not yet acknowledged; a message that would exceed them is refused, as a front end
    /// whose memory is full takes no trigger. `None`: messages wait for ever.
    pub send_buffer: Option<u64>,
    /// `None`: the stack hands over a frame when the limiter has passed the one before.
    pub limiter_queue: Option<LimiterQueue>,
    /// The reaction point of the network card; law `Off` for a card without one.
    pub pacing: PacingConfig,
}

enum Stack {
    Standard(Box<TcpSender>),
    Simple(Box<SimpleTcpSender>),
    Fragments(Box<FragmentStream>),
}

/// Calls the same method of whichever stack it is. By hand, not by `enum_dispatch`: the stacks share no trait.
macro_rules! stack {
    ($stack:expr, $inner:ident => $call:expr) => {
        match $stack {
            Stack::Standard($inner) => $call,
            Stack::Simple($inner) => $call,
            Stack::Fragments($inner) => $call,
        }
    };
}

/// One TCP sender of a [`Station`](super::Station).
pub struct TcpFlowSender {
    flow: FlowId,
    config: TcpConfig,
    send_buffer: Option<u64>,
    stack: Stack,
    limiter: LookAhead,
    source: Box<dyn MessageSource>,
    /// The source's next message, which is in the future.
    next: Option<Message>,
    exhausted: bool,
    ledger: SharedLedger,
    limiter_queue: LimiterQueue,
    /// Segments that start when the limiter lets them, and their frames' bytes.
    queued: VecDeque<TcpPacket>,
    queued_bytes: u64,
    limiter_drops: u64,
    start: Option<Time>,
    feedbacks: u64,
    tx_payload_bytes: u64,
    written_bytes: u64,
    refused: u64,
}

impl TcpFlowSender {
    /// A sender of the messages of `source`, recorded in `ledger`.
    ///
    /// # Errors
    /// A stream of fragments cannot have these segments.
    pub fn new(
        config: TcpFlowConfig,
        source: Box<dyn MessageSource>,
        ledger: SharedLedger,
    ) -> Result<Self, ParametersError> {
        let stack = match config.stack {
            TcpStack::Standard => Stack::Standard(Box::new(TcpSender::new(config.tcp))),
            TcpStack::Simple(back_off) => Stack::Simple(Box::new(SimpleTcpSender::new(config.tcp, back_off))),
            TcpStack::Fragments(back_off, fragments) => {
                let stream = FragmentStream::new(config.tcp, back_off, fragments, config.send_buffer)?;
                Stack::Fragments(Box::new(stream))
            }
        };
        Ok(TcpFlowSender {
            flow: config.flow,
            config: config.tcp,
            send_buffer: config.send_buffer,
            stack,
            limiter: LookAhead::new(&config.pacing),
            source,
            next: None,
            exhausted: false,
            ledger,
            limiter_queue: config.limiter_queue.unwrap_or(LimiterQueue { bytes: 0, full: FullQueue::Wait }),
            queued: VecDeque::new(),
            queued_bytes: 0,
            limiter_drops: 0,
            start: None,
            feedbacks: 0,
            tx_payload_bytes: 0,
            written_bytes: 0,
            refused: 0,
        })
    }

    pub fn flow(&self) -> FlowId {
        self.flow
    }

    pub fn config(&self) -> &TcpConfig {
        &self.config
    }

    pub fn counters(&self) -> &TcpCounters {
        stack!(&self.stack, tcp => tcp.counters())
    }

    /// Messages that found no room in the send buffer.
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// Segments that found the limiter's queue full and were dropped.
    pub fn limiter_drops(&self) -> u64 {
        self.limiter_drops
    }

    /// QCN notifications received.
    pub fn feedbacks(&self) -> u64 {
        self.feedbacks
    }

    /// Whether the next message is to be looked at: without a send buffer only when segments could not be full
    /// otherwise, with one at its time.
    fn takes_messages(&self) -> bool {
        let full = 2 * u64::from(self.config.mss);
        !self.exhausted && (self.send_buffer.is_some() || stack!(&self.stack, tcp => tcp.unsent()) < full)
    }

    fn has_room_for(&self, message: &Message) -> bool {
        let (held, bytes) = match &self.stack {
            Stack::Standard(tcp) => (self.written_bytes - tcp.acknowledged(), message.bytes),
            Stack::Simple(tcp) => (self.written_bytes - tcp.acknowledged(), message.bytes),
            Stack::Fragments(stream) => (stream.held(), framed_len(message.bytes)),
        };
        self.send_buffer.is_none_or(|size| held + bytes <= size)
    }

    fn write(&mut self, now: Time, message: &Message) {
        self.ledger.borrow_mut().posted(self.flow, message);
        self.written_bytes += message.bytes;
        match &mut self.stack {
            Stack::Standard(tcp) => tcp.write(message.bytes),
            Stack::Simple(tcp) => tcp.write(message.bytes),
            Stack::Fragments(stream) => {
                if let Err(error) = stream.write(now, message) {
                    self.ledger.borrow_mut().failed(self.flow, now, &error.to_string());
                }
            }
        }
    }

    /// A stream that has ended sends nothing more.
    fn note_end(&mut self, now: Time) {
        let Stack::Fragments(stream) = &self.stack else { return };
        if let Some(why) = stream.ended() {
            (self.exhausted, self.next) = (true, None);
            self.ledger.borrow_mut().failed(self.flow, now, &why.to_string());
        }
    }

    /// Whether the limiter's queue takes a frame of this length.
    fn has_queue_for(&self, frame: u64) -> bool {
        self.queued.is_empty() || self.queued_bytes + frame <= self.limiter_queue.bytes
    }

    /// Lets the stack hand its segments over to the limiter's queue.
    fn fill_queue(&mut self, now: Time) {
        let full_frame = self.config.empty_segment().frame_len() as u64 + u64::from(self.config.mss);
        let waits = self.limiter_queue.full == FullQueue::Wait;
        while !waits || self.has_queue_for(full_frame) {
            let Some(segment) = stack!(&mut self.stack, tcp => tcp.poll_transmit(now)) else { break };
            let frame = segment.frame_len() as u64;
            if waits || self.has_queue_for(frame) {
                self.queued_bytes += frame;
                self.queued.push_back(segment);
            } else {
                self.limiter_drops += 1;
            }
        }
    }

    /// Writes what is there to be written; hands over what the limiter's queue takes.
    fn settle(&mut self, now: Time) {
        self.note_end(now);
        while self.takes_messages() {
            let Some(message) = self.next.take().or_else(|| self.source.next_message(now)) else {
                self.exhausted = true;
                self.ledger.borrow_mut().ended(self.flow);
                break;
            };
            if message.at > now {
                self.next = Some(message);
                break;
            }
            if !self.has_room_for(&message) {
                self.refused += 1;
                continue;
            }
            self.write(now, &message);
        }
        self.fill_queue(now);
        self.limiter.set_waiting(now, !self.queued.is_empty());
        self.start = if self.queued.is_empty() { None } else { self.limiter.next_start(now) };
    }
}

impl Endpoint for TcpFlowSender {
    fn on_packet(&mut self, now: Time, packet: &Packet) {
        match packet {
            Packet::Tcp(packet) => stack!(&mut self.stack, tcp => tcp.handle_packet(now, packet)),
            Packet::Cnm(cnm) => {
                self.feedbacks += 1;
                self.limiter.on_feedback(now, cnm.feedback);
            }
            _ => {}
        }
        self.settle(now);
    }

    fn next_timeout(&self) -> Option<Time> {
        let retry = stack!(&self.stack, tcp => tcp.next_timeout());
        let message = self.next.map(|message| message.at);
        [retry, message, self.start].into_iter().flatten().min()
    }

    fn on_timeout(&mut self, now: Time) {
        stack!(&mut self.stack, tcp => tcp.handle_timeout(now));
        self.settle(now);
    }

    fn poll_transmit(&mut self, now: Time) -> Option<Packet> {
        self.settle(now);
        if self.start.is_some() {
            return None;
        }
        let segment = self.queued.pop_front()?;
        self.queued_bytes -= segment.frame_len() as u64;
        self.tx_payload_bytes += segment.payload.len() as u64;
        let packet = Packet::Tcp(segment);
        self.limiter.started(now, packet.wire_len() as u32);
        self.settle(now);
        Some(packet)
    }

    fn is_ready(&self) -> bool {
        !self.queued.is_empty() && self.start.is_none()
    }

    fn class(&self) -> usize {
        usize::from(self.config.dscp >> 3) % 8
    }

    fn on_pause(&mut self, now: Time, paused: bool) {
        self.limiter.set_paused(now, paused);
    }

    fn sample(&mut self, now: Time, channel: u16, trace: &mut TraceSink) {
        let us = |time: Time| time.as_ps() as f64 / 1e6;
        match &self.stack {
            Stack::Standard(tcp) => {
                trace.record(channel, "congestion_window_bytes", tcp.congestion_window() as f64);
                trace.record(channel, "smoothed_rtt_us", us(tcp.smoothed_rtt().unwrap_or_default()));
            }
            Stack::Simple(_) => {}
            Stack::Fragments(stream) => {
                let state = stream.state();
                trace.record(channel, "ring_fill_bytes", state.held_bytes as f64);
                trace.record(channel, "window_bytes", state.window_bytes.into());
                trace.record(channel, "smoothed_rtt_us", us(state.smoothed_rtt));
            }
        }
        trace.record(channel, "limiter_queue_bytes", self.queued_bytes as f64);
        trace.record(channel, "tx_payload_bytes", self.tx_payload_bytes as f64);
        trace.record(channel, "retransmissions", self.counters().retransmitted as f64);
        if self.limiter.law() == Law::Qcn {
            self.limiter.catch_up(now);
            if let FlowState::Qcn(state) = &self.limiter.flow().state {
                let rates = [("rate_current_bps", state.rate_current), ("rate_target_bps", state.rate_target)];
                for (metric, rate) in rates {
                    trace.record(channel, metric, self.limiter.bits_per_second(rate) as f64);
                }
            }
        }
    }
}

/// One TCP receiver of a [`Station`](super::Station).
pub struct TcpFlowReceiver {
    flow: FlowId,
    config: TcpConfig,
    tcp: TcpReceiver,
    ledger: SharedLedger,
    ack: Option<TcpPacket>,
}

impl TcpFlowReceiver {
    /// A receiver that reports to `ledger`; `config` as seen from its side.
    pub fn new(flow: FlowId, config: TcpConfig, ledger: SharedLedger) -> Self {
        TcpFlowReceiver { flow, config, tcp: TcpReceiver::new(config), ledger, ack: None }
    }

    pub fn flow(&self) -> FlowId {
        self.flow
    }

    pub fn config(&self) -> &TcpConfig {
        &self.config
    }

    pub fn counters(&self) -> &TcpReceiverCounters {
        self.tcp.counters()
    }

    /// The program has read so many bytes.
    fn report(&self, now: Time, bytes: u64) {
        if bytes > 0 {
            self.ledger.borrow_mut().streamed(self.flow, now, bytes);
        }
    }

    /// One ACK waits for the port at a time; those that fall due meanwhile become one, as ACKs are cumulative.
    fn settle(&mut self) {
        if self.ack.is_none() {
            self.ack = self.tcp.poll_transmit();
        }
    }
}

impl Endpoint for TcpFlowReceiver {
    fn on_packet(&mut self, now: Time, packet: &Packet) {
        if let Packet::Tcp(packet) = packet {
            let bytes = self.tcp.handle_packet(now, packet);
            self.report(now, bytes);
        }
        self.settle();
    }

    fn next_timeout(&self) -> Option<Time> {
        self.tcp.next_timeout()
    }

    fn on_timeout(&mut self, now: Time) {
        let bytes = self.tcp.handle_timeout(now);
        self.report(now, bytes);
        self.settle();
    }

    fn poll_transmit(&mut self, _now: Time) -> Option<Packet> {
        let ack = self.ack.take().map(Packet::Tcp);
        self.settle();
        ack
    }

    fn is_ready(&self) -> bool {
        self.ack.is_some()
    }

    fn class(&self) -> usize {
        usize::from(self.config.dscp >> 3) % 8
    }
}
