// SPDX-License-Identifier: Apache-2.0
//! The `penstock` command. Exit status: 0 done and verified, 1 ran and found a fault, 2 invalid request.

// They panic where the other end of a pipe has gone; `output::screen::say` and `output::print` do not.
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod arguments;
mod board;
mod check;
mod ctl;
mod farm;
mod gateware;
#[cfg(feature = "gpu")]
mod gpu_check;
mod interrupt;
mod live;
mod manual;
mod outcome;
mod output;
mod python;
mod recv;
mod renamed;
mod run;
mod send;
mod switch;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use std::ffi::OsStr;
use std::io::IsTerminal;
use std::process::ExitCode;
use tracing_subscriber::filter::LevelFilter;

/// Simulated packets are then in huge pages, if the system provides them on request: this saves a fifth of a large
/// network's time.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const AFTER_HELP: &str = "\
Exit status: 0 done and verified, 1 ran and found a fault, 2 asked wrongly.

Environment:
  PENSTOCK_LOG     What is logged on standard error: off, error, warn (default), info, debug
                   or trace
  PENSTOCK_PYTHON  The Python of sweep, tune, figures and plots [default: that of the clone the
                   command lies in, or the one it was installed with, then python3]

Documentation: README.md and docs/ of the repository";

/// Congestion-aware RDMA front end for detector readout.
#[derive(Parser)]
#[command(name = "penstock", version = env!("PENSTOCK_VERSION"), after_help = AFTER_HELP)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Simulate a scenario: boards (the verilated gateware), switch, server and event builder; or any network
    Run(run::Arguments),
    /// The verilated gateware as a live endpoint: on a TAP device, an interface, a virtual machine, or a capture
    Board(Box<board::Arguments>),
    /// The QCN switch in gateware, verilated, as a live switch at 1 Gb/s: its ports and its management port are interfaces
    Switch(switch::Arguments),
    /// Receive from boards: open them, build events, check and store them; with an RDMA NIC or without
    Recv(Box<recv::Arguments>),
    /// Send as software front ends with the gateware's protocol, hundreds in one process
    Send(Box<send::Arguments>),
    /// Operate boards over IPbus: status, registers by name, whole cameras from one file
    Ctl(Box<ctl::Arguments>),
    /// Coordinate the servers that share a run: take out those that die, at all boards at one event
    Farm(farm::Arguments),
    /// Verify stored runs byte by byte, and complete files that a killed receiver left
    Check(check::Arguments),
    /// Experimental: check that an NVIDIA GPU gives the processor's results, and measure its event rate
    #[cfg(feature = "gpu")]
    GpuCheck(gpu_check::Arguments),
    /// Run a scenario over a grid of parameters, on this machine or a Dask cluster, and write a table
    Sweep(python::Arguments),
    /// Search for congestion-control parameters that make a scenario fair, fast or free of pauses
    Tune(python::Arguments),
    /// Draw figures of the papers from their scenarios, with the papers' numbers
    Figures(python::Arguments),
    /// Print a shell's completion script for this command
    Completions(manual::Completions),
    /// Write the pages of the manual
    Man(manual::Man),
}

/// The command line. A negative number is parsed as a value, so that the error names the allowed values; otherwise `-1`
/// would be an unknown option.
fn command() -> clap::Command {
    let accepts = |arg: clap::Arg| {
        let takes = arg.get_action().takes_values() && !arg.is_allow_hyphen_values_set();
        if takes {
            arg.allow_negative_numbers(true)
        } else {
            arg
        }
    };
    Cli::command().mut_subcommands(move |command| command.mut_args(accepts))
}

/// What is logged on standard error: the value of `PENSTOCK_LOG`, warnings where it is unset or empty.
fn log_level(value: Option<&OsStr>) -> Result<LevelFilter, String> {
    let value = value.unwrap_or_default().to_string_lossy();
    if value.is_empty() {
        return Ok(LevelFilter::WARN);
    }
    let known = ["off", "error", "warn", "info", "debug", "trace"];
    // `parse` also takes numbers.
    match value.parse() {
        Ok(level) if known.contains(&value.to_lowercase().as_str()) => Ok(level),
        _ => Err(format!("PENSTOCK_LOG: `{value}` is no level of the log; set {} or trace", known[..5].join(", "))),
    }
}

fn main() -> ExitCode {
    let level = match log_level(std::env::var_os("PENSTOCK_LOG").as_deref()) {
        Ok(level) => level,
        Err(wrong) => {
            output::screen::say(format_args!("error: {wrong}"));
            return outcome::Verdict::Refused.into();
        }
    };
    tracing_subscriber::fmt()
        .with_max_level(level)
        .with_writer(|| output::screen::Log)
        .with_ansi(std::io::stderr().is_terminal())
        .without_time()
        .init();
    let given =
        command().try_get_matches().unwrap_or_else(|error| renamed::explained(error, std::env::args_os()).exit());
    let cli = Cli::from_arg_matches(&given).unwrap_or_else(|error| error.exit());
    match cli.command {
        Command::Run(arguments) => run::run(&arguments).into(),
        Command::Board(arguments) => board::run(&arguments).into(),
        Command::Switch(arguments) => switch::run(&arguments).into(),
        Command::Recv(arguments) => recv::run(&arguments).into(),
        Command::Send(arguments) => send::run(&arguments).into(),
        Command::Ctl(arguments) => ctl::run(&arguments).into(),
        Command::Farm(arguments) => farm::run(&arguments).into(),
        Command::Check(arguments) => check::run(&arguments).into(),
        #[cfg(feature = "gpu")]
        Command::GpuCheck(arguments) => gpu_check::run(&arguments).into(),
        Command::Sweep(arguments) => python::become_package("sweep", &arguments).into(),
        Command::Tune(arguments) => python::become_package("tune", &arguments).into(),
        Command::Figures(arguments) => python::become_figures(&arguments).into(),
        Command::Completions(arguments) => manual::completions(&arguments, python::described(command())).into(),
        Command::Man(arguments) => manual::man(&arguments, python::described(command())).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_has_the_level_that_was_asked_for_and_anything_else_is_refused() {
        let level = |value: &str| log_level(Some(OsStr::new(value)));
        assert_eq!(log_level(None), Ok(LevelFilter::WARN));
        assert_eq!(level(""), Ok(LevelFilter::WARN));
        assert_eq!(level("debug"), Ok(LevelFilter::DEBUG));
        assert_eq!(level("OFF"), Ok(LevelFilter::OFF));
        let allowed = "set off, error, warn, info, debug or trace";
        for wrong in ["verbose", "penstock=debug", "3"] {
            assert_eq!(level(wrong), Err(format!("PENSTOCK_LOG: `{wrong}` is no level of the log; {allowed}")));
        }
    }
}
