// SPDX-License-Identifier: Apache-2.0
//! The network laboratory: a deterministic, packet-level simulator of links, switches and hosts.
//! Promise: one seed replays one run, event for event; integer picoseconds; no clock, no global state, no I/O except
//! the trace and captures.
//! Source: ARCHITECTURE.md, "Time" and "The way of a fragment".
//!
//! A simulation is an [`Engine`] with [`Node`]s joined by links ([`LinkParams`], with seeded [`Faults`]). [`Switch`]
//! and [`Station`] are nodes; the verilated board (crate `penstock-board`) is another. [`TraceSink`] writes the samples
//! of all nodes to a Parquet file, [`CaptureSink`] the frames of links to a pcapng file. Scenario files, topologies and
//! reports are in crate `penstock-lab`.

#![deny(unsafe_code)]

mod agenda;
mod capture;
mod contents;
mod distribution;
mod emulated_switch;
mod engine;
mod error;
mod flow;
mod frame;
mod ledger;
mod link;
mod network;
mod node;
mod pause;
mod port;
mod pull_stats;
mod queue;
mod rate_window;
mod renewal;
mod rng;
mod station;
mod switch;
mod switch_stats;
mod trace;

use penstock_units as units;

pub use capture::{CaptureError, CaptureSink};
pub use contents::{Contents, Fragments, RemoteRing};
pub use distribution::Distribution;
pub use emulated_switch::{EmulatedSwitch, EmulatedSwitchParams, Notification, SwitchedFlow, ThresholdStep};
pub use engine::{Engine, LinkId, RunEnd};
pub use error::SimError;
pub use flow::{Endpoint, FlowId, Message, MessageSource};
pub use frame::Frame;
pub use ledger::{FlowRecord, Ledger, SharedLedger};
pub use link::{Faults, LinkChange, LinkParams, LinkStats, Way};
pub use node::{Node, NodeTerms, Outbox};
pub use pause::PauseState;
pub use penstock_pull::{Config as PullConfig, ConfigError as PullConfigError, Window as PullWindow};
pub use penstock_units::{ByteSize, Frequency, Probability, Rate, Time};
pub use port::{NodeId, PortId};
pub use pull_stats::{CameBytes, PullStats};
pub use rng::Stream;
pub use station::{
    CnpLimit, Consumer, FullQueue, LimiterQueue, NotifyAbove, PacingConfig, PullBoard, PullBoardConfig, PullServer,
    PulledFlowConfig, RcReceiver, RcReceiverConfig, RcSender, RcSenderConfig, ReadRequester, ReadRequesterConfig,
    ReadResponder, ReadResponderConfig, ReadResponderStats, SenderVerb, Station, StationConfig, StationError,
    StationStats, TcpFlowConfig, TcpFlowReceiver, TcpFlowSender, TcpStack,
};
pub use switch::{
    find_pause_cycle, lossless_buffer, lossless_headroom, max_frame, Alpha, EcnParams, Headroom, PauseCycle,
    PauseFrame, PfcParams, PfcThreshold, QcnPoints, Scheduling, Switch, SwitchParams, CLASS_METRICS,
};
pub use switch_stats::{ClassStats, PortStats, SwitchStats, SwitchView};
pub use trace::{NameNumber, TraceError, TraceRow, TraceSink, TraceTee};
