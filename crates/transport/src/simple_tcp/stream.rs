// SPDX-License-Identifier: Apache-2.0
//! A stream with its payload: the rules of [`step`], a ring of bytes, and the messages in the ring.
//! Promise: each message completes once, in the order of writing, and with success only after its last byte has been
//! acknowledged; bytes stay in the ring until then.
//! Source: CMS-TCP section 3.1 (the sender's buffer is the retransmission buffer).

use super::step::later_ticks;
use super::{step, Actions, Arrival, Counts, End, Event, Outgoing, Parameters, ParametersError, Row, State};
use penstock_units::Time;
use std::collections::VecDeque;

/// A ring holds 2^30 bytes at most, as a window does.
const MAX_RING: usize = 1 << 30;

/// The outcome of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MessageEnd {
    /// The number that was given to `write`.
    pub id: u64,
    /// Why it failed, if it did.
    pub failed: Option<End>,
}

/// Why a message was not taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum WriteError {
    /// It fits when earlier ones are acknowledged.
    #[error("{bytes} bytes where the ring has room for {room}: wait until more is acknowledged")]
    Full {
        /// Bytes of the message.
        bytes: usize,
        /// Bytes of room in the ring.
        room: usize,
    },
    /// It never fits.
    #[error("a message of {bytes} bytes for a ring of {ring}: make the ring larger or the message shorter")]
    TooLong {
        /// Bytes of the message.
        bytes: usize,
        /// Size of the ring.
        ring: usize,
    },
    /// There is no connection and none is being opened.
    #[error("the stream is closed: open it before writing")]
    Closed,
}

/// How often each thing has happened, by the bits of [`Counts`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct StreamCounters([u64; Counts::KINDS]);

impl StreamCounters {
    /// The count of one kind.
    pub fn of(&self, kind: Counts) -> u64 {
        self.0[kind.0.trailing_zeros() as usize]
    }

    fn add(&mut self, counts: Counts) {
        let mut left = counts.0;
        while left != 0 {
            self.0[left.trailing_zeros() as usize] += 1;
            left &= left - 1;
        }
    }
}

/// One stream of real bytes.
#[derive(Clone, Debug)]
pub struct Stream {
    parameters: Parameters,
    row: Row,
    ring: Box<[u8]>,
    /// Stream offset of `una`, from the first byte of the first connection on.
    acknowledged: u64,
    /// Stream offset after the last byte written.
    written: u64,
    /// Messages that have not ended, with the offset after their last byte.
    messages: VecDeque<(u64, u64)>,
    ended: VecDeque<MessageEnd>,
    last_end: Option<End>,
    /// What has happened since the last call of the methods that return it.
    opened: bool,
    over: Option<End>,
    transmit_pending: bool,
    /// Time of the last call, in ticks of 1 us.
    now: u64,
    counters: StreamCounters,
}

impl Stream {
    /// A closed stream with a ring of at least `ring_bytes`, rounded up to a power of two.
    ///
    /// # Errors
    /// A parameter outside its range.
    pub fn new(parameters: Parameters, ring_bytes: usize) -> Result<Stream, ParametersError> {
        Ok(Stream {
            parameters: parameters.checked()?,
            row: Row::default(),
            ring: vec![0; ring_bytes.clamp(1, MAX_RING).next_power_of_two()].into(),
            acknowledged: 0,
            written: 0,
            messages: VecDeque::new(),
            ended: VecDeque::new(),
            last_end: None,
            opened: false,
            over: None,
            transmit_pending: false,
            now: 0,
            counters: StreamCounters::default(),
        })
    }

    fn step(&mut self, event: Event) -> Actions {
        let (row, actions) = step(&self.row, &self.parameters, self.now as u32, event);
        self.row = row;
        self.counters.add(actions.counts);
        self.transmit_pending = actions.transmit_pending;
        self.acknowledged += u64::from(actions.acknowledged);
        if actions.acknowledged > 0 {
            self.finish();
        }
        self.opened |= actions.opened;
        if let Some(why) = actions.ended {
            (self.last_end, self.over) = (Some(why), Some(why));
            self.ended.extend(self.messages.drain(..).map(|(id, _)| MessageEnd { id, failed: Some(why) }));
            self.acknowledged = self.written;
        }
        actions
    }

    /// Messages end whose last byte is acknowledged.
    fn finish(&mut self) {
        while let Some((id, end)) = self.messages.front().copied() {
            if end > self.acknowledged {
                break;
            }
            self.messages.pop_front();
            self.ended.push_back(MessageEnd { id, failed: None });
        }
    }

    /// Begins to open a connection; `iss` is not to be guessed by strangers (RFC 9293 section 3.4.1, RFC 6528).
    /// Without effect unless the stream is closed.
    pub fn open(&mut self, now: Time, iss: u32) {
        self.now = ticks(now);
        self.step(Event::Open { iss });
    }

    /// Ends the connection by RST; unfinished messages fail.
    pub fn abort(&mut self, now: Time) {
        self.now = ticks(now);
        self.step(Event::Abort);
    }

    /// Bytes that a message may have now.
    pub fn room(&self) -> usize {
        self.ring.len() - (self.written - self.acknowledged) as usize
    }

    /// Writes a message: the bytes of `parts`, one after the other.
    ///
    /// # Errors
    /// It does not fit, now or ever, or the stream is closed; then nothing was written.
    pub fn write(&mut self, now: Time, id: u64, parts: &[&[u8]]) -> Result<(), WriteError> {
        self.now = ticks(now);
        let bytes: usize = parts.iter().map(|part| part.len()).sum();
        if self.row.state == State::Closed {
            return Err(WriteError::Closed);
        }
        if bytes > self.ring.len() {
            return Err(WriteError::TooLong { bytes, ring: self.ring.len() });
        }
        if bytes > self.room() {
            return Err(WriteError::Full { bytes, room: self.room() });
        }
        for part in parts {
            self.put(part);
        }
        self.messages.push_back((id, self.written));
        self.step(Event::Written { bytes: bytes as u32 });
        self.finish();
        Ok(())
    }

    fn put(&mut self, part: &[u8]) {
        let at = self.written as usize & (self.ring.len() - 1);
        let (first, second) = part.split_at(part.len().min(self.ring.len() - at));
        self.ring[at..at + first.len()].copy_from_slice(first);
        self.ring[..second.len()].copy_from_slice(second);
        self.written += part.len() as u64;
    }

    /// Takes a segment from the peer.
    pub fn handle_segment(&mut self, now: Time, segment: &Arrival) {
        self.now = ticks(now);
        self.step(Event::Segment(*segment));
    }

    /// Takes a router's message that `mss` bytes of payload fit (ICMP type 3 code 4), about the segment at `seq`.
    pub fn handle_path_mtu(&mut self, now: Time, seq: u32, mss: u16) {
        self.now = ticks(now);
        self.step(Event::PathMtu { seq, mss });
    }

    /// When `handle_timeout` is wanted.
    pub fn next_timeout(&self) -> Option<Time> {
        let time = |tick: u32| {
            let ahead = tick.wrapping_sub(self.now as u32) as i32;
            Time::from_us(self.now.saturating_add_signed(ahead.into()))
        };
        let timer = self.row.timer_on.then_some(self.row.deadline);
        timer.into_iter().chain(later_ticks(&self.row)).map(time).min()
    }

    /// Time has come to `now`.
    pub fn handle_timeout(&mut self, now: Time) {
        self.now = ticks(now);
        self.step(Event::Tick);
    }

    /// The next segment to send; its payload is [`Stream::payload`] until the next call of anything else.
    pub fn poll_transmit(&mut self, now: Time) -> Option<Outgoing> {
        if !self.transmit_pending {
            return None;
        }
        self.now = ticks(now);
        self.step(Event::Transmit).send
    }

    /// The bytes of a segment that `poll_transmit` has just returned; two slices where the ring wraps.
    pub fn payload(&self, segment: &Outgoing) -> (&[u8], &[u8]) {
        self.bytes(segment.seq, segment.len.into())
    }

    /// The `len` bytes from `seq` on; two slices where the ring wraps. Those of a segment that was acknowledged
    /// meanwhile may be others: its receiver has them and does not look.
    pub fn bytes(&self, seq: u32, len: usize) -> (&[u8], &[u8]) {
        let ahead = i64::from(seq.wrapping_sub(self.row.una) as i32);
        let at = self.acknowledged.wrapping_add_signed(ahead) as usize & (self.ring.len() - 1);
        let len = len.min(self.ring.len());
        let first = len.min(self.ring.len() - at);
        (&self.ring[at..at + first], &self.ring[..len - first])
    }

    /// The next message that has ended.
    pub fn poll_message(&mut self) -> Option<MessageEnd> {
        self.ended.pop_front()
    }

    /// What connects it.
    pub fn state(&self) -> State {
        self.row.state
    }

    /// Whether a connection has come up since the last call.
    pub fn take_opened(&mut self) -> bool {
        std::mem::take(&mut self.opened)
    }

    /// The reason if a connection has ended since the last call.
    pub fn take_ended(&mut self) -> Option<End> {
        self.over.take()
    }

    /// The parameters.
    pub fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// Why the last connection ended.
    pub fn last_end(&self) -> Option<End> {
        self.last_end
    }

    /// The present row.
    pub fn row(&self) -> &Row {
        &self.row
    }

    /// Messages that have not ended.
    pub fn unfinished(&self) -> usize {
        self.messages.len()
    }

    /// The counters.
    pub fn counters(&self) -> &StreamCounters {
        &self.counters
    }
}

/// A tick is a microsecond.
fn ticks(at: Time) -> u64 {
    at.as_ps() / 1_000_000
}
