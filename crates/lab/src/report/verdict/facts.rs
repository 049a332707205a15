// SPDX-License-Identifier: Apache-2.0
//! The inputs of the sentences and of the advice of a verdict.

use super::super::findings::{Bottleneck, Offered};
use super::super::ideal::{IdealBuffer, IdealPort};
use super::super::summary::{LabSummary, LinkSummary, PortSummary};
use crate::scenario::LabScenario;

/// The inputs of the sentences and the advice.
pub(super) struct Facts<'a> {
    pub(super) scenario: &'a LabScenario,
    pub(super) summary: &'a LabSummary,
    pub(super) offered: &'a [Offered],
    pub(super) bottleneck: Option<&'a Bottleneck>,
    pub(super) outstanding_bytes: u64,
    /// Some flow sends as fast as it can.
    pub(super) is_greedy: bool,
}

/// Events or messages that take this much longer than in the ideal, and by `LATE_US` at least, are late.
const LATE: f64 = 1.5;
const LATE_US: f64 = 100.0;

impl Facts<'_> {
    /// The completion time of 99 % of the events, of the messages without events, here and in the ideal; of what began
    /// after the warm-up, if there is one; us.
    pub(super) fn completion_us(&self) -> Option<(f64, f64)> {
        let here = match &self.summary.phases {
            Some(phases) => phases.steady.completion_us.p99,
            None => self.summary.events.map_or(self.summary.mct_us.p99, |events| events.p99_us),
        };
        here.zip(self.summary.ideal.as_ref()?.completion_us.p99)
    }

    /// Ports are paused after the warm-up; at any time without one.
    pub(super) fn has_steady_pauses(&self) -> bool {
        self.summary.phases.as_ref().is_none_or(|phases| phases.steady.pausing_s > 0.0)
    }

    /// The same, if the events or messages are late.
    pub(super) fn late_us(&self) -> Option<(f64, f64)> {
        self.completion_us().filter(|(here, ideal)| *here > LATE * ideal && here - ideal > LATE_US)
    }

    /// "events" or "messages".
    pub(super) fn unit(&self) -> &'static str {
        if self.summary.events.is_some() {
            "events"
        } else {
            "messages"
        }
    }

    /// The switch whose buffer is smallest for what would wait in it, if it is too small.
    pub(super) fn small_buffer(&self) -> Option<&IdealBuffer> {
        let buffers = &self.summary.ideal.as_ref()?.buffers;
        let lack = |buffer: &&IdealBuffer| buffer.needed_bytes.saturating_sub(buffer.buffer_bytes);
        buffers.iter().max_by_key(lack).filter(|buffer| lack(buffer) > 0)
    }

    /// The port that was overloaded for longest, if that was a window or more.
    pub(super) fn overloaded_port(&self) -> Option<&IdealPort> {
        let ports = &self.summary.ideal.as_ref()?.ports;
        let longest = ports.iter().max_by(|a, b| a.overloaded_s.total_cmp(&b.overloaded_s))?;
        (longest.overloaded_s >= 1e-3 && longest.worst_share > 1.0).then_some(longest)
    }

    /// The longest time that a port was paused, s, and how many were.
    pub(super) fn paused(&self) -> (f64, usize) {
        let of_links = self.summary.links.iter().flat_map(|link| link.paused_s);
        let of_flows = self.summary.flows.iter().map(|flow| flow.paused_s);
        let longest = of_links.clone().chain(of_flows).fold(0.0, f64::max);
        (longest, of_links.filter(|paused| *paused > 0.0).count())
    }

    /// The link that lost most frames, and how many all links lost.
    pub(super) fn lost(&self) -> Option<(&LinkSummary, u64)> {
        let lost = |link: &LinkSummary| link.lost.iter().sum::<u64>();
        let most = self.summary.links.iter().max_by_key(|link| lost(link)).filter(|link| lost(link) > 0)?;
        Some((most, self.summary.links.iter().map(lost).sum()))
    }

    pub(super) fn sent_again(&self) -> u64 {
        self.summary.flows.iter().map(|flow| flow.retransmissions).sum()
    }

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
