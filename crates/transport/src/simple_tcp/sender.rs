// SPDX-License-Identifier: Apache-2.0
//! A stream of the laboratory: the rules of [`step`] on an established connection, with a payload that is only counted.
//! Promise: a standard TCP receiver gets every byte; without congestion control only the peer's window limits the
//! stream.
//! Source: CMS-TCP section 3.1 and 3.3.

use super::parameters::MAX_TICKS;
use super::{step, Actions, Arrival, Counts, Event, Outgoing, Parameters, Row};
use crate::tcp::{TcpConfig, TcpCounters};
use penstock_units::Time;
use penstock_wire::{Payload, TcpPacket};

/// The row covers at most this many bytes; further written bytes wait outside.
const MAX_HELD: u64 = 1 << 29;

/// What a loss does.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum BackOff {
    /// No congestion control: new data continues after a loss, at a timeout all outstanding data is sent again
    /// as fast as the link takes it, and the timeout never grows.
    Off,
    /// The simplified congestion control: one segment is sent again, nothing else until it is acknowledged, and each
    /// timeout without an acknowledgement doubles the next.
    #[default]
    Exponential,
}

impl Parameters {
    /// Those of a stream of the laboratory: `min_rto` is its fixed timeout, and it never gives up.
    pub fn of_laboratory(config: &TcpConfig, back_off: BackOff) -> Parameters {
        let timeout = ticks(config.min_rto).clamp(1, MAX_TICKS.into()) as u32;
        Parameters {
            mss: config.mss.clamp(1, u16::MAX.into()) as u16,
            nagle: config.nagle,
            back_off: back_off == BackOff::Exponential,
            adaptive: false,
            rto_initial: timeout,
            rto_min: timeout,
            rto_max: timeout.saturating_mul(1 << 12).min(MAX_TICKS),
            give_up: 0,
            ..Parameters::default()
        }
    }
}

/// The sender of one stream. Its data is virtual: only bytes are counted.
///
/// Of [`TcpConfig`] it uses addresses, ports, `iss`, `mss`, `receive_buffer` (the first window), `min_rto` (its fixed
/// timeout), `window_shift`, `nagle` and `dscp`.
#[derive(Clone, Debug)]
pub struct SimpleTcpSender {
    config: TcpConfig,
    parameters: Parameters,
    row: Row,
    /// Bytes written, bytes known to the row, and bytes acknowledged.
    written: u64,
    queued: u64,
    acknowledged: u64,
    /// Time of the last call, in ticks.
    now: u64,
    counters: TcpCounters,
}

impl SimpleTcpSender {
    /// An established connection over which nothing was sent.
    pub fn new(config: TcpConfig, back_off: BackOff) -> Self {
        let parameters = Parameters::of_laboratory(&config, back_off);
        let window = config.receive_buffer.min((1 << 30) - 1) as u32;
        SimpleTcpSender {
            row: Row::established(config.iss, parameters.mss, window, config.window_shift),
            parameters,
            written: 0,
            queued: 0,
            acknowledged: 0,
            now: 0,
            counters: TcpCounters::default(),
            config,
        }
    }

    /// Gives it that many bytes more to send.
    pub fn write(&mut self, bytes: u64) {
        self.written += bytes;
        self.fill();
    }

    /// Bytes that were written and never sent.
    pub fn unsent(&self) -> u64 {
        self.written - self.acknowledged - u64::from(self.row.outstanding())
    }

    /// Bytes that the peer has acknowledged.
    pub fn acknowledged(&self) -> u64 {
        self.acknowledged
    }

    /// The counters.
    pub fn counters(&self) -> &TcpCounters {
        &self.counters
    }

    fn step(&mut self, event: Event) -> Actions {
        let (row, actions) = step(&self.row, &self.parameters, self.now as u32, event);
        self.row = row;
        self.acknowledged += u64::from(actions.acknowledged);
        let counted = [
            (Counts::SEGMENT, &mut self.counters.segments),
            (Counts::RETRANSMITTED, &mut self.counters.retransmitted),
            (Counts::TIMEOUT, &mut self.counters.timeouts),
            (Counts::FAST_RETRANSMIT, &mut self.counters.recoveries),
            (Counts::DUPLICATE_ACK, &mut self.counters.duplicate_acks),
        ];
        for (count, counter) in counted {
            *counter += u64::from(actions.counts.has(count));
        }
        actions
    }

    fn fill(&mut self) {
        let room = MAX_HELD - u64::from(self.row.held());
        let bytes = (self.written - self.queued).min(room) as u32;
        if bytes > 0 {
            self.queued += u64::from(bytes);
            self.step(Event::Written { bytes });
        }
    }

    /// Takes an ACK at `now`.
    pub fn handle_packet(&mut self, now: Time, packet: &TcpPacket) {
        self.now = ticks(now);
        if packet.ip_src == self.config.peer.ip && packet.src_port == self.config.peer.port {
            self.step(Event::Segment(Arrival::of(packet)));
            self.fill();
        }
    }

    /// When `handle_timeout` is wanted.
    pub fn next_timeout(&self) -> Option<Time> {
        let ahead = self.row.deadline.wrapping_sub(self.now as u32) as i32;
        self.row.timer_on.then(|| Time::from_us(self.now.saturating_add_signed(ahead.into())))
    }

    /// Time has come to `now`.
    pub fn handle_timeout(&mut self, now: Time) {
        self.now = ticks(now);
        if self.row.timer_on {
            self.step(Event::Tick);
        }
    }

    /// The next segment that may be sent.
    pub fn poll_transmit(&mut self, now: Time) -> Option<TcpPacket> {
        self.now = ticks(now);
        let Outgoing { seq, ack, flags, len } = self.step(Event::Transmit).send?;
        let payload = Payload::Virtual(len.into());
        Some(TcpPacket { seq, ack, flags, payload, ..self.config.empty_segment() })
    }
}

/// A tick is a microsecond.
fn ticks(at: Time) -> u64 {
    at.as_ps() / 1_000_000
}
