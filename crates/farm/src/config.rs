// SPDX-License-Identifier: Apache-2.0
//! The settings of a coordinator, including its timeouts.

use penstock_units::Time;
use std::net::Ipv4Addr;

/// A server as it is configured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerConfig {
    /// Its number in the log.
    pub number: u16,
    /// Where boards send to.
    pub address: Ipv4Addr,
    /// It has metrics: a heartbeat.
    pub has_heartbeat: bool,
    /// A server of twice the weight gets twice the events; 1 to 64.
    pub weight: u8,
}

/// The settings of a coordinator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FarmConfig {
    /// The number for `destination.owner` of all boards; not 0, and another one for each farm.
    pub owner: u16,
    /// Boards that have another owner are taken from it, once.
    pub take_over: bool,
    /// Every board is set up again: a run starts.
    pub begin: bool,
    /// Names, as the servers have them.
    pub boards: Vec<String>,
    pub servers: Vec<ServerConfig>,
    /// Time from one look at a board to the next.
    pub look: Time,
    /// A board that was silent for so long is missing.
    pub board_patience: Time,
    /// A server without a heartbeat for so long is dead.
    pub heartbeat_patience: Time,
    /// How long boards hold events for a server that has not read a change.
    pub read_patience: Time,
    /// A server takes events when it has been ready for so long.
    pub settle: Time,
    /// How long the first tables wait for servers that have no queue pair yet, and the begin and the end of a run for
    /// boards.
    pub start_patience: Time,
    /// A server that has been full for so long gets less, if another one has room.
    pub full_for: Time,
    /// A server that has not been full for so long gets more again.
    pub relief: Time,
    /// Time that preparing all boards takes: a change is announced for the events after it.
    pub lead: Time,
}

impl FarmConfig {
    /// Times for boards a millisecond away.
    pub fn new(owner: u16, boards: Vec<String>, servers: Vec<ServerConfig>) -> Self {
        FarmConfig {
            owner,
            take_over: false,
            begin: false,
            boards,
            servers,
            look: Time::from_ms(20),
            board_patience: Time::from_ms(500),
            heartbeat_patience: Time::from_s(2),
            read_patience: Time::from_s(5),
            settle: Time::from_s(1),
            start_patience: Time::from_s(10),
            full_for: Time::from_s(1),
            relief: Time::from_s(10),
            lead: Time::from_ms(20),
        }
    }
}
