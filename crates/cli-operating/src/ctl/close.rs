// SPDX-License-Identifier: Apache-2.0
//! `penstock ctl close`: closes queue pairs that were left open.
//! Promise: a queue pair counts as closed when the board reports it in reset; its entry in the connection manager is
//! free then. A queue pair set up by registers has no entry: its state is written.
//! Source: ARCHITECTURE.md, "Connections"; `rtl/ctrl/cm_opener.sv`, closing by command.

use super::acting::report;
use super::arguments::{BoardArguments, WriteArguments};
use super::faults::Faults;
use super::session::Session;
use penstock_cli_common::outcome::{Failure, Verdict};
use penstock_ipbus::change::Command;
use penstock_ipbus::regs::{connection, qp};
use penstock_ipbus::{Access, Request};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

#[derive(clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    boards: BoardArguments,
    /// Queue pairs, 0,2 [default: all that are not in reset]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    queue_pairs: Vec<u32>,
    #[command(flatten)]
    write: WriteArguments,
}

/// A board asks its server up to eight times, 100 ms apart by default; it closes its own side at once.
const SERVER_PATIENCE: Duration = Duration::from_secs(5);

pub fn run(arguments: &Arguments) -> Result<Verdict, Failure> {
    let mut session = Session::open(&arguments.boards)?;
    let mut faults = session.unfit();
    if let Some((board, identity, beyond)) = session.fit().find_map(|(board, identity)| {
        let beyond = arguments.queue_pairs.iter().find(|qp| **qp >= identity.build.queue_pairs)?;
        Some((board, identity, *beyond))
    }) {
        let count = identity.build.queue_pairs;
        return Err(Failure::Refused(format!("{}: has {count} queue pairs, and no {beyond}", session.address(board))));
    }
    let open = open_ones(&mut session, &arguments.queue_pairs, &mut faults)?;
    if !arguments.write.force && open.values().any(|rows| !rows.is_empty()) {
        let whose = open.iter().filter(|(_, rows)| !rows.is_empty());
        let shown: Vec<String> = whose.map(|(board, rows)| format!("{} {rows:?}", session.address(*board))).collect();
        let shown = shown.join(", ");
        return Err(Failure::Refused(format!(
            "open queue pairs: {shown}; to close them breaks a run that uses them; --force does it"
        )));
    }
    let mut left = open.clone();
    let most = open.values().map(Vec::len).max().unwrap_or(0);
    // The command has one queue pair at a time.
    for turn in 0..most {
        let command = |row: u32| connection::COMMAND_CLOSE_BITS.mask | connection::COMMAND_QP_BITS.at(row);
        let actions: Vec<_> = open
            .iter()
            .filter_map(|(board, rows)| {
                let writes = vec![(connection::COMMAND, command(*rows.get(turn)?))];
                Some(Command { board: *board, writes })
            })
            .collect();
        let taken = session.command(&actions, &arguments.write, &mut faults)?;
        wait(&mut session, taken, &mut faults)?;
    }
    let states = states(&mut session, &open, &mut faults)?;
    left.retain(|board, rows| {
        rows.retain(|row| states.get(&(*board, *row)).is_some_and(|state| *state != 0));
        !rows.is_empty()
    });
    let by_registers: Vec<_> = left
        .iter()
        .map(|(board, rows)| Command {
            board: *board,
            writes: rows.iter().map(|row| (state_address(*row), 0)).collect(),
        })
        .collect();
    session.command(&by_registers, &arguments.write, &mut faults)?;
    let states = self::states(&mut session, &left, &mut faults)?;
    for ((board, row), state) in states.iter().filter(|(_, state)| **state != 0) {
        let message = format!("is in state {state} still");
        faults.push(session.address(*board), Some(format!("qp[{row}].state")), message);
    }
    let good: Vec<usize> = open
        .keys()
        .copied()
        .filter(|board| !states.iter().any(|((of, _), state)| of == board && *state != 0))
        .collect();
    let count: usize = open.values().map(Vec::len).sum();
    Ok(report(&session, arguments.boards.link.json, &format!("{count} queue pairs closed"), &good, &faults))
}

type Rows = BTreeMap<usize, Vec<u32>>;

fn state_address(row: u32) -> u32 {
    qp::BASE + row * qp::STRIDE + qp::STATE
}

/// The queue pairs that are not in reset.
fn open_ones(session: &mut Session, selected: &[u32], faults: &mut Faults) -> Result<Rows, Failure> {
    let rows = |count: u32| if selected.is_empty() { (0..count).collect() } else { selected.to_vec() };
    let all: Rows = session.fit().map(|(board, identity)| (board, rows(identity.build.queue_pairs))).collect();
    let states = states(session, &all, faults)?;
    let mut open = Rows::new();
    for ((board, row), state) in states {
        let rows = open.entry(board).or_default();
        if state != 0 {
            rows.push(row);
        }
    }
    Ok(open)
}

fn states(session: &mut Session, rows: &Rows, faults: &mut Faults) -> Result<BTreeMap<(usize, u32), u32>, Failure> {
    let request = |rows: &Vec<u32>| Request::reads(rows.iter().map(|row| state_address(*row)));
    let requests: Vec<_> = rows.iter().map(|(board, rows)| (*board, request(rows))).collect();
    let mut states = BTreeMap::new();
    for ((board, rows), outcome) in rows.iter().zip(session.run(&requests)?) {
        match outcome {
            Ok(words) => {
                states.extend(rows.iter().zip(words).map(|(row, word)| ((*board, *row), qp::STATE_BITS.of(word[0]))))
            }
            Err(error) => {
                let (register, message) = session.named(&error);
                faults.push(session.address(*board), register, message);
            }
        }
    }
    Ok(states)
}

/// Wait for the connection managers to finish: their servers may be gone.
fn wait(session: &mut Session, mut boards: Vec<usize>, faults: &mut Faults) -> Result<(), Failure> {
    let end = Instant::now() + SERVER_PATIENCE;
    while !boards.is_empty() && Instant::now() < end {
        let looks: Vec<_> = boards.iter().map(|board| (*board, Access::read(connection::STATUS).into())).collect();
        let mut busy = Vec::new();
        for (board, outcome) in boards.iter().zip(session.run(&looks)?) {
            match outcome {
                Ok(words) if connection::STATUS_BUSY_BITS.of(words[0][0]) != 0 => busy.push(*board),
                Ok(_) => {}
                Err(error) => {
                    let (register, message) = session.named(&error);
                    faults.push(session.address(*board), register, message);
                }
            }
        }
        boards = busy;
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}
