// SPDX-License-Identifier: Apache-2.0
//! `penstock ctl switch enter`: writes an entry of the MAC table. The table cannot be read back.

use super::arguments::SwitchArguments;
use crate::ctl::acting::report;
use crate::ctl::arguments::WriteArguments;
use penstock_cli_common::outcome::{Failure, Verdict};
use penstock_ipbus::change::Command;
use penstock_ipbus::map::{Scale, Unit};
use penstock_ipbus::regs::qcn_switch::global;
use penstock_ipbus::Switch;

#[derive(clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    of: SwitchArguments,
    /// Number of the entry, from 0
    #[arg(value_name = "ENTRY")]
    entry: u32,
    /// MAC address, 02:00:0a:00:00:02
    #[arg(value_name = "MAC", value_parser = mac, required_unless_present = "free")]
    mac: Option<u64>,
    /// The port towards it
    #[arg(long, required_unless_present = "free")]
    port: Option<u32>,
    /// It may be moved and replaced by what is learned
    #[arg(long)]
    movable: bool,
    /// Make the entry free
    #[arg(long, conflicts_with_all = ["mac", "port", "movable"])]
    free: bool,
    #[command(flatten)]
    write: WriteArguments,
}

fn mac(text: &str) -> Result<u64, String> {
    let read = Scale { clock_khz: 1 }.parse(Unit::Mac, text);
    read.unwrap_or_else(|| Err(format!("{text:?} is no MAC address; write one as 02:00:0a:00:00:02")))
}

pub fn run(arguments: &Arguments) -> Result<Verdict, Failure> {
    let mut session = arguments.of.open()?;
    let mut faults = session.unfit();
    for (switch, build) in session.fit() {
        possible(arguments, build).map_err(|why| Failure::Refused(format!("{}: {why}", session.address(switch))))?;
    }
    let commands: Vec<_> =
        session.fit().map(|(board, _)| Command { board, writes: words(arguments).to_vec() }).collect();
    let good = session.command(&commands, &arguments.write, &mut faults)?;
    let done = match arguments.free {
        true => format!("entry {} is free", arguments.entry),
        false => format!("entry {} is written", arguments.entry),
    };
    Ok(report(&session, arguments.of.link.json, &done, &good, &faults))
}

/// Refuses what a switch's build has not.
fn possible(arguments: &Arguments, build: Switch) -> Result<(), String> {
    if arguments.entry >= build.entries {
        return Err(format!("entry {}: its MAC table has entries 0 to {}", arguments.entry, build.entries - 1));
    }
    match arguments.port {
        Some(port) if port >= build.ports => Err(format!("--port {port}: it has ports 0 to {}", build.ports - 1)),
        _ => Ok(()),
    }
}

/// Addresses and words, in order: the entry, and the write that enters it.
fn words(arguments: &Arguments) -> [(u32, u32); 3] {
    let (mac, port) = (arguments.mac.unwrap_or(0), arguments.port.unwrap_or(0));
    let flag = |is_set: bool, mask: u32| if is_set { mask } else { 0 };
    let high = (mac >> 32) as u32
        | global::ENTRY_HI_PORT_BITS.at(port)
        | flag(!arguments.free && !arguments.movable, global::ENTRY_HI_IS_STATIC_BITS.mask)
        | flag(!arguments.free, global::ENTRY_HI_VALID_BITS.mask);
    [(global::ENTRY_HI, high), (global::ENTRY_LO, mac as u32), (global::ENTRY_WRITE, arguments.entry)]
}
