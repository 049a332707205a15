// SPDX-License-Identifier: Apache-2.0
//! Commands to boards: register writes that trigger an action, and the check of its effect.
//! Promise: as for settings: each write is in the journal, and a change by another operator is respected.

use super::arguments::{BoardArguments, WriteArguments};
use super::device::Device;
use super::faults::Faults;
use super::session::{Session, SessionOf};
use penstock_cli_common::outcome::{Failure, Verdict};
use penstock_cli_common::output::print;
use penstock_ipbus::change::Command;
use serde_json::json;

/// The changes that a command makes to boards.
pub struct Action<'a> {
    /// "source started"
    pub done: &'a str,
    /// Address and word, in order.
    pub writes: Vec<(u32, u32)>,
}

/// Applies the same change to all boards of a command line, and reports the result.
pub fn everywhere(boards: &BoardArguments, write: &WriteArguments, action: &Action) -> Result<Verdict, Failure> {
    let mut session = Session::open(boards)?;
    let mut faults = session.unfit();
    let actions: Vec<_> = session.fit().map(|(board, _)| Command { board, writes: action.writes.clone() }).collect();
    let good = session.command(&actions, write, &mut faults)?;
    Ok(report(&session, boards.link.json, action.done, &good, &faults))
}

/// Reports the boards on which it is done.
pub fn report<D: Device>(session: &SessionOf<D>, json: bool, done: &str, good: &[usize], faults: &Faults) -> Verdict {
    faults.print();
    let names: Vec<String> = good.iter().map(|board| session.address(*board).to_string()).collect();
    let text = match json {
        true => json!({"done": done, "boards": names, "faults": faults.json()}).to_string(),
        false => match names.as_slice() {
            [] => return faults.verdict(),
            [one] => format!("{one}: {done}"),
            [first, rest @ ..] => format!("{first} and {} more: {done}", rest.len()),
        },
    };
    print(text, faults.verdict())
}
