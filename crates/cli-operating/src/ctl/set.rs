// SPDX-License-Identifier: Apache-2.0
//! `penstock ctl set`: writes registers by name, with units.

use super::arguments::{BoardArguments, WriteArguments};
use super::device::Device;
use super::faults::Faults;
use super::get::scale;
use super::session::{Session, SessionOf};
use penstock_cli_common::outcome::{Failure, Verdict};
use penstock_cli_common::output::print;
use penstock_ipbus::change::{BoardSettings, Plan, Setting};
use serde_json::{json, Value};

#[derive(clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    pub boards: BoardArguments,
    /// cc[0].rate_ai=40Mbps, qp[3].state=rts, flow_control.pfc_en=1
    #[arg(value_name = "REGISTER=VALUE", required = true, value_parser = assignment)]
    pub settings: Vec<(String, String)>,
    #[command(flatten)]
    pub write: WriteArguments,
}

pub fn assignment(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() && !value.is_empty() => {
            Ok((name.trim().to_owned(), value.trim().to_owned()))
        }
        _ => Err("write REGISTER=VALUE, as in cc[0].rate_ai=40Mbps".to_owned()),
    }
}

pub fn run(arguments: &Arguments) -> Result<Verdict, Failure> {
    let session = Session::open(&arguments.boards)?;
    make(session, &arguments.settings, &arguments.write, arguments.boards.link.json)
}

/// Writes registers of a session's devices, and prints what has changed.
pub fn make<D: Device>(
    mut session: SessionOf<D>,
    assignments: &[(String, String)],
    write: &WriteArguments,
    json: bool,
) -> Result<Verdict, Failure> {
    let mut faults = session.unfit();
    let names: Vec<String> = assignments.iter().map(|(name, _)| name.clone()).collect();
    session.places(&names)?;
    let settings = settings(&session, assignments)?;
    let plans = session.plan(&settings, &mut faults)?;
    let good = session.carry_out(&plans, write, &mut faults)?;
    let text = match json {
        true => as_json(&session, &plans, &good, &faults).to_string(),
        false => lines(&session, &plans, &good).join("\n"),
    };
    faults.print();
    if text.is_empty() {
        return Ok(faults.verdict());
    }
    Ok(print(text, faults.verdict()))
}

/// The numbers of each board, by its own clock.
fn settings<D: Device>(
    session: &SessionOf<D>,
    assignments: &[(String, String)],
) -> Result<Vec<BoardSettings>, Failure> {
    session
        .fit()
        .map(|(number, _)| {
            let found = settings_of(session, number, assignments);
            found
                .map(|settings| BoardSettings { board: number, settings })
                .map_err(|why| Failure::Refused(format!("{}: {why}", session.address(number))))
        })
        .collect()
}

/// The numbers of one board, by its clock; names and values that it cannot have are refused.
pub fn settings_of<D: Device>(
    session: &SessionOf<D>,
    board: usize,
    assignments: &[(String, String)],
) -> Result<Vec<Setting>, String> {
    let identity = session.boards[board].identity.as_ref().map_err(ToString::to_string)?;
    let mut found = Vec::new();
    for (name, text) in assignments {
        for place in identity.find(name).map_err(|error| error.to_string())? {
            found.push((place, place.parse(text, identity.scale()).map_err(|error| error.to_string())?));
        }
    }
    Ok(found)
}

/// The changes.
pub fn lines<D: Device>(session: &SessionOf<D>, plans: &[Plan], good: &[usize]) -> Vec<String> {
    let mut lines = Vec::new();
    for plan in plans.iter().filter(|plan| good.contains(&plan.board)) {
        let board = session.address(plan.board);
        if plan.words.is_empty() {
            lines.push(format!("{board}  as it was"));
        }
        lines.extend(plan.words.iter().map(|word| {
            let (old, new) = (
                of_word(session, plan.board, word.address, word.old),
                of_word(session, plan.board, word.address, word.new),
            );
            format!("{board}  {}  {old} -> {new}", D::map().name_of(word.address))
        }));
    }
    lines
}

/// A word as people read it.
pub fn of_word<D: Device>(session: &SessionOf<D>, board: usize, address: u32, word: u32) -> String {
    let identity = session.boards[board].identity.as_ref().ok();
    let name = D::map().name_of(address);
    let place = identity.and_then(|identity| identity.find(&name).ok()?.into_iter().next());
    place.map_or(format!("0x{word:08X}"), |place| place.show(place.number(&[word]), scale(session, board)))
}

pub fn as_json<D: Device>(session: &SessionOf<D>, plans: &[Plan], good: &[usize], faults: &Faults) -> Value {
    let boards: Vec<Value> = plans
        .iter()
        .map(|plan| {
            let changes: Vec<Value> = plan
                .words
                .iter()
                .map(|word| {
                    json!({"register": D::map().name_of(word.address), "old": word.old, "new": word.new})
                })
                .collect();
            json!({"board": session.address(plan.board).to_string(), "done": good.contains(&plan.board), "changes": changes})
        })
        .collect();
    json!({"boards": boards, "faults": faults.json()})
}
