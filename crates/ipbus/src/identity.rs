// SPDX-License-Identifier: Apache-2.0
//! The identity that a board reports, and the check that this program may use it. That of a switch: `switch`.
//! Promise: a board with another register map is always rejected.

use crate::map::{Build, Scale, MAP_HASH, SWITCH};
use crate::regs::global;
use crate::request::{Access, AccessError, Outcome, Request};
use penstock_units::Rate;

/// "PSTK"
pub(crate) const ID: u32 = 0x5053_544B;

/// The identity that a board reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    /// Version of the register map: major, minor and patch.
    pub version: u32,
    /// Bits.
    pub data_width: u32,
    /// Payload kept for a queue pair.
    pub ring_bytes: u32,
    #[allow(missing_docs)]
    pub build: Build,
}

impl Identity {
    /// Asks for it.
    pub fn request() -> Request {
        Access::Read { address: global::ID, count: 8 }.into()
    }

    /// The device that answered.
    ///
    /// # Errors
    /// The board does not answer, is another device, or has another register map.
    pub fn of(outcome: Outcome) -> Result<Self, Unfit> {
        let words = match outcome {
            Ok(words) => words,
            Err(AccessError::Refused { address, .. }) if address <= global::MAP_HASH => return Err(Unfit::NoMap),
            Err(error) => return Err(Unfit::Silent(error)),
        };
        let at = |address: u32| words[0][(address - global::ID) as usize / 4];
        match at(global::ID) {
            ID => {}
            // A switch has no id; its map's hash is the first word.
            first if first == SWITCH.hash => return Err(Unfit::Switch),
            first => return Err(Unfit::Foreign(first)),
        }
        if at(global::MAP_HASH) != MAP_HASH {
            return Err(Unfit::OtherMap(at(global::MAP_HASH)));
        }
        let build = at(global::BUILD);
        let queue_pairs = global::BUILD_N_QP_BITS.of(build);
        Ok(Identity {
            version: at(global::VERSION),
            data_width: global::BUILD_DATA_W_BITS.of(build),
            ring_bytes: at(global::RING),
            build: Build { queue_pairs, clock_khz: at(global::CLOCK) },
        })
    }

    /// Its clock.
    pub fn scale(&self) -> Scale {
        Scale { clock_khz: self.build.clock_khz }
    }

    /// A line of 64 bits a cycle carries its width; one of 512 bits, 100 Gb/s, has cycles to spare.
    pub fn line_rate(&self) -> Rate {
        Rate::from_kbps(u64::from(self.build.clock_khz) * u64::from(self.data_width)).min(Rate::from_gbps(100))
    }

    /// "0.1.0"
    pub fn version_text(&self) -> String {
        format!("{}.{}.{}", self.version >> 24, (self.version >> 16) & 0xFF, self.version & 0xFFFF)
    }
}

/// Why a board or a switch is not accessed further.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)]
pub enum Unfit {
    #[error("{0}")]
    Silent(AccessError),
    #[error(
        "it answers id 0x{0:08X} where a Penstock board answers 0x{ID:08X}: another device listens at this address"
    )]
    Foreign(u32),
    #[error("its register map is 0x{0:08X}, that of this program 0x{MAP_HASH:08X}: use the program of the gateware's version, or the gateware of this program's")]
    OtherMap(u32),
    #[error("its gateware is older than this program: its register map does not say which one it is; load the gateware of this version")]
    NoMap,
    #[error("it is a QCN switch, and this is for boards: `penstock ctl switch` operates switches")]
    Switch,
    #[error("it is a board, and this is for QCN switches: `penstock ctl` without `switch` operates boards")]
    Board,
    #[error(
        "its first register is 0x{0:08X}, that of this program's QCN switch 0x{hash:08X}: another device listens at this \
         address, or a switch with the gateware of another version", hash = SWITCH.hash
    )]
    NoSwitch(u32),
}
