// SPDX-License-Identifier: Apache-2.0
//! Commands to boards: words that do something, and what is to be seen of it afterwards.
//! Promise: as for settings: each is in the journal, and another operator at work is respected.

use super::arguments::{BoardArguments, WriteArguments};
use super::faults::Faults;
use super::get::named;
use super::journal::{Entry, Journal};
use super::operator;
use super::session::Session;
use crate::outcome::{Failure, Verdict};
use crate::output::print;
use penstock_ipbus::map::name_of;
use penstock_ipbus::{Access, Outcome, Request};
use serde_json::json;

/// What a command does to boards.
pub struct Action<'a> {
    /// "source started"
    pub done: &'a str,
    /// Address and word, in order.
    pub writes: Vec<(u32, u32)>,
}

/// Writes to all boards side by side; those that took it.
pub fn act(
    session: &mut Session,
    actions: &[(usize, Vec<(u32, u32)>)],
    write: &WriteArguments,
    faults: &mut Faults,
) -> Result<Vec<usize>, Failure> {
    let mut journal = Journal::open(write.journal.as_deref())?;
    let boards: Vec<usize> = actions.iter().map(|(board, _)| *board).collect();
    let tickets = operator::begin(session, &boards, write.force, faults)?;
    let taken: Vec<_> =
        actions.iter().filter(|(board, _)| tickets.iter().any(|ticket| ticket.board == *board)).collect();
    let request = |writes: &[(u32, u32)]| {
        writes.iter().map(|(address, word)| Access::write(*address, *word)).collect::<Request>()
    };
    let requests: Vec<_> = taken.iter().map(|(board, writes)| (*board, request(writes))).collect();
    let outcomes: Vec<Outcome> = session.run(&requests)?;
    let mut good = Vec::new();
    for ((board, writes), outcome) in taken.into_iter().zip(outcomes) {
        let result = match &outcome {
            Ok(_) => "written".to_owned(),
            Err(error) => format!("not written, or in part: {error}"),
        };
        let names: Vec<String> = writes.iter().map(|(address, _)| name_of(*address)).collect();
        let entries: Vec<Entry> = writes
            .iter()
            .zip(&names)
            .map(|((_, new), register)| Entry {
                board: session.address(*board),
                register,
                old: 0,
                new: *new,
                result: &result,
            })
            .collect();
        journal.note(&entries)?;
        match outcome {
            Ok(_) => good.push(*board),
            Err(error) => {
                let (register, message) = named(&error);
                faults.push(session.address(*board), register, message);
            }
        }
    }
    operator::end(session, &tickets, faults)?;
    Ok(good)
}

/// Does the same to all boards of a command line, and tells of it.
pub fn everywhere(boards: &BoardArguments, write: &WriteArguments, action: &Action) -> Result<Verdict, Failure> {
    let mut session = Session::open(boards)?;
    let mut faults = session.unfit();
    let actions: Vec<_> = session.fit().map(|(board, _)| (board, action.writes.clone())).collect();
    let good = act(&mut session, &actions, write, &mut faults)?;
    Ok(tell(&session, boards.link.json, action.done, &good, &faults))
}

/// Says on which boards it is done.
pub fn tell(session: &Session, json: bool, done: &str, good: &[usize], faults: &Faults) -> Verdict {
    faults.tell();
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
