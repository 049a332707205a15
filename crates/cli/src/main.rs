// SPDX-License-Identifier: Apache-2.0
//! The `penstock` command. Exit status: 0 done and verified, 1 ran and found a fault, 2 asked wrongly.

// They panic where the other end of a pipe has gone; `screen::say` and `output::print` do not.
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod app;
mod board;
mod board_report;
mod board_session;
mod board_setup;
mod check;
mod farm;
mod gpu_check;
mod lab;
mod lab_board;
mod lab_report;
mod live;
mod output;
mod pattern;
mod plots;
mod python;
mod recv;
mod report;
mod run;
mod screen;
mod send;
mod simulation;
mod source;
mod summary;
mod usage;

use clap::{Parser, Subcommand};
use std::io::IsTerminal;
use std::process::ExitCode;
use tracing_subscriber::EnvFilter;

/// Simulated packets lie in huge pages so, where the system gives them to who asks: a fifth of a large network's time.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const AFTER_HELP: &str = "\
Exit status: 0 done and verified, 1 ran and found a fault, 2 asked wrongly.

Environment:
  PENSTOCK_LOG     What is logged on standard error: error, warn (default), info or debug
  PENSTOCK_PYTHON  The Python of sweep, tune, figures and plots [default: the repository's .venv, then python3]

Documentation: README.md and docs/ of the repository";

/// Congestion-aware RDMA front end for detector readout.
#[derive(Parser)]
#[command(name = "penstock", version, after_help = AFTER_HELP)]
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
    /// Receive from boards: open them, build events, check and store them; with an RDMA NIC or without
    Recv(Box<recv::Arguments>),
    /// Send as software front ends with the gateware's protocol, hundreds in one process
    Send(Box<send::Arguments>),
    /// Prove stored runs byte by byte, and complete what a killed receiver has left
    Check(check::Arguments),
    /// Whether an NVIDIA GPU computes what the processor computes, and how fast events go through it
    GpuCheck(gpu_check::Arguments),
    /// Run a scenario over a grid of parameters, on this machine or a Dask cluster: a table out
    Sweep(python::Arguments),
    /// Look for congestion-control parameters that make a scenario fair, fast or free of pauses
    Tune(python::Arguments),
    /// Draw figures of the papers from their scenarios, beside the papers' numbers
    Figures(python::Arguments),
}

/// How a command ended; the exit status of the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Done, and everything that could be verified was right.
    Verified,
    /// It ran, and found loss, corruption, an error or an interruption.
    Fault,
    /// The request itself was wrong: nothing ran.
    Refused,
}

impl From<Verdict> for ExitCode {
    fn from(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Verified => ExitCode::SUCCESS,
            Verdict::Fault => ExitCode::from(1),
            Verdict::Refused => ExitCode::from(2),
        }
    }
}

fn main() -> ExitCode {
    let filter = EnvFilter::try_from_env("PENSTOCK_LOG").unwrap_or_else(|_| EnvFilter::new("warn"));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(|| screen::Log)
        .with_ansi(std::io::stderr().is_terminal())
        .without_time()
        .init();
    match Cli::parse().command {
        Command::Run(arguments) => run::run(&arguments).into(),
        Command::Board(arguments) => board::run(&arguments).into(),
        Command::Recv(arguments) => recv::run(&arguments).into(),
        Command::Send(arguments) => send::run(&arguments).into(),
        Command::Check(arguments) => check::run(&arguments).into(),
        Command::GpuCheck(arguments) => gpu_check::run(&arguments).into(),
        Command::Sweep(arguments) => python::become_python("sweep", &arguments).into(),
        Command::Tune(arguments) => python::become_python("tune", &arguments).into(),
        Command::Figures(arguments) => python::become_python("figures", &arguments).into(),
    }
}
