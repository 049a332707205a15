// SPDX-License-Identifier: Apache-2.0
//! The inputs of the sentences and of the advice of a verdict.

use super::super::findings::{Bottleneck, Offered};
use super::super::summary::{LabSummary, PortSummary};
use crate::scenario::LabScenario;

/// The inputs of the sentences and the advice.
pub(super) struct Facts<'a> {
    pub(super) scenario: &'a LabScenario,
    pub(super) summary: &'a LabSummary,
    pub(super) offered: &'a [Offered],
    pub(super) bottleneck: Option<&'a Bottleneck>,
    pub(super) buffer_needed: Option<(String, u64)>,
    pub(super) outstanding_bytes: u64,
    /// Some flow sends as fast as it can.
    pub(super) is_greedy: bool,
}

impl Facts<'_> {
    pub(super) fn sum(&self, of: impl Fn(&PortSummary) -> f64) -> f64 {
        self.summary.switches.iter().flat_map(|switch| &switch.ports).map(of).sum()
    }

    pub(super) fn dropped(&self) -> u64 {
        let dropped = self.summary.switches.iter();
        dropped.map(|switch| switch.dropped_buffer + switch.dropped_threshold + switch.dropped_headroom).sum()
    }
}

/// Bytes for people.
pub(super) fn bytes(bytes: u64) -> String {
    match bytes {
        0..1_000 => format!("{bytes} B"),
        1_000..1_000_000 => format!("{:.1} kB", bytes as f64 / 1e3),
        _ => format!("{:.2} MB", bytes as f64 / 1e6),
    }
}
