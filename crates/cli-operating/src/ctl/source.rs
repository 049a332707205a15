// SPDX-License-Identifier: Apache-2.0
//! `penstock ctl source`: starts and stops the message source of boards.
//! Promise: it is reported as running or stopped only if the board itself reports this.

use super::acting::report;
use super::arguments::{BoardArguments, WriteArguments};
use super::session::Session;
use penstock_cli_common::outcome::{Failure, Verdict};
use penstock_ipbus::change::Command;
use penstock_ipbus::regs::source;
use penstock_ipbus::Access;

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum What {
    /// Begin a run with the settings of `source`
    Start,
    /// End it after the messages that have begun
    Stop,
}

#[derive(clap::Args)]
pub struct Arguments {
    #[arg(value_enum)]
    what: What,
    #[command(flatten)]
    boards: BoardArguments,
    #[command(flatten)]
    write: WriteArguments,
}

/// Looks at a source that is to stop: a message takes a while.
const LOOKS: usize = 1000;

pub fn run(arguments: &Arguments) -> Result<Verdict, Failure> {
    let mut session = Session::open(&arguments.boards)?;
    let mut faults = session.unfit();
    let is_start = arguments.what == What::Start;
    let word = if is_start { source::COMMAND_START_BITS.mask } else { source::COMMAND_STOP_BITS.mask };
    let actions: Vec<_> =
        session.fit().map(|(board, _)| Command { board, writes: vec![(source::COMMAND, word)] }).collect();
    let mut waiting = session.command(&actions, &arguments.write, &mut faults)?;
    let mut good = Vec::new();
    if is_start {
        // A run of few messages may be over already.
        good = std::mem::take(&mut waiting);
    }
    for _ in 0..LOOKS {
        let looks: Vec<_> = waiting.iter().map(|board| (*board, Access::read(source::STATUS).into())).collect();
        let mut runs = Vec::new();
        for (board, outcome) in waiting.iter().zip(session.run(&looks)?) {
            match outcome {
                Ok(words) if source::STATUS_RUNNING_BITS.of(words[0][0]) != 0 => runs.push(*board),
                Ok(_) => good.push(*board),
                Err(error) => {
                    let (register, message) = session.named(&error);
                    faults.push(session.address(*board), register, message);
                }
            }
        }
        waiting = runs;
        if waiting.is_empty() {
            break;
        }
    }
    for board in waiting {
        let message = "runs on: its last message waits for a queue pair; `penstock ctl status` shows their states";
        faults.push(session.address(board), Some("source.status".to_owned()), message);
    }
    good.sort_unstable();
    Ok(report(
        &session,
        arguments.boards.link.json,
        if is_start { "source started" } else { "source stopped" },
        &good,
        &faults,
    ))
}
