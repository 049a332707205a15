// SPDX-License-Identifier: Apache-2.0
//! The verilated board as a live endpoint ("virtual board"): on a TAP device, a packet socket, the socket of a virtual
//! machine, or a replay of a capture.
//!
//! ```text
//!  messages, registers            emulated switch
//!        |                       (CNPs by throughput)
//!  +-----v---------------------------+   |   +------------------------------+
//!  | LiveBoard: Board, clock (Pace)  |<--+-->| Wire: Tap, PacketSocket,     |<--> kernel, NIC,
//!  +---------------------------------+       |       UnixWire, Replay       |     virtual machine, file
//!        |  capture, samples, counts         +------------------------------+
//! ```
//!
//! [`LiveSwitch`] is the QCN switch with a wire at each of its ports.
//!
//! Time is the board's time: the number of cycles run. [`pace`] decides when they run.

mod checksum;
mod live_board;
mod live_switch;
mod losses;
mod neighbour;
pub mod pace;
mod packet;
mod pcapng;
mod replay;
mod stats;
mod tap;
mod unix;
mod wire;

pub use live_board::{LiveBoard, LiveError};
pub use live_switch::LiveSwitch;
pub use neighbour::{resolve, NoNeighbour};
pub use pace::{Activity, PaceConfig};
pub use packet::PacketSocket;
pub use replay::Replay;
pub use stats::LiveStats;
pub use tap::Tap;
pub use unix::UnixWire;
pub use wire::{Sent, Wire, WireError, WireTime};
