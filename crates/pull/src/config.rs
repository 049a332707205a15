// SPDX-License-Identifier: Apache-2.0
//! The settings of a scheduler.

use penstock_units::Time;
use thiserror::Error;

use crate::window::Window;

/// Settings of a [`Scheduler`](crate::Scheduler).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Config {
    /// How many bytes may be in flight.
    pub window: Window,
    /// READs of one board that may be in flight, 1 to 16 (IBTA volume 1, 9.4.4: agreed when the connection opens).
    pub outstanding: u8,
    /// Payload of a packet, bytes.
    pub mtu: u32,
    /// What each packet adds on the wire, in bytes: headers, FCS, preamble and gap.
    pub packet_overhead: u32,
    /// Fragments of one board that may wait at a time: its slots.
    pub slots: u32,
    /// The longest fragment, bytes.
    pub longest: u32,
    /// How long a board may be silent with READs in flight. After that its part of the window is given to the others.
    pub patience: Time,
}

/// Why a [`Config`] is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum ConfigError {
    /// `outstanding`.
    #[error("{0} READs of a board in flight: 1 to 16 are possible")]
    Outstanding(u8),
    /// `mtu`.
    #[error("an MTU of {0} bytes: 256, 512, 1024, 2048 or 4096 are possible")]
    Mtu(u32),
    /// A given window, in bytes.
    #[error("a window of {window} bytes has no room for one packet of {packet}")]
    Window {
        /// The window, bytes on the wire.
        window: u64,
        /// The longest packet on the wire.
        packet: u64,
    },
    /// A measured window of a line that carries nothing.
    #[error("a line of 0 bps: nothing can be read")]
    Line,
    /// `slots` or `longest`.
    #[error("boards without slots, or with slots of 0 bytes")]
    NoSlots,
    /// `patience`.
    #[error("a patience of 0: every board is silent at once")]
    Patience,
}

impl Config {
    /// Bytes on the wire of `length` bytes of payload.
    #[must_use]
    pub fn wire_bytes(&self, length: u32) -> u64 {
        u64::from(length) + u64::from(length.div_ceil(self.mtu)) * u64::from(self.packet_overhead)
    }

    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        if !(1..=16).contains(&self.outstanding) {
            return Err(ConfigError::Outstanding(self.outstanding));
        }
        if ![256, 512, 1024, 2048, 4096].contains(&self.mtu) {
            return Err(ConfigError::Mtu(self.mtu));
        }
        let packet = self.wire_bytes(self.mtu);
        match self.window {
            Window::Given(window) if window < packet => return Err(ConfigError::Window { window, packet }),
            Window::Measured { line } if line.bits_per_second() == 0 => return Err(ConfigError::Line),
            _ => {}
        }
        if self.slots == 0 || self.longest == 0 {
            return Err(ConfigError::NoSlots);
        }
        if self.patience == Time::from_ps(0) {
            return Err(ConfigError::Patience);
        }
        Ok(())
    }
}
