// SPDX-License-Identifier: Apache-2.0
//! The network laboratory: a deterministic, packet-level simulator of links, switches and hosts.
//! Promise: one seed replays one run, event for event; integer picoseconds; no clock, no global state, no I/O but
//! the trace and captures.
//! Source: ARCHITECTURE.md, "Time" and "The way of a fragment".
//!
//! A simulation is an [`Engine`] with [`Node`]s joined by links ([`LinkParams`], with seeded [`Faults`]). [`Switch`],
//! [`Host`] and [`Station`] are nodes; the verilated board (crate `penstock-board`) is another. A [`Scenario`] is what a user
//! writes in a file, [`Star`] builds the network of one. [`TraceSink`] takes the samples of all nodes into a Parquet
//! file, [`CaptureSink`] the frames of links into a pcapng file.

#![deny(unsafe_code)]

mod agenda;
mod capture;
mod distribution;
mod emulated_switch;
mod engine;
mod flow;
mod host;
pub mod lab;
mod ledger;

mod link;
mod node;
mod pause;
mod port;
mod prefetch;
mod queue;
mod renewal;
pub mod report;
mod rng;
pub mod scenario;
mod star;
mod station;
mod switch;
pub mod topology;
mod trace;
mod units;
pub mod workload;

pub use agenda::{LinkChange, Observer, Way};
pub use capture::{CaptureError, CaptureSink};
pub use distribution::Distribution;
pub use emulated_switch::{
    Cooldown, EmulatedSwitch, EmulatedSwitchParams, Notification, SwitchScenario, SwitchedFlow, ThresholdStep,
};
pub use engine::{Engine, LinkId, RunEnd, SimError};
pub use flow::{Endpoint, FlowId, Message, MessageSource};
pub use host::{Host, HostApp, HostConfig, HostStats};
pub use ledger::{EventRecord, Fairness, FlowRecord, Ledger, SharedLedger, Window};
pub use link::{Faults, LinkParams, LinkStats};
pub use node::{Frame, Node, NodeId, Outbox, PortId};
pub use rng::Stream;
pub use scenario::{Scenario, ScenarioError};
pub use star::Star;
pub use station::{
    Consumer, PacingConfig, RcReceiver, RcReceiverConfig, RcSender, RcSenderConfig, RcSenderStats, SenderVerb, Station,
    StationConfig, StationError, StationStats, TcpFlowConfig, TcpFlowReceiver, TcpFlowSender, TcpStack,
};
pub use switch::{
    find_pause_cycle, flow_hash, lossless_buffer, lossless_headroom, max_frame, Alpha, BufferTooSmall, ClassStats,
    EcnParams, Headroom, PauseCycle, PausedPort, PfcParams, PfcThreshold, PortStats, QcnPoints, Scheduling, Switch,
    SwitchParams, SwitchPreset, SwitchStats, UnknownPreset, CLASS_METRICS, SWITCH_PRESETS,
};
pub use trace::{NameNumber, TraceError, TraceRow, TraceSink, TraceTee};
pub use units::{ByteSize, Frequency, Probability, Rate, Time, UnitError};
