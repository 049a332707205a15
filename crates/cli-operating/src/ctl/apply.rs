// SPDX-License-Identifier: Apache-2.0
//! `penstock ctl apply` and `diff`: all boards of a file.
//! Promise: differences are shown, written, and read back; a repeated `apply` changes nothing. A board that fails gets
//! its old settings back, the others keep their new ones.

use super::arguments::{LinkArguments, WriteArguments};
use super::configuration::{Configuration, Resolved, Resolver};
use super::faults::Faults;
use super::session::Session;
use super::set::{as_json, of_word};
use crate::board_list::Listed;
use penstock_cli_common::outcome::{Failure, Verdict};
use penstock_cli_common::output::print;
use penstock_ipbus::change::{local_address, BoardSettings, Plan};
use penstock_ipbus::map::name_of;
use penstock_ipbus::regs::{access, access_entry, destination, server};
use penstock_ipbus::{Access, Request};
use std::collections::HashMap;
use std::path::PathBuf;

#[derive(clap::Args)]
pub struct DiffArguments {
    /// What the boards are to be set to (docs/ctl.md, "boards.toml")
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    link: LinkArguments,
}

#[derive(clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    of: DiffArguments,
    #[command(flatten)]
    write: WriteArguments,
}

/// Shows what `apply` would write. Exit status 1: something differs.
pub fn diff(arguments: &DiffArguments) -> Result<Verdict, Failure> {
    let Work { session, plans, faults, .. } = prepare(arguments)?;
    let differs = plans.iter().any(|plan| !plan.words.is_empty());
    let verdict = if differs { Verdict::Fault } else { faults.verdict() };
    let text = match arguments.link.json {
        true => as_json(&session, &plans, &[], &faults).to_string(),
        false => {
            let Changes { mut lines, changed, same } = changes(&session, &plans, &all(&plans));
            lines.push(format!("{changed} boards differ, {same} are as the file says"));
            lines.join("\n")
        }
    };
    faults.print();
    Ok(print(text, verdict))
}

pub fn apply(arguments: &Arguments) -> Result<Verdict, Failure> {
    let Work { mut session, plans, commits, mut faults } = prepare(&arguments.of)?;
    let good = session.carry_out(&plans, &arguments.write, &mut faults)?;
    let commits: Vec<_> = commits.into_iter().filter(|commit| good.contains(&commit.board)).collect();
    commit(&mut session, &commits, &mut faults)?;
    let text = match arguments.of.link.json {
        true => as_json(&session, &plans, &good, &faults).to_string(),
        false => done(&session, &plans, &good),
    };
    faults.print();
    Ok(print(text, faults.verdict()))
}

/// A destination table that is to be put into force.
#[derive(Clone, Copy)]
struct Commit {
    board: usize,
    /// The first event that it is for.
    first: u64,
    servers: usize,
}

struct Work {
    session: Session,
    plans: Vec<Plan>,
    commits: Vec<Commit>,
    faults: Faults,
}

fn prepare(arguments: &DiffArguments) -> Result<Work, Failure> {
    let refused = |problems: Vec<String>| Failure::Refused(problems.join("\nerror: "));
    let configuration = Configuration::load(&arguments.file).map_err(refused)?;
    let listed: Vec<Listed> =
        configuration.boards.iter().map(|board| Listed { address: board.address, is_sought: false }).collect();
    let mut session = Session::of(&listed, &arguments.link)?;
    let mut faults = session.unfit();
    let mut resolver = Resolver::new(&configuration);
    let (mut resolved, mut problems) = (Vec::<(usize, Resolved)>::new(), Vec::new());
    for (number, identity) in session.fit() {
        match resolver.board(&configuration.boards[number], identity) {
            Ok(settings) => resolved.push((number, settings)),
            Err(wrong) => {
                problems.extend(wrong.into_iter().filter(|wrong| !problems.contains(wrong)).collect::<Vec<_>>())
            }
        }
    }
    if let Some((number, _)) = resolved.iter().find(|(number, resolved)| shuts_out(&session, *number, resolved)) {
        let board = session.address(*number);
        problems.push(format!(
            "{}: access.allow would shut this host out of {board}: add {}",
            configuration.file,
            local_address(board.0)
        ));
    }
    if !problems.is_empty() {
        return Err(refused(problems));
    }
    let settings: Vec<_> = resolved
        .iter()
        .map(|(number, resolved)| BoardSettings { board: *number, settings: resolved.settings.clone() })
        .collect();
    let mut plans = session.plan(&settings, &mut faults)?;
    session.possible(&plans)?;
    plans.iter_mut().for_each(admits_us);
    let commits = resolved.iter().filter_map(|(number, resolved)| {
        let (first, servers) = resolved.commit?;
        let rows = server::BASE..server::BASE + server::COUNT * server::STRIDE;
        let plan = plans.iter().find(|plan| plan.board == *number)?;
        plan.words.iter().any(|word| rows.contains(&word.address)).then_some(Commit { board: *number, first, servers })
    });
    let commits = commits.collect();
    Ok(Work { session, plans, commits, faults })
}

fn shuts_out(session: &Session, board: usize, resolved: &Resolved) -> bool {
    let local = local_address(session.address(board).0).to_bits();
    !resolved.allowed.is_empty() && !resolved.allowed.iter().any(|(ip, mask)| local & mask == *ip)
}

/// An access list that contains this host does not cut off its user; locking the list is a separate check.
fn admits_us(plan: &mut Plan) {
    let entries = access_entry::BASE..access_entry::BASE + access_entry::COUNT * access_entry::STRIDE;
    for word in &mut plan.words {
        let locks = (word.new & !word.old) & access::CONTROL_LOCKED_BITS.mask != 0;
        if entries.contains(&word.address) || (word.address == access::CONTROL && !locks) {
            word.critical = false;
        }
    }
}

/// Puts destination tables into force, and waits until they are.
fn commit(session: &mut Session, commits: &[Commit], faults: &mut Faults) -> Result<(), Failure> {
    let request = |first: u64| -> Request {
        [
            Access::write(destination::SWITCH_EVENT_LO, first as u32),
            Access::write(destination::SWITCH_EVENT_HI, (first >> 32) as u32),
            Access::write(destination::CONTROL, destination::CONTROL_COMMIT_BITS.mask),
        ]
        .into_iter()
        .collect()
    };
    let commits = unowned(session, commits, faults)?;
    let requests: Vec<_> = commits.iter().map(|commit| (commit.board, request(commit.first))).collect();
    let mut waiting = Vec::new();
    for (commit, outcome) in commits.iter().zip(session.run(&requests)?) {
        match outcome {
            Ok(_) => waiting.push(*commit),
            Err(error) => {
                let (register, message) = session.named(&error);
                faults.push(session.address(commit.board), register, message);
            }
        }
    }
    // It takes some 70 clock cycles: less than a packet does.
    for _ in 0..100 {
        let looks: Vec<_> =
            waiting.iter().map(|commit| (commit.board, Access::read(destination::STATUS).into())).collect();
        let mut busy = Vec::new();
        for (commit, outcome) in waiting.iter().zip(session.run(&looks)?) {
            let register = Some("destination.status".to_owned());
            match outcome {
                Ok(words) if destination::STATUS_BUSY_BITS.of(words[0][0]) != 0 => busy.push(*commit),
                Ok(words) if destination::STATUS_REFUSED_BITS.of(words[0][0]) != 0 => {
                    let message = "the new table is refused: an event at or above destination.first has gone already";
                    faults.push(session.address(commit.board), register, message);
                }
                Ok(words) => {
                    let live = destination::STATUS_LIVE_BITS.of(words[0][0]);
                    if live as usize != commit.servers {
                        let message = format!("counts {live} live servers, and {} were written", commit.servers);
                        faults.push(session.address(commit.board), register, message);
                    }
                }
                Err(error) => faults.push(session.address(commit.board), register, error),
            }
        }
        waiting = busy;
        if waiting.is_empty() {
            return Ok(());
        }
    }
    for commit in waiting {
        let message = "is still busy with the new table";
        faults.push(session.address(commit.board), Some("destination.status".to_owned()), message);
    }
    Ok(())
}

/// The boards with a table without a coordinator.
fn unowned(session: &mut Session, commits: &[Commit], faults: &mut Faults) -> Result<Vec<Commit>, Failure> {
    let looks: Vec<_> = commits.iter().map(|commit| (commit.board, Access::read(destination::OWNER).into())).collect();
    let mut free = Vec::new();
    for (commit, outcome) in commits.iter().zip(session.run(&looks)?) {
        let register = Some("destination.owner".to_owned());
        match outcome {
            Ok(words) if words[0][0] == 0 => free.push(*commit),
            Ok(words) => {
                let message =
                    format!("coordinator {} commands the table: the new one is not put into force", words[0][0]);
                faults.push(session.address(commit.board), register, message);
            }
            Err(error) => faults.push(session.address(commit.board), register, error),
        }
    }
    Ok(free)
}

fn all(plans: &[Plan]) -> Vec<usize> {
    plans.iter().map(|plan| plan.board).collect()
}

/// What was written to which boards.
fn done(session: &Session, plans: &[Plan], good: &[usize]) -> String {
    let Changes { mut lines, changed, same } = changes(session, plans, good);
    let failed = match plans.len() - good.len() {
        0 => String::new(),
        failed => format!(", {failed} failed and have their old settings"),
    };
    lines.push(match changed {
        0 => format!("nothing to write: {same} boards are as the file says{failed}"),
        _ => format!("{changed} boards are set and read back, {same} were as the file says{failed}"),
    });
    lines.join("\n")
}

struct Changes {
    lines: Vec<String>,
    /// Boards with changes, and those without.
    changed: usize,
    same: usize,
}

/// The changes of these boards; equal changes of many boards are in one line.
fn changes(session: &Session, plans: &[Plan], boards_shown: &[usize]) -> Changes {
    let shown = plans.iter().filter(|plan| boards_shown.contains(&plan.board));
    let (mut lines, mut boards): (Vec<String>, HashMap<String, Vec<usize>>) = (Vec::new(), HashMap::new());
    let (mut same, mut changed) = (0, 0);
    for plan in shown {
        match plan.words.is_empty() {
            true => same += 1,
            false => changed += 1,
        }
        for word in &plan.words {
            let (old, new) = (
                of_word(session, plan.board, word.address, word.old),
                of_word(session, plan.board, word.address, word.new),
            );
            let line = format!("{}: {old} -> {new}", name_of(word.address));
            let of_line = boards.entry(line.clone()).or_default();
            if of_line.is_empty() {
                lines.push(line);
            }
            of_line.push(plan.board);
        }
    }
    let whose = |boards: &[usize]| match boards {
        [board] => session.address(*board).to_string(),
        [first, rest @ ..] => format!("{} and {} more", session.address(*first), rest.len()),
        [] => String::new(),
    };
    let lines = lines.into_iter().map(|line| format!("{}  {line}", whose(&boards[&line]))).collect();
    Changes { lines, changed, same }
}
