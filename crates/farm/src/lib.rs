// SPDX-License-Identifier: Apache-2.0
//! The coordinator of a farm of servers: which server takes which event, changed at all boards at one event number.
//!
//! ```text
//!  looks at boards ---+                          +--> requests to boards (one at a time each)
//!  looks at servers --+-> [ Coordinator, sans-IO ]--> changes for the log
//!  time --------------+                          +--> what there is to say
//! ```
//!
//! A change is a two-phase commit (J. Gray, Notes on Data Base Operating Systems, 1978). The boards are the
//! participants: a prepared board holds its events from the change on (`destination.control.prepare`). The log of
//! changes decides: a prepared board whose change is in the log is confirmed, any other is cancelled, by this
//! coordinator or by the next one.
//!
//! Promise: of all boards that take part none sends an event from a change on by the table before, and none below it by
//! the new one, whatever is lost, delayed or killed; what could not be kept is told, with its events.

mod board;
mod config;
mod coordinator;
mod notice;
mod server;
mod state;
mod tables;
mod watch;

pub use board::{BoardView, QueuePair, Request, IN_ERROR, NO_QUEUE_PAIR, READY_TO_SEND};
pub use config::{FarmConfig, ServerConfig};
pub use coordinator::Coordinator;
pub use notice::Notice;
pub use server::ServerView;
pub use state::Action;
pub use tables::{Change, Tables};
