// SPDX-License-Identifier: Apache-2.0
//! The gateware as software: `penstock_10g`, verilated, with its pins in use, and as a node of the
//! simulated network. Feature `all-tops` adds wider builds for measurements.
//!
//! ```text
//!  MessageSource -> [ Worker thread: Board { Model (Verilator), XGMII, AXI-Stream, AXI-Lite } ]
//!                                     |  ^ frames with their octet times
//!                                     v  |
//!                          BoardNode, a node of penstock-netsim
//! ```

mod axil;
mod board;
mod config;
mod ffi;
#[cfg(feature = "all-tops")]
mod hard_mac;
pub mod live;
#[cfg(feature = "all-tops")]
mod measured;
mod message;
mod node;
mod rates;
mod top;
mod worker;
mod xgmii;

pub use axil::Answer;
pub use board::{Board, RegisterError, CYCLE_PS, OCTET_PS};
pub use config::{dcqcn_words, qp_register, regs, EndpointConfig, QpConfig, SetupError};
#[cfg(feature = "all-tops")]
pub use measured::{Penstock100gX16, Penstock10gX16};
pub use message::{Completion, Message, Verb, WcStatus};
pub use node::{BoardNode, MessageTally, PORT};
pub use rates::RateSample;
pub use top::{Penstock10g, Port, Top};
pub use worker::{wire_octets, Ingress, MessageSource, Outcome, Sample, Sampling, Worker, WorkerGone};
pub use xgmii::Received;
