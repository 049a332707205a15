// SPDX-License-Identifier: Apache-2.0
//! The Ethernet side of a board: the model of a transceiver or hard MAC at the ports of a top.

use crate::ffi::Line;
use bytes::{Bytes, BytesMut};
use penstock_wire::MIN_FRAME_LEN;

/// IEEE 802.3 clause 3.2: seven octets, then the start of the frame.
pub(crate) const PREAMBLE: u8 = 0x55;
pub(crate) const SFD: u8 = 0xd5;

/// The Ethernet side of a top: what a transceiver or a hard MAC does on its line.
pub trait Port: Send {
    /// The next frame may begin.
    fn is_idle(&self) -> bool;

    /// Sends a frame (destination MAC to payload, no FCS) into the gateware, from the next cycle on.
    fn push(&mut self, frame: &[u8], fcs_ok: bool);

    /// Sets the port's inputs, before a cycle.
    fn drive(&mut self, line: &mut Line);

    /// Takes the port's outputs, after it; returns the frame that ended in `cycle`.
    fn observe(&mut self, cycle: u64, line: &Line) -> Option<Received>;

    /// Nothing of a frame is on the port's outputs.
    fn is_silent(&self, line: &Line) -> bool;
}

/// A frame that the gateware has sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Received {
    /// Octet time of the preamble's first octet. On XGMII, the start character's: cycle * 8 + lane.
    pub start_octet: u64,
    /// Destination MAC to payload; the FCS is checked and stripped.
    pub frame: Bytes,
    pub fcs_ok: bool,
}

/// A frame as it follows its preamble on the line: padded, with its FCS, or with a wrong one.
pub(crate) fn octets(frame: &[u8], fcs_ok: bool) -> impl Iterator<Item = u8> + '_ {
    const PADDING: [u8; MIN_FRAME_LEN] = [0; MIN_FRAME_LEN];
    let padding = &PADDING[frame.len().min(MIN_FRAME_LEN)..];
    let mut crc = crc32fast::Hasher::new();
    crc.update(frame);
    crc.update(padding);
    let fcs = crc.finalize() ^ if fcs_ok { 0 } else { u32::MAX };
    frame.iter().chain(padding).copied().chain(fcs.to_le_bytes())
}

/// A frame of its octets on the line but the first; `is_whole`: nothing ended it early.
pub(crate) fn finish(start_octet: u64, octets: BytesMut, is_whole: bool) -> Received {
    let octets = octets.freeze();
    if octets.len() < 7 + 4 {
        return Received { start_octet, frame: Bytes::new(), fcs_ok: false };
    }
    let end = octets.len() - 4;
    let frame = octets.slice(7..end);
    let fcs = u32::from_le_bytes(octets[end..].try_into().expect("four bytes"));
    Received { start_octet, fcs_ok: is_whole && octets[6] == SFD && crc32fast::hash(&frame) == fcs, frame }
}
