// SPDX-License-Identifier: Apache-2.0
//! The laboratory: reads a scenario of any network from a file, runs it as a simulation of `penstock-netsim`, and
//! reports the results.
//! Promise: one scenario and one seed give one run; an error in a scenario is reported with its place before the run.
//! Source: docs/lab.md, which documents every key.
//!
//! The path of a scenario: `language` and `read` parse its text into a [`LabScenario`], [`Lab::build`] makes the
//! simulation, [`Lab::run`] runs it, and [`report::summary`] gives the results. A [`SwitchScenario`] is the other kind
//! of file, for the emulated switch of a live board.

#![forbid(unsafe_code)]

mod build;
mod check;
mod emulated_switch;
mod flow;
mod language;
mod makers;
mod metrics;
mod offered;
mod phases;
mod read;
pub mod report;
mod reroute;
mod run;
mod scenario;
mod topology;
mod workload;

use penstock_units as units;

pub use emulated_switch::SwitchScenario;
pub use flow::FlowInfo;
pub use language::ScenarioError;
pub use makers::{
    BoardFlow, BoardRequest, LabError, MakerError, Makers, ReadoutBoard, ReadoutEnd, ReadoutQueuePair, ReadoutRequest,
    SoftwareOnly, SwitchRequest,
};
pub use metrics::METRICS;
pub use offered::OfferedLoad;
pub use run::{Lab, LabProgress, RunError};
pub use scenario::{FlowSpec, LabPull, LabQp, LabScenario, LabVerb, Mode, Protocol, SenderKind, Workload};
pub use topology::{NodeKind, Ns3Files, Ns3Import};
pub use workload::{Pace, SteadyParams};
