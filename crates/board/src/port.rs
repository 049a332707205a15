// SPDX-License-Identifier: Apache-2.0
//! The Ethernet side of a board: the model of a transceiver or hard MAC at the ports of a top.

use crate::ffi::Pins;
use bytes::Bytes;

/// The Ethernet side of a top: what a transceiver or a hard MAC does on its pins.
pub trait Port: Send {
    /// The next frame may begin.
    fn is_idle(&self) -> bool;

    /// Sends a frame (destination MAC to payload, no FCS) into the gateware, from the next cycle on.
    fn push(&mut self, frame: &[u8], fcs_ok: bool);

    /// Before a cycle: sets the port's inputs.
    fn drive(&mut self, pins: &mut Pins);

    /// After it: takes the port's outputs; returns the frame that ended in `cycle`.
    fn observe(&mut self, cycle: u64, pins: &Pins) -> Option<Received>;
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
