// SPDX-License-Identifier: Apache-2.0
//! XGMII (IEEE 802.3 clause 46), 64 bits wide: frames to words and words to frames.
//!
//! One word a clock cycle of 6.4 ns: eight lanes, lane 0 in the low byte, one control bit a lane.

use crate::ffi::Pins;
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

impl Port for Xgmii {
    fn is_idle(&self) -> bool {
        self.encoder.is_idle()
    }

    fn push(&mut self, frame: &[u8], fcs_ok: bool) {
        self.encoder.push(frame, fcs_ok);
    }

    fn drive(&mut self, pins: &mut Pins) {
        let (data, control) = self.encoder.next_word();
        (pins.rx_data[0], pins.rx_mask) = (data, control.into());
    }

    fn observe(&mut self, cycle: u64, pins: &Pins) -> Option<Received> {
        self.decoder.push_word(cycle, pins.tx_data[0], pins.tx_mask as u8)
    }
}

/// Makes XGMII words of frames; every frame starts in lane 0.
#[derive(Default)]
pub struct Encoder {
    lanes: VecDeque<(u8, bool)>,
}

impl Encoder {
    /// Queues one frame (destination MAC to payload, no FCS). `fcs_ok = false` sends a wrong FCS.
    pub fn push(&mut self, frame: &[u8], fcs_ok: bool) {
        let control = |byte| (byte, true);
        let data = |byte| (byte, false);
        self.lanes.push_back(control(START));
        self.lanes.extend([data(PREAMBLE); 6]);
        self.lanes.push_back(data(SFD));

        self.lanes.extend(octets(frame, fcs_ok).map(data));
        self.lanes.push_back(control(TERMINATE));
        // Inter-packet gap of at least 12 octets, the terminate character counted, to the next lane 0.
        let gap = 11 + (8 - (self.lanes.len() + 11) % 8) % 8;
        self.lanes.extend(std::iter::repeat_n(control(IDLE), gap));
    }

    pub fn is_idle(&self) -> bool {
        self.lanes.is_empty()
    }

    /// The word of the next cycle.
    pub fn next_word(&mut self) -> (u64, u8) {
        if self.lanes.is_empty() {
            return IDLE_WORD;
        }
        let mut word = (0, 0);
        for lane in 0..8 {
            let (byte, control) = self.lanes.pop_front().unwrap_or((IDLE, true));
            word.0 |= u64::from(byte) << (8 * lane);
            word.1 |= u8::from(control) << lane;
        }
        word
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
            let octets = encoder.lanes.len();
            assert_eq!(octets % 8, 0);
            assert!(octets >= 8 + length + 4 + 12);
            while !encoder.is_idle() {
                encoder.next_word();
            }
        }
    }
}
