// SPDX-License-Identifier: Apache-2.0
//! The verilated builds, and what is different about them: the Ethernet port and the width of a beat.

use crate::ffi::Pins;
use crate::xgmii::{Received, Xgmii};

/// The Ethernet side of a top: what a transceiver or a hard MAC does on its pins.
pub trait Port: Default + Send {
    /// The next frame may begin.
    fn is_idle(&self) -> bool;

    /// Sends a frame (destination MAC to payload, no FCS) into the gateware, from the next cycle on.
    fn push(&mut self, frame: &[u8], fcs_ok: bool);

    /// Before a cycle: sets the port's inputs.
    fn drive(&mut self, pins: &mut Pins);

    /// After it: takes the port's outputs; returns the frame that ended in `cycle`.
    fn observe(&mut self, cycle: u64, pins: &Pins) -> Option<Received>;
}

/// A build of a top.
pub trait Top {
    /// Its number in `cpp/board.h`.
    const MODEL: u32;
    /// Bytes of a payload beat.
    const LANES: usize;
    /// Octets that the line takes in a clock cycle: numerator and denominator.
    const OCTETS_PER_CYCLE: (u64, u64);
    /// Its Ethernet side.
    type Port: Port;
}

/// `penstock_10g` with 4 queue pairs.
pub struct Penstock10g;

impl Top for Penstock10g {
    const MODEL: u32 = 0;
    const LANES: usize = 8;
    const OCTETS_PER_CYCLE: (u64, u64) = (8, 1);
    type Port = Xgmii;
}
