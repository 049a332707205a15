// SPDX-License-Identifier: Apache-2.0
//! Many boards over IPbus for a gateway: polls all boards in parallel and reports changes.
//! Promise: a silent board is reported once, delays the polling of the others by one timeout, and is then searched for
//! separately until it is back. A write waits neither for polling nor for other boards.

use crate::writing::{manner, write, Given, NotDone};
use penstock_ipbus::map::{find, Build, Place, Scale, Target, Unit};
use penstock_ipbus::{AccessError, BoardAddress, Fleet, FleetError, Identity, Marks, Outcome, Patience, Request};
use penstock_units::Time;
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

/// Number of the register in the board's list, its number, text with its unit, and quantity in its own unit.
type Change = (usize, u64, String, Option<f64>);
/// Number of a board, why it is not fit, what has changed.
type Look = (usize, Option<String>, Vec<Change>);
/// Name, description, unit, writable, critical, largest number, largest quantity, names of numbers.
type Description = (String, String, &'static str, bool, bool, u64, Option<f64>, Vec<(u32, &'static str)>);

/// Time to wait for another operator who is changing a board; a client of a gateway waits no longer than a few seconds.
const WAIT: Time = Time::from_s(2);

/// Boards, by their number in the list.
#[pyclass(frozen)]
pub struct BoardGroup {
    addresses: Vec<BoardAddress>,
    patience: Patience,
    names: Vec<Vec<String>>,
    looks: Mutex<Fleet>,
    seeks: Mutex<Fleet>,
    boards: Mutex<Vec<State>>,
    marks: Marks,
}

/// What is known of a board.
enum State {
    Lost,
    Fit(Fit),
}

struct Fit {
    identity: Identity,
    places: Vec<Place>,
    /// What was reported last; empty: nothing yet.
    last: Vec<u64>,
    /// Writes so far: a look that began before one has nothing valid of its board.
    writes: u64,
}

impl Fit {
    /// Takes the numbers of these places; those that are new.
    fn changes(&mut self, now: impl IntoIterator<Item = (usize, u64)>) -> Vec<Change> {
        let scale = self.identity.scale();
        let is_first = self.last.is_empty();
        self.last.resize(self.places.len(), 0);
        let mut changes = Vec::new();
        for (at, number) in now {
            if is_first || self.last[at] != number {
                self.last[at] = number;
                let place = &self.places[at];
                changes.push((at, number, place.show(number, scale), place.quantity(number, scale)));
            }
        }
        changes
    }
}

fn silent(error: FleetError) -> PyErr {
    PyOSError::new_err(error.to_string())
}

fn held<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

fn seed() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64)
}

/// A register with several fields is followed by each of these.
fn with_fields(place: Place) -> impl Iterator<Item = Place> {
    let fields = match place.target {
        Target::Register if place.register.fields.len() > 1 => place.register.fields,
        _ => &[],
    };
    std::iter::once(place).chain(fields.iter().map(move |field| Place { target: Target::Field(field), ..place }))
}

fn chosen(names: &[String], build: Build) -> Result<Vec<Place>, String> {
    let mut places: Vec<Place> = Vec::new();
    for name in names {
        for place in find(name, build).map_err(|error| error.to_string())?.into_iter().flat_map(with_fields) {
            if !places.contains(&place) {
                places.push(place);
            }
        }
    }
    Ok(places)
}

fn described(place: &Place, scale: Scale) -> Description {
    let field = place.field();
    let unit = match field.map_or(Unit::Hex, |field| field.unit) {
        Unit::Rate => "bit/s",
        Unit::Cycles | Unit::Ticks | Unit::Milliseconds | Unit::SignedNanoseconds => "s",
        Unit::Fraction => "1",
        Unit::Bytes => "B",
        Unit::Kilohertz => "kHz",
        Unit::Ipv4 => "IPv4",
        Unit::Mac => "MAC",
        Unit::Plain | Unit::Hex => "",
    };
    let most = u64::MAX >> (64 - place.width());
    let text = match place.target {
        Target::Field(field) => field.desc,
        _ => place.register.desc,
    };
    let values = field.map_or(Vec::new(), |field| field.values.to_vec());
    let critical = place.register.critical;
    (place.name(), text.into(), unit, place.writable(), critical, most, place.quantity(most, scale), values)
}

fn numbers(places: &[Place], outcome: Outcome) -> Result<Vec<u64>, AccessError> {
    let words: Vec<u32> = outcome?.into_iter().flatten().collect();
    let mut rest = words.as_slice();
    let number = |place: &Place| {
        let (words, more) = rest.split_at(place.addresses().count());
        rest = more;
        place.number(words)
    };
    Ok(places.iter().map(number).collect())
}

#[pymethods]
impl BoardGroup {
    /// `names`: of each board, what is looked at.
    #[new]
    fn new(addresses: Vec<String>, names: Vec<Vec<String>>, patience_s: f64) -> PyResult<Self> {
        let addresses: Vec<BoardAddress> =
            addresses.iter().map(|text| text.parse()).collect::<Result<_, _>>().map_err(PyValueError::new_err)?;
        if names.len() != addresses.len() {
            return Err(PyValueError::new_err(format!("{} boards and {} lists", addresses.len(), names.len())));
        }
        // What no board could have is refused now.
        for names in &names {
            chosen(names, Build { queue_pairs: 256, clock_khz: 1 }).map_err(PyValueError::new_err)?;
        }
        let patience = Patience(Time::from_secs_f64(patience_s.max(1e-3)));
        let open = || Fleet::open(&addresses, patience, seed()).map_err(silent).map(Mutex::new);
        let (looks, seeks) = (open()?, open()?);
        let boards = Mutex::new(addresses.iter().map(|_| State::Lost).collect());
        Ok(BoardGroup { addresses, patience, names, looks, seeks, boards, marks: Marks::default() })
    }

    /// Asks the boards that are lost who they are: number, and why it is lost still.
    fn seek(&self, py: Python<'_>) -> PyResult<Vec<(usize, Option<String>)>> {
        py.detach(|| {
            let lost: Vec<usize> = {
                let boards = held(&self.boards);
                (0..boards.len()).filter(|board| matches!(boards[*board], State::Lost)).collect()
            };
            let requests: Vec<_> = lost.iter().map(|board| (*board, Identity::request())).collect();
            let outcomes = held(&self.seeks).run(&requests)?;
            let found = lost.into_iter().zip(outcomes).map(|(board, outcome)| {
                let fit = Identity::of(outcome).map_err(|why| why.to_string()).and_then(|identity| {
                    let places = chosen(&self.names[board], identity.build)?;
                    Ok(State::Fit(Fit { identity, places, last: Vec::new(), writes: 0 }))
                });
                match fit {
                    Ok(state) => {
                        held(&self.boards)[board] = state;
                        (board, None)
                    }
                    Err(why) => (board, Some(why)),
                }
            });
            Ok(found.collect())
        })
        .map_err(silent)
    }

    /// Reads all boards that are fit: those that are lost now, and what has changed since the last look.
    fn look(&self, py: Python<'_>) -> PyResult<Vec<Look>> {
        py.detach(|| {
            let (begun, requests): (Vec<u64>, Vec<(usize, Request)>) = {
                let boards = held(&self.boards);
                let fit = boards.iter().enumerate().filter_map(|(number, state)| match state {
                    State::Fit(fit) => {
                        let addresses = fit.places.iter().flat_map(Place::addresses);
                        Some((fit.writes, (number, Request::reads(addresses))))
                    }
                    State::Lost => None,
                });
                fit.unzip()
            };
            let outcomes = held(&self.looks).run(&requests)?;
            let mut boards = held(&self.boards);
            let mut looks = Vec::new();
            for ((begun, (number, _)), outcome) in begun.into_iter().zip(requests).zip(outcomes) {
                let State::Fit(fit) = &mut boards[number] else { continue };
                match numbers(&fit.places, outcome) {
                    Ok(_) if fit.writes != begun => {}
                    Ok(now) => looks.push((number, None, fit.changes(now.into_iter().enumerate()))),
                    Err(why) => {
                        boards[number] = State::Lost;
                        looks.push((number, Some(why.to_string()), Vec::new()));
                    }
                }
            }
            Ok(looks)
        })
        .map_err(silent)
    }

    /// The registers of a board that are looked at, in the order of the looks.
    fn describe(&self, board: usize) -> PyResult<Vec<Description>> {
        match held(&self.boards).get(board) {
            Some(State::Fit(fit)) => {
                Ok(fit.places.iter().map(|place| described(place, fit.identity.scale())).collect())
            }
            _ => Err(PyOSError::new_err("the board is lost")),
        }
    }

    /// Writes a value to one of a board's registers, reads it back and notes it in the journal as that of `operator`:
    /// what was not done, by kind, and what has changed.
    #[pyo3(signature = (board, at, value, journal=None, operator=None))]
    fn write(
        &self,
        py: Python<'_>,
        board: usize,
        at: usize,
        value: Given,
        journal: Option<PathBuf>,
        operator: Option<String>,
    ) -> PyResult<(Vec<NotDone>, Vec<Change>)> {
        let (identity, place, same) = match held(&self.boards).get_mut(board) {
            Some(State::Fit(fit)) if at < fit.places.len() => {
                fit.writes += 1;
                let place = fit.places[at];
                let is_same = |other: &(usize, Place)| other.1.addresses().any(|of| place.addresses().any(|a| a == of));
                let same: Vec<(usize, Place)> = fit.places.iter().copied().enumerate().filter(is_same).collect();
                (fit.identity, place, same)
            }
            _ => return Ok((vec![("silent", None, "the board is lost".into())], Vec::new())),
        };
        let manner = manner(false, WAIT, journal, operator);
        py.detach(|| {
            let fleet = Fleet::open(&self.addresses[board..=board], self.patience, seed())?;
            let mut fleet = fleet.sharing(self.marks.clone());
            let not_done = write(&mut fleet, 0, &identity, (&place.name(), &value), &manner)?;
            let places: Vec<Place> = same.iter().map(|(_, place)| *place).collect();
            let look = Request::reads(places.iter().flat_map(Place::addresses));
            let outcome = fleet.run(&[(0, look)])?.into_iter().next().unwrap_or(Ok(Vec::new()));
            let mut changes = Vec::new();
            // Without an answer the next look finds out.
            if let (Some(State::Fit(fit)), Ok(now)) = (held(&self.boards).get_mut(board), numbers(&places, outcome)) {
                fit.writes += 1;
                if !fit.last.is_empty() {
                    changes = fit.changes(same.iter().map(|(at, _)| *at).zip(now));
                }
            }
            Ok((not_done, changes))
        })
        .map_err(silent)
    }
}
