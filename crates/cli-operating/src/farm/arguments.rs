// SPDX-License-Identifier: Apache-2.0
//! The command line of `penstock farm`.

use penstock_cli_common::arguments::number::number;
use penstock_cli_common::arguments::quantity::listen_address;
use penstock_units::Time;
use std::net::SocketAddr;
use std::path::PathBuf;

#[derive(clap::Args)]
pub struct Arguments {
    /// Boards and servers (docs/servers.md)
    pub file: PathBuf,
    /// Start of a run: make the file of servers, and write every board's table. Use before the first event
    #[arg(long)]
    pub begin: bool,
    /// End the run: every server takes the events before one event and ends by itself; later events wait for the next run
    #[arg(long, conflicts_with = "begin")]
    pub end: bool,
    /// Take over boards from another coordinator, which then stops
    #[arg(long)]
    pub take_over: bool,
    /// The coordinator's number in the boards (destination.owner), 1 to 65535; derived from this host's name and the
    /// path of the file of servers if left out
    #[arg(long, value_parser = number::<u16>)]
    pub owner: Option<u16>,
    /// Time between two polls of a board
    #[arg(long, default_value = "20ms")]
    pub look: Time,
    /// Time without an answer after which a board is missing
    #[arg(long, default_value = "500ms")]
    pub board_patience: Time,
    /// Time without a heartbeat after which a server is taken out
    #[arg(long, default_value = "2s")]
    pub heartbeat_patience: Time,
    /// How long events are held for a server that has not read a change
    #[arg(long, default_value = "5s")]
    pub read_patience: Time,
    /// Time for which every board must be able to send to a server before it is put in
    #[arg(long, default_value = "1s")]
    pub settle: Time,
    /// Time for which a server must have been full, while another one has room, before it gets less
    #[arg(long, default_value = "1s")]
    pub full_for: Time,
    /// Time without being full after which a server gets more again
    #[arg(long, default_value = "10s")]
    pub relief: Time,
    /// How long the first tables wait for a server that has opened no queue pair, and the begin or the end of a run for a
    /// board
    #[arg(long, default_value = "10s")]
    pub start_patience: Time,
    /// Serve metrics at this address, as in 127.0.0.1:9200
    #[arg(long, value_name = "ADDR:PORT", value_parser = listen_address)]
    pub metrics: Option<SocketAddr>,
    /// One line of JSON for each message
    #[arg(short = 'J', long)]
    pub json: bool,
}
