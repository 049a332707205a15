// SPDX-License-Identifier: Apache-2.0
//! The detector's side of a board: streams of fragments into the inputs that the gateware makes events of.
//! Promise: of each input the fragments go in in the order of their events, beat by beat, as fast as the gateware takes
//! them. The tuser of an input is `fragment_t` of `rtl/event/event_pkg.sv`.

use crate::ffi::Pins;
use crate::message::word_of;
use bytes::Bytes;
use penstock_wire::gateware::BOARD_INPUTS;
use std::collections::VecDeque;

/// Bytes of `fragment_t`.
const ABOUT_BYTES: usize = 18;

/// What a detector gives of one event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DetectorEvent {
    pub number: u64,
    pub timestamp_ns: u64,
    pub trigger_type: u16,
    /// The raw bytes for each input from input 0 on, at most [`BOARD_INPUTS`]; the inputs behind them get nothing.
    pub streams: Vec<Bytes>,
}

impl DetectorEvent {
    /// `fragment_t` as it lies on the pins, byte 0 first.
    fn about(&self) -> [u8; ABOUT_BYTES] {
        let mut bytes = [0; ABOUT_BYTES];
        bytes[..8].copy_from_slice(&self.number.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.timestamp_ns.to_le_bytes());
        bytes[16..].copy_from_slice(&self.trigger_type.to_le_bytes());
        bytes
    }
}

/// The fragments that one input still has to take.
#[derive(Default)]
struct Input {
    fragments: VecDeque<([u8; ABOUT_BYTES], Bytes)>,
    /// Bytes of the first one that have been taken.
    offset: usize,
}

/// Drives the streams of all inputs.
pub(crate) struct DetectorPort {
    /// Bytes of a beat.
    lanes: usize,
    inputs: [Input; BOARD_INPUTS],
}

impl DetectorPort {
    pub fn new(lanes: usize) -> Self {
        Self { lanes, inputs: Default::default() }
    }

    /// Queues the fragments of an event behind those of the events before it.
    ///
    /// # Panics
    /// When there are more streams than inputs.
    pub fn push(&mut self, event: &DetectorEvent) {
        assert!(event.streams.len() <= BOARD_INPUTS, "{} streams for {BOARD_INPUTS} inputs", event.streams.len());
        for (input, stream) in self.inputs.iter_mut().zip(&event.streams) {
            input.fragments.push_back((event.about(), stream.clone()));
        }
    }

    /// Events of which not every beat has been taken.
    pub fn pending(&self) -> usize {
        self.inputs.iter().map(|input| input.fragments.len()).max().unwrap_or(0)
    }

    pub fn drive(&self, pins: &mut Pins) {
        (pins.event_tvalid, pins.event_tlast) = (0, 0);
        for (i, input) in self.inputs.iter().enumerate() {
            let Some((about, stream)) = input.fragments.front() else { continue };
            let rest = &stream[input.offset..];
            let beat = &rest[..rest.len().min(self.lanes)];
            // Whatever lies behind the last byte: tkeep counts.
            let words = self.lanes / 8;
            for (word, bytes) in pins.event_tdata[i * words..].iter_mut().zip(beat.chunks(8)) {
                *word = word_of(bytes);
            }
            let keep = u64::MAX.checked_shr(64 - beat.len() as u32).unwrap_or(0).to_le_bytes();
            pins.event_tkeep[i * words..][..words].copy_from_slice(&keep[..words]);
            pins.event_tuser[i] = *about;
            pins.event_tvalid |= 1 << i;
            pins.event_tlast |= u8::from(beat.len() == rest.len()) << i;
        }
    }

    pub fn observe(&mut self, pins: &Pins) {
        let taken = pins.event_tvalid & pins.event_tready;
        for (i, input) in self.inputs.iter_mut().enumerate().filter(|(i, _)| taken >> i & 1 != 0) {
            input.offset += self.lanes;
            if pins.event_tlast >> i & 1 != 0 {
                input.offset = 0;
                input.fragments.pop_front();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes every beat that is shown; gives each input's bytes and the events they were said to be of.
    fn played(port: &mut DetectorPort, lanes: usize) -> Vec<Vec<(u64, Vec<u8>)>> {
        let mut pins = Pins { event_tready: u8::MAX, ..Pins::default() };
        let mut found: Vec<Vec<(u64, Vec<u8>)>> = vec![Vec::new(); BOARD_INPUTS];
        let mut open = [false; BOARD_INPUTS];
        while port.pending() > 0 {
            port.drive(&mut pins);
            for i in (0..BOARD_INPUTS).filter(|i| pins.event_tvalid >> i & 1 != 0) {
                if !open[i] {
                    let about = &pins.event_tuser[i][..8];
                    found[i].push((u64::from_le_bytes(about.try_into().unwrap()), Vec::new()));
                }
                let keep: Vec<bool> =
                    (0..lanes).map(|lane| pins.event_tkeep[(i * lanes + lane) / 8] >> (lane % 8) & 1 != 0).collect();
                let words = &pins.event_tdata[i * lanes / 8..][..lanes / 8];
                let beat: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
                found[i].last_mut().unwrap().1.extend(beat.iter().zip(keep).filter(|(_, kept)| *kept).map(|(b, _)| *b));
                open[i] = pins.event_tlast >> i & 1 == 0;
            }
            port.observe(&pins);
        }
        found
    }

    #[test]
    fn each_input_gets_its_own_bytes_in_the_order_of_the_events() {
        for lanes in [8, 64] {
            let mut port = DetectorPort::new(lanes);
            let stream = |event: u64, input: u64| Bytes::from(vec![(event * 16 + input) as u8; (event * 37) as usize]);
            let events = (0..5).map(|number| DetectorEvent {
                number,
                timestamp_ns: 1000 * number,
                trigger_type: 1,
                streams: (0..3).map(|input| stream(number, input)).collect(),
            });
            events.for_each(|event| port.push(&event));
            let found = played(&mut port, lanes);
            assert!(found[3].is_empty(), "an input without a stream");
            for (input, fragments) in found[..3].iter().enumerate() {
                let wanted: Vec<_> = (0..5).map(|event| (event, stream(event, input as u64).to_vec())).collect();
                assert_eq!(*fragments, wanted, "input {input}, {lanes} lanes");
            }
        }
    }
}
