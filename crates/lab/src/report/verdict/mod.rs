// SPDX-License-Identifier: Apache-2.0
//! The verdict on a run for the planner of a network: the load offered to each link, the full links, the outcome of the
//! events, the mechanism that carried the load, and the first thing to change.
//! Promise: every sentence has a number, and every number is in the summary or computed from the scenario alone.

mod advice;
mod facts;
mod sentences;

use super::findings::{Bottleneck, Offered, Verdict};
use super::summary::LabSummary;
use crate::offered::offered;
use crate::scenario::{LabScenario, Workload};
use crate::topology::Routes;
use crate::workload::Pace;
use facts::Facts;

/// The maximum number of links whose offered load is reported.
const MAX_LISTED: usize = 16;

/// The verdict on a run with this summary.
pub fn of(scenario: &LabScenario, summary: &LabSummary) -> Verdict {
    let loads = offered(scenario, &Routes::shortest(&scenario.topology));
    let offered: Vec<Offered> = loads.iter().take(MAX_LISTED).map(Offered::from).collect();
    let bottleneck = bottleneck(scenario, summary);
    let outstanding: u64 =
        summary.flows.iter().map(|flow| flow.posted_bytes.saturating_sub(flow.delivered_bytes)).sum();
    let greedy = |workload: &Workload| matches!(workload, Workload::Steady(steady) if steady.pace == Pace::Greedy);
    let facts = Facts {
        scenario,
        summary,
        offered: &offered,
        bottleneck: bottleneck.as_ref(),
        outstanding_bytes: outstanding,
        is_greedy: scenario.flows.iter().any(|flow| greedy(&flow.workload)),
    };
    let advice = advice::first(&facts);
    let mut sentences = sentences::all(&facts);
    sentences.push(format!("First: {advice}."));
    Verdict { outstanding_bytes: outstanding, sentences, advice, offered, bottleneck }
}

fn bottleneck(scenario: &LabScenario, summary: &LabSummary) -> Option<Bottleneck> {
    let directions = summary.links.iter().enumerate().flat_map(|(link, _)| [(link, 0), (link, 1)]);
    let busy = |&(link, direction): &(usize, usize)| summary.links[link].utilisation[direction];
    // Of several that are equally busy the first.
    let (link, direction) = directions.rev().max_by(|a, b| busy(a).total_cmp(&busy(b)))?;
    let ends = scenario.topology.links[link].ends.map(|node| scenario.topology.name(node));
    let (from, to) = (ends[direction], ends[1 - direction]);
    let port = scenario.topology.links[link].ports[direction];
    let switch = summary.switches.iter().find(|switch| switch.name == from);
    let queue = switch.and_then(|switch| switch.ports.iter().find(|other| other.port == port));
    let found = Bottleneck {
        from: from.to_owned(),
        to: to.to_owned(),
        rate_gbps: summary.links[link].rate_gbps[direction],
        utilisation: busy(&(link, direction)),
        peak_queue_bytes: queue.map(|port| port.peak_queue_bytes),
    };
    (found.utilisation > 0.0).then_some(found)
}
