// SPDX-License-Identifier: Apache-2.0
//! A board over IPbus for Python; the public interface is `python/penstock/boards.py`.
//! Promise: the interpreter lock is released while waiting for a board; an invalid name, value or register raises
//! ValueError, a board that does not answer raises OSError.

use crate::writing::{manner, write, Given, NotDone};
use penstock_ipbus::map::{find, Group, Place, Register, BOARD};
use penstock_ipbus::{Access, AccessError, BoardAddress, Fleet, Identity, Patience, Request};
use penstock_units::Time;
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

/// Time to wait for another operator who is changing the board; longer than a mark that was left behind lasts.
const WAIT: Time = Time::from_s(12);

/// One board.
#[pyclass(frozen)]
pub struct BoardLink {
    fleet: Mutex<Fleet>,
    identity: Identity,
}

/// Name, number, text with its unit, and the quantity in its own unit.
type Reading = (String, u64, String, Option<f64>);

fn silent(error: impl std::fmt::Display) -> PyErr {
    PyOSError::new_err(error.to_string())
}

fn wrong(error: impl std::fmt::Display) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// The registers of a group, two halves as the one number that they are.
fn names(group: &'static Group) -> Vec<&'static str> {
    let one = |register: &'static Register| match register.name.strip_suffix("_hi") {
        Some(_) => None,
        None => Some(register.name.strip_suffix("_lo").unwrap_or(register.name)),
    };
    group.registers.iter().filter_map(one).collect()
}

impl BoardLink {
    fn run(&self, py: Python<'_>, request: Request) -> PyResult<Vec<Vec<u32>>> {
        let outcomes = py.detach(|| {
            let mut fleet = self.fleet.lock().unwrap_or_else(PoisonError::into_inner);
            fleet.run(&[(0, request)])
        });
        let outcome = outcomes.map_err(silent)?.pop().unwrap_or(Ok(Vec::new()));
        outcome.map_err(|error| match error {
            AccessError::Refused { .. } => wrong(error),
            _ => silent(error),
        })
    }

    fn places(&self, name: &str) -> PyResult<Vec<Place>> {
        find(name, self.identity.build).map_err(wrong)
    }
}

#[pymethods]
impl BoardLink {
    #[new]
    fn new(py: Python<'_>, address: &str, patience_s: f64) -> PyResult<Self> {
        let address: BoardAddress = address.parse().map_err(wrong)?;
        let patience = Patience(Time::from_secs_f64(patience_s.max(1e-3)));
        let seed = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64);
        let mut fleet = Fleet::open(&[address], patience, seed).map_err(silent)?;
        let outcomes = py.detach(|| fleet.run(&[(0, Identity::request())])).map_err(silent)?;
        let outcome = outcomes.into_iter().next().unwrap_or(Ok(Vec::new()));
        let identity = Identity::of(outcome).map_err(|why| silent(format!("{address}: {why}")))?;
        Ok(BoardLink { fleet: Mutex::new(fleet), identity })
    }

    /// Version of the map, width of the datapath, queue pairs, kHz.
    fn identity(&self) -> (String, u32, u32, u32) {
        let of = &self.identity;
        (of.version_text(), of.data_width, of.build.queue_pairs, of.build.clock_khz)
    }

    /// The registers that a name stands for.
    fn names(&self, name: &str) -> PyResult<Vec<String>> {
        Ok(self.places(name)?.iter().map(Place::name).collect())
    }

    /// What can follow a name and a dot; after no name, the registers and groups of the board.
    fn members(&self, name: &str) -> PyResult<Vec<&'static str>> {
        let build = self.identity.build;
        if name.is_empty() {
            let groups = BOARD.groups.iter().filter(|group| group.indices(build.queue_pairs) > 0);
            let of = |group: &'static Group| match group.name {
                "" => names(group),
                name => vec![name],
            };
            return Ok(groups.flat_map(of).collect());
        }
        let places = self.places(name)?;
        Ok(match places.as_slice() {
            [place] if place.name() == name => place.register.fields.iter().map(|field| field.name).collect(),
            [first, ..] => names(first.group),
            [] => Vec::new(),
        })
    }

    /// Whether a name stands for one number: a register with one field, a field, or two halves.
    fn is_value(&self, name: &str) -> PyResult<bool> {
        let places = self.places(name)?;
        Ok(matches!(places.as_slice(), [place] if place.name() == name && place.field().is_some()))
    }

    /// Reads all that a name stands for.
    fn read(&self, py: Python<'_>, name: &str) -> PyResult<Vec<Reading>> {
        let places = self.places(name)?;
        let words = self.run(py, Request::reads(places.iter().flat_map(Place::addresses)))?;
        let mut words = words.into_iter().flatten();
        let scale = self.identity.scale();
        let reading = |place: &Place| {
            let taken: Vec<u32> = words.by_ref().take(place.addresses().count()).collect();
            let number = place.number(&taken);
            (place.name(), number, place.show(number, scale), place.quantity(number, scale))
        };
        Ok(places.iter().map(reading).collect())
    }

    /// Writes a value to all that a name stands for, and reads it back; what was not done, by kind.
    #[pyo3(signature = (name, value, force, journal=None, operator=None))]
    fn write(
        &self,
        py: Python<'_>,
        name: &str,
        value: Given,
        force: bool,
        journal: Option<PathBuf>,
        operator: Option<String>,
    ) -> PyResult<Vec<NotDone>> {
        let manner = manner(force, WAIT, journal, operator);
        let not_done = py.detach(|| {
            let mut fleet = self.fleet.lock().unwrap_or_else(PoisonError::into_inner);
            write(&mut fleet, 0, &self.identity, (name, &value), &manner)
        });
        not_done.map_err(silent)
    }

    /// Words from a byte address on, little-endian.
    fn read_block<'py>(&self, py: Python<'py>, address: u32, count: usize) -> PyResult<Bound<'py, PyBytes>> {
        let words = self.run(py, Access::Read { address, count }.into())?;
        let bytes: Vec<u8> = words.into_iter().flatten().flat_map(u32::to_le_bytes).collect();
        Ok(PyBytes::new(py, &bytes))
    }

    /// The byte address of a register.
    fn address(&self, name: &str) -> PyResult<u32> {
        let places = self.places(name)?;
        places.first().map(Place::address).ok_or_else(|| wrong(format!("{name:?}: there is no such register")))
    }
}
