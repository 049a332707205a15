// SPDX-License-Identifier: Apache-2.0
//! One front end of the emulator: a stream, its messages, its successive connections.
//! Promise: messages not acknowledged over one connection are written again over the next one, in order.
//! Source: `penstock_transport::simple_tcp`; docs/fragments.md defines the framing of messages in the stream.

use super::headers::Peers;
use super::plan::TcpPlan;
use crate::send::payload::Messages;
use crate::send::plan::Plan;
use penstock_transport::simple_tcp::{Arrival, End, Outgoing, State, Stream};
use penstock_units::Time;
use penstock_wire::{
    read_stream_refusal, stream_header, stream_padding, MacAddr, Payload, TcpFlags, TcpPacket, STREAM_HEADER_LEN,
};
use std::net::Ipv4Addr;

/// Wait before a stream that has ended is opened again.
const REOPEN: Time = Time::from_ms(500);
/// The first of the dynamic ports, which are not assigned (RFC 6335 section 6).
const FIRST_PORT: u16 = 49_152;
/// The maximum number of bytes of segments that leave together in one long frame.
const LONGEST: u32 = 64_000;
/// Frames of one front end in a turn.
const TURN: usize = 8;

/// The link that sends the segments of front ends.
pub trait Segments {
    /// Whether the destination is known.
    fn is_ready(&self) -> bool;
    /// Whether another frame may be queued.
    fn has_room(&self) -> bool;
    /// Whether several segments may leave as one long frame.
    fn cuts_segments(&self) -> bool;
    /// Queues a segment of front end `k` with `len` bytes from its ring, longer than a segment if the kernel is to cut
    /// it; `mss`: it is a SYN, with this option.
    fn queue(&mut self, k: usize, board: &Board, segment: &Outgoing, len: u32, mss: Option<u16>);
}

pub struct Board {
    source: u16,
    peers: Peers,
    server: String,
    stream: Stream,
    messages: Messages,
    /// The next message to be written.
    next: u64,
    interval: Time,
    events: u64,
    iss: Option<u32>,
    open_at: Time,
    lives: u32,
    tx_payload_bytes: u64,
    /// The same with all that goes into the stream; and messages that failed with their connection.
    bytes_acked: u64,
    messages_failed: u64,
    trouble: Option<String>,
    /// The server cannot take its messages: the stream is not opened again.
    is_refused: bool,
    /// A segment that did not fit the frame before it.
    pending: Option<Outgoing>,
    /// Segment size of the last connection, as negotiated.
    mss: u16,
}

impl Board {
    pub fn new(plan: &Plan, tcp: &TcpPlan, ip: Ipv4Addr, k: u16) -> Result<Board, String> {
        let source = plan.first_source + k;
        let port = FIRST_PORT + random()? as u16 % (u16::MAX - FIRST_PORT);
        Ok(Board {
            source,
            peers: Peers { ip, port, server: tcp.server, server_port: tcp.port },
            server: format!("{}:{}", tcp.server, tcp.port),
            stream: Stream::new(tcp.parameters, tcp.ring).map_err(|error| error.to_string())?,
            messages: Messages::new(plan, None, source),
            next: 0,
            interval: plan.interval,
            events: plan.events,
            iss: tcp.iss,
            open_at: Time::ZERO,
            lives: 0,
            tx_payload_bytes: 0,
            bytes_acked: 0,
            messages_failed: 0,
            trouble: None,
            is_refused: false,
            pending: None,
            mss: 0,
        })
    }

    pub fn source(&self) -> u16 {
        self.source
    }

    pub fn peers(&self) -> &Peers {
        &self.peers
    }

    pub fn stream(&self) -> &Stream {
        &self.stream
    }

    pub fn lives(&self) -> u32 {
        self.lives
    }

    pub fn messages_done(&self) -> u64 {
        self.messages.done()
    }

    /// Bytes of messages that were acknowledged, without their headers in the stream.
    pub fn tx_payload_bytes(&self) -> u64 {
        self.tx_payload_bytes
    }

    /// Bytes of whole messages that were acknowledged, with their headers in the stream.
    pub fn bytes_acked(&self) -> u64 {
        self.bytes_acked
    }

    /// Messages that failed with their connection; they are sent again over the next one.
    pub fn messages_failed(&self) -> u64 {
        self.messages_failed
    }

    pub fn mss(&self) -> u16 {
        self.mss
    }

    pub fn trouble(&self) -> Option<&str> {
        self.trouble.as_deref()
    }

    /// Whether the run has an end, which this one must reach.
    pub fn has_end(&self) -> bool {
        self.events > 0
    }

    /// All messages are acknowledged.
    pub fn is_done(&self) -> bool {
        self.has_end() && !self.messages.has(self.messages.done())
    }

    /// The server cannot take its messages, or has reset the stream of one that was done: it has not read all of them.
    pub fn is_refused(&self) -> bool {
        self.is_refused
    }

    /// It has no connection.
    pub fn is_closed(&self) -> bool {
        self.stream.state() == State::Closed
    }

    /// Whether it acknowledges something that was sent.
    pub fn handle_packet(&mut self, now: Time, packet: &TcpPacket) -> bool {
        let before = *self.stream.row();
        self.stream.handle_segment(now, &Arrival::of(packet));
        let row = self.stream.row();
        let is_acknowledged = row.state == State::Established && row.una != before.una;
        let is_next = row.rcv_nxt != before.rcv_nxt && packet.seq == before.rcv_nxt;
        if let (Payload::Bytes(data), true) = (&packet.payload, is_next) {
            if let Some(why) = read_stream_refusal(data) {
                self.is_refused = true;
                self.trouble = Some(format!("{}: {} cannot take its messages: {why}", self.peers.ip, self.server));
                self.stream.abort(now);
            }
        }
        self.settle(now);
        is_acknowledged
    }

    /// Its last timeout had no answer.
    pub fn is_unanswered(&self) -> bool {
        self.stream.row().tries > 0
    }

    pub fn handle_path_mtu(&mut self, now: Time, seq: u32, mss: u16) {
        self.stream.handle_path_mtu(now, seq, mss);
        self.settle(now);
    }

    pub fn abort(&mut self, now: Time) {
        self.stream.abort(now);
        self.pending = None;
    }

    /// When it has something to do.
    pub fn next(&self) -> Time {
        let timer = self.stream.next_timeout().unwrap_or(Time::MAX);
        match self.stream.state() {
            State::Closed if self.is_done() || self.is_refused => timer,
            State::Closed => timer.min(self.open_at),
            _ if self.interval > Time::ZERO && self.messages.has(self.next) => timer.min(self.due()),
            _ => timer,
        }
    }

    fn due(&self) -> Time {
        self.interval.saturating_mul(self.messages.events_before(self.next))
    }

    /// Opens, writes, sends. Whether anything was done.
    pub fn turn(&mut self, now: Time, k: usize, link: &mut impl Segments) -> bool {
        if self.stream.next_timeout().is_some_and(|due| due <= now) {
            self.stream.handle_timeout(now);
            self.settle(now);
        }
        match self.stream.state() {
            State::Closed if self.is_refused => {}
            State::Closed if now >= self.open_at && !self.is_done() && link.is_ready() => self.open(now),
            State::Closed => {}
            State::SynSent | State::Established => self.write(now),
        }
        self.transmit(now, k, link)
    }

    fn open(&mut self, now: Time) {
        // Each life has a port of its own: segments of the one before cannot be taken for its own.
        self.peers.port = if self.peers.port == u16::MAX { FIRST_PORT } else { self.peers.port + 1 };
        match self.iss.map_or_else(random, Ok) {
            Ok(iss) => self.stream.open(now, iss),
            Err(error) => self.trouble = Some(error),
        }
        self.open_at = now + REOPEN;
        self.next = self.messages.done();
    }

    fn write(&mut self, now: Time) {
        while self.messages.has(self.next) && self.due() <= now {
            let len = self.messages.message(self.next);
            let padding = stream_padding(len as usize);
            if self.stream.room() < STREAM_HEADER_LEN + len as usize + padding {
                return;
            }
            let message = self.messages.bytes(self.next);
            let zeros = [0; STREAM_HEADER_LEN];
            let parts = [&stream_header(len)[..], &message, &zeros[..padding]];
            if self.stream.write(now, self.next, &parts).is_err() {
                return;
            }
            self.next += 1;
        }
    }

    /// Sends what may be sent, as far as the link takes it. Whether anything was sent.
    pub fn transmit(&mut self, now: Time, k: usize, link: &mut impl Segments) -> bool {
        let mut sent = 0;
        while sent < TURN && link.has_room() {
            let Some(first) = self.pending.take().or_else(|| self.stream.poll_transmit(now)) else { break };
            let (mut flags, mut len) = (first.flags, u32::from(first.len));
            let mss = self.stream.row().mss;
            let mut last = first.len;
            while link.cuts_segments() && last == mss && len + u32::from(mss) <= LONGEST {
                let Some(more) = self.stream.poll_transmit(now) else { break };
                if more.len == 0 || more.seq != first.seq.wrapping_add(len) || more.ack != first.ack {
                    self.pending = Some(more);
                    break;
                }
                (flags, len, last) = (flags.with(more.flags), len + u32::from(more.len), more.len);
            }
            let options = flags.contains(TcpFlags::SYN).then_some(self.stream.parameters().mss);
            link.queue(k, self, &Outgoing { flags, len: 0, ..first }, len, options);
            sent += 1;
        }
        sent > 0
    }

    /// Takes what has ended.
    fn settle(&mut self, now: Time) {
        if self.stream.state() == State::Established {
            self.mss = self.stream.row().mss;
        }
        if self.stream.take_opened() {
            self.lives += 1;
            self.trouble = None;
        }
        while let Some(end) = self.stream.poll_message() {
            if end.failed.is_some() {
                self.messages_failed += 1;
                continue;
            }
            let len = self.messages.bytes(end.id).len();
            self.tx_payload_bytes += len as u64;
            self.bytes_acked += (STREAM_HEADER_LEN + len + stream_padding(len)) as u64;
            self.messages.ended(self.messages.done());
        }
        if let Some(end) = self.stream.take_ended() {
            if end != End::Aborted && !self.is_refused {
                self.is_refused = end == End::Reset && self.is_done();
                self.trouble = Some(format!("{}: {}: {end}", self.peers.ip, self.server));
            }
            self.open_at = now + REOPEN;
            self.pending = None;
        }
    }

    /// The packet of a segment, but for MAC addresses and payload.
    pub fn packet(&self, local: MacAddr, hop: MacAddr, segment: &Outgoing) -> TcpPacket {
        self.peers.packet(local, hop, segment, self.stream.parameters().receive_window)
    }
}

fn random() -> Result<u32, String> {
    let mut bytes = [0; 4];
    getrandom::fill(&mut bytes).map_err(|error| format!("no random numbers: {error}"))?;
    Ok(u32::from_le_bytes(bytes))
}
