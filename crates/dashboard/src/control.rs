// SPDX-License-Identifier: Apache-2.0
//! Controls: the requests of a page, their results, and the settings in force.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Parameters with the value in force, as a scenario has them.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Settings {
    /// Controls of each sender, in the order of the manifest.
    pub senders: Vec<BTreeMap<String, String>>,
    /// Controls of the run.
    pub run: BTreeMap<String, String>,
    /// Marking thresholds in force, bytes: K_min and K_max of each queue, in the order of the manifest.
    pub ecn: Vec<Option<(u64, u64)>>,
    /// The reference for throughput, bit/s, if it is a parameter.
    pub threshold_bps: Option<f64>,
}

/// One wish of a page.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Control {
    /// Names of senders; none: all, or the run.
    #[serde(default)]
    pub senders: Vec<String>,
    /// Values by key: `{"cc.law": "off"}`.
    pub set: BTreeMap<String, String>,
}

/// A control that took effect: what makes a run no longer reproducible from its scenario alone.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Applied {
    /// Simulated time at which it was handed over.
    pub at_ps: u64,
    /// Empty: the run.
    pub senders: Vec<String>,
    pub set: BTreeMap<String, String>,
    /// Register writes (address, value) of each of these senders.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub registers: Vec<(u32, u32)>,
}

/// Why a control was not applied.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ControlError {
    #[error("the run has ended: nothing can be changed any more")]
    Ended,
    #[error("this run has no controls: nothing in it can be changed while it goes on")]
    NoControls,
    #[error("no sender is called {0:?}")]
    UnknownSender(String),
    #[error("{0}")]
    Refused(String),
    #[error("the run did not answer within {0} s; it may still apply this at its next step")]
    NoAnswer(u64),
}
