// SPDX-License-Identifier: Apache-2.0
//! `penstock ctl`: operates boards and QCN switches over IPbus, one or a thousand.
//! Promise: exit status 0 only if every board did what was requested; a board that did not is named with the register,
//! and the others continue. Nothing is written to a board with another register map, and every write is in the journal.

mod acting;
mod apply;
mod arguments;
mod close;
mod configuration;
mod counters;
mod device;
mod faults;
mod get;
mod load;
mod registers;
mod reset;
mod sample;
mod serve;
mod session;
mod set;
mod source;
mod status;
mod streams;
mod switch;
mod watch;

use clap::Subcommand;
use penstock_cli_common::outcome::Verdict;
use penstock_cli_common::output::to_verdict;
use penstock_ipbus::map::BOARD;

#[derive(clap::Args)]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Show which boards answer: map, build, link, queue pairs, streams; of a list, a range, a network, or by ARP
    Status(status::Arguments),
    /// Read registers by name
    Get(get::Arguments),
    /// Write registers by name, and read them back
    Set(set::Arguments),
    /// Poll registers: a line for each change
    Watch(watch::Arguments),
    /// Show the counters of boards
    Counters(counters::Arguments),
    /// Clear counters and latency histograms
    Reset(reset::Arguments),
    /// Start or stop the message source
    Source(source::Arguments),
    /// Write a file into a window of boards' memory by RDMA WRITE, read it back by RDMA READ, and compare
    Load(load::Arguments),
    /// Close queue pairs that were left open
    Close(close::Arguments),
    /// Show differences from a file without writing; exit status 1 if there are any
    Diff(apply::DiffArguments),
    /// Set all boards of a file to its settings
    Apply(apply::Arguments),
    /// Record R_C, R_T, alpha, stage and notifications over time, as a trace of the laboratory
    Sample(sample::Arguments),
    /// Serve boards as Prometheus metrics
    Serve(serve::Arguments),
    /// List the registers by name, with their meaning
    Registers(registers::Arguments),
    /// Operate QCN switches in gateware
    Switch(switch::Arguments),
}

/// Executes a command; prints its own errors.
pub fn run(arguments: &Arguments) -> Verdict {
    to_verdict(match &arguments.command {
        Command::Status(arguments) => status::run(arguments),
        Command::Get(arguments) => get::run(arguments),
        Command::Set(arguments) => set::run(arguments),
        Command::Watch(arguments) => watch::run(arguments),
        Command::Counters(arguments) => counters::run(arguments),
        Command::Reset(arguments) => reset::run(arguments),
        Command::Source(arguments) => source::run(arguments),
        Command::Load(arguments) => load::run(arguments),
        Command::Close(arguments) => close::run(arguments),
        Command::Diff(arguments) => apply::diff(arguments),
        Command::Apply(arguments) => apply::apply(arguments),
        Command::Sample(arguments) => sample::run(arguments),
        Command::Serve(arguments) => serve::run(arguments),
        Command::Registers(arguments) => registers::run(&BOARD, arguments),
        Command::Switch(arguments) => switch::run(arguments),
    })
}
