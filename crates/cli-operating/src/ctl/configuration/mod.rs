// SPDX-License-Identifier: Apache-2.0
//! `boards.toml`: the settings of all boards of a camera in one file.
//!
//! ```toml
//! [all]                                   # of every board
//! flow_control.traffic_class = 3          # registers as `penstock ctl registers` names them
//! cc = { profile = "penstock", share = "39Mbps" }
//!
//! [[board]]
//! address = "10.0.0.2"
//! ring.0.slots = 64                       # ring[0].slots of this board
//! ```
//!
//! Promise: a key that names no register, a value that a register does not accept and a board that is listed twice are
//! reported with their line, all at once, before anything is written.

mod document;
mod settings;

pub use document::Configuration;
pub use settings::{Resolved, Resolver};
