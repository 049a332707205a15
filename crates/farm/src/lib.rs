// SPDX-License-Identifier: Apache-2.0
//! The coordinator of a farm of servers: it changes the assignment of events to servers at all boards at one event
//! number.
//!
//! ```text
//!  views of boards ---+                          +--> requests to boards (one at a time each)
//!  views of servers --+-> [ Coordinator, sans-IO ]--> changes for the log
//!  time --------------+                          +--> notices
//! ```
//!
//! A change is a two-phase commit (J. Gray, Notes on Data Base Operating Systems, 1978). The boards are the
//! participants: a prepared board holds its events from the change on (`destination.control.prepare`). The log of
//! changes decides: a prepared board whose change is in the log is confirmed, any other is cancelled, by this
//! coordinator or by the next one.
//!
//! Promise: no participating board sends an event at or above a change by the old table, or one below it by the new
//! table, despite losses, delays and killed processes; violations that cannot be prevented are reported with their
//! events.

mod announce;
mod begin;
mod board;
mod config;
mod coordinator;
mod destination;
mod door;
mod load;
mod notice;
mod requests;
mod server;
mod shares;
mod state;
mod tables;
mod trust;
mod watch;

pub use board::{BoardView, Claim, QueuePair, Request, CLOSED, IN_ERROR, NO_QUEUE_PAIR, READY_TO_SEND};
pub use config::{FarmConfig, ServerConfig};
pub use coordinator::Coordinator;
pub use destination::{Command, DestinationTable, Route};
pub use notice::Notice;
pub use server::{BoardAtServer, ServerView};
pub use shares::{first_table, MAX_ROWS};
pub use state::{Action, Refusals};
pub use tables::{Change, Mark, Tables};
