// SPDX-License-Identifier: Apache-2.0
//! The gateware as software: `penstock_xgmii` at 10 Gb/s, verilated, with drivers for its ports, and as a node of the
//! simulated network. Feature `all-tops` adds front ends at 1, 2.5, 25 and 100 Gb/s, with
//! more queue pairs, and with rings in memory.
//!
//! ```text
//!  MessageSource -> [ Worker thread: Board { Model (Verilator), XGMII, AXI-Stream, AXI-Lite } ]
//!   (messages, or raw samples of events)
//!                                     |  ^ frames with their octet times
//!                                     v  |
//!                          BoardNode, a node of penstock-netsim
//! ```

mod axil;
mod board;
mod clock;
mod config;
mod detector;
mod ffi;
mod gmii;
#[cfg(any(test, feature = "all-tops"))]
mod hard_mac;
pub mod live;
mod memory;
mod message;
mod node;
mod port;
mod pull;
mod rates;
mod receive;
mod stream;
mod switch;
mod top;
mod worker;
mod xgmii;

pub use axil::Answer;
pub use board::{Board, RegisterError};
pub use config::{
    qp_register, regs, stream_register, EndpointConfig, EventsConfig, QpConfig, ReadWindow, RingTarget, SetupError,
    SliceEnd, StreamConfig, StreamRules, StreamingConfig, WhileBusy,
};
pub use detector::DetectorEvent;
pub use message::{Completion, Message, Verb, WcStatus};
pub use node::{BoardNode, MessageTally, NodeError, Notifications};
pub use penstock_wire::gateware::{LineClock, CYCLE};
pub use port::{Port, Received};
pub use pull::{longest_fragment, PullConfig};
pub use rates::RateSample;
pub use receive::{Arrival, ReceivedMessage};
pub use stream::{Marks, Pieces, StreamPiece};
pub use switch::regs as switch_regs;
pub use switch::{Levels, PortCounts, QcnSwitch, SwitchError, SwitchLine, SwitchNode, SwitchPause, SwitchSettings};
pub use top::{NoSuchLine, Top};
pub use worker::{Awaited, Feed, MessageSource, WorkerGone};
