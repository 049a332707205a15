// SPDX-License-Identifier: Apache-2.0
//! IPbus 2.0, the slow control of the gateware: a client for hundreds of boards, their register map and that of the QCN
//! switch by name, and a board or a switch in software for tests.
//!
//! ```text
//!  Request -> [ Client: one board, sans-IO ] -> packets -> [ Fleet: all boards, one thread, UDP ] -> network
//!  Outcome <-                                <-
//! ```
//!
//! Promise: a request is executed in order and at most once, or its error says what is known about it. Requests of one
//! board are executed in the order of submission, those of different boards in parallel.
//! Source: "The IPbus Protocol", version 2.0 (CERN, 2013); the target is `rtl/ctrl/ipbus_target.sv`.

pub mod change;
mod client;
pub mod dcqcn;
mod fleet;
mod identity;
pub mod map;
mod marks;
mod options;
mod packet;
pub mod regs;
mod request;
mod responder;
mod rtt;
mod switch;

pub use client::{Client, Patience, RequestId};
pub use fleet::{BoardAddress, Fleet, FleetError};
pub use identity::{Identity, Unfit};
pub use marks::Marks;
pub use options::Options;
pub use packet::{Info, Kind, PacketHeader, PacketKind, StatusReply, TransactionHeader, PACKET_WORDS, PORT};
pub use request::{Access, AccessError, Outcome, Request};
pub use responder::{Answer, Responder, ResponderConfig};
pub use switch::Switch;
