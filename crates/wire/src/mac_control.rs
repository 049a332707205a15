// SPDX-License-Identifier: Apache-2.0
//! MAC control frames that stop a sender: pause for the whole link, PFC for single classes.
//! A quantum is 512 bit times; 0 quanta let the sender continue.
//! Sources: IEEE 802.3 clause 31 and annex 31B (pause, opcode 1); IEEE 802.1Qbb (PFC, opcode 0x0101).

use crate::bytesio::{be16, put16};
use crate::{MacAddr, ParseError};

/// Group address of MAC control frames; bridges never forward it.
pub const MAC_CONTROL_DST: MacAddr = MacAddr([0x01, 0x80, 0xC2, 0x00, 0x00, 0x01]);

const OPCODE_PAUSE: u16 = 0x0001;
const OPCODE_PFC: u16 = 0x0101;

/// The request of a MAC control frame.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum MacControl {
    /// Stop all data frames.
    Pause {
        /// For this long, in 512 bit times.
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
        match be16(data, 0) {
            OPCODE_PAUSE => need(4).map(|()| Some(MacControl::Pause { quanta: be16(data, 2) })),
            OPCODE_PFC => need(20).map(|()| {
                let quanta = core::array::from_fn(|class| be16(data, 4 + 2 * class));
                Some(MacControl::Pfc { enabled: data[3], quanta })
            }),
            _ => Ok(None),
        }
    }

    /// Writes after the Ethernet header of a zeroed minimum-size frame.
    pub(crate) fn write(&self, data: &mut [u8]) {
        match self {
            MacControl::Pause { quanta } => {
                put16(data, 0, OPCODE_PAUSE);
                put16(data, 2, *quanta);
            }
            MacControl::Pfc { enabled, quanta } => {
                put16(data, 0, OPCODE_PFC);
                put16(data, 2, u16::from(*enabled));
                for (class, quanta) in quanta.iter().enumerate() {
                    put16(data, 4 + 2 * class, *quanta);
                }
            }
        }
    }
}
