// SPDX-License-Identifier: Apache-2.0
//! The detector's side of a board without triggers: a stream without end at each input, and marks at the trigger input.
//! Promise: every byte of a piece is shown once, in order, none before its piece's cycle; all beats are full. Bytes that
//! do not fill a beat wait for the next piece; at the end of all pieces they are left over. While pieces come, and until the
//! first mark after the last beat, there is a mark in every cycle that is due for one.

use crate::ffi::Pins;
use crate::message::word_of;
use bytes::{Buf, Bytes, BytesMut};
use penstock_wire::gateware::BOARD_INPUTS;

/// What all inputs get at one time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamPiece {
    /// Not before this cycle of the board's clock.
    pub cycle: u64,
    /// One stream for each input from input 0 on, at most [`BOARD_INPUTS`].
    pub streams: Vec<Bytes>,
}

/// Marks that come with a stream, in cycles of the board's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Marks {
    pub first: u64,
    /// Time from one to the next, 1 or more.
    pub period: u64,
}

/// The pieces of a stream in the order of their cycles.
pub type Pieces = Box<dyn Iterator<Item = StreamPiece> + Send>;

/// Drives the streams of all inputs and the marks.
pub(crate) struct StreamPort {
    /// Bytes of a beat.
    lanes: usize,
    pieces: Pieces,
    next: Option<StreamPiece>,
    /// What each input has not taken of the pieces that have come.
    waiting: [BytesMut; BOARD_INPUTS],
    marks: Option<Marks>,
}

impl StreamPort {
    pub fn new(lanes: usize, mut pieces: Pieces, marks: Option<Marks>) -> Self {
        let next = pieces.next();
        Self { lanes, pieces, next, waiting: Default::default(), marks }
    }

    /// All beats have been taken, and all marks were shown.
    pub fn is_over(&self) -> bool {
        self.is_taken() && self.marks.is_none()
    }

    fn is_taken(&self) -> bool {
        self.next.is_none() && self.is_drained()
    }

    /// All beats of the pieces that have come have been taken.
    fn is_drained(&self) -> bool {
        self.waiting.iter().all(|bytes| bytes.len() < self.lanes)
    }

    /// The pins of this cycle.
    pub fn drive(&mut self, cycle: u64, pins: &mut Pins) {
        // A piece waits with the detector until the one before it has been taken.
        if self.is_drained() {
            if let Some(piece) = self.next.take_if(|piece| piece.cycle <= cycle) {
                self.waiting.iter_mut().zip(piece.streams).for_each(|(bytes, stream)| bytes.extend_from_slice(&stream));
                self.next = self.pieces.next();
            }
        }
        let is_taken = self.is_taken();
        let due = self.marks.filter(|marks| cycle >= marks.first);
        pins.trigger_valid = u8::from(due.is_some());
        if let Some(marks) = due {
            self.marks = (!is_taken).then_some(Marks { first: marks.first + marks.period, ..marks });
        }
        (pins.event_tvalid, pins.event_tlast) = (0, 0);
        let words = self.lanes / 8;
        for (i, bytes) in self.waiting.iter().enumerate().filter(|(_, bytes)| bytes.len() >= self.lanes) {
            let beat = bytes[..self.lanes].chunks(8);
            pins.event_tdata[i * words..].iter_mut().zip(beat).for_each(|(word, bytes)| *word = word_of(bytes));
            pins.event_tkeep[i * words..][..words].fill(u8::MAX);
            pins.event_tvalid |= 1 << i;
        }
    }

    /// The pins at the end of this cycle.
    pub fn observe(&mut self, pins: &Pins) {
        let taken = pins.event_tvalid & pins.event_tready;
        for (_, bytes) in self.waiting.iter_mut().enumerate().filter(|(i, _)| taken >> i & 1 != 0) {
            bytes.advance(self.lanes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_comes_once_in_full_beats_and_marks_go_on_until_one_after_the_last() {
        for lanes in [8, 64] {
            let text = |input: u8| -> Vec<u8> { (0..1000).map(|k: u32| (k as u8).wrapping_mul(7) ^ input).collect() };
            let pieces: Vec<StreamPiece> = (0..10)
                .map(|n: usize| StreamPiece {
                    cycle: 50 * n as u64,
                    streams: (0..2).map(|i| Bytes::from(text(i)[100 * n..][..100].to_vec())).collect(),
                })
                .collect();
            let marks = Marks { first: 30, period: 30 };
            let mut port = StreamPort::new(lanes, Box::new(pieces.into_iter()), Some(marks));
            let (mut pins, mut found, mut marked) = (Pins::default(), [Vec::new(), Vec::new()], Vec::new());
            let mut cycle = 0;
            while !port.is_over() {
                // The front end does not take a beat in every cycle, nor from both inputs alike.
                pins.event_tready = u8::from(cycle % 3 != 0) | u8::from(cycle % 2 == 0) << 1;
                port.drive(cycle, &mut pins);
                assert_eq!(pins.event_tvalid & !3, 0, "an input without a stream");
                if pins.trigger_valid != 0 {
                    marked.push(cycle);
                }
                for (i, bytes) in found.iter_mut().enumerate() {
                    if pins.event_tvalid & pins.event_tready & 1 << i != 0 {
                        let words = &pins.event_tdata[i * lanes / 8..][..lanes / 8];
                        bytes.extend(words.iter().flat_map(|word| word.to_le_bytes()));
                        assert!(cycle >= 50 * (bytes.len().div_ceil(100) as u64 - 1), "a byte before its piece");
                    }
                }
                port.observe(&pins);
                cycle += 1;
            }
            for (i, bytes) in found.iter().enumerate() {
                assert_eq!(*bytes, text(i as u8)[..1000 / lanes * lanes], "input {i}, {lanes} lanes");
            }
            assert!(marked.iter().copied().eq((1..).map(|k| 30 * k).take(marked.len())), "{marked:?}");
            assert!(marked.len() >= 15);
        }
    }
}
