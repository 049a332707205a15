// SPDX-License-Identifier: Apache-2.0
//! Writing settings: what is there is read, what differs is written, read back, and noted in the journal.
//! Promise: nothing is written that is so already. A board on which a word is refused, or does not read back, gets its old
//! words again; what could not be undone is said. The other boards go on.

use super::arguments::WriteArguments;
use super::faults::Faults;
use super::get::named;
use super::journal::{Entry, Journal};
use super::operator;
use super::session::Session;
use crate::outcome::Failure;
use penstock_ipbus::map::{name_of, Place};
use penstock_ipbus::regs::qp;
use penstock_ipbus::{Access, AccessError, Request};
use std::collections::BTreeMap;

/// A place and the number that it is to have.
pub type Setting = (Place, u64);

/// A word of a board that differs from what it is to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Word {
    pub address: u32,
    pub old: u32,
    pub new: u32,
    /// Bits that are read back as they were written.
    pub kept: u32,
    pub critical: bool,
}

/// What is to be written to a board, in the order of its settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    pub board: usize,
    pub words: Vec<Word>,
}

/// Reads what is there; the words that differ from the settings.
pub fn plan(
    session: &mut Session,
    settings: &[(usize, Vec<Setting>)],
    faults: &mut Faults,
) -> Result<Vec<Plan>, Failure> {
    let addresses = |settings: &[Setting]| -> Vec<u32> {
        let mut seen: Vec<u32> = settings.iter().flat_map(|(place, _)| place.addresses().collect::<Vec<_>>()).collect();
        seen.sort_unstable();
        seen.dedup();
        seen
    };
    let wanted: Vec<Vec<u32>> = settings
        .iter()
        .map(|(_, settings)| addresses(settings).into_iter().chain(settings.iter().filter_map(state_of)).collect())
        .collect();
    let requests: Vec<_> = settings
        .iter()
        .zip(&wanted)
        .map(|((board, _), wanted)| (*board, Request::reads(wanted.iter().copied())))
        .collect();
    let outcomes = session.run(&requests)?;
    let mut plans = Vec::new();
    for (((board, settings), wanted), outcome) in settings.iter().zip(wanted).zip(outcomes) {
        match outcome {
            Ok(words) => {
                let old: BTreeMap<u32, u32> = wanted.into_iter().zip(words.into_iter().flatten()).collect();
                plans.push(Plan { board: *board, words: differing(settings, &old) });
            }
            Err(error) => {
                let (register, message) = named(&error);
                faults.push(session.address(*board), register, message);
            }
        }
    }
    Ok(plans)
}

/// The state of the queue pair that a critical setting belongs to.
fn state_of((place, _): &Setting) -> Option<u32> {
    let is_of_one = place.group.per_queue_pair && place.register.critical;
    is_of_one.then(|| qp::BASE + place.index * qp::STRIDE + qp::STATE)
}

/// Whether a change of it breaks a run: a queue pair in reset takes part in none.
fn breaks(setting: &Setting, old: &BTreeMap<u32, u32>) -> bool {
    let is_open = |state: u32| old.get(&state).is_none_or(|word| word & qp::STATE_MASK != 0);
    setting.0.register.critical && state_of(setting).is_none_or(is_open)
}

/// Several fields of a register make one word, at the place of the first.
fn differing(settings: &[Setting], old: &BTreeMap<u32, u32>) -> Vec<Word> {
    let mut words: Vec<Word> = Vec::new();
    for setting in settings {
        let (place, number) = setting;
        let addresses: Vec<u32> = place.addresses().collect();
        let now: Vec<u32> = addresses
            .iter()
            .map(|address| words.iter().find(|word| word.address == *address).map_or(old[address], |word| word.new))
            .collect();
        for ((address, new), kept) in addresses.iter().zip(place.put(*number, &now)).zip(place.kept()) {
            match words.iter_mut().find(|word| word.address == *address) {
                Some(word) => (word.new, word.kept) = (new, word.kept | kept),
                None => {
                    words.push(Word { address: *address, old: old[address], new, kept, critical: breaks(setting, old) })
                }
            }
        }
    }
    // A command does something though it reads as before.
    words.retain(|word| (word.new ^ word.old) & word.kept != 0 || word.new & !word.kept != word.old & !word.kept);
    words
}

/// Writes the plans of all boards side by side; the boards on which all went well.
pub fn carry_out(
    session: &mut Session,
    plans: &[Plan],
    arguments: &WriteArguments,
    faults: &mut Faults,
) -> Result<Vec<usize>, Failure> {
    allowed(session, plans, arguments.force)?;
    let mut journal = Journal::open(arguments.journal.as_deref())?;
    let (nothing, work): (Vec<&Plan>, Vec<&Plan>) = plans.iter().partition(|plan| plan.words.is_empty());
    let mut good: Vec<usize> = nothing.iter().map(|plan| plan.board).collect();
    let boards: Vec<usize> = work.iter().map(|plan| plan.board).collect();
    let tickets = operator::begin(session, &boards, arguments.force, faults)?;
    let work: Vec<&Plan> =
        work.into_iter().filter(|plan| tickets.iter().any(|ticket| ticket.board == plan.board)).collect();

    let write = |plan: &Plan| plan.words.iter().map(|word| Access::write(word.address, word.new)).collect::<Request>();
    let requests: Vec<_> = work.iter().map(|plan| (plan.board, write(plan))).collect();
    let written = session.run(&requests)?;
    let (mut to_check, mut to_undo) = (Vec::new(), Vec::new());
    for (plan, outcome) in work.into_iter().zip(written) {
        match outcome {
            Ok(_) => to_check.push(plan),
            Err(error) => {
                let (register, message) = named(&error);
                faults.push(session.address(plan.board), register, message);
                note(session, &mut journal, plan, &plan.words, &format!("not written, or in part: {error}"))?;
                if !matches!(error, AccessError::Silent { .. }) {
                    to_undo.push(plan);
                }
            }
        }
    }
    let look = |plan: &Plan| Request::reads(plan.words.iter().map(|word| word.address));
    let requests: Vec<_> = to_check.iter().map(|plan| (plan.board, look(plan))).collect();
    let found = session.run(&requests)?;
    for (plan, outcome) in to_check.into_iter().zip(found) {
        let words: Vec<u32> = match outcome {
            Ok(words) => words.into_iter().flatten().collect(),
            Err(error) => {
                faults.push(session.address(plan.board), None, format!("written, and not read back: {error}"));
                note(session, &mut journal, plan, &plan.words, "written, not read back")?;
                continue;
            }
        };
        note(session, &mut journal, plan, &plan.words, "written")?;
        let differs = plan.words.iter().zip(&words).find(|(word, read)| (word.new ^ **read) & word.kept != 0);
        match differs {
            None => good.push(plan.board),
            Some((word, read)) => {
                let message = format!("0x{:08X} was written and 0x{read:08X} is read back", word.new);
                faults.push(session.address(plan.board), Some(name_of(word.address)), message);
                to_undo.push(plan);
            }
        }
    }
    roll_back(session, &to_undo, &mut journal, faults)?;
    operator::end(session, &tickets, faults)?;
    good.sort_unstable();
    Ok(good)
}

/// Gives boards their old words again, the last first.
fn roll_back(
    session: &mut Session,
    plans: &[&Plan],
    journal: &mut Journal,
    faults: &mut Faults,
) -> Result<(), Failure> {
    let undo = |plan: &Plan| -> Request {
        let kept = plan.words.iter().rev().filter(|word| word.kept != 0);
        kept.map(|word| Access::write(word.address, word.old)).collect()
    };
    // A refused word ends a request: each old word goes in one of its own.
    for plan in plans {
        let singles: Vec<_> =
            undo(plan).accesses.into_iter().map(|access| (plan.board, Request::from(access))).collect();
        let mut failed = Vec::new();
        for (single, outcome) in singles.iter().zip(session.run(&singles)?) {
            let (Err(error), Some(Access::Write { address, .. })) = (outcome, single.1.accesses.first()) else {
                continue;
            };
            // What was refused has not been changed.
            if !matches!(error, AccessError::Refused { .. }) {
                failed.push(name_of(*address));
            }
        }
        let board = session.address(plan.board);
        if failed.is_empty() {
            faults.push(board, None, format!("rolled back: its {} settings are as before", plan.words.len()));
            note(session, journal, plan, &plan.words, "rolled back")?;
        } else {
            faults.push(board, None, format!("not rolled back: {}", failed.join(", ")));
        }
    }
    Ok(())
}

fn note(session: &Session, journal: &mut Journal, plan: &Plan, words: &[Word], result: &str) -> Result<(), Failure> {
    let names: Vec<String> = words.iter().map(|word| name_of(word.address)).collect();
    let board = session.address(plan.board);
    let entries: Vec<Entry> = words
        .iter()
        .zip(&names)
        .map(|(word, register)| Entry { board, register, old: word.old, new: word.new, result })
        .collect();
    journal.note(&entries)
}

/// Refuses what breaks a run without `--force`, before anything is written.
fn allowed(session: &Session, plans: &[Plan], force: bool) -> Result<(), Failure> {
    if force {
        return Ok(());
    }
    let critical = |plan: &Plan| plan.words.iter().find(|word| word.critical).copied();
    match plans.iter().find_map(|plan| critical(plan).map(|word| (plan.board, word))) {
        None => Ok(()),
        Some((board, word)) => Err(Failure::Refused(format!(
            "{}: {}: a change from 0x{:08X} to 0x{:08X} breaks a run or cuts the board off; nothing was written; --force does it",
            session.address(board),
            name_of(word.address),
            word.old,
            word.new
        ))),
    }
}
