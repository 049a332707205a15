// SPDX-License-Identifier: Apache-2.0
//! The events of a run as the boards send them, and as the checker expects them.
//! Promise: message (event, board) is the fragment header and then, in order, the modules with index = board modulo the
//! number of boards; event numbers continue when the file repeats.

use bytes::{BufMut, Bytes, BytesMut};
use penstock_recorded::{input_streams, Dataset, MODULE_BYTES};
use penstock_wire::fragment::{message_2_len, FragmentHeader, HEADER_LEN};
use penstock_wire::gateware::BOARD_INPUTS;

use crate::check::Reference;

/// Why events cannot be dealt out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{modules} modules cannot be dealt out to {boards} boards; choose 1 to {modules} boards")]
pub struct SourceError {
    pub boards: u16,
    pub modules: usize,
}

/// Recorded events, dealt out to boards.
#[derive(Debug, Clone)]
pub struct EventSource {
    boards: u16,
    recorded_events: u64,
    /// Payload and its CRC-32C; row = recorded event, column = board.
    payloads: Vec<(Bytes, u32)>,
}

impl EventSource {
    /// Deals the modules of every recorded event out to boards `0..boards`.
    ///
    /// # Errors
    /// [`SourceError`] if there is no board, or not a module for each.
    pub fn new(dataset: &Dataset, boards: u16) -> Result<EventSource, SourceError> {
        let modules = dataset.modules();
        let step = usize::from(boards);
        if step == 0 || step > modules {
            return Err(SourceError { boards, modules });
        }
        let mut payloads = Vec::with_capacity(dataset.events() * step);
        for event in 0..dataset.events() {
            for board in 0..step {
                let mut payload = BytesMut::with_capacity(modules.div_ceil(step) * MODULE_BYTES);
                (board..modules).step_by(step).for_each(|module| payload.put_slice(dataset.module(event, module)));
                let crc = penstock_wire::crc32c(&payload);
                payloads.push((payload.freeze(), crc));
            }
        }
        Ok(EventSource { boards, recorded_events: dataset.events() as u64, payloads })
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
        &self.part(event, board).0
    }

    /// The header before that payload.
    ///
    /// # Panics
    /// If `board >= self.boards()`.
    pub fn header(&self, event: u64, board: u16, timestamp_ns: u64) -> FragmentHeader {
        let (payload, payload_crc) = self.part(event, board);
        FragmentHeader {
            source_id: board,
            event_number: event,
            timestamp_ns,
            payload_len: payload.len() as u32,
            payload_crc: *payload_crc,
        }
    }

    /// Header and payload in one piece: the message that `board` writes for `event`.
    ///
    /// # Panics
    /// If `board >= self.boards()`.
    pub fn message(&self, event: u64, board: u16, timestamp_ns: u64) -> Bytes {
        let mut message = BytesMut::with_capacity(self.message_len(board));
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
        let payload = self.payload(event, board);
        input_streams(payload.len() / MODULE_BYTES, BOARD_INPUTS)
            .into_iter()
            .map(|range| payload.slice(range))
            .collect()
    }

    /// Inputs of `board` that have a stream.
    ///
    /// # Panics
    /// If `board >= self.boards()`.
    pub fn inputs(&self, board: u16) -> usize {
        self.streams(0, board).len()
    }

    /// Bytes of the message that gateware makes of these streams.
    ///
    /// # Panics
    /// If `board >= self.boards()`.
    pub fn gateware_message_len(&self, board: u16) -> usize {
        message_2_len(self.payload(0, board).len(), self.inputs(board))
    }

    /// Bytes of every message of `board`.
    ///
    /// # Panics
    /// If `board >= self.boards()`.
    pub fn message_len(&self, board: u16) -> usize {
        HEADER_LEN + self.payload(0, board).len()
    }

    /// Bytes of the longest message of any board; a slot must hold them.
    pub fn max_message_len(&self) -> usize {
        self.message_len(0)
    }

    fn part(&self, event: u64, board: u16) -> &(Bytes, u32) {
        assert!(board < self.boards, "board {board} of {}", self.boards);
        let recorded = (event % self.recorded_events) as usize;
        &self.payloads[recorded * usize::from(self.boards) + usize::from(board)]
    }
}

impl Reference for EventSource {
    fn payload(&self, event: u64, source: u16) -> Option<&[u8]> {
        (source < self.boards).then(|| &self.part(event, source).0[..])
    }
}
