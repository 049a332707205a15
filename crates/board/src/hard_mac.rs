// SPDX-License-Identifier: Apache-2.0
//! A 100G hard MAC on 512-bit AXI-Stream at 322.265625 MHz: accepts data at the rate of its line.
//! It adds preamble, FCS and the minimum gap (IEEE 802.3 clauses 4.2.7, 81.3.2) and holds a few beats.

use crate::ffi::Line;
use crate::port::{Port, Received};
use bytes::BytesMut;
use penstock_wire::gateware::LineClock;
use penstock_wire::MIN_FRAME_LEN;
use std::collections::VecDeque;

const OCTETS_PER_CYCLE: (u64, u64) = LineClock::GBPS_100.octets_per_cycle;
const LANES: usize = 64;
/// Beats that wait in the MAC at most when it takes another.
const BUFFER_OCTETS: u64 = 2 * LANES as u64;
const PREAMBLE: u64 = 8;
const FCS_AND_GAP: u64 = 4 + 12;

/// What the line still has to send counts in parts of an octet, so that no cycle's share is rounded.
const fn line_time(octets: u64) -> u64 {
    octets * OCTETS_PER_CYCLE.1
}

/// The MAC's two sides.
#[derive(Default)]
pub struct HardMac {
    receiving: VecDeque<Beat>,
    /// The line's time since the last beat was complete, in [`line_time`].
    received: u64,
    /// Time from now until everything taken is on the line, in [`line_time`].
    backlog: u64,
    sending: Option<Frame>,
}

/// One beat towards the gateware.
struct Beat {
    data: [u64; 8],
    keep: u64,
    last: bool,
    bad: bool,
    /// What the line brings until it is complete.
    octets: u64,
}

/// A frame on the line, of which more is to come.
struct Frame {
    start_octet: u64,
    bytes: BytesMut,
    /// The line ran dry: a hard MAC cannot mend that.
    underrun: bool,
}

impl Port for HardMac {
    fn is_idle(&self) -> bool {
        self.receiving.is_empty()
    }

    fn push(&mut self, frame: &[u8], fcs_ok: bool) {
        let mut padded = [0; MIN_FRAME_LEN];
        let frame = match frame.len() < MIN_FRAME_LEN {
            true => {
                padded[..frame.len()].copy_from_slice(frame);
                &padded
            }
            false => frame,
        };
        self.receiving.extend(frame.chunks(LANES).map(Beat::new));
        let first = self.receiving.front_mut().expect("a frame has a beat");
        first.octets += PREAMBLE;
        let last = self.receiving.back_mut().expect("a frame has a beat");
        (last.last, last.bad) = (true, !fcs_ok);
        self.received = 0;
    }

    fn drive(&mut self, line: &mut Line) {
        line.tx_ready = u8::from(self.backlog <= line_time(BUFFER_OCTETS));
        self.received += OCTETS_PER_CYCLE.0;
        let complete = self.receiving.front().is_some_and(|beat| line_time(beat.octets) <= self.received);
        let beat = if complete { self.receiving.pop_front() } else { None };
        line.rx_valid = u8::from(beat.is_some());
        if let Some(beat) = beat {
            self.received -= line_time(beat.octets);
            (line.rx_data, line.rx_mask) = (beat.data, beat.keep);
            (line.rx_last, line.rx_error) = (beat.last.into(), beat.bad.into());
        }
    }

    fn observe(&mut self, cycle: u64, line: &Line) -> Option<Received> {
        let ended = if line.tx_valid & line.tx_ready != 0 { self.take(cycle, line) } else { None };
        self.backlog = self.backlog.saturating_sub(OCTETS_PER_CYCLE.0);
        ended
    }

    fn is_silent(&self, line: &Line) -> bool {
        line.tx_valid == 0
    }
}

impl HardMac {
    fn take(&mut self, cycle: u64, line: &Line) -> Option<Received> {
        let dry = self.backlog == 0;
        if self.sending.is_none() {
            let start_octet = (cycle * OCTETS_PER_CYCLE.0 + self.backlog) / OCTETS_PER_CYCLE.1;
            self.sending = Some(Frame { start_octet, bytes: BytesMut::with_capacity(4200), underrun: false });
            self.backlog += line_time(PREAMBLE);
        } else if let Some(frame) = &mut self.sending {
            frame.underrun |= dry;
        }
        let frame = self.sending.as_mut()?;
        let mut left = line.tx_mask.count_ones() as usize;
        self.backlog += line_time(left as u64);
        for word in line.tx_data {
            let bytes = left.min(8);
            frame.bytes.extend_from_slice(&word.to_le_bytes()[..bytes]);
            left -= bytes;
        }
        if line.tx_last == 0 {
            return None;
        }
        self.backlog += line_time(FCS_AND_GAP);
        let Frame { start_octet, bytes, underrun } = self.sending.take()?;
        Some(Received { start_octet, frame: bytes.freeze(), fcs_ok: !underrun && line.tx_error == 0 })
    }
}

impl Beat {
    fn new(bytes: &[u8]) -> Self {
        let mut padded = [0; LANES];
        padded[..bytes.len()].copy_from_slice(bytes);
        let mut data = [0; 8];
        for (word, bytes) in data.iter_mut().zip(padded.as_chunks::<8>().0) {
            *word = u64::from_le_bytes(*bytes);
        }
        let keep = u64::MAX >> (LANES - bytes.len());
        Self { data, keep, last: false, bad: false, octets: bytes.len() as u64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends frames of these lengths, each offered from its cycle on, with `stall` cycles in front of a second beat.
    fn send(frames: &[(u64, usize)], stall: u64) -> Vec<Received> {
        let (mut mac, mut line, mut seen) = (HardMac::default(), Line::default(), Vec::new());
        let mut cycle = 0;
        for &(offered, length) in frames {
            let mut left = length;
            let mut from = offered;
            while left > 0 {
                mac.drive(&mut line);
                let beat = left.min(LANES);
                line.tx_valid = u8::from(cycle >= from);
                (line.tx_mask, line.tx_last) = (u64::MAX >> (LANES - beat), u8::from(beat == left));
                if line.tx_valid & line.tx_ready != 0 {
                    from = if left == length { cycle + 1 + stall } else { 0 };
                    left -= beat;
                }
                seen.extend(mac.observe(cycle, &line));
                cycle += 1;
            }
        }
        seen
    }

    #[test]
    fn received_frames_come_no_faster_than_the_line_brings_them_and_bad_ones_are_marked() {
        let (mut mac, mut line, mut ends) = (HardMac::default(), Line::default(), Vec::new());
        for (length, fcs_ok) in [(20, true), (4150, true), (100, false)] {
            mac.push(&vec![1; length], fcs_ok);
            let mut octets = 0;
            for cycle in 1.. {
                mac.drive(&mut line);
                octets += u64::from(line.rx_valid) * u64::from(line.rx_mask.count_ones());
                if line.rx_valid & line.rx_last != 0 {
                    ends.push((cycle, octets, line.rx_error));
                    break;
                }
            }
            assert!(mac.is_idle());
        }
        // 8 octets of preamble and the frame, at 38.8 octets a cycle.
        assert_eq!(ends, [(2, 60, 0), (108, 4150, 0), (3, 100, 1)]);
    }

    #[test]
    fn a_frame_that_ends_marked_is_spoilt() {
        let (mut mac, mut line) = (HardMac::default(), Line { tx_mask: u64::MAX, ..Line::default() });
        let mut end = |error: u8| {
            mac.drive(&mut line);
            (line.tx_valid, line.tx_last, line.tx_error) = (1, 1, error);
            mac.observe(0, &line).map(|frame| frame.fcs_ok)
        };
        assert_eq!([end(0), end(1)], [Some(true), Some(false)]);
    }

    #[test]
    fn frames_follow_each_other_at_the_pace_of_the_line() {
        let seen = send(&[(0, 4158); 20], 0);
        let starts: Vec<u64> = seen.iter().map(|frame| frame.start_octet).collect();
        assert!(starts.windows(2).all(|pair| pair[1] - pair[0] == 4158 + 24), "{starts:?}");
        assert!(seen.iter().all(|frame| frame.fcs_ok && frame.frame.len() == 4158));
    }

    #[test]
    fn a_line_that_waits_for_a_frame_is_idle() {
        let seen = send(&[(0, 64), (1000, 64)], 0);
        assert_eq!(seen[1].start_octet, 1000 * 1280 / 33);
    }

    #[test]
    fn a_frame_whose_beats_come_too_late_is_spoilt() {
        assert!(send(&[(0, 200)], 0)[0].fcs_ok);
        assert!(!send(&[(0, 200)], 1)[0].fcs_ok, "preamble and first beat, 72 octets, do not last for two cycles");
    }
}
