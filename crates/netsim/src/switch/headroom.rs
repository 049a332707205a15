// SPDX-License-Identifier: Apache-2.0
//! The thresholds that make a switch lossless, computed from rate, delay and MTU.
//! Promise: with `lossless_headroom` above the threshold no frame of a paused class is dropped.
//! Source: IEEE 802.1Q annex N (PFC delay), IEEE 802.3 31B.3.7 (response time), Zhu et al. 2015 section 4 (thresholds).

use super::params::{max_frame, Headroom, PauseFrame, PfcParams, PfcThreshold};
use crate::link::LinkParams;
use crate::units::{ByteSize, Rate};
use penstock_wire::WIRE_OVERHEAD;

/// A PFC frame on the wire.
const PFC_FRAME: u64 = 84;
/// Bytes of a pause quantum.
const QUANTUM: u64 = 512 / 8;
/// Frames of the longest kind that each lossless port and class should have in addition to its headroom.
const SHARED_FRAMES: u64 = 4;

/// The data that a sender may still send before it obeys, by the rate of the link: 2 quanta at 1 Gb/s, 60 at 10 Gb/s,
/// 118 at 40 Gb/s, 394 at 100 Gb/s (IEEE 802.3ba 31B.3.7). In between, the quanta of the next higher rate; above, the
/// time of 100 Gb/s.
fn response(rate: Rate) -> u64 {
    const LIMITS: [(u64, u64); 4] = [(1, 2), (10, 60), (40, 118), (100, 394)];
    let limit = LIMITS.iter().find(|(gbps, _)| rate <= Rate::from_gbps(*gbps));
    match limit {
        Some((_, quanta)) => quanta * QUANTUM,
        None => rate.bytes_in(Rate::from_gbps(100).time_for(394 * QUANTUM)).bytes(),
    }
}

/// The headroom one port and class needs on this link: what crosses the threshold (one frame), what may be in front
/// of the PFC frame (one frame), the PFC frame, the round trip, the sender's response time, and the frame the sender
/// has just begun.
pub fn lossless_headroom(link: &LinkParams, mtu: u16) -> ByteSize {
    let frame = max_frame(mtu).bytes() + WIRE_OVERHEAD as u64;
    let round_trip = (link.delay + link.faults.jitter) * 2;
    ByteSize(3 * frame + PFC_FRAME + link.rate.bytes_in(round_trip).bytes() + response(link.rate))
}

/// The smallest buffer that makes `classes` (a bit mask) lossless on all these ports: the headroom of each, and four
/// frames each to work with.
pub fn lossless_buffer<'a>(classes: u8, links: impl IntoIterator<Item = &'a LinkParams>, mtu: u16) -> ByteSize {
    let shared = SHARED_FRAMES * max_frame(mtu).bytes();
    let ports = links.into_iter().map(|link| lossless_headroom(link, mtu).bytes() + shared).sum::<u64>();
    ByteSize(ports * u64::from(classes.count_ones()))
}

/// A buffer that cannot be lossless.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "a buffer of {buffer} is too small for {ports} lossless ports: each needs {headroom} of headroom and {shared} \
     to work with; allowed is {needed} or more"
)]
pub struct BufferTooSmall {
    pub buffer: ByteSize,
    pub ports: u64,
    pub headroom: ByteSize,
    pub shared: ByteSize,
    pub needed: ByteSize,
}

impl PfcParams {
    /// The thresholds for a buffer shared equally by `ports` ports with one lossless class each, on the most
    /// demanding of their links: xoff is the port's share less the headroom, xon lies two frames below.
    pub fn lossless(
        classes: u8,
        buffer: ByteSize,
        ports: u64,
        headroom: ByteSize,
        mtu: u16,
    ) -> Result<Self, BufferTooSmall> {
        let frame = max_frame(mtu).bytes();
        let shared = SHARED_FRAMES * frame;
        let lossless = ports.max(1) * u64::from(classes.count_ones().max(1));
        let share = buffer.bytes() / lossless;
        if share < headroom.bytes() + shared {
            let needed = ByteSize(lossless * (headroom.bytes() + shared));
            return Err(BufferTooSmall { buffer, ports, headroom, shared: ByteSize(shared), needed });
        }
        let xoff = share - headroom.bytes();
        let threshold = PfcThreshold::Static { xoff: ByteSize(xoff), xon: ByteSize(xoff - 2 * frame) };
        Ok(PfcParams { classes, threshold, headroom: Headroom::Fixed(headroom), frame: PauseFrame::Pfc })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn response_times_are_those_of_the_standard() {
        let of = |gbps| response(Rate::from_gbps(gbps));
        assert_eq!([1, 10, 25, 40, 100].map(of), [2, 60, 118, 118, 394].map(|quanta| quanta * 64));
        assert_eq!(of(400), 4 * of(100));
    }

    #[test]
    fn thresholds_divide_the_buffer() {
        let headroom = lossless_headroom(&LinkParams::default(), 4096);
        assert_eq!(headroom, ByteSize(3 * 4198 + 84 + 2500 + 3840));
        let pfc = PfcParams::lossless(8, ByteSize(1_000_000), 4, headroom, 4096).unwrap();
        let xoff = ByteSize(250_000 - headroom.bytes());
        assert_eq!(pfc.threshold, PfcThreshold::Static { xoff, xon: ByteSize(xoff.bytes() - 2 * 4174) });
        let error = PfcParams::lossless(8, ByteSize(100_000), 4, headroom, 4096).unwrap_err();
        assert_eq!(error.needed, ByteSize(4 * (headroom.bytes() + 4 * 4174)));
        assert_eq!(error.needed, lossless_buffer(8, &[LinkParams::default(); 4], 4096));
    }
}
