// SPDX-License-Identifier: Apache-2.0
//! The sending side: window, loss recovery, retransmission timer.
//! Promise: every byte written is sent, and sent again until it is acknowledged, but never beyond the peer's window.
//! Source: RFC 5681 section 3.2 and RFC 6582 (New Reno's recovery), RFC 6675 (recovery with SACK), RFC 6298 section 5
//! (timer), RFC 3042 (limited transmit), RFC 9293 section 3.8.6 (window probes, silly window).
//!
//! ```text
//!            3 duplicate ACKs, or SACK says lost          all of it acknowledged
//!   Open ------------------------------------> Recovery ------------------------> Open
//!     \                                           |
//!      +------------- timer ----------------------+---> Loss --- all of it acknowledged ---> Open
//! ```

use super::acked::Acked;
use super::congestion::CongestionWindow;
use super::rtt::RttEstimator;
use super::scoreboard::Scoreboard;
use super::{unwrap, TcpConfig};
use penstock_units::Time;
use penstock_wire::{SackBlocks, TcpFlags, TcpPacket};

/// Duplicate ACKs that make a loss (RFC 5681 section 3.2).
const DUP_THRESHOLD: u32 = 3;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    Open,
    /// The time since a fast retransmit; whether a partial acknowledgement has come.
    Recovery {
        partial: bool,
    },
    /// The time since a timeout: everything is sent again, from the first byte that was not acknowledged.
    Loss,
}

/// What a sender has done and met.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TcpCounters {
    /// Segments sent, repetitions included.
    pub segments: u64,
    /// Segments with data that was sent before.
    pub retransmitted: u64,
    /// Fast retransmits begun.
    pub recoveries: u64,
    /// Expiries of the timer.
    pub timeouts: u64,
    /// ACKs that acknowledged nothing new.
    pub duplicate_acks: u64,
}

/// The sender of one connection. Its data is virtual: only bytes are counted.
#[derive(Clone, Debug)]
pub struct TcpSender {
    config: TcpConfig,
    mss: u64,
    window: CongestionWindow,
    rtt: RttEstimator,
    board: Scoreboard,
    phase: Phase,
    /// Offsets: first unacknowledged, next to send, end of sent data, end of written data.
    una: u64,
    next: u64,
    sent: u64,
    written: u64,
    /// End of the peer's window.
    edge: u64,
    /// What was sent when the last recovery began; only then may the next begin.
    recover: u64,
    duplicates: u32,
    /// The first unacknowledged segment is to be sent again at once.
    resend: bool,
    /// One byte may go into a closed window.
    probe: bool,
    /// The window stopped the sender since the last acknowledgement.
    limited: bool,
    /// A segment sent once: its end, and when (Karn's rule).
    timed: Option<(u64, Time)>,
    deadline: Option<Time>,
    counters: TcpCounters,
}

impl TcpSender {
    /// An established connection over which nothing was sent.
    pub fn new(config: TcpConfig) -> Self {
        TcpSender {
            mss: u64::from(config.mss.max(1)),
            window: CongestionWindow::new(&config),
            rtt: RttEstimator::new(config.min_rto),
            board: Scoreboard::default(),
            phase: Phase::Open,
            una: 0,
            next: 0,
            sent: 0,
            written: 0,
            edge: config.receive_buffer,
            recover: 0,
            duplicates: 0,
            resend: false,
            probe: false,
            limited: false,
            timed: None,
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

    /// The congestion window, bytes.
    pub fn congestion_window(&self) -> u64 {
        self.window.bytes()
    }

    /// The smoothed round-trip time, once there is one.
    pub fn smoothed_rtt(&self) -> Option<Time> {
        self.rtt.srtt()
    }

    /// The counters.
    pub fn counters(&self) -> &TcpCounters {
        &self.counters
    }

    /// Takes an ACK at `now`.
    pub fn handle_packet(&mut self, now: Time, packet: &TcpPacket) {
        let for_us = packet.ip_src == self.config.peer.ip && packet.src_port == self.config.peer.port;
        let ack = unwrap(self.una, packet.ack.wrapping_sub(self.config.iss));
        if !for_us || !packet.flags.contains(TcpFlags::ACK) || ack > self.sent || ack < self.una {
            return; // an old ACK says nothing (RFC 9293 3.10.7.4)
        }
        self.edge = self.edge.max(ack + (u64::from(packet.window) << self.config.window_shift));
        let news = self.note_sack(&packet.sack);
        if ack > self.una {
            self.advance(now, ack);
        } else if self.sent > self.una && packet.payload.is_empty() && (news || !self.config.sack) {
            self.duplicate(now);
        }
    }

    fn note_sack(&mut self, sack: &SackBlocks) -> bool {
        let mut news = false;
        if self.config.sack {
            for (start, end) in sack.as_slice() {
                let start = unwrap(self.una, start.wrapping_sub(self.config.iss));
                let end = unwrap(self.una, end.wrapping_sub(self.config.iss));
                if start >= self.una && end <= self.sent {
                    news |= self.board.add(start, end);
                }
            }
        }
        news
    }

    /// New data is acknowledged.
    fn advance(&mut self, now: Time, ack: u64) {
        let bytes = ack - self.una;
        self.una = ack;
        self.next = self.next.max(ack);
        self.board.acknowledge(ack);
        self.duplicates = 0;
        if let Some((_, at)) = self.timed.take_if(|(end, _)| *end <= ack) {
            self.rtt.measured(now - at);
        }
        let mut restart = true;
        match self.phase {
            Phase::Recovery { .. } if ack >= self.recover => self.end_recovery(),
            Phase::Recovery { partial } => {
                restart = !partial; // RFC 6582 3.2 step 3: only the first partial one restarts the timer
                self.phase = Phase::Recovery { partial: true };
                self.partial(bytes);
            }
            Phase::Open | Phase::Loss => {
                if self.phase == Phase::Loss && ack >= self.recover {
                    self.phase = Phase::Open;
                }
                if std::mem::take(&mut self.limited) {
                    self.window.acknowledged(Acked { now, bytes, srtt: self.rtt.srtt().unwrap_or_default() });
                }
            }
        }
        if self.una == self.sent {
            self.deadline = None;
        } else if restart {
            self.deadline = Some(now + self.rtt.rto());
        }
    }

    fn end_recovery(&mut self) {
        let flight = self.sent - self.una;
        let window = self.window.ssthresh();
        // RFC 6582 step 3, option 1: no burst of data that recovery has held back.
        self.window.set(if self.config.sack { window } else { window.min(flight.max(self.mss) + self.mss) });
        self.phase = Phase::Open;
    }

    /// Part of the lost data has arrived. Without SACK the next hole is sent again; with SACK the holes are known.
    fn partial(&mut self, bytes: u64) {
        if !self.config.sack {
            self.window.deflate(bytes);
            if bytes >= self.mss {
                self.window.inflate(self.mss);
            }
            self.resend = true;
        }
    }

    fn duplicate(&mut self, now: Time) {
        self.counters.duplicate_acks += 1;
        self.duplicates += 1;
        match self.phase {
            Phase::Recovery { .. } if !self.config.sack => self.window.inflate(self.mss),
            Phase::Open => {
                let lost = self.duplicates >= DUP_THRESHOLD || self.board.is_lost(self.una, self.mss);
                if lost && (self.una > self.recover || self.recover == 0) {
                    self.begin_recovery(now);
                }
            }
            _ => {}
        }
    }

    fn begin_recovery(&mut self, now: Time) {
        self.counters.recoveries += 1;
        self.window.lost(self.sent - self.una);
        self.recover = self.sent;
        self.phase = Phase::Recovery { partial: false };
        self.resend = true;
        self.timed = None;
        self.board.high_rxt = self.una;
        let left_the_network = if self.config.sack { 0 } else { u64::from(DUP_THRESHOLD) * self.mss };
        self.window.set(self.window.ssthresh() + left_the_network);
        self.deadline = Some(now + self.rtt.rto());
    }

    /// When `handle_timeout` is wanted.
    pub fn next_timeout(&self) -> Option<Time> {
        self.deadline
    }

    /// Time has come to `now`.
    pub fn handle_timeout(&mut self, now: Time) {
        if self.deadline.is_none_or(|at| at > now) {
            return;
        }
        if self.una == self.sent {
            self.probe = true;
        } else {
            self.counters.timeouts += 1;
            if self.phase == Phase::Open {
                // Once for what was in flight: recovery has counted this loss already, and inflated the flight.
                self.window.lost(self.sent - self.una);
            }
            self.window.collapse();
            self.phase = Phase::Loss;
            self.recover = self.sent;
            self.next = self.una;
            self.duplicates = 0;
            self.resend = false;
            self.timed = None;
            self.board.high_rxt = self.una;
        }
        self.rtt.back_off();
        self.deadline = Some(now + self.rtt.rto());
    }

    /// The next segment that may be sent.
    pub fn poll_transmit(&mut self, now: Time) -> Option<TcpPacket> {
        let (start, len) = self.choose(now)?;
        let end = start + len;
        self.counters.segments += 1;
        if end > self.sent {
            self.sent = end;
            self.timed.get_or_insert((end, now));
        } else {
            self.counters.retransmitted += 1;
            self.board.high_rxt = self.board.high_rxt.max(end);
        }
        self.next = if self.phase == Phase::Loss { end } else { self.sent };
        self.deadline.get_or_insert(now + self.rtt.rto());
        Some(self.config.segment(start, len, end == self.written))
    }

    /// Which bytes go next: a hole, what a timeout wants again, or new data.
    fn choose(&mut self, now: Time) -> Option<(u64, u64)> {
        if std::mem::take(&mut self.resend) && self.una < self.sent {
            return Some((self.una, self.end_of_hole(self.una) - self.una));
        }
        if self.phase == Phase::Loss && self.next < self.sent {
            let start = self.board.skip_reported(self.next);
            if start < self.sent {
                return self.within_window(start, self.end_of_hole(start) - start);
            }
            self.next = self.sent;
        }
        if self.config.sack && matches!(self.phase, Phase::Recovery { .. }) {
            if self.board.pipe(self.una, self.sent, self.mss) + self.mss > self.window.bytes() {
                return None;
            }
            if let Some(hole) = self.board.next_lost(self.una, self.mss) {
                return Some(hole);
            }
            return self.new_data(now, u64::MAX);
        }
        let allowance = if self.phase == Phase::Open { u64::from(self.duplicates.min(2)) * self.mss } else { 0 };
        self.new_data(now, (self.una + self.window.bytes()).saturating_add(allowance))
    }

    /// Where a segment that begins at `start`, sent before, ends.
    fn end_of_hole(&self, start: u64) -> u64 {
        (start + self.mss).min(self.sent).min(self.board.next_reported(start).unwrap_or(u64::MAX))
    }

    fn within_window(&mut self, start: u64, len: u64) -> Option<(u64, u64)> {
        let fits = start + len <= self.una + self.window.bytes().max(self.mss);
        self.limited |= !fits;
        fits.then_some((start, len))
    }

    /// New data up to `limit`. Short segments are sent only at the end of the written data.
    fn new_data(&mut self, now: Time, limit: u64) -> Option<(u64, u64)> {
        let len = (self.written - self.sent).min(self.mss);
        if len == 0 {
            return None;
        }
        let end = self.sent + len;
        if end > limit {
            self.limited = true;
            return None;
        }
        if end > self.edge {
            if std::mem::take(&mut self.probe) {
                return Some((self.sent, 1));
            }
            if self.una == self.sent {
                self.deadline.get_or_insert(now + self.rtt.rto());
            }
            return None;
        }
        Some((self.sent, len))
    }
}
