// SPDX-License-Identifier: Apache-2.0
//! The simplified, unidirectional TCP sender of CMS's front-end links, with its congestion control or without.
//! Promise: a standard TCP receiver gets every byte; without congestion control nothing but the peer's window holds it.
//! Source: CMS-TCP (Bauer et al. 2014) section 3.1: no SACK, no timestamps, window scaling, fast retransmit, silly
//! window avoidance; exponential back-off is all its congestion control. Where the paper is silent: see [`BackOff`].

use crate::tcp::{unwrap, TcpConfig, TcpCounters};
use penstock_units::Time;
use penstock_wire::{TcpFlags, TcpPacket};

/// Duplicate ACKs that make a loss (RFC 5681 section 3.2).
const DUP_THRESHOLD: u32 = 3;
/// The timeout doubles at most so often.
const MAX_BACKOFF: u32 = 12;

/// What a loss does.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum BackOff {
    /// No congestion control: new data goes on behind a loss, at a timeout everything that is outstanding is sent again
    /// as fast as the link takes it, and the timeout never grows.
    Off,
    /// The simplified congestion control: one segment is sent again, nothing else until it is acknowledged, and each
    /// timeout without an acknowledgement doubles the next.
    #[default]
    Exponential,
}

/// The sender of one stream. Its data is virtual: only bytes are counted.
///
/// Of [`TcpConfig`] it uses addresses, ports, `iss`, `mss`, `receive_buffer` (the first window), `min_rto` (its fixed
/// timeout), `window_shift` and `dscp`.
#[derive(Clone, Debug)]
pub struct SimpleTcpSender {
    config: TcpConfig,
    back_off: BackOff,
    mss: u64,
    /// Offsets: first unacknowledged, next to send, end of what was ever sent, end of what was written.
    una: u64,
    next: u64,
    sent: u64,
    written: u64,
    edge: u64,
    duplicates: u32,
    /// While a loss is repaired: what was sent when it was noticed.
    repairing: Option<u64>,
    /// The first unacknowledged segment goes next.
    resend: bool,
    expiries: u32,
    deadline: Option<Time>,
    counters: TcpCounters,
}

impl SimpleTcpSender {
    /// An established connection over which nothing was sent.
    pub fn new(config: TcpConfig, back_off: BackOff) -> Self {
        SimpleTcpSender {
            back_off,
            mss: u64::from(config.mss.max(1)),
            una: 0,
            next: 0,
            sent: 0,
            written: 0,
            edge: config.receive_buffer,
            duplicates: 0,
            repairing: None,
            resend: false,
            expiries: 0,
            deadline: None,
            counters: TcpCounters::default(),
            config,
        }
    }

    /// Gives it that many bytes more to send.
    pub fn write(&mut self, bytes: u64) {
        self.written += bytes;
    }

    /// Bytes that were written and never sent.
    pub fn unsent(&self) -> u64 {
        self.written - self.sent
    }

    /// Bytes that the peer has acknowledged.
    pub fn acknowledged(&self) -> u64 {
        self.una
    }

    /// What it has done and met.
    pub fn counters(&self) -> &TcpCounters {
        &self.counters
    }

    fn timeout(&self) -> Time {
        match self.back_off {
            BackOff::Off => self.config.min_rto,
            BackOff::Exponential => self.config.min_rto * (1 << self.expiries.min(MAX_BACKOFF)),
        }
    }

    /// Takes an ACK at `now`.
    pub fn handle_packet(&mut self, now: Time, packet: &TcpPacket) {
        let for_us = packet.ip_src == self.config.peer.ip && packet.src_port == self.config.peer.port;
        let ack = unwrap(self.una, packet.ack.wrapping_sub(self.config.iss));
        if !for_us || !packet.flags.contains(TcpFlags::ACK) || ack > self.sent || ack < self.una {
            return;
        }
        self.edge = self.edge.max(ack + (u64::from(packet.window) << self.config.window_shift));
        if ack > self.una {
            self.advance(now, ack);
        } else if self.sent > self.una {
            self.counters.duplicate_acks += 1;
            self.duplicates += 1;
            if self.duplicates == DUP_THRESHOLD && self.repairing.is_none() {
                self.counters.recoveries += 1;
                self.repair(now);
            }
        }
    }

    fn advance(&mut self, now: Time, ack: u64) {
        self.una = ack;
        self.next = self.next.max(ack);
        self.duplicates = 0;
        self.expiries = 0;
        if let Some(until) = self.repairing {
            if ack >= until {
                self.repairing = None;
            } else if self.back_off == BackOff::Exponential {
                self.resend = true; // the next hole
            }
        }
        self.deadline = (self.una < self.sent).then(|| now + self.timeout());
    }

    /// A loss was noticed: what the peer lacks is sent at once.
    fn repair(&mut self, now: Time) {
        self.repairing = Some(self.sent);
        self.resend = true;
        self.deadline = Some(now + self.timeout());
    }

    /// When `handle_timeout` is wanted.
    pub fn next_timeout(&self) -> Option<Time> {
        self.deadline
    }

    /// Time has come to `now`.
    pub fn handle_timeout(&mut self, now: Time) {
        if self.deadline.is_some_and(|at| at <= now) {
            self.counters.timeouts += 1;
            self.duplicates = 0;
            self.expiries += 1;
            self.repair(now);
            if self.back_off == BackOff::Off {
                self.next = self.una;
            }
        }
    }

    /// The next segment that may be sent.
    pub fn poll_transmit(&mut self, now: Time) -> Option<TcpPacket> {
        let (start, end) = if std::mem::take(&mut self.resend) {
            (self.una, (self.una + self.mss).min(self.sent))
        } else if self.repairing.is_some() && self.back_off == BackOff::Exponential {
            return None;
        } else {
            (self.next, (self.next + self.mss).min(self.written))
        };
        // Nagle: a short segment of new data waits for more, or for what is outstanding to be acknowledged.
        let short = start >= self.sent && end - start < self.mss && self.una < self.sent;
        if start == end || end > self.edge || short {
            return None;
        }
        self.counters.segments += 1;
        if start < self.sent {
            self.counters.retransmitted += 1;
        }
        self.sent = self.sent.max(end);
        self.next = self.next.max(end);
        self.deadline.get_or_insert(now + self.timeout());
        Some(self.config.segment(start, end - start, true))
    }
}
