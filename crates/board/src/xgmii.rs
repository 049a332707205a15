// SPDX-License-Identifier: Apache-2.0
//! XGMII (IEEE 802.3 clause 46), 64 bits wide: frames to words and words to frames.
//!
//! One word a clock cycle of 6.4 ns: eight lanes, lane 0 in the low byte, one control bit a lane.

use crate::ffi::Line;
use crate::port::{finish, octets, Port, Received, PREAMBLE, SFD};
use bytes::BytesMut;
use std::collections::VecDeque;

const IDLE: u8 = 0x07;
const START: u8 = 0xfb;
const TERMINATE: u8 = 0xfd;
/// A cycle in which nothing is sent.
const IDLE_WORD: (u64, u8) = (0x0707_0707_0707_0707, 0xff);

/// A transceiver on a 64-bit XGMII.
#[derive(Default)]
pub struct Xgmii {
    encoder: Encoder,
    decoder: Decoder,
}

impl Xgmii {
    /// One whose frames come at the times of a line, each at the next cycle: as that shortens a gap by up to 7 octets,
    /// the least one is what a receiver must bear (IEEE 802.3 clause 46.2.1).
    pub fn timed() -> Self {
        Self { encoder: Encoder { least_gap: 5, ..Encoder::default() }, decoder: Decoder::default() }
    }
}

impl Port for Xgmii {
    fn is_idle(&self) -> bool {
        self.encoder.is_idle()
    }

    fn push(&mut self, frame: &[u8], fcs_ok: bool) {
        self.encoder.push(frame, fcs_ok);
    }

    fn drive(&mut self, line: &mut Line) {
        let (data, control) = self.encoder.next_word();
        (line.rx_data[0], line.rx_mask) = (data, control.into());
    }

    fn observe(&mut self, cycle: u64, line: &Line) -> Option<Received> {
        self.decoder.push_word(cycle, line.tx_data[0], line.tx_mask as u8)
    }

    fn is_silent(&self, line: &Line) -> bool {
        (line.tx_data[0], line.tx_mask as u8) == IDLE_WORD
    }
}

/// Makes XGMII words of frames; every frame starts in lane 0.
pub struct Encoder {
    /// Data, and a control bit for each lane.
    words: VecDeque<(u64, u8)>,
    /// Octets between frames, the terminate character counted; more where the next word begins later.
    least_gap: usize,
}

impl Default for Encoder {
    /// A line with the standard's gap of 12 octets.
    fn default() -> Self {
        Self { words: VecDeque::new(), least_gap: 12 }
    }
}

impl Encoder {
    /// Queues one frame (destination MAC to payload, no FCS). `fcs_ok = false` sends a wrong FCS.
    pub fn push(&mut self, frame: &[u8], fcs_ok: bool) {
        let control = |byte| (byte, true);
        let data = |byte| (byte, false);
        let start = std::iter::once(control(START)).chain([data(PREAMBLE); 6]).chain([data(SFD)]);
        let gap = std::iter::once(control(TERMINATE)).chain(std::iter::repeat_n(control(IDLE), self.least_gap - 1));
        let (mut word, mut lane) = ((0, 0), 0);
        for (byte, control) in start.chain(octets(frame, fcs_ok).map(data)).chain(gap) {
            word.0 |= u64::from(byte) << (8 * lane);
            word.1 |= u8::from(control) << lane;
            lane += 1;
            if lane == 8 {
                self.words.push_back(std::mem::take(&mut word));
                lane = 0;
            }
        }
        if lane > 0 {
            let (data, control) = IDLE_WORD;
            self.words.push_back((word.0 | data << (8 * lane), word.1 | control << lane));
        }
    }

    pub fn is_idle(&self) -> bool {
        self.words.is_empty()
    }

    /// The word of the next cycle.
    pub fn next_word(&mut self) -> (u64, u8) {
        self.words.pop_front().unwrap_or(IDLE_WORD)
    }
}

/// Finds frames in XGMII words.
#[derive(Default)]
pub struct Decoder {
    /// Bytes since the start character, preamble included; `None` between frames.
    current: Option<(u64, BytesMut)>,
}

impl Decoder {
    /// Takes the word of `cycle`; returns the frame that ends in it.
    pub fn push_word(&mut self, cycle: u64, data: u64, control: u8) -> Option<Received> {
        // The two words that make up nearly all of a run need no look at single lanes.
        if control == 0 {
            if let Some((_, bytes)) = &mut self.current {
                bytes.extend_from_slice(&data.to_le_bytes());
            }
            return None;
        }
        if (data, control) == IDLE_WORD && self.current.is_none() {
            return None;
        }
        let mut ended = None;
        for (lane, byte) in data.to_le_bytes().into_iter().enumerate() {
            let is_control = control >> lane & 1 != 0;
            match (is_control, byte, &mut self.current) {
                (true, START, current) => *current = Some((cycle * 8 + lane as u64, BytesMut::with_capacity(4200))),
                (true, _, Some(_)) => {
                    let (start_octet, bytes) = self.current.take().expect("matched Some");
                    ended = Some(finish(start_octet, bytes, byte == TERMINATE));
                }
                (false, byte, Some((_, bytes))) => bytes.extend_from_slice(&[byte]),
                _ => {}
            }
        }
        ended
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use penstock_wire::MIN_FRAME_LEN;
    use proptest::prelude::*;

    fn through(frames: &[(Vec<u8>, bool)]) -> Vec<Received> {
        let mut encoder = Encoder::default();
        let mut decoder = Decoder::default();
        frames.iter().for_each(|(f, ok)| encoder.push(f, *ok));
        let mut out = Vec::new();
        let mut cycle = 0;
        while !encoder.is_idle() {
            let (data, control) = encoder.next_word();
            out.extend(decoder.push_word(cycle, data, control));
            cycle += 1;
        }
        out
    }

    proptest! {
        #[test]
        fn frames_come_back_padded_and_with_the_verdict_of_their_fcs(
            frames in proptest::collection::vec((proptest::collection::vec(any::<u8>(), 1..300), any::<bool>()), 1..8)
        ) {
            let seen = through(&frames);
            prop_assert_eq!(seen.len(), frames.len());
            for (got, (sent, ok)) in seen.iter().zip(&frames) {
                prop_assert_eq!(got.fcs_ok, *ok);
                prop_assert_eq!(got.start_octet % 8, 0);
                prop_assert_eq!(&got.frame[..sent.len()], &sent[..]);
                prop_assert_eq!(got.frame.len(), sent.len().max(MIN_FRAME_LEN));
            }
        }
    }

    #[test]
    fn gap_is_at_least_twelve_octets() {
        let mut encoder = Encoder::default();
        for length in 60..76 {
            encoder.push(&vec![0; length], true);
            let octets = 8 * encoder.words.len();
            assert!((8 + length + 4 + 12..8 + length + 4 + 20).contains(&octets));
            while !encoder.is_idle() {
                encoder.next_word();
            }
        }
    }
}
