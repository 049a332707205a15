// SPDX-License-Identifier: Apache-2.0
//! Register writes from Python, with the checks, journal and detection of other operators of `penstock ctl`.
//! Promise: a failure is reported with kind, register and reason; the caller turns it into exceptions or status codes.

use penstock_ipbus::change::{carry_out, plan, BoardSettings, ChangeError, Fault, FaultKind, Manner, Setting};
use penstock_ipbus::map::{find, ValueError};
use penstock_ipbus::{Fleet, FleetError, Identity};
use penstock_units::Time;
use pyo3::FromPyObject;
use std::path::PathBuf;

/// Kind, register and reason. Kinds: those of `FaultKind`, and `name`, `read_only`, `range`, `value`, `critical`,
/// `journal` for what was not begun.
pub type NotDone = (&'static str, Option<String>, String);

/// A value to write: a float is a quantity in the register's own unit.
#[derive(FromPyObject)]
pub enum Given {
    Text(String),
    Quantity(f64),
}

/// `wait`: for other operators.
pub fn manner(force: bool, wait: Time, journal: Option<PathBuf>, operator: Option<String>) -> Manner {
    Manner { force, wait, journal, operator, to_force: "force=True", to_name_journal: "journal=FILE" }
}

/// Writes a value to all that a name stands for on board `board` of the fleet, and reads it back; what was not done.
pub fn write(
    fleet: &mut Fleet,
    board: usize,
    identity: &Identity,
    (name, value): (&str, &Given),
    manner: &Manner,
) -> Result<Vec<NotDone>, FleetError> {
    let settings = match settings(identity, name, value) {
        Ok(settings) => settings,
        Err(not_done) => return Ok(vec![not_done]),
    };
    let mut faults = Vec::new();
    let plans = plan(fleet, &[BoardSettings { board, settings }], &mut faults)?;
    let error = match carry_out(fleet, &plans, manner, &mut faults) {
        Ok(_) => return Ok(faults.into_iter().map(not_done).collect()),
        Err(ChangeError::Fleet(error)) => return Err(error),
        Err(error) => error,
    };
    let message = error.to_string();
    Ok(vec![match error {
        ChangeError::Critical { register, .. } => ("critical", Some(register), message),
        ChangeError::Lacking { register, .. } => (FaultKind::Refused.name(), Some(register), message),
        _ => ("journal", None, message),
    }])
}

fn settings(identity: &Identity, name: &str, value: &Given) -> Result<Vec<Setting>, NotDone> {
    let places = find(name, identity.build).map_err(|error| ("name", None, error.to_string()))?;
    let number = |error: &ValueError| match error {
        ValueError::ReadOnly { name } => ("read_only", Some(name.clone()), error.to_string()),
        ValueError::Unread { name, .. } => ("value", Some(name.clone()), error.to_string()),
        ValueError::Beyond { name, .. } => ("range", Some(name.clone()), error.to_string()),
    };
    places
        .into_iter()
        .map(|place| {
            let parsed = match value {
                Given::Text(text) => place.parse(text, identity.scale()),
                Given::Quantity(quantity) => {
                    place.text(*quantity).and_then(|text| place.parse(&text, identity.scale()))
                }
            };
            Ok((place, parsed.map_err(|error| number(&error))?))
        })
        .collect()
}

fn not_done(fault: Fault) -> NotDone {
    let message = match &fault.register {
        Some(register) => format!("{}: {register}: {}", fault.board, fault.message),
        None => format!("{}: {}", fault.board, fault.message),
    };
    (fault.kind.name(), fault.register, message)
}
