// SPDX-License-Identifier: Apache-2.0
//! The builds used only for measurements: 16 queue pairs or streams of TCP at both widths.

use crate::hard_mac::{self, HardMac};
use crate::top::Top;
use crate::xgmii::Xgmii;

/// `penstock_xgmii` with 16 queue pairs: at 10 and at 25 Gb/s it is the same logic at another clock.
pub struct Penstock10gX16;

impl Top for Penstock10gX16 {
    const MODEL: u32 = 1;
    const LANES: usize = 8;
    const OCTETS_PER_CYCLE: (u64, u64) = (8, 1);
    type Port = Xgmii;
}

/// `penstock_100g` with 16 queue pairs.
pub struct Penstock100gX16;

impl Top for Penstock100gX16 {
    const MODEL: u32 = 2;
    const LANES: usize = 64;
    const OCTETS_PER_CYCLE: (u64, u64) = hard_mac::OCTETS_PER_CYCLE;
    type Port = HardMac;
}

/// `penstock_xgmii` with 16 streams of TCP instead of queue pairs.
pub struct Penstock10gTcpX16;

impl Top for Penstock10gTcpX16 {
    const MODEL: u32 = 4;
    const LANES: usize = 8;
    const OCTETS_PER_CYCLE: (u64, u64) = (8, 1);
    type Port = Xgmii;
}

/// `penstock_100g` with 16 streams of TCP instead of queue pairs.
pub struct Penstock100gTcpX16;

impl Top for Penstock100gTcpX16 {
    const MODEL: u32 = 5;
    const LANES: usize = 64;
    const OCTETS_PER_CYCLE: (u64, u64) = hard_mac::OCTETS_PER_CYCLE;
    type Port = HardMac;
}
