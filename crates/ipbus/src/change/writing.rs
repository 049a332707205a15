// SPDX-License-Identifier: Apache-2.0
//! Writes settings: reads the present values, writes those that differ, reads them back, and records them in the
//! journal. Also writes commands, words that trigger an action.
//! Promise: values that are already set are not written. A board that refuses a word, or on which a word does not read
//! back, gets its old words again; words that could not be restored are reported. The other boards continue.

use super::error::{lacks, ChangeError};
use super::fault::{Fault, FaultKind};
use super::journal::{Entry, Journal, JournalError};
use super::manner::Manner;
use super::work::Change;
use crate::fleet::{Fleet, FleetError};
use crate::map::{Map, Place};
use crate::options::Options;
use crate::regs::qp;
use crate::request::{Access, AccessError, Outcome, Request};
use std::collections::BTreeMap;
use std::time::Duration;

/// The state that a queue pair reaches once its ring is empty: RTS of `enum ibv_qp_state`.
const READY_TO_SEND: u32 = 3;
/// The pause between two reads of a state that has not come yet.
const LOOK_AGAIN: Duration = Duration::from_millis(1);

/// A place and the number that it is to have.
pub type Setting = (Place, u64);

/// A word of a board that differs from what it is to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Word {
    #[allow(missing_docs)]
    pub address: u32,
    #[allow(missing_docs)]
    pub old: u32,
    #[allow(missing_docs)]
    pub new: u32,
    /// Bits that the settings determine; the others stay as they are.
    pub set: u32,
    /// The bits of `set` that are read back as they were written.
    pub kept: u32,
    /// A change of it breaks a run or cuts the board off.
    pub critical: bool,
}

impl Word {
    /// Whether it is to be written. A command does something though it reads as before.
    fn differs(&self) -> bool {
        (self.new ^ self.old) & self.kept != 0 || self.new & !self.kept != self.old & !self.kept
    }

    /// The same settings of a word that is `now`.
    fn onto(self, now: u32) -> Word {
        Word { old: now, new: now & !self.set | self.new & self.set, ..self }
    }
}

/// The words to write to a board, in the order of its settings.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Plan {
    pub board: usize,
    pub words: Vec<Word>,
    /// The parts of its build; None: its map does not have them.
    pub options: Option<Options>,
}

impl Plan {
    /// The first word that does nothing in the board's build, and the part that this lacks.
    fn lacking(&self) -> Option<(&Word, String)> {
        let options = self.options?;
        self.words.iter().find_map(|word| Some((word, options.lacking(word.address, word.old, word.new)?)))
    }
}

/// The settings of one board, by its number in the fleet.
#[derive(Debug, Clone)]
pub struct BoardSettings {
    pub board: usize,
    pub settings: Vec<Setting>,
}

/// Writes to one board that trigger an action.
#[derive(Debug, Clone)]
pub struct Command {
    /// Its number in the fleet.
    pub board: usize,
    /// Address and word of each, in order.
    pub writes: Vec<(u32, u32)>,
}

/// Reads the present values; the words that differ from the settings.
///
/// # Errors
/// As [`Fleet::turn`].
pub fn plan(fleet: &mut Fleet, settings: &[BoardSettings], faults: &mut Vec<Fault>) -> Result<Vec<Plan>, FleetError> {
    let addresses = |settings: &[Setting]| -> Vec<u32> {
        let mut seen: Vec<u32> = settings.iter().flat_map(|(place, _)| place.addresses().collect::<Vec<_>>()).collect();
        seen.sort_unstable();
        seen.dedup();
        seen
    };
    let to_read: Vec<Vec<u32>> = settings
        .iter()
        .map(|BoardSettings { settings, .. }| {
            let written = addresses(settings).into_iter().chain(settings.iter().filter_map(state_of));
            written.chain(build_registers(fleet.map())).collect()
        })
        .collect();
    let requests: Vec<_> = settings
        .iter()
        .zip(&to_read)
        .map(|(of, to_read)| (of.board, Request::reads(to_read.iter().copied())))
        .collect();
    let outcomes = fleet.run(&requests)?;
    let mut plans = Vec::new();
    for ((BoardSettings { board, settings }, to_read), outcome) in settings.iter().zip(to_read).zip(outcomes) {
        match outcome {
            Ok(words) => {
                let old: BTreeMap<u32, u32> = to_read.into_iter().zip(words.into_iter().flatten()).collect();
                let of_build: Vec<u32> = build_registers(fleet.map()).map(|address| old[&address]).collect();
                let options = options(&of_build);
                plans.push(Plan { board: *board, words: differing(settings, &old), options });
            }
            Err(error) => faults.push(Fault::of(fleet.map(), fleet.addresses()[*board], &error)),
        }
    }
    Ok(plans)
}

/// The registers with the parts of a build, where the map has them.
fn build_registers(map: &'static Map) -> impl Iterator<Item = u32> {
    Options::REGISTERS.into_iter().filter(move |_| map.has_operators)
}

/// The options in the words of these registers.
fn options(words: &[u32]) -> Option<Options> {
    words.try_into().ok().map(Options::of)
}

/// The state of the queue pair that a critical setting belongs to.
fn state_of((place, _): &Setting) -> Option<u32> {
    let is_of_one = place.group.per_queue_pair && place.register.critical;
    is_of_one.then(|| qp::BASE + place.index * qp::STRIDE + qp::STATE)
}

/// Whether a change of it breaks a run: a queue pair in reset takes part in none.
fn breaks(setting: &Setting, old: &BTreeMap<u32, u32>) -> bool {
    let is_open = |state: u32| old.get(&state).is_none_or(|word| qp::STATE_BITS.of(*word) != 0);
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
        let bits = place.set().into_iter().zip(place.kept());
        for ((address, new), (set, kept)) in addresses.iter().zip(place.put(*number, &now)).zip(bits) {
            match words.iter_mut().find(|word| word.address == *address) {
                Some(word) => (word.new, word.set, word.kept) = (new, word.set | set, word.kept | kept),
                None => {
                    let critical = breaks(setting, old);
                    words.push(Word { address: *address, old: old[address], new, set, kept, critical })
                }
            }
        }
    }
    words.retain(Word::differs);
    words
}

/// Writes the plans of all boards side by side; the boards on which all went well.
///
/// # Errors
/// A change does nothing in a board's build or is not allowed, there is no journal, or as [`Fleet::turn`].
pub fn carry_out(
    fleet: &mut Fleet,
    plans: &[Plan],
    manner: &Manner,
    faults: &mut Vec<Fault>,
) -> Result<Vec<usize>, ChangeError> {
    possible(fleet, plans)?;
    allowed(fleet, plans, manner)?;
    let mut change = Change { fleet, manner, journal: Journal::open(manner)?, faults };
    let (nothing, work): (Vec<&Plan>, Vec<&Plan>) = plans.iter().partition(|plan| plan.words.is_empty());
    let mut good: Vec<usize> = nothing.iter().map(|plan| plan.board).collect();
    let boards: Vec<usize> = work.iter().map(|plan| plan.board).collect();
    change.in_turn(&boards, |change, tickets| {
        let begun = |plan: &&&Plan| tickets.iter().any(|ticket| ticket.board == plan.board);
        let work: Vec<&Plan> = work.iter().filter(begun).copied().collect();
        let present = change.plan_again(&work)?;
        let (nothing, work): (Vec<&Plan>, Vec<&Plan>) = present.iter().partition(|plan| plan.words.is_empty());
        good.extend(nothing.iter().map(|plan| plan.board));
        let to_check = change.write(&work)?;
        let (right, to_undo) = change.check(to_check)?;
        good.extend(right);
        change.roll_back(&to_undo)
    })?;
    good.sort_unstable();
    Ok(good)
}

/// Carries out commands, all boards side by side; the boards that accepted theirs. A board whose build lacks the part that
/// a register belongs to is a fault, and not written to.
///
/// # Errors
/// There is no journal, or as [`Fleet::turn`].
pub fn command(
    fleet: &mut Fleet,
    commands: &[Command],
    manner: &Manner,
    faults: &mut Vec<Fault>,
) -> Result<Vec<usize>, ChangeError> {
    let mut change = Change { fleet, manner, journal: Journal::open(manner)?, faults };
    let boards: Vec<usize> = commands.iter().map(|command| command.board).collect();
    let mut good = Vec::new();
    change.in_turn(&boards, |change, tickets| {
        let begun = |command: &&Command| tickets.iter().any(|ticket| ticket.board == command.board);
        good.extend(change.command(&commands.iter().filter(begun).collect::<Vec<_>>())?);
        Ok(())
    })?;
    good.sort_unstable();
    Ok(good)
}

/// The words that do not read as written.
fn differing_words<'p>(plan: &'p Plan, read: &'p [u32]) -> impl Iterator<Item = (&'p Word, u32)> {
    plan.words.iter().zip(read.iter().copied()).filter(|(word, read)| (word.new ^ read) & word.kept != 0)
}

/// Whether all that differs are queue pairs that are to become ready to send.
fn waits_for_its_ring(plan: &Plan, read: &[Vec<u32>]) -> bool {
    let read: Vec<u32> = read.iter().flatten().copied().collect();
    let is_opened = |word: &Word| {
        word.address
            .checked_sub(qp::BASE + qp::STATE)
            .is_some_and(|at| at % qp::STRIDE == 0 && at / qp::STRIDE < qp::COUNT)
            && qp::STATE_BITS.of(word.new) == READY_TO_SEND
    };
    let mut differing = differing_words(plan, &read).peekable();
    differing.peek().is_some() && differing.all(|(word, _)| is_opened(word))
}

fn not_written(error: &AccessError) -> String {
    format!("not written, or in part: {error}")
}

impl Change<'_> {
    /// The plans for what the boards have now that no other operator changes them.
    fn plan_again(&mut self, plans: &[&Plan]) -> Result<Vec<Plan>, FleetError> {
        let look = |plan: &Plan| Request::reads(plan.words.iter().map(|word| word.address));
        let requests: Vec<_> = plans.iter().map(|plan| (plan.board, look(plan))).collect();
        let mut present = Vec::new();
        for (plan, outcome) in plans.iter().zip(self.fleet.run(&requests)?) {
            match outcome {
                Ok(now) => {
                    let words = plan.words.iter().zip(now.into_iter().flatten()).map(|(word, now)| word.onto(now));
                    present.push(Plan { words: words.filter(Word::differs).collect(), ..**plan });
                }
                Err(error) => self.failed(plan.board, &error),
            }
        }
        Ok(present)
    }

    /// Writes the words of commands.
    fn command(&mut self, commands: &[&Command]) -> Result<Vec<usize>, ChangeError> {
        let map = self.fleet.map();
        let look = |writes: &[(u32, u32)]| {
            Request::reads(build_registers(map).chain(writes.iter().map(|(address, _)| *address)))
        };
        let requests: Vec<_> = commands.iter().map(|command| (command.board, look(&command.writes))).collect();
        let mut plans = Vec::new();
        for (Command { board, writes }, outcome) in commands.iter().copied().zip(self.fleet.run(&requests)?) {
            match outcome {
                Ok(read) => {
                    let read: Vec<u32> = read.into_iter().flatten().collect();
                    let (of_build, old) = read.split_at(build_registers(map).count());
                    let words = writes.iter().zip(old.iter().copied());
                    let word = |((address, new), old): (&(u32, u32), u32)| Word {
                        address: *address,
                        old,
                        new: *new,
                        set: u32::MAX,
                        kept: 0,
                        critical: false,
                    };
                    let plan = Plan { board: *board, words: words.map(word).collect(), options: options(of_build) };
                    match plan.lacking() {
                        None => plans.push(plan),
                        Some((word, part)) => {
                            let register = Some(map.name_of(word.address));
                            self.fault(*board, FaultKind::Refused, register, lacks(&part));
                        }
                    }
                }
                Err(error) => self.failed(*board, &error),
            }
        }
        let work: Vec<&Plan> = plans.iter().collect();
        let mut good = Vec::new();
        for (plan, error) in self.send(&work)? {
            match error {
                None => {
                    self.note(plan, "written")?;
                    good.push(plan.board);
                }
                Some(error) => {
                    self.note(plan, &not_written(&error))?;
                    self.failed(plan.board, &error);
                }
            }
        }
        Ok(good)
    }

    /// Sends the words of all boards; what became of each.
    fn send<'p>(&mut self, work: &[&'p Plan]) -> Result<Vec<(&'p Plan, Option<AccessError>)>, FleetError> {
        let write =
            |plan: &Plan| plan.words.iter().map(|word| Access::write(word.address, word.new)).collect::<Request>();
        let requests: Vec<_> = work.iter().map(|plan| (plan.board, write(plan))).collect();
        let outcomes = self.fleet.run(&requests)?;
        Ok(work.iter().copied().zip(outcomes.into_iter().map(Result::err)).collect())
    }

    /// Writes; the plans that are to be read back. A board that refuses a word gets its old ones again.
    fn write<'p>(&mut self, work: &[&'p Plan]) -> Result<Vec<&'p Plan>, ChangeError> {
        let (mut to_check, mut to_undo) = (Vec::new(), Vec::new());
        for (plan, error) in self.send(work)? {
            match error {
                // What is read back says what became of it.
                None | Some(AccessError::Unknown) => to_check.push(plan),
                Some(error) => {
                    self.failed(plan.board, &error);
                    self.note(plan, &not_written(&error))?;
                    if !matches!(error, AccessError::Silent { .. }) {
                        to_undo.push(plan);
                    }
                }
            }
        }
        self.roll_back(&to_undo)?;
        Ok(to_check)
    }

    /// Reads back the words of all plans. A queue pair is ready to send once its ring is empty, which takes as long as
    /// messages of before are on their way into it: its state is read until then, or until the patience ends.
    fn read_back(&mut self, plans: &[&Plan]) -> Result<Vec<Outcome>, FleetError> {
        let look = |plan: &Plan| Request::reads(plan.words.iter().map(|word| word.address));
        let requests: Vec<_> = plans.iter().map(|plan| (plan.board, look(plan))).collect();
        let mut found = self.fleet.run(&requests)?;
        let end = self.fleet.now() + self.fleet.patience();
        while self.fleet.now() < end {
            let waits =
                |place: &usize| found[*place].as_ref().is_ok_and(|words| waits_for_its_ring(plans[*place], words));
            let waiting: Vec<usize> = (0..plans.len()).filter(waits).collect();
            if waiting.is_empty() {
                break;
            }
            std::thread::sleep(LOOK_AGAIN);
            let again: Vec<_> = waiting.iter().map(|place| requests[*place].clone()).collect();
            for (place, outcome) in waiting.into_iter().zip(self.fleet.run(&again)?) {
                found[place] = outcome;
            }
        }
        Ok(found)
    }

    /// Reads back; the boards that are as planned, and the plans of those that are not.
    fn check<'p>(&mut self, plans: Vec<&'p Plan>) -> Result<(Vec<usize>, Vec<&'p Plan>), ChangeError> {
        let found = self.read_back(&plans)?;
        let (mut good, mut wrong) = (Vec::new(), Vec::new());
        for (plan, outcome) in plans.into_iter().zip(found) {
            let words: Vec<u32> = match outcome {
                Ok(words) => words.into_iter().flatten().collect(),
                Err(error) => {
                    let message = format!("written, and not read back: {error}");
                    self.fault(plan.board, FaultKind::Silent, None, message);
                    self.note(plan, "written, not read back")?;
                    continue;
                }
            };
            self.note(plan, "written")?;
            let differs = differing_words(plan, &words).next();
            match differs {
                None => good.push(plan.board),
                Some((word, read)) => {
                    let message = format!("0x{:08X} was written and 0x{read:08X} is read back", word.new);
                    self.fault(plan.board, FaultKind::Differs, Some(self.name_of(word)), message);
                    wrong.push(plan);
                }
            }
        }
        Ok((good, wrong))
    }

    /// Gives boards their old words again, the last first.
    fn roll_back(&mut self, plans: &[&Plan]) -> Result<(), ChangeError> {
        // A refused word ends a request: each old word goes in one of its own.
        for plan in plans {
            let kept = plan.words.iter().rev().filter(|word| word.kept != 0);
            let singles: Vec<(usize, Request)> =
                kept.clone().map(|word| (plan.board, Access::write(word.address, word.old).into())).collect();
            let outcomes = self.fleet.run(&singles)?;
            // What was refused has not been changed.
            let is_lost = |error: &AccessError| !matches!(error, AccessError::Refused { .. });
            let failed: Vec<String> = kept
                .zip(outcomes)
                .filter(|(_, outcome)| outcome.as_ref().is_err_and(is_lost))
                .map(|(word, _)| self.name_of(word))
                .collect();
            if failed.is_empty() {
                let message = format!("rolled back: its {} settings are as before", plan.words.len());
                self.fault(plan.board, FaultKind::Undone, None, message);
                self.note(plan, "rolled back")?;
            } else {
                self.fault(plan.board, FaultKind::Undone, None, format!("not rolled back: {}", failed.join(", ")));
            }
        }
        Ok(())
    }

    fn name_of(&self, word: &Word) -> String {
        self.fleet.map().name_of(word.address)
    }

    fn note(&mut self, plan: &Plan, result: &str) -> Result<(), JournalError> {
        let names: Vec<String> = plan.words.iter().map(|word| self.name_of(word)).collect();
        let board = self.address(plan.board);
        let entries: Vec<Entry> = plan
            .words
            .iter()
            .zip(&names)
            .map(|(word, register)| Entry { board, register, old: word.old, new: word.new, result })
            .collect();
        self.journal.note(&entries)
    }
}

/// Refuses settings that do nothing in a board's build.
///
/// # Errors
/// [`ChangeError::Lacking`].
pub fn possible(fleet: &Fleet, plans: &[Plan]) -> Result<(), ChangeError> {
    match plans.iter().find_map(|plan| Some((plan.board, plan.lacking()?))) {
        Some((board, (word, part))) => Err(ChangeError::Lacking {
            board: fleet.addresses()[board],
            register: fleet.map().name_of(word.address),
            part,
        }),
        None => Ok(()),
    }
}

/// Refuses what breaks a run without `force`, before anything is written.
fn allowed(fleet: &Fleet, plans: &[Plan], manner: &Manner) -> Result<(), ChangeError> {
    let critical = |plan: &Plan| plan.words.iter().find(|word| word.critical).copied();
    match plans.iter().find_map(|plan| critical(plan).map(|word| (plan.board, word))) {
        Some((board, word)) if !manner.force => Err(ChangeError::Critical {
            board: fleet.addresses()[board],
            register: fleet.map().name_of(word.address),
            old: word.old,
            new: word.new,
            to_force: manner.to_force,
        }),
        _ => Ok(()),
    }
}
