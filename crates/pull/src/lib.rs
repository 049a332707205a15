// SPDX-License-Identifier: Apache-2.0
//! Pull: boards announce fragments, and the server decides what crosses its link by requesting it with RDMA READs.
//!
//! - [`Scheduler`]: the fragments that wait at all boards of a server, oldest event first. It posts READs while less
//!   than a window W of bytes is in flight.
//! - [`Window`]: W itself, given or measured.
//! - [`Announcements`]: what a board announces, in messages and after the fragments that are read.
//! - [`Intake`]: the same at the server, in order whatever is lost and repeated.
//!
//! **Bound.** Only what a READ has requested travels towards the server, and what boards announce. With several servers
//! that read through one switch, no queue of data in it is longer than the sum of their windows, whatever the topology,
//! the number of boards and the speed of the links; READs to boards that stopped answering are counted apart
//! ([`Scheduler::unanswered`]), since they may still be answered. A READ that is answered twice (go-back-N after a
//! loss) adds at most its own length for each repetition.
//!
//! No clock, no socket, no random source: the caller passes in time, announcements and arrivals, and takes READs out.
//! Sources: IBTA volume 1, 9.4.4 and 9.7.5.1.4 (READs, and how many may be outstanding); the order and the window are
//! those of receiver-driven transports (NDP, SIGCOMM 2017; Homa, SIGCOMM 2018), with READs in place of credits.

mod announcing;
mod board;
mod config;
mod intake;
mod meter;
mod scheduler;
mod window;

pub use announcing::Announcements;
pub use board::{Fragment, Read};
pub use config::{Config, ConfigError};
pub use intake::{Intake, IntakeError, Offer};
pub use scheduler::{Counters, Refusal, Scheduler};
pub use window::Window;
