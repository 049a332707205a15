// SPDX-License-Identifier: Apache-2.0
//! GMII (IEEE 802.3 clause 35) at 1 Gb/s: two octets in a cycle of the front end's 62.5 MHz.

use crate::ffi::Line;
use crate::port::{finish, octets, Port, Received, PREAMBLE, SFD};
use bytes::BytesMut;
use std::collections::VecDeque;

/// IEEE 802.3 clause 4.4.2.
const GAP_OCTETS: usize = 12;
/// The same where a frame has waited for the next cycle.
const LEAST_GAP_OCTETS: usize = GAP_OCTETS + 1 - OCTETS_PER_CYCLE as usize;
const OCTETS_PER_CYCLE: u64 = 2;

/// A PHY on GMII.
pub struct Gmii {
    /// Octets to the gateware; `None` in gaps.
    receiving: VecDeque<Option<u8>>,
    least_gap: usize,
    /// A frame of the gateware without its first octet, and the time of that; whether it is without error.
    sending: Option<(u64, BytesMut, bool)>,
}

impl Default for Gmii {
    /// A line with the standard's gap of 12 octets.
    fn default() -> Self {
        Self { receiving: VecDeque::new(), least_gap: GAP_OCTETS, sending: None }
    }
}

impl Gmii {
    /// One whose frames come at the times of a line, each at the next cycle: that shortens a gap by up to an octet.
    pub fn timed() -> Self {
        Self { least_gap: LEAST_GAP_OCTETS, ..Self::default() }
    }
}

impl Port for Gmii {
    fn is_idle(&self) -> bool {
        self.receiving.is_empty()
    }

    fn push(&mut self, frame: &[u8], fcs_ok: bool) {
        self.receiving.extend([Some(PREAMBLE); 7]);
        self.receiving.push_back(Some(SFD));
        self.receiving.extend(octets(frame, fcs_ok).map(Some));
        self.receiving.extend(std::iter::repeat_n(None, self.least_gap));
    }

    fn drive(&mut self, line: &mut Line) {
        (line.rx_data[0], line.rx_mask) = (0, 0);
        for lane in 0..OCTETS_PER_CYCLE {
            if let Some(octet) = self.receiving.pop_front().flatten() {
                line.rx_data[0] |= u64::from(octet) << (8 * lane);
                line.rx_mask |= 1 << lane;
            }
        }
    }

    fn observe(&mut self, cycle: u64, line: &Line) -> Option<Received> {
        let mut ended = None;
        for lane in 0..OCTETS_PER_CYCLE {
            if line.tx_mask >> lane & 1 == 0 {
                let frame = self.sending.take();
                ended = ended.or(frame.map(|(start_octet, bytes, good)| finish(start_octet, bytes, good)));
                continue;
            }
            let good = line.tx_error >> lane & 1 == 0;
            match &mut self.sending {
                None => {
                    let start_octet = cycle * OCTETS_PER_CYCLE + lane;
                    self.sending = Some((start_octet, BytesMut::with_capacity(4200), good));
                }
                Some((_, bytes, all_good)) => {
                    bytes.extend_from_slice(&[(line.tx_data[0] >> (8 * lane)) as u8]);
                    *all_good &= good;
                }
            }
        }
        ended
    }

    fn is_silent(&self, line: &Line) -> bool {
        line.tx_mask == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What comes out where everything that goes in comes back in the same cycle.
    fn looped(frames: &[(usize, bool)]) -> Vec<Received> {
        let (mut phy, mut line, mut seen) = (Gmii::default(), Line::default(), Vec::new());
        for (index, (length, fcs_ok)) in frames.iter().enumerate() {
            phy.push(&vec![index as u8; *length], *fcs_ok);
        }
        for cycle in 0.. {
            phy.drive(&mut line);
            (line.tx_data, line.tx_mask) = (line.rx_data, line.rx_mask);
            seen.extend(phy.observe(cycle, &line));
            if phy.is_idle() && seen.len() == frames.len() {
                break;
            }
        }
        seen
    }

    #[test]
    fn frames_come_back_padded_and_a_line_time_apart() {
        let seen = looped(&[(1500, true), (20, true), (61, true), (61, false)]);
        let lengths: Vec<_> = seen.iter().map(|frame| frame.frame.len()).collect();
        assert_eq!(lengths, [1500, 60, 61, 61]);
        let starts: Vec<_> = seen.iter().map(|frame| frame.start_octet).collect();
        assert_eq!(starts, [0, 1524, 1524 + 84, 1524 + 84 + 85]);
        assert_eq!(seen.iter().map(|frame| frame.fcs_ok).collect::<Vec<_>>(), [true, true, true, false]);
        assert!(seen[2].frame.iter().all(|octet| *octet == 2));
    }
}
