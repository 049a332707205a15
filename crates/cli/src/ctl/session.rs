// SPDX-License-Identifier: Apache-2.0
//! The boards of a command: found, identified, and asked side by side.
//! Promise: only boards with the register map of this program are asked for more than who they are.

use super::arguments::{BoardArguments, LinkArguments};
use super::boards::Listed;
use super::faults::Faults;
use crate::outcome::Failure;
use penstock_ipbus::map::{find, Build, Place, Scale, MAP_HASH};
use penstock_ipbus::regs::global;
use penstock_ipbus::{Access, AccessError, BoardAddress, Fleet, Outcome, Patience, Request};
use penstock_units::Rate;

/// "PSTK"
const ID: u32 = 0x5053_544B;

/// What a board says it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    pub version: u32,
    pub data_width: u32,
    pub ring_bytes: u32,
    pub build: Build,
}

impl Identity {
    pub fn scale(&self) -> Scale {
        Scale { clock_khz: self.build.clock_khz }
    }

    /// A line of 64 bits a cycle carries its width; one of 512 bits, 100 Gb/s, has cycles to spare.
    pub fn line_rate(&self) -> Rate {
        Rate::from_kbps(u64::from(self.build.clock_khz) * u64::from(self.data_width)).min(Rate::from_gbps(100))
    }

    pub fn version_text(&self) -> String {
        format!("{}.{}.{}", self.version >> 24, (self.version >> 16) & 0xFF, self.version & 0xFFFF)
    }
}

/// A board of the command.
pub struct Board {
    pub listed: Listed,
    pub identity: Result<Identity, Unfit>,
}

/// Why a board is not asked for more.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
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
}

/// The boards, in the order of the list.
pub struct Session {
    pub fleet: Fleet,
    pub boards: Vec<Board>,
}

impl Session {
    /// Speaks to all boards and identifies them.
    pub fn open(arguments: &BoardArguments) -> Result<Session, Failure> {
        Session::of(&arguments.boards.0, &arguments.link)
    }

    pub fn of(listed: &[Listed], link: &LinkArguments) -> Result<Session, Failure> {
        let addresses: Vec<BoardAddress> = listed.iter().map(|board| board.address).collect();
        let mut seed = [0; 8];
        getrandom::fill(&mut seed).map_err(fault)?;
        let mut fleet = Fleet::open(&addresses, Patience(link.patience), u64::from_le_bytes(seed)).map_err(fault)?;
        let requests: Vec<_> = (0..addresses.len()).map(|board| (board, who())).collect();
        let outcomes = fleet.run(&requests).map_err(fault)?;
        let boards = listed.iter().zip(outcomes);
        let boards = boards.map(|(listed, outcome)| Board { listed: *listed, identity: identify(outcome) }).collect();
        Ok(Session { fleet, boards })
    }

    /// Asks boards that were not fit once more who they are.
    pub fn identify_again(&mut self) -> Result<(), Failure> {
        let unfit = (0..self.boards.len()).filter(|board| self.boards[*board].identity.is_err());
        let requests: Vec<_> = unfit.map(|board| (board, who())).collect();
        for ((board, _), outcome) in requests.iter().zip(self.run(&requests)?) {
            self.boards[*board].identity = identify(outcome);
        }
        Ok(())
    }

    /// A board does not do any more what one of its map does.
    pub fn lost(&mut self, board: usize, why: AccessError) {
        self.boards[board].identity = Err(Unfit::Silent(why));
    }

    /// The boards that can be asked for more, by number.
    pub fn fit(&self) -> impl Iterator<Item = (usize, Identity)> + '_ {
        self.boards.iter().enumerate().filter_map(|(number, board)| Some((number, *board.identity.as_ref().ok()?)))
    }

    pub fn address(&self, board: usize) -> BoardAddress {
        self.boards[board].listed.address
    }

    /// A fault for each board that cannot be asked for more.
    pub fn unfit(&self) -> Faults {
        let mut faults = Faults::default();
        for board in &self.boards {
            if let Err(why) = &board.identity {
                faults.push(board.listed.address, None, why);
            }
        }
        faults
    }

    /// The places that names stand for on a board; all names that stand for none are refused at once.
    pub fn places(&self, names: &[String]) -> Result<Vec<(usize, Vec<Place>)>, Failure> {
        let of_board = |identity: &Identity| -> Result<Vec<Place>, String> {
            let (mut found, mut wrong) = (Vec::new(), Vec::new());
            for name in names {
                match find(name, identity.build) {
                    Ok(places) => found.extend(places),
                    Err(error) => wrong.push(error.to_string()),
                }
            }
            if wrong.is_empty() {
                Ok(found)
            } else {
                Err(wrong.join("\nerror: "))
            }
        };
        let all = self.fit().map(|(number, identity)| {
            let places = of_board(&identity);
            places
                .map(|places| (number, places))
                .map_err(|why| Failure::Refused(format!("{}: {why}", self.address(number))))
        });
        let found: Vec<_> = all.collect::<Result<_, _>>()?;
        if found.is_empty() {
            // No board is there to say what its build has: what no board could have is refused all the same.
            of_board(&Identity {
                version: 0,
                data_width: 64,
                ring_bytes: 0,
                build: Build { queue_pairs: 256, clock_khz: 1 },
            })
            .map_err(Failure::Refused)?;
        }
        Ok(found)
    }

    /// Carries out one request of each of these boards.
    pub fn run(&mut self, requests: &[(usize, Request)]) -> Result<Vec<Outcome>, Failure> {
        self.fleet.run(requests).map_err(fault)
    }
}

fn fault(error: impl std::fmt::Display) -> Failure {
    Failure::Fault(error.to_string())
}

fn who() -> Request {
    Access::Read { address: global::ID, count: 8 }.into()
}

fn identify(outcome: Outcome) -> Result<Identity, Unfit> {
    let words = match outcome {
        Ok(words) => words,
        Err(AccessError::Refused { address, .. }) if address <= global::MAP_HASH => return Err(Unfit::NoMap),
        Err(error) => return Err(Unfit::Silent(error)),
    };
    let at = |address: u32| words[0][(address - global::ID) as usize / 4];
    if at(global::ID) != ID {
        return Err(Unfit::Foreign(at(global::ID)));
    }
    if at(global::MAP_HASH) != MAP_HASH {
        return Err(Unfit::OtherMap(at(global::MAP_HASH)));
    }
    let build = at(global::BUILD);
    let queue_pairs = (build & global::BUILD_N_QP_MASK) >> global::BUILD_N_QP_SHIFT;
    Ok(Identity {
        version: at(global::VERSION),
        data_width: (build & global::BUILD_DATA_W_MASK) >> global::BUILD_DATA_W_SHIFT,
        ring_bytes: at(global::RING),
        build: Build { queue_pairs, clock_khz: at(global::CLOCK) },
    })
}
