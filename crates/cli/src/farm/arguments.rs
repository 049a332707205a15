// SPDX-License-Identifier: Apache-2.0
//! The command line of `penstock farm`.

use crate::arguments::number::number;
use penstock_units::Time;
use std::net::SocketAddr;
use std::path::PathBuf;

#[derive(clap::Args)]
pub struct Arguments {
    /// Boards and servers (docs/servers.md)
    pub file: PathBuf,
    /// A run begins: make the file of servers, and write every board's table anew. Before its first event
    #[arg(long)]
    pub begin: bool,
    /// Take boards from another coordinator, which stops then
    #[arg(long)]
    pub take_over: bool,
    /// The coordinator's number in the boards (destination.owner), 1 to 65535; made of this host's name and the path of the
    /// file of servers if left out
    #[arg(long, value_parser = number::<u16>)]
    pub owner: Option<u16>,
    /// Time from one look at a board to the next
    #[arg(long, default_value = "20ms")]
    pub look: Time,
    /// A board that does not answer for so long is missing
    #[arg(long, default_value = "500ms")]
    pub board_patience: Time,
    /// A server without a heartbeat for so long is taken out
    #[arg(long, default_value = "2s")]
    pub heartbeat_patience: Time,
    /// How long events are held for a server that has not read a change
    #[arg(long, default_value = "5s")]
    pub read_patience: Time,
    /// A server that every board has been able to send to for so long is put in
    #[arg(long, default_value = "1s")]
    pub settle: Time,
    /// How long the first tables wait for a server that has opened no queue pair
    #[arg(long, default_value = "10s")]
    pub start_patience: Time,
    /// Serve metrics at this address, as in 127.0.0.1:9200
    #[arg(long, value_name = "ADDR:PORT")]
    pub metrics: Option<SocketAddr>,
    /// One line of JSON for each thing that is said
    #[arg(short = 'J', long)]
    pub json: bool,
}
