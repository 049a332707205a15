// SPDX-License-Identifier: Apache-2.0
//! The events of a run as the boards send them, and as the checker expects them.
//! Promise: message (event, board) is the fragment header and then, in order, the modules with index = board modulo the
//! number of boards; event numbers continue when the file repeats.

use std::ops::Range;

use bytes::{BufMut, Bytes, BytesMut};
use penstock_recorded::Dataset;
use penstock_wire::fragment::{message_2_len, FragmentHeader, HEADER_LEN};
use penstock_wire::gateware::BOARD_INPUTS;

use crate::check::Reference;

/// Why events cannot be dealt out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SourceError {
    #[error("{modules} modules cannot be dealt out to {boards} boards; choose 1 to {modules} boards")]
    Boards { boards: u16, modules: usize },
    #[error(
        "board {board} of {boards} has no byte of recorded event {event}, and the gateware makes no message of none; \
         share the modules among fewer boards, leave such events out of the file, or send them by software boards"
    )]
    Empty { board: usize, boards: u16, event: usize },
    #[error("board {board} of {boards} has {bytes} bytes of recorded event {event}; a fragment has fewer than 2^32")]
    TooLong { board: usize, boards: u16, event: usize, bytes: usize },
}

/// Recorded events, dealt out to boards.
#[derive(Debug, Clone)]
pub struct EventSource {
    boards: u16,
    recorded_events: u64,
    /// Row = recorded event, column = board.
    payloads: Vec<Share>,
    /// One for each recorded event.
    trigger_types: Vec<u16>,
    /// One for each recorded event, ns.
    times: Vec<u64>,
    /// Time from one pass through the file to the next, ns.
    period_ns: u64,
}

/// What a board has of one recorded event.
#[derive(Debug, Clone)]
struct Share {
    payload: Bytes,
    crc32c: u32,
    /// Parts of the payload for the inputs of a board that makes the message by itself.
    streams: Vec<Range<usize>>,
}

impl EventSource {
    /// Deals the modules of every recorded event out to boards `0..boards`.
    ///
    /// # Errors
    /// [`SourceError`] if there is no board, not a module for each, or a payload that is too long.
    pub fn new(dataset: &Dataset, boards: u16) -> Result<EventSource, SourceError> {
        let modules = dataset.modules();
        let step = usize::from(boards);
        if step == 0 || step > modules {
            return Err(SourceError::Boards { boards, modules });
        }
        let mut payloads = Vec::with_capacity(dataset.events() * step);
        for event in 0..dataset.events() {
            for board in 0..step {
                let bytes = dataset.share_len(event, board, step);
                if u32::try_from(bytes).is_err() {
                    return Err(SourceError::TooLong { board, boards, event, bytes });
                }
                let mut payload = BytesMut::with_capacity(bytes);
                dataset.share(board, step).for_each(|module| payload.put_slice(dataset.module(event, module)));
                let crc32c = penstock_wire::crc32c(&payload);
                let streams = dataset.input_streams(event, board, step, BOARD_INPUTS);
                payloads.push(Share { payload: payload.freeze(), crc32c, streams });
            }
        }
        let trigger_types = (0..dataset.events()).map(|event| dataset.trigger_type(event)).collect();
        let times: Vec<u64> = (0..dataset.events()).map(|event| dataset.time_ns(event)).collect();
        let span = times.last().unwrap_or(&0).saturating_sub(*times.first().unwrap_or(&0));
        // The next pass begins as long after this one as its events are apart, on average.
        let period_ns = span.saturating_add((span / (times.len() as u64 - 1).max(1)).max(1));
        Ok(EventSource { boards, recorded_events: dataset.events() as u64, payloads, trigger_types, times, period_ns })
    }

    /// Whether boards of gateware can send these events: they make no message without a byte.
    ///
    /// # Errors
    /// [`SourceError::Empty`] names the first such event.
    pub fn check_gateware(&self) -> Result<(), SourceError> {
        let step = usize::from(self.boards);
        let empty = self.payloads.iter().position(|share| share.payload.is_empty());
        match empty {
            Some(at) => Err(SourceError::Empty { board: at % step, boards: self.boards, event: at / step }),
            None => Ok(()),
        }
    }

    /// Number of boards, at least 1.
    pub fn boards(&self) -> u16 {
        self.boards
    }

    /// The contribution of `board` to `event`, without header. Makes no copy.
    ///
    /// # Panics
    /// If `board >= self.boards()`.
    pub fn payload(&self, event: u64, board: u16) -> &Bytes {
        &self.share(event, board).payload
    }

    /// The header before that payload.
    ///
    /// # Panics
    /// If `board >= self.boards()`.
    pub fn header(&self, event: u64, board: u16, timestamp_ns: u64) -> FragmentHeader {
        let Share { payload, crc32c, .. } = self.share(event, board);
        FragmentHeader {
            source_id: board,
            event_number: event,
            timestamp_ns,
            payload_len: payload.len() as u32,
            payload_crc: *crc32c,
        }
    }

    /// Header and payload in one piece: the message that `board` writes for `event`.
    ///
    /// # Panics
    /// If `board >= self.boards()`.
    pub fn message(&self, event: u64, board: u16, timestamp_ns: u64) -> Bytes {
        let mut message = BytesMut::with_capacity(HEADER_LEN + self.payload(event, board).len());
        message.put_slice(&self.header(event, board, timestamp_ns).to_bytes());
        message.put_slice(self.payload(event, board));
        message.freeze()
    }

    /// The payload as it comes out of the detector: raw bytes for each input of a board that makes the message by
    /// itself. Costs no copy.
    ///
    /// # Panics
    /// If `board >= self.boards()`.
    pub fn streams(&self, event: u64, board: u16) -> Vec<Bytes> {
        let Share { payload, streams, .. } = self.share(event, board);
        streams.iter().map(|range| payload.slice(range.clone())).collect()
    }

    /// When `event` was recorded, ns; each pass through the file follows the one before.
    pub fn time_ns(&self, event: u64) -> u64 {
        let (pass, recorded) = (event / self.recorded_events, (event % self.recorded_events) as usize);
        self.times[recorded].wrapping_add(self.period_ns.wrapping_mul(pass))
    }

    /// The trigger type of `event`, as recorded.
    pub fn trigger_type(&self, event: u64) -> u16 {
        self.trigger_types[(event % self.recorded_events) as usize]
    }

    /// Inputs of `board` that have a stream; the same in all events.
    ///
    /// # Panics
    /// If `board >= self.boards()`.
    pub fn inputs(&self, board: u16) -> usize {
        self.share(0, board).streams.len()
    }

    /// Bytes of the longest message that the gateware of any board makes of these streams; a slot must hold them.
    pub fn max_gateware_message_len(&self) -> usize {
        self.longest(|share| message_2_len(share.payload.len(), share.streams.len()))
    }

    /// Bytes of the longest payload of any board.
    pub fn max_payload_len(&self) -> usize {
        self.longest(|share| share.payload.len())
    }

    /// Bytes of the longest message of any board; a slot must hold them.
    pub fn max_message_len(&self) -> usize {
        HEADER_LEN + self.max_payload_len()
    }

    fn longest(&self, len: impl Fn(&Share) -> usize) -> usize {
        self.payloads.iter().map(len).max().unwrap_or(0)
    }

    fn share(&self, event: u64, board: u16) -> &Share {
        assert!(board < self.boards, "board {board} of {}", self.boards);
        let recorded = (event % self.recorded_events) as usize;
        &self.payloads[recorded * usize::from(self.boards) + usize::from(board)]
    }
}

impl Reference for EventSource {
    fn payload(&self, event: u64, source: u16) -> Option<&[u8]> {
        (source < self.boards).then(|| &self.share(event, source).payload[..])
    }
}
