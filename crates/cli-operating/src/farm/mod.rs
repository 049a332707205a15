// SPDX-License-Identifier: Apache-2.0
//! `penstock farm`: keeps the destination tables of all boards consistent with the live servers.
//! Promise: exit status 1 if a FAULT was reported or another coordinator has taken over the boards; after a kill at any
//! time, a restarted coordinator continues where the old one stopped.
//! The rules are in `penstock_farm`; this module has sockets, files and the clock.

mod arguments;
mod boards;
mod log;
mod metrics;
mod plan;
mod servers;

use crate::servers_file::read_tables;
use boards::Boards;
use log::Log;
use metrics::Metrics;
use penstock_cli_common::interrupt::{self, be_quiet, on_interrupt};
use penstock_cli_common::outcome::{Failure, Verdict};
use penstock_cli_common::output::screen::notify;
use penstock_cli_common::output::{print, to_verdict};
use penstock_farm::{first_table, Action, Coordinator, FarmConfig, Notice, ServerConfig, ServerView, Tables};
use penstock_units::Time;
use plan::Plan;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{channel, Receiver};

pub use arguments::Arguments;

/// The longest wait for boards: heartbeats are taken then.
const TURN: Time = Time::from_ms(10);
/// The longest wait for boards that are given back.
const LEAVING: Time = Time::from_s(5);
/// Time from one look at the file of the farm to the next.
const REREAD: Time = Time::from_ms(500);

/// Coordinates until Ctrl-C; prints its own errors.
pub fn run(arguments: &Arguments) -> Verdict {
    to_verdict(coordinate(arguments))
}

fn refused(error: impl std::fmt::Display) -> Failure {
    Failure::Refused(error.to_string())
}

/// The log of the file of the farm; that of a new run begins with its first table.
fn open_log(arguments: &Arguments, plan: &Plan) -> Result<(Log, Tables), Failure> {
    let run = format!("{:016x}", u64::from_le_bytes(random()?));
    let used = plan.servers.iter().filter(|server| server.is_used);
    let rows = first_table(used.map(|server| (server.number, server.weight)));
    let begin = arguments.begin.then_some((&run[..], &rows[..]));
    let (log, tables) = Log::open(&plan.log, begin).map_err(Failure::Refused)?;
    if arguments.begin && tables.count() > 1 {
        return Err(refused(format!(
            "--begin: {} is the log of a run that has not ended: end it (--end), go on with it without --begin, or give \
             the new run another file",
            plan.log.display()
        )));
    }
    Ok((log, tables))
}

/// The heartbeats of all servers that have metrics, each with the server's number.
fn listen(plan: &Plan) -> Result<Receiver<(u16, Option<ServerView>)>, Failure> {
    let (sender, heartbeats) = channel();
    for server in &plan.servers {
        if let Some(address) = server.metrics {
            servers::listen(server.number, address, sender.clone()).map_err(Failure::Fault)?;
        }
    }
    Ok(heartbeats)
}

fn coordinate(arguments: &Arguments) -> Result<Verdict, Failure> {
    let plan = Plan::read(&arguments.file).map_err(Failure::Refused)?;
    if arguments.end {
        Log::request_end(&plan.log).map_err(Failure::Refused)?;
        if let Some(end) = watched(&plan.log)? {
            return Ok(print(format_args!("the run has ended before event {end}"), Verdict::Verified));
        }
    }
    let (log, tables) = open_log(arguments, &plan)?;
    let interrupted = on_interrupt()?;
    be_quiet();
    let metrics = Metrics::serve(arguments.metrics).map_err(Failure::Refused)?;
    let owner = arguments.owner.map_or_else(|| owner_of(&plan.log), Ok).map_err(Failure::Refused)?;
    if owner == 0 {
        return Err(refused("--owner 0: it means that no coordinator owns the boards; allowed are 1 to 65535"));
    }
    let config = configured(arguments, &plan, owner);
    let addresses: Vec<_> = plan.boards.iter().map(|(_, address)| *address).collect();
    let seed = u64::from_le_bytes(random()?);
    let mut boards = Boards::open(&addresses, arguments.board_patience, owner, seed).map_err(refused)?;
    let heartbeats = listen(&plan)?;
    let mut coordinator = Coordinator::new(config, tables, boards.now());
    coordinator.take_out(plan.unused());
    let mut voice = Voice { is_json: arguments.json, faults: 0 };
    let (mut plan, mut reread) = (plan, REREAD);
    let mut leaves = Leaves::default();
    while !leaves.now(boards.now(), &interrupted, &mut coordinator, &log, arguments) && !coordinator.is_over() {
        carry_out(&mut coordinator, &mut boards, &log, &metrics, &mut voice);
        metrics.publish(&coordinator);
        let wait = coordinator.poll_timeout().saturating_sub(boards.now()).min(TURN);
        for (board, answer) in boards.turn(wait).map_err(|error| Failure::Fault(error.to_string()))? {
            coordinator.handle_board(boards.now(), board, answer);
        }
        for (server, view) in heartbeats.try_iter() {
            coordinator.handle_server(boards.now(), server, view);
        }
        if boards.now() >= reread {
            reread = boards.now() + REREAD;
            look_again(&arguments.file, &mut plan, &mut coordinator);
            if log.is_to_end() {
                coordinator.end(boards.now());
            }
        }
        coordinator.handle_timeout(boards.now());
    }
    while let Some(action) = coordinator.poll() {
        if let Action::Notify(notice) = action {
            voice.notify(boards.now(), &notice);
        }
    }
    Ok(if voice.faults == 0 { Verdict::Verified } else { Verdict::Fault })
}

/// Does what the coordinator has decided.
fn carry_out(coordinator: &mut Coordinator, boards: &mut Boards, log: &Log, metrics: &Metrics, voice: &mut Voice) {
    while let Some(action) = coordinator.poll() {
        match action {
            Action::Request { board, request } => boards.request(board, &request),
            Action::Log(change) => {
                // A busy disk may take seconds; they must not count as time that servers had to read it.
                let written = log.append(&change);
                coordinator.handle_logged(boards.now(), written);
            }
            Action::Notify(notice) => {
                metrics.count(&notice);
                voice.notify(boards.now(), &notice);
            }
        }
    }
}

/// How a coordinator ends: it gives the boards back first.
#[derive(Default)]
struct Leaves {
    until: Option<Time>,
}

impl Leaves {
    /// Whether it ends now.
    fn now(
        &mut self,
        now: Time,
        interrupted: &AtomicBool,
        coordinator: &mut Coordinator,
        log: &Log,
        arguments: &Arguments,
    ) -> bool {
        let has_ended = coordinator.has_ended();
        match self.until {
            None if has_ended || (interrupted.load(Ordering::Relaxed) && coordinator.is_steady()) => {
                self.until = Some(now.saturating_add(arguments.board_patience.saturating_mul(2).min(LEAVING)));
                coordinator.leave(has_ended);
                if has_ended {
                    log.has_ended();
                }
                false
            }
            // In the middle of a change the next coordinator finishes it.
            None if interrupted.load(Ordering::Relaxed) => {
                self.until = Some(now.saturating_add(LEAVING));
                coordinator.leave(false);
                false
            }
            None => false,
            Some(until) => {
                let kept: Vec<&str> = coordinator.boards_kept().collect();
                if !kept.is_empty() && now >= until {
                    notify(format_args!(
                        "WARNING: {} did not answer and still belong to this coordinator: start it again, or the next one \
                         with --take-over",
                        kept.join(", ")
                    ));
                }
                kept.is_empty() || now >= until || interrupt::gives_up()
            }
        }
    }
}

/// Waits for the end of a run that another coordinator of this host brings about; none if there is none.
fn watched(log: &Path) -> Result<Option<u64>, Failure> {
    loop {
        let tables = read_tables(log).map_err(Failure::Refused)?;
        let is_locked = Log::is_locked(log);
        match tables.end() {
            Some(end) if !is_locked && !Log::is_end_requested(log) => return Ok(Some(end)),
            _ if !is_locked => return Ok(None),
            _ => std::thread::sleep(std::time::Duration::from_millis(50)),
        }
    }
}

fn configured(arguments: &Arguments, plan: &Plan, owner: u16) -> FarmConfig {
    let names = plan.boards.iter().map(|(name, _)| name.clone()).collect();
    let server = |server: &plan::Server| ServerConfig {
        number: server.number,
        address: server.ip,
        has_heartbeat: server.metrics.is_some(),
        weight: server.weight,
    };
    FarmConfig {
        take_over: arguments.take_over,
        begin: arguments.begin,
        look: arguments.look,
        board_patience: arguments.board_patience,
        heartbeat_patience: arguments.heartbeat_patience,
        read_patience: arguments.read_patience,
        settle: arguments.settle,
        start_patience: arguments.start_patience,
        full_for: arguments.full_for,
        relief: arguments.relief,
        ..FarmConfig::new(owner, names, plan.servers.iter().map(server).collect())
    }
}

/// Takes out and puts in what the file says now; all else in it holds from the next start on.
fn look_again(file: &Path, plan: &mut Plan, coordinator: &mut Coordinator) {
    match Plan::read(file) {
        Ok(now) if now != *plan => {
            coordinator.take_out(now.unused());
            let same = |s: &plan::Server| (s.number, s.ip, s.metrics);
            let is_same = now.boards == plan.boards
                && now.log == plan.log
                && now.servers.iter().map(same).eq(plan.servers.iter().map(same));
            now.servers.iter().for_each(|server| coordinator.set_weight(server.number, server.weight));
            if !is_same {
                notify(format_args!("WARNING: {}: other boards or servers; start again to use them", file.display()));
            }
            *plan = now;
        }
        // Who edits it may have moved it away for a moment.
        _ => {}
    }
}

/// The same for each start of one farm, and hardly the same for two.
fn owner_of(log: &Path) -> Result<u16, String> {
    let host = std::fs::read("/proc/sys/kernel/hostname");
    let mut name = host.map_err(|error| format!("this host has no name: {error}; give --owner"))?;
    let path = log.canonicalize().map_err(|error| format!("{}: {error}", log.display()))?;
    name.extend(path.as_os_str().as_encoded_bytes());
    Ok((crc32fast::hash(&name) % 0xFFFF) as u16 + 1)
}

fn random() -> Result<[u8; 8], Failure> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).map_err(|error| Failure::Fault(format!("no random numbers: {error}")))?;
    Ok(bytes)
}

/// Lines on standard output.
struct Voice {
    is_json: bool,
    faults: u64,
}

impl Voice {
    fn notify(&mut self, now: Time, notice: &Notice) {
        self.faults += u64::from(notice.is_fault());
        let line = match self.is_json {
            false => notice.to_string(),
            true => {
                let mut json = serde_json::to_value(notice).expect("a notice has only plain keys");
                json["seconds"] = serde_json::json!(now.as_secs_f64());
                json["text"] = serde_json::json!(notice.to_string());
                json["is_fault"] = serde_json::json!(notice.is_fault());
                json.to_string()
            }
        };
        print(line, Verdict::Verified);
    }
}
