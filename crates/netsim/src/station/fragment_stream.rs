// SPDX-License-Identifier: Apache-2.0
//! A stream of messages with real bytes to a receiver that accepts connections: the front end's simplified TCP.
//! Promise: the stream is opened when the simulation begins; messages have the framing that the readout reads, and
//! their bytes are kept until the peer has acknowledged them.
//! Source: `penstock_transport::simple_tcp`; docs/fragments.md, "In a TCP stream".

use bytes::{Bytes, BytesMut};
use penstock_transport::simple_tcp::{Arrival, Counts, End, Parameters, ParametersError, Stream, WriteError};
use penstock_transport::{BackOff, TcpConfig, TcpCounters};
use penstock_wire::{stream_header, stream_padding, Payload, SynOptions, TcpFlags, TcpPacket, STREAM_HEADER_LEN};

use crate::contents::Fragments;
use crate::flow::Message;
use crate::units::Time;

/// The sending end of one stream.
pub(super) struct FragmentStream {
    config: TcpConfig,
    stream: Stream,
    fragments: Fragments,
    /// Bytes of its ring.
    capacity: usize,
    counters: TcpCounters,
}

/// The present state, for a trace.
pub(super) struct StreamState {
    /// Written and not acknowledged.
    pub(super) held_bytes: u64,
    /// Receive window of the peer.
    pub(super) window_bytes: u32,
    /// Zero before the first measurement.
    pub(super) smoothed_rtt: Time,
}

impl FragmentStream {
    /// A stream that opens its connection at time 0. Its ring holds what the peer's window or `send_buffer` can ask
    /// for, and a message more.
    ///
    /// # Errors
    /// Segments that the simplified TCP cannot have.
    pub(super) fn new(
        config: TcpConfig,
        back_off: BackOff,
        fragments: Fragments,
        send_buffer: Option<u64>,
    ) -> Result<Self, ParametersError> {
        let held = (config.receive_buffer + 2 * u64::from(config.mss)).max(send_buffer.unwrap_or(0));
        let ring = held + framed_len(fragments.ring.slot_bytes.into());
        let mut stream = Stream::new(Parameters::of_laboratory(&config, back_off), ring as usize)?;
        stream.open(Time::ZERO, config.iss);
        let capacity = stream.room();
        Ok(FragmentStream { config, stream, fragments, capacity, counters: TcpCounters::default() })
    }

    /// Writes a message.
    ///
    /// # Errors
    /// The ring cannot hold it.
    pub(super) fn write(&mut self, now: Time, message: &Message) -> Result<(), WriteError> {
        let bytes = self.fragments.contents.message(message.event, message.at);
        debug_assert_eq!(bytes.len() as u64, message.bytes);
        let zeros = [0; STREAM_HEADER_LEN];
        let parts = [&stream_header(bytes.len() as u32)[..], &bytes, &zeros[..stream_padding(bytes.len())]];
        self.stream.write(now, message.event, &parts)
    }

    /// Bytes that were written and never sent.
    pub(super) fn unsent(&self) -> u64 {
        let row = self.stream.row();
        row.held().saturating_sub(row.outstanding()).into()
    }

    /// Bytes that were written and not acknowledged.
    pub(super) fn held(&self) -> u64 {
        (self.capacity - self.stream.room()) as u64
    }

    /// Why it has ended, if it has.
    pub(super) fn ended(&self) -> Option<End> {
        self.stream.last_end()
    }

    pub(super) fn counters(&self) -> &TcpCounters {
        &self.counters
    }

    pub(super) fn state(&self) -> StreamState {
        let row = self.stream.row();
        StreamState {
            held_bytes: self.held(),
            window_bytes: row.window,
            smoothed_rtt: Time::from_us((row.srtt >> 3).into()),
        }
    }

    pub(super) fn handle_packet(&mut self, now: Time, packet: &TcpPacket) {
        self.stream.handle_segment(now, &Arrival::of(packet));
        self.settle();
    }

    pub(super) fn next_timeout(&self) -> Option<Time> {
        self.stream.next_timeout()
    }

    pub(super) fn handle_timeout(&mut self, now: Time) {
        self.stream.handle_timeout(now);
        self.settle();
    }

    pub(super) fn poll_transmit(&mut self, now: Time) -> Option<TcpPacket> {
        let segment = self.stream.poll_transmit(now)?;
        self.settle();
        let is = |flag| segment.flags.contains(flag);
        // Window scale 0, so that the receiver may scale its own windows (RFC 7323 section 2.2).
        let options = match is(TcpFlags::SYN) {
            true => {
                SynOptions { mss: Some(self.stream.parameters().mss), window_scale: Some(0), ..SynOptions::default() }
            }
            false => SynOptions::default(),
        };
        let window = if is(TcpFlags::RST) { 0 } else { self.stream.parameters().receive_window };
        let payload = match self.stream.payload(&segment) {
            (bytes, []) => Bytes::copy_from_slice(bytes),
            (first, second) => {
                let mut joined = BytesMut::with_capacity(first.len() + second.len());
                joined.extend_from_slice(first);
                joined.extend_from_slice(second);
                joined.freeze()
            }
        };
        Some(TcpPacket {
            seq: segment.seq,
            ack: segment.ack,
            flags: segment.flags,
            window,
            options,
            payload: Payload::Bytes(payload),
            ..self.config.empty_segment()
        })
    }

    /// Counts what has happened; the messages that have ended are the ledger's business, which sees them arrive.
    fn settle(&mut self) {
        while self.stream.poll_message().is_some() {}
        let counted = self.stream.counters();
        self.counters = TcpCounters {
            segments: counted.of(Counts::SEGMENT),
            retransmitted: counted.of(Counts::RETRANSMITTED),
            recoveries: counted.of(Counts::FAST_RETRANSMIT),
            timeouts: counted.of(Counts::TIMEOUT),
            duplicate_acks: counted.of(Counts::DUPLICATE_ACK),
        };
    }
}

/// Bytes in the stream of a message of `len` bytes.
pub(super) fn framed_len(len: u64) -> u64 {
    STREAM_HEADER_LEN as u64 + len.next_multiple_of(STREAM_HEADER_LEN as u64)
}
