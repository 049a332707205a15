// SPDX-License-Identifier: Apache-2.0
//! The laboratory: scenarios of any network, written in a file, as simulations of `penstock-netsim` that report what they
//! have shown.
//! Promise: one scenario and one seed give one run; a mistake in a scenario is told with its place before anything runs.
//! Source: docs/lab.md, which documents every key.
//!
//! The way of a scenario: its text is read by `language` and `read` into a [`LabScenario`], [`Lab::build`] makes the
//! simulation, [`Lab::run`] runs it, and [`report::summary`] says what it has shown. A [`SwitchScenario`] is the other kind of
//! file, for the emulated switch of a live board.

#![forbid(unsafe_code)]

mod build;
mod check;
mod emulated_switch;
mod flow;
mod language;
mod makers;
mod metrics;
mod offered;
mod read;
pub mod report;
mod run;
mod scenario;
mod topology;
mod workload;

use penstock_units as units;

pub use emulated_switch::SwitchScenario;
pub use flow::FlowInfo;
pub use language::ScenarioError;
pub use makers::{
    BoardFlow, BoardRequest, LabError, MakerError, Makers, ReadoutBoard, ReadoutEnd, ReadoutRequest, SoftwareOnly,
};
pub use metrics::METRICS;
pub use offered::OfferedLoad;
pub use run::{Lab, LabProgress, RunError};
pub use scenario::{FlowSpec, LabQp, LabScenario, LabVerb, Protocol, SenderKind, Workload};
pub use topology::{NodeKind, Ns3Files, Ns3Import};
pub use workload::{Pace, SteadyParams};
