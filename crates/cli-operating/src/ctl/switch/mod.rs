// SPDX-License-Identifier: Apache-2.0
//! `penstock ctl switch`: operates QCN switches in gateware (docs/qcn-switch.md) by their own register map.
//! Promise: as for boards: a switch with another register map, and a board, are refused by name, and every write is in
//! the journal.

mod arguments;
mod counters;
mod enter;
mod status;

use super::arguments::WriteArguments;
use super::watch::PollArguments;
use super::{get, registers, set, watch};
use arguments::SwitchArguments;
use clap::Subcommand;
use penstock_cli_common::outcome::{Failure, Verdict};
use penstock_ipbus::map::SWITCH;

#[derive(clap::Args)]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Show which switches answer: build, addresses, congestion points, pause, frames
    Status(SwitchArguments),
    /// Read registers by name
    Get(GetArguments),
    /// Write registers by name, and read them back
    Set(SetArguments),
    /// Poll registers: a line for each change
    Watch(WatchArguments),
    /// Show the counters of each port, and what waits in its queues
    Counters(counters::Arguments),
    /// Write an entry of the MAC table
    Enter(enter::Arguments),
    /// List the registers by name, with their meaning
    Registers(registers::Arguments),
}

#[derive(clap::Args)]
pub struct GetArguments {
    #[command(flatten)]
    of: SwitchArguments,
    /// q_eq, port[0-3].tx_cnm, queue, control.learn: `penstock ctl switch registers` lists all
    #[arg(value_name = "REGISTER", required = true)]
    names: Vec<String>,
}

#[derive(clap::Args)]
pub struct SetArguments {
    #[command(flatten)]
    of: SwitchArguments,
    /// q_eq=33kB, control.qcn_queues=3, pause.pfc_en=1
    #[arg(value_name = "REGISTER=VALUE", required = true, value_parser = set::assignment)]
    settings: Vec<(String, String)>,
    #[command(flatten)]
    write: WriteArguments,
}

#[derive(clap::Args)]
pub struct WatchArguments {
    #[command(flatten)]
    of: GetArguments,
    #[command(flatten)]
    poll: PollArguments,
}

pub fn run(arguments: &Arguments) -> Result<Verdict, Failure> {
    match &arguments.command {
        Command::Status(arguments) => status::run(arguments),
        Command::Get(GetArguments { of, names }) => get::show(of.open()?, names, of.link.json),
        Command::Set(arguments) => set(arguments),
        Command::Watch(WatchArguments { of: GetArguments { of, names }, poll }) => {
            watch::poll(|| of.open(), names, poll, of.link.json)
        }
        Command::Counters(arguments) => counters::run(arguments),
        Command::Enter(arguments) => enter::run(arguments),
        Command::Registers(arguments) => registers::run(&SWITCH, arguments),
    }
}

fn set(SetArguments { of, settings, write }: &SetArguments) -> Result<Verdict, Failure> {
    // It reads 0, and an equal word would not be written.
    if let Some((name, _)) = settings.iter().find(|(name, _)| name.split('.').next() == Some("entry_write")) {
        let why = "a write to it enters an address: use `penstock ctl switch enter`";
        return Err(Failure::Refused(format!("{name}: {why}")));
    }
    set::make(of.open()?, settings, write, of.link.json)
}
