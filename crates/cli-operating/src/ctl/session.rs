// SPDX-License-Identifier: Apache-2.0
//! The boards of a command, or its switches: found, identified, and accessed in parallel.
//! Promise: beyond identification, only devices of the command's kind with the register map of this program are accessed.

use super::arguments::{BoardArguments, LinkArguments, WriteArguments};
use super::device::Device;
use super::faults::Faults;
use crate::board_list::Listed;
use penstock_cli_common::outcome::Failure;
use penstock_ipbus::change::{self, BoardSettings, ChangeError, Command, Plan};
use penstock_ipbus::map::Place;
use penstock_ipbus::{AccessError, BoardAddress, Fleet, Identity, Outcome, Patience, Request, Unfit};
use penstock_units::Time;

/// A device of the command.
pub struct Member<D> {
    pub listed: Listed,
    pub identity: Result<D, Unfit>,
}

/// A change waits so long for other operators.
const WAIT: Time = Time::from_s(30);

/// The places that the names of a command stand for on a device.
pub struct BoardPlaces {
    pub board: usize,
    pub places: Vec<Place>,
}

/// The devices, in the order of the list.
pub struct SessionOf<D> {
    pub fleet: Fleet,
    /// How long a change waits for other operators.
    pub wait: Time,
    pub boards: Vec<Member<D>>,
}

/// The boards of a command.
pub type Session = SessionOf<Identity>;

impl<D: Device> SessionOf<D> {
    /// Speaks to all boards and identifies them.
    pub fn open(arguments: &BoardArguments) -> Result<Self, Failure> {
        Self::of(&arguments.boards.0, &arguments.link)
    }

    pub fn of(listed: &[Listed], link: &LinkArguments) -> Result<Self, Failure> {
        let addresses: Vec<BoardAddress> = listed.iter().map(|board| board.address).collect();
        let mut fleet = fleet(&addresses, link)?.with(D::map());
        let requests: Vec<_> = (0..addresses.len()).map(|board| (board, D::request())).collect();
        let outcomes = fleet.run(&requests).map_err(fault)?;
        let boards = listed.iter().zip(outcomes);
        let boards = boards.map(|(listed, outcome)| Member { listed: *listed, identity: D::of(outcome) }).collect();
        Ok(SessionOf { fleet, wait: WAIT, boards })
    }

    /// Another client of the same boards, whose requests wait for none of this session.
    pub fn another_fleet(&self, link: &LinkArguments) -> Result<Fleet, Failure> {
        Ok(fleet(self.fleet.addresses(), link)?.with(D::map()))
    }

    /// A board does not do any more what one of its map does.
    pub fn lost(&mut self, board: usize, why: AccessError) {
        self.boards[board].identity = Err(Unfit::Silent(why));
    }

    /// The usable boards, by number.
    pub fn fit(&self) -> impl Iterator<Item = (usize, D)> + '_ {
        self.boards.iter().enumerate().filter_map(|(number, board)| Some((number, *board.identity.as_ref().ok()?)))
    }

    pub fn address(&self, board: usize) -> BoardAddress {
        self.boards[board].listed.address
    }

    /// A fault for each board that cannot be accessed further.
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
    pub fn places(&self, names: &[String]) -> Result<Vec<BoardPlaces>, Failure> {
        let all = self.fit().map(|(number, identity)| {
            let places = places_of(names, &identity);
            places
                .map(|places| BoardPlaces { board: number, places })
                .map_err(|why| Failure::Refused(format!("{}: {why}", self.address(number))))
        });
        let found: Vec<_> = all.collect::<Result<_, _>>()?;
        if found.is_empty() {
            // No board is there to say what its build has: what no board could have is refused all the same.
            places_of(names, &D::largest()).map_err(Failure::Refused)?;
        }
        Ok(found)
    }

    /// The register of an error, by name, and its message.
    pub fn named(&self, error: &AccessError) -> (Option<String>, String) {
        match error {
            AccessError::Refused { address, .. } => (Some(D::map().name_of(*address)), error.to_string()),
            _ => (None, error.to_string()),
        }
    }

    /// Carries out one request of each of these boards.
    pub fn run(&mut self, requests: &[(usize, Request)]) -> Result<Vec<Outcome>, Failure> {
        self.fleet.run(requests).map_err(fault)
    }

    /// Reads the present values; the words that differ from the settings.
    pub fn plan(&mut self, settings: &[BoardSettings], faults: &mut Faults) -> Result<Vec<Plan>, Failure> {
        change::plan(&mut self.fleet, settings, &mut faults.0).map_err(fault)
    }

    /// Refuses plans with settings that do nothing in a board's build.
    pub fn possible(&self, plans: &[Plan]) -> Result<(), Failure> {
        change::possible(&self.fleet, plans).map_err(not_made)
    }

    /// Writes plans; the boards on which all went well.
    pub fn carry_out(
        &mut self,
        plans: &[Plan],
        write: &WriteArguments,
        faults: &mut Faults,
    ) -> Result<Vec<usize>, Failure> {
        change::carry_out(&mut self.fleet, plans, &write.manner(self.wait), &mut faults.0).map_err(not_made)
    }

    /// Carries out commands; the boards that accepted theirs.
    pub fn command(
        &mut self,
        commands: &[Command],
        write: &WriteArguments,
        faults: &mut Faults,
    ) -> Result<Vec<usize>, Failure> {
        change::command(&mut self.fleet, commands, &write.manner(self.wait), &mut faults.0).map_err(not_made)
    }
}

/// The places that names stand for on a board.
///
/// # Errors
/// All names that stand for none.
pub fn places_of<D: Device>(names: &[String], identity: &D) -> Result<Vec<Place>, String> {
    let (mut found, mut wrong) = (Vec::new(), Vec::new());
    for name in names {
        match identity.find(name) {
            Ok(places) => found.extend(places),
            Err(error) => wrong.push(error.to_string()),
        }
    }
    if wrong.is_empty() {
        Ok(found)
    } else {
        Err(wrong.join("\nerror: "))
    }
}

fn fleet(addresses: &[BoardAddress], link: &LinkArguments) -> Result<Fleet, Failure> {
    let mut seed = [0; 8];
    getrandom::fill(&mut seed).map_err(fault)?;
    Fleet::open(addresses, Patience(link.patience), u64::from_le_bytes(seed)).map_err(fault)
}

fn not_made(error: ChangeError) -> Failure {
    match error.wrote_nothing() {
        true => Failure::Refused(error.to_string()),
        false => fault(error),
    }
}

fn fault(error: impl std::fmt::Display) -> Failure {
    Failure::Fault(error.to_string())
}
