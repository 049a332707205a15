// SPDX-License-Identifier: Apache-2.0
//! The `penstock` command. Exit status: 0 done and verified, 1 ran and found a fault, 2 invalid request.

// They panic where the other end of a pipe has gone; `output::screen::notify` and `output::print` do not.
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod manual;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use penstock_cli_common::{outcome, output};
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
#[command(name = "penstock", version = penstock_version::VERSION, after_help = AFTER_HELP)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    #[cfg(feature = "laboratory")]
    #[command(flatten)]
    Laboratory(penstock_cli_laboratory::Command),
    #[command(flatten)]
    Operating(penstock_cli_operating::Command),
    /// Print a shell's completion script for this command
    Completions(manual::Completions),
    /// Write the pages of the manual
    Man(manual::Man),
}

/// Commands of the laboratory, for the message of a build that lacks them.
#[cfg(not(feature = "laboratory"))]
const LABORATORY: [&str; 6] = ["run", "board", "switch", "sweep", "tune", "figures"];

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
    let levels = ["off", "error", "warn", "info", "debug", "trace"];
    // `parse` also takes numbers.
    match value.parse() {
        Ok(level) if levels.contains(&value.to_lowercase().as_str()) => Ok(level),
        _ => Err(format!("PENSTOCK_LOG: `{value}` is no level of the log; set {} or trace", levels[..5].join(", "))),
    }
}

fn main() -> ExitCode {
    let level = match log_level(std::env::var_os("PENSTOCK_LOG").as_deref()) {
        Ok(level) => level,
        Err(wrong) => {
            output::screen::notify(format_args!("error: {wrong}"));
            return outcome::Verdict::Refused.into();
        }
    };
    tracing_subscriber::fmt()
        .with_max_level(level)
        .with_writer(|| output::screen::Log)
        .with_ansi(std::io::stderr().is_terminal())
        .without_time()
        .init();
    #[cfg(not(feature = "laboratory"))]
    if let Some(name) = std::env::args().nth(1).filter(|name| LABORATORY.contains(&name.as_str())) {
        output::screen::notify(format_args!(
            "error: this `penstock` operates readouts and has no `{name}`: install the wheel, which has the laboratory"
        ));
        return outcome::Verdict::Refused.into();
    }
    let cli = Cli::from_arg_matches(&command().get_matches()).unwrap_or_else(|error| error.exit());
    match cli.command {
        #[cfg(feature = "laboratory")]
        Command::Laboratory(command) => command.run().into(),
        Command::Operating(command) => command.run().into(),
        Command::Completions(arguments) => manual::completions(&arguments, documented()).into(),
        Command::Man(arguments) => manual::man(&arguments, documented()).into(),
    }
}

/// The command line with the options of the commands that run in Python.
fn documented() -> clap::Command {
    #[cfg(feature = "laboratory")]
    return penstock_cli_laboratory::described(command());
    #[cfg(not(feature = "laboratory"))]
    command()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_has_the_level_that_was_set_and_anything_else_is_refused() {
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
