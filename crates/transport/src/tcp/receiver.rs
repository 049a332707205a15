// SPDX-License-Identifier: Apache-2.0
//! The receiving side: puts segments in order, acknowledges them, reports out-of-order data by SACK.
//! Promise: every byte is delivered once and in order; at least every second full segment is acknowledged; while the
//! program reads nothing the window closes to what the buffer still takes, and opens again when it reads.
//! Source: RFC 9293 sections 3.10 and 3.8.6, RFC 5681 section 4.2 (delayed and duplicate ACKs), RFC 2018 section 4 (SACK).

use super::{unwrap, TcpConfig};
use penstock_units::Time;
use penstock_wire::{SackBlocks, TcpPacket};

/// What a receiver has seen.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TcpReceiverCounters {
    /// Segments with data.
    pub segments: u64,
    /// Segments none of whose bytes were new.
    pub duplicates: u64,
    /// Segments ahead of their turn.
    pub out_of_order: u64,
    /// Segments beyond the window, dropped.
    pub beyond_window: u64,
    /// ACKs sent.
    pub acks: u64,
}

/// The receiver of one connection. Data is counted, not kept: the user reads at once, but for its stall.
#[derive(Clone, Debug)]
pub struct TcpReceiver {
    config: TcpConfig,
    next: u64,
    /// What the program has read; the rest up to `next` fills the buffer.
    read: u64,
    /// When it reads that.
    read_at: Option<Time>,
    /// The program reads nothing until it is said to.
    holds: bool,
    /// Ranges above `next`, the one that grew last in front.
    ahead: Vec<(u64, u64)>,
    /// Full segments that no ACK has answered.
    unanswered: u32,
    ack_now: bool,
    ack_deadline: Option<Time>,
    counters: TcpReceiverCounters,
}

impl TcpReceiver {
    /// `config` as seen from this side: `local` is the receiver.
    pub fn new(config: TcpConfig) -> Self {
        TcpReceiver {
            config,
            next: 0,
            read: 0,
            read_at: None,
            holds: false,
            ahead: Vec::new(),
            unanswered: 0,
            ack_now: false,
            ack_deadline: None,
            counters: TcpReceiverCounters::default(),
        }
    }

    /// Whether the program reads; if it does again, the sender gets a window update.
    pub(super) fn set_reading(&mut self, now: Time, reads: bool) {
        self.holds = !reads;
        if reads && self.read(now) > 0 {
            self.ack_now = true;
        }
    }

    /// Lets an acknowledgement go out.
    pub(super) fn acknowledge(&mut self) {
        self.ack_now = true;
    }

    /// The same, if one is due at all.
    pub(super) fn acknowledge_any(&mut self) {
        self.ack_now |= self.unanswered > 0;
    }

    /// The offset after the bytes in order.
    pub(super) fn next(&self) -> u64 {
        self.next
    }

    /// The offset of a sequence number.
    pub(super) fn offset(&self, seq: u32) -> u64 {
        unwrap(self.next, seq.wrapping_sub(self.config.iss))
    }

    /// Whether the window takes bytes up to this offset.
    pub(super) fn takes(&self, end: u64) -> bool {
        end <= self.read + self.config.receive_buffer
    }

    /// Takes a segment at `now`; returns how many bytes the program reads.
    pub fn handle_packet(&mut self, now: Time, packet: &TcpPacket) -> u64 {
        let len = packet.payload.len() as u64;
        if packet.ip_src != self.config.peer.ip || packet.src_port != self.config.peer.port || len == 0 {
            return 0;
        }
        self.counters.segments += 1;
        let start = self.offset(packet.seq);
        let end = start + len;
        if !self.takes(end) {
            self.counters.beyond_window += 1;
            self.ack_now = true;
        } else if end <= self.next {
            self.counters.duplicates += 1;
            self.ack_now = true;
        } else if start > self.next {
            self.counters.out_of_order += 1;
            self.keep(start, end);
            self.ack_now = true;
        } else {
            self.advance(now, end);
        }
        self.read(now)
    }

    /// The program reads all that is in order, unless it stands still.
    fn read(&mut self, now: Time) -> u64 {
        let bytes = self.next - self.read;
        self.read_at = self.config.stall.and_then(|stall| stall.end_at(now)).filter(|_| bytes > 0);
        if self.read_at.is_some() || self.holds {
            return 0;
        }
        self.read = self.next;
        bytes
    }

    /// Data up to `end` is in order, and so is data that waited directly after it.
    fn advance(&mut self, now: Time, end: u64) {
        self.next = end;
        if !self.ahead.is_empty() {
            self.ack_now = true; // a hole is filled, at least in part
            while let Some(at) = self.ahead.iter().position(|(from, _)| *from <= self.next) {
                let (_, to) = self.ahead.remove(at);
                self.next = self.next.max(to);
            }
        }
        self.unanswered += 1;
        if self.unanswered >= 2 || self.config.delayed_ack == Time::ZERO {
            self.ack_now = true;
        } else if self.ack_deadline.is_none() {
            self.ack_deadline = Some(now + self.config.delayed_ack);
        }
    }

    /// Stores an out-of-order range, merged with adjacent ranges, before the others.
    fn keep(&mut self, start: u64, end: u64) {
        let mut merged = (start, end);
        self.ahead.retain(|(from, to)| {
            let apart = *to < merged.0 || merged.1 < *from;
            if !apart {
                merged = (merged.0.min(*from), merged.1.max(*to));
            }
            apart
        });
        self.ahead.insert(0, merged);
    }

    /// When a delayed ACK is due, or the program reads again.
    pub fn next_timeout(&self) -> Option<Time> {
        [self.ack_deadline, self.read_at].into_iter().flatten().min()
    }

    /// Time has come to `now`; returns how many bytes the program reads.
    pub fn handle_timeout(&mut self, now: Time) -> u64 {
        if self.ack_deadline.is_some_and(|at| at <= now) {
            self.ack_now = true;
        }
        if self.read_at.is_none_or(|at| at > now) {
            return 0;
        }
        // The window has been less than the buffer: the sender gets a window update.
        self.ack_now = true;
        self.read(now)
    }

    /// The ACK that is due.
    pub fn poll_transmit(&mut self) -> Option<TcpPacket> {
        if !std::mem::take(&mut self.ack_now) {
            return None;
        }
        self.unanswered = 0;
        self.ack_deadline = None;
        self.counters.acks += 1;
        let config = &self.config;
        // Out-of-order data is inside the window into which it was sent.
        let free = config.receive_buffer.saturating_sub(self.next - self.read);
        let window = (free >> config.window_shift).min(u64::from(u16::MAX));
        let mut sack = SackBlocks::default();
        if config.sack {
            for (from, to) in self.ahead.iter().take(SackBlocks::MAX) {
                sack.push(self.on_wire(*from), self.on_wire(*to));
            }
        }
        Some(config.acknowledgement(self.next, window as u16, sack))
    }

    fn on_wire(&self, offset: u64) -> u32 {
        self.config.iss.wrapping_add(offset as u32)
    }

    /// Bytes that the program has read.
    pub fn delivered(&self) -> u64 {
        self.read
    }

    /// The counters.
    pub fn counters(&self) -> &TcpReceiverCounters {
        &self.counters
    }
}
