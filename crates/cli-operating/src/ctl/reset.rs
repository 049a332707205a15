// SPDX-License-Identifier: Apache-2.0
//! `penstock ctl reset`: clears counters and histograms.

use super::acting::{everywhere, Action};
use super::arguments::{BoardArguments, WriteArguments};
use penstock_cli_common::outcome::{Failure, Verdict};
use penstock_ipbus::regs::global;

#[derive(clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    boards: BoardArguments,
    #[command(flatten)]
    write: WriteArguments,
}

pub fn run(arguments: &Arguments) -> Result<Verdict, Failure> {
    let writes = vec![(global::COMMAND, global::COMMAND_CLEAR_BITS.mask)];
    let action = Action { done: "counters and latency histograms begin anew", writes };
    everywhere(&arguments.boards, &arguments.write, &action)
}
