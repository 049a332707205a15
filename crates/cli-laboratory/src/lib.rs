// SPDX-License-Identifier: Apache-2.0
//! The commands that simulate: scenarios, the verilated boards and switch as live endpoints, and the sweeps, searches
//! and figures that run in Python.

// They panic where the other end of a pipe has gone; `output::screen::notify` and `output::print` do not.
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod board;
mod gateware;
mod python;
mod run;
mod switch;

pub use python::described;
pub use run::Parts;

use penstock_cli_common::outcome::Verdict;

/// A command line of one of these commands.
#[derive(clap::Subcommand)]
pub enum Command {
    /// Simulate a scenario: boards (the verilated gateware), switch, server and event builder; or any network
    Run(run::Arguments),
    /// The verilated gateware as a live endpoint: on a TAP device, an interface, a virtual machine, or a capture
    Board(Box<board::Arguments>),
    /// The QCN switch in gateware, verilated, as a live switch at 1 Gb/s: its ports and its management port are interfaces
    Switch(switch::Arguments),
    /// Run a scenario over a grid of parameters, on this machine or a Dask cluster, and write a table
    Sweep(python::Arguments),
    /// Search for congestion-control parameters that make a scenario fair, fast or free of pauses
    Tune(python::Arguments),
    /// Draw figures of the papers from their scenarios, with the papers' numbers
    Figures(python::Arguments),
}

impl Command {
    /// Runs it to its end. Sweeps, searches and figures replace this process and return only if that fails.
    pub fn run(&self) -> Verdict {
        match self {
            Command::Run(arguments) => run::run(arguments),
            Command::Board(arguments) => board::run(arguments),
            Command::Switch(arguments) => switch::run(arguments),
            Command::Sweep(arguments) => python::become_package("sweep", arguments),
            Command::Tune(arguments) => python::become_package("tune", arguments),
            Command::Figures(arguments) => python::become_figures(arguments),
        }
    }
}
