// SPDX-License-Identifier: Apache-2.0
//! The builds of the QCN switch: which there are, with what clock, and what drives their lines.

use crate::gmii::Gmii;
use crate::port::Port;
use crate::xgmii::Xgmii;
use penstock_units::Rate;
use penstock_wire::gateware::LineClock;

/// A build of the switch. Its number is that of `cpp/board.h`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum SwitchLine {
    /// `penstock_switch`, without its management port.
    Gbps10 = 0,
    /// `penstock_switch_1g`, with it.
    Gbps1 = 1,
}

impl SwitchLine {
    /// Every build.
    pub const ALL: [Self; 2] = [Self::Gbps1, Self::Gbps10];

    /// The one whose lines have this rate.
    pub fn at(rate: Rate) -> Option<Self> {
        Self::ALL.into_iter().find(|line| line.clock().rate() == rate)
    }

    /// Its clock and its lines.
    pub fn clock(self) -> LineClock {
        match self {
            Self::Gbps10 => LineClock::GBPS_10,
            Self::Gbps1 => LineClock::GBPS_1,
        }
    }

    /// The model of one of its lines.
    pub(super) fn port(self) -> Box<dyn Port> {
        match self {
            Self::Gbps10 => Box::new(Xgmii::timed()),
            Self::Gbps1 => Box::new(Gmii::timed()),
        }
    }
}
