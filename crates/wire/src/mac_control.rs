// SPDX-License-Identifier: Apache-2.0
//! MAC control frames that stop a sender: pause for the whole link, PFC for single classes.
//! A quantum is 512 bit times; 0 quanta let the sender continue.
//! Sources: IEEE 802.3 clause 31 and annex 31B (pause, opcode 1); IEEE 802.1Qbb (PFC, opcode 0x0101).

use crate::bytesio::{be16, put16};
use crate::error::ParseError;
use crate::ethernet::MacAddr;

/// Group address of MAC control frames; bridges never forward it.
pub const MAC_CONTROL_DST: MacAddr = MacAddr([0x01, 0x80, 0xC2, 0x00, 0x00, 0x01]);

/// Offsets after the Ethernet header, in bytes.
mod at {
    pub const OPCODE: usize = 0;
    /// Offset of the quanta of a pause frame.
    pub const QUANTA: usize = 2;
    /// Offset of the enabled classes of a PFC frame.
    pub const ENABLED: usize = 2;
    /// The quanta of class 0 of a PFC frame.
    pub const CLASS_QUANTA: usize = 4;
}

const OPCODE_PAUSE: u16 = 0x0001;
const OPCODE_PFC: u16 = 0x0101;

/// The request of a MAC control frame.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum MacControl {
    /// Stop all data frames.
    Pause {
        /// The duration in 512 bit times.
        quanta: u16,
    },
    /// Stop the classes whose bit is set in `enabled`.
    Pfc {
        /// Class-enable vector, bit i for class i.
        enabled: u8,
        /// Per class, in 512 bit times.
        quanta: [u16; 8],
    },
}

impl MacControl {
    /// Reads the bytes after the Ethernet header; `None` for an opcode that is neither.
    ///
    /// # Errors
    /// `Truncated`.
    pub fn parse(data: &[u8]) -> Result<Option<Self>, ParseError> {
        let need = |needed| match data.len() {
            available if available < needed => Err(ParseError::Truncated { layer: "MAC control", needed, available }),
            _ => Ok(()),
        };
        need(2)?;
        match be16(data, at::OPCODE) {
            OPCODE_PAUSE => need(4).map(|()| Some(MacControl::Pause { quanta: be16(data, at::QUANTA) })),
            OPCODE_PFC => need(20).map(|()| {
                let quanta = core::array::from_fn(|class| be16(data, at::CLASS_QUANTA + 2 * class));
                Some(MacControl::Pfc { enabled: data[at::ENABLED + 1], quanta })
            }),
            _ => Ok(None),
        }
    }

    /// Writes after the Ethernet header of a zeroed minimum-size frame.
    pub(crate) fn write(&self, data: &mut [u8]) {
        match self {
            MacControl::Pause { quanta } => {
                put16(data, at::OPCODE, OPCODE_PAUSE);
                put16(data, at::QUANTA, *quanta);
            }
            MacControl::Pfc { enabled, quanta } => {
                put16(data, at::OPCODE, OPCODE_PFC);
                put16(data, at::ENABLED, u16::from(*enabled));
                for (class, quanta) in quanta.iter().enumerate() {
                    put16(data, at::CLASS_QUANTA + 2 * class, *quanta);
                }
            }
        }
    }
}
