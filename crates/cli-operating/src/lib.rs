// SPDX-License-Identifier: Apache-2.0
//! The commands that operate a readout: receivers, software front ends, slow control, farms, stored runs. They need
//! neither the simulator nor the verilated gateware.

// They panic where the other end of a pipe has gone; `output::screen::notify` and `output::print` do not.
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod board_list;
mod check;
mod ctl;
mod farm;
#[cfg(feature = "gpu")]
mod gpu_check;
mod last_event;
mod neighbour;
#[cfg(not(feature = "gpu"))]
mod no_gpu_check;
mod recv;
mod send;
mod servers_file;

#[cfg(not(feature = "gpu"))]
use no_gpu_check as gpu_check;
use penstock_cli_common::outcome::Verdict;

/// A command line of one of these commands.
#[derive(clap::Subcommand)]
pub enum Command {
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
    #[cfg_attr(not(feature = "gpu"), command(hide = true))]
    GpuCheck(gpu_check::Arguments),
}

impl Command {
    /// Runs it to its end.
    pub fn run(&self) -> Verdict {
        match self {
            Command::Recv(arguments) => recv::run(arguments),
            Command::Send(arguments) => send::run(arguments),
            Command::Ctl(arguments) => ctl::run(arguments),
            Command::Farm(arguments) => farm::run(arguments),
            Command::Check(arguments) => check::run(arguments),
            Command::GpuCheck(arguments) => gpu_check::run(arguments),
        }
    }
}
