// SPDX-License-Identifier: Apache-2.0
//! The verilated builds, and their differences: the Ethernet port and the width of a beat.

use crate::port::Port;
use crate::xgmii::Xgmii;

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

/// `penstock_xgmii` with 4 queue pairs.
pub struct Penstock10g;

impl Top for Penstock10g {
    const MODEL: u32 = 0;
    const LANES: usize = 8;
    const OCTETS_PER_CYCLE: (u64, u64) = (8, 1);
    type Port = Xgmii;
}
