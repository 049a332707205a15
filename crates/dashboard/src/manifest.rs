// SPDX-License-Identifier: Apache-2.0
//! The manifest of a page: senders, queues, totals, and the columns of the recording that hold their values.
//! Promise: fixed for a run; the page gets all names of nodes and metrics from here.

use serde::Serialize;
use std::collections::BTreeMap;

/// Columns of a recording by the page's name of their contents.
pub type Series = BTreeMap<&'static str, usize>;

/// Everything about a run that does not change while it runs.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Manifest {
    /// The name of the run, as given by the user.
    pub title: String,
    /// "boards": a readout takes events; "lab": flows; "board": one live board.
    pub kind: &'static str,
    /// Simulated time from one row to the next, ps; 0: nothing is recorded.
    pub interval_ps: u64,
    pub senders: Vec<Sender>,
    /// How many senders the run has, those that are not shown included.
    pub all_senders: usize,
    /// The kind of the series `throughput`: "payload", or "wire" with all headers.
    pub throughput: &'static str,
    pub queues: Vec<Queue>,
    pub totals: Vec<Total>,
    /// The parameters that can be changed during the run; empty: none.
    pub parameters: Vec<Parameter>,
    /// Notes for the user, for example that not everything is shown.
    pub notes: Vec<String>,
    /// Number of columns of the recording.
    pub columns: usize,
}

/// A board or a flow. Its series: `throughput`, `rate_current`, `rate_target` (bit/s), `alpha`, `cnp_handled`, `paused`
/// (fraction of time), those of them that there are.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Sender {
    pub name: String,
    pub series: Series,
    /// Other values, by the kernel's names of counters.
    pub counters: Series,
    /// The reference for its throughput: its own link, bit/s.
    pub link_bps: f64,
    /// An equal share of its receiver's link among all senders of the run that send there, bit/s.
    pub share_bps: f64,
}

/// An egress queue. Its series: `depth` (bytes), `marked` (packets), `paused` (this port is held), `pausing` (the
/// switch holds others).
#[derive(Debug, Clone, Default, Serialize)]
pub struct Queue {
    pub name: String,
    pub series: Series,
}

/// A value of the whole run.
#[derive(Debug, Clone, Serialize)]
pub struct Total {
    pub name: &'static str,
    pub unit: &'static str,
    pub column: usize,
}

/// The object that a parameter belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// Each sender has its own.
    Sender,
    /// The run has one.
    Run,
}

/// A parameter that can be changed during the run.
#[derive(Debug, Clone, Serialize)]
pub struct Parameter {
    /// The key of a scenario: `cc.rate_ai`.
    pub key: &'static str,
    pub label: &'static str,
    /// One line: what it does.
    pub help: &'static str,
    pub scope: Scope,
    /// The values that it can have; empty: any quantity.
    pub choices: &'static [Choice],
}

/// A value of a parameter that has a few: as a scenario has it.
pub type Choice = &'static str;
