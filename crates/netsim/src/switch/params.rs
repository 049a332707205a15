// SPDX-License-Identifier: Apache-2.0
//! What a switch can be set to, and the numbers needed to be lossless, computed from rate, delay and MTU.
//! Promise: `PfcParams::lossless` gives thresholds with which no frame of a paused class is dropped.
//! Source: IEEE 802.1Q annex N (PFC delay), IEEE 802.3 31B.3.7 (response time), Zhu et al. 2015 section 4 (thresholds).

use crate::link::LinkParams;
use crate::units::{ByteSize, Probability, Time};

/// Bytes around the payload of the longest RoCEv2 packet: Ethernet 14, IPv4 20, UDP 8, BTH 12, RETH 16, immediate 4,
/// ICRC 4.
const HEADERS: u64 = 78;
/// Preamble 8, FCS 4, gap 12.
const WIRE_OVERHEAD: u64 = 24;
/// A PFC frame on the wire.
const PFC_FRAME: u64 = 84;
/// A sender may take 60 quanta of 512 bits to obey (IEEE 802.3 31B.3.7, 10 Gb/s; the longest of the rates served here).
const RESPONSE: u64 = 60 * 512 / 8;

/// The longest frame of an MTU, as the switch stores it.
pub fn max_frame(mtu: u16) -> ByteSize {
    ByteSize(u64::from(mtu) + HEADERS)
}

/// RED marking of ECN-capable packets on an egress queue (RFC 3168, Zhu et al.): by the bytes of the same class that
/// wait in front of the arriving packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EcnParams {
    pub kmin: ByteSize,
    pub kmax: ByteSize,
    pub pmax: Probability,
}

impl Default for EcnParams {
    /// For 10 Gb/s links: K_min 50 KB, K_max 200 KB, p_max 0.2.
    fn default() -> Self {
        let pmax = Probability::new(0.2).unwrap_or_default();
        EcnParams { kmin: ByteSize(50_000), kmax: ByteSize(200_000), pmax }
    }
}

/// Priority flow control, counted per ingress port and class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PfcParams {
    /// The lossless classes, bit i for class i.
    pub classes: u8,
    /// Above this many bytes from one port the port is told to pause.
    pub xoff: ByteSize,
    /// At or below this many bytes it is told to go on.
    pub xon: ByteSize,
    /// What may still arrive above `xoff` before the pause takes effect; beyond it frames are dropped.
    pub headroom: ByteSize,
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

/// The headroom one port and class needs on this link: what crosses the threshold (one frame), what may be in front
/// of the PFC frame (one frame), the PFC frame, the round trip, the sender's response time, and the frame the sender
/// has just begun.
pub fn lossless_headroom(link: &LinkParams, mtu: u16) -> ByteSize {
    let frame = max_frame(mtu).bytes() + WIRE_OVERHEAD;
    let round_trip = (link.delay + link.faults.jitter) * 2;
    ByteSize(3 * frame + PFC_FRAME + link.rate.bytes_in(round_trip).bytes() + RESPONSE)
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
        let shared = 4 * frame;
        let lossless = ports.max(1) * u64::from(classes.count_ones().max(1));
        let share = buffer.bytes() / lossless;
        if share < headroom.bytes() + shared {
            let needed = ByteSize(lossless * (headroom.bytes() + shared));
            return Err(BufferTooSmall { buffer, ports, headroom, shared: ByteSize(shared), needed });
        }
        let xoff = share - headroom.bytes();
        Ok(PfcParams { classes, xoff: ByteSize(xoff), xon: ByteSize(xoff - 2 * frame), headroom })
    }
}

/// An output-queued switch with one shared buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SwitchParams {
    /// Bytes for all queues together.
    pub buffer: ByteSize,
    /// `None`: nothing is marked.
    pub ecn: Option<EcnParams>,
    /// `None`: nothing is paused, a full buffer drops. Received PFC is obeyed in either case.
    pub pfc: Option<PfcParams>,
}

impl SwitchParams {
    /// Pause frames ask for the longest time and are repeated before half of it has passed.
    pub(crate) const PAUSE_QUANTA: u16 = 0xFFFF;

    pub(crate) fn refresh_after(pause: Time) -> Time {
        Time(pause.0 / 2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thresholds_divide_the_buffer() {
        let headroom = lossless_headroom(&LinkParams::default(), 4096);
        assert_eq!(headroom, ByteSize(3 * 4198 + 84 + 2500 + 3840));
        let pfc = PfcParams::lossless(8, ByteSize(1_000_000), 4, headroom, 4096).unwrap();
        assert_eq!(pfc.xoff, ByteSize(250_000 - headroom.bytes()));
        assert!(pfc.xon < pfc.xoff);
        let error = PfcParams::lossless(8, ByteSize(100_000), 4, headroom, 4096).unwrap_err();
        assert_eq!(error.needed, ByteSize(4 * (headroom.bytes() + 4 * 4174)));
    }
}
