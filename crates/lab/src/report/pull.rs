// SPDX-License-Identifier: Apache-2.0
//! What hosts have pulled, and the bound on the queues of switches.
//! Promise: where the bound holds, the longest queue is compared with it; a debug build stops above it.
//! Source: `penstock_pull`, "Bound".

use penstock_netsim::{Faults, LinkParams, PullBoard, Station};
use penstock_wire::gateware::ANNOUNCEMENT_WIRE_BYTES;

use super::summary::{PullHostSummary, PullSummary, SwitchSummary};
use crate::flow::FlowInfo;
use crate::run::Lab;
use crate::scenario::{LabScenario, Mode, SenderKind};

/// `None` if no flow is pulled.
pub(super) fn summary(lab: &Lab, scenario: &LabScenario, switches: &[SwitchSummary]) -> Option<PullSummary> {
    let mut hosts: Vec<PullHostSummary> = Vec::new();
    for (flow, spec) in lab.flows.iter().zip(&scenario.flows) {
        if spec.mode != Mode::Pull {
            continue;
        }
        if !hosts.iter().any(|host| host.host == flow.to) {
            hosts.extend(host_summary(lab, flow));
        }
        let announcing = match spec.sender {
            SenderKind::Gateware => ANNOUNCEMENT_WIRE_BYTES,
            SenderKind::Software => board(lab, flow).map_or(0, PullBoard::announcing_bytes),
        };
        hosts.iter_mut().filter(|host| host.host == flow.to).for_each(|host| host.announcing_bytes += announcing);
    }
    if hosts.is_empty() {
        return None;
    }
    let bound = hosts.iter().map(|host| host.highest_in_flight_bytes + host.announcing_bytes).sum();
    let is_bound = holds(scenario) && hosts.iter().all(|host| host.silences == 0);
    let ports = switches.iter().flat_map(|switch| &switch.ports);
    let peak_queue_bytes = ports.map(|port| port.peak_queue_bytes).max().unwrap_or(0);
    let pull = PullSummary { hosts, queue_bound_bytes: is_bound.then_some(bound), peak_queue_bytes };
    debug_assert!(pull.is_within_bound(), "{peak_queue_bytes} above {bound}");
    Some(pull)
}

fn board<'a>(lab: &'a Lab, flow: &FlowInfo) -> Option<&'a PullBoard> {
    lab.engine.node::<Station>(flow.sender)?.pull_board(flow.sender_index?)
}

fn host_summary(lab: &Lab, flow: &FlowInfo) -> Option<PullHostSummary> {
    let stats = lab.engine.node::<Station>(flow.receiver)?.pulled(flow.receiver_index)?;
    Some(PullHostSummary {
        host: flow.to.clone(),
        window_bytes: stats.window_bytes,
        highest_in_flight_bytes: stats.highest_in_flight_bytes,
        announcing_bytes: 0,
        reads: stats.reads,
        announcements: stats.announcements,
        refused: stats.refused,
        silences: stats.silences,
        announcement_share: stats.announcement_share(),
    })
}

/// Whether everything on the network has been requested, once: all flows are pulled, and links keep what they carry.
fn holds(scenario: &LabScenario) -> bool {
    let keeps = |params: &LinkParams| {
        let Faults { loss, duplicate, reorder, corrupt, corrupt_undetected, .. } = params.faults;
        [loss, duplicate, reorder, corrupt, corrupt_undetected].iter().all(|chance| chance.as_f64() == 0.0)
    };
    scenario.flows.iter().all(|flow| flow.mode == Mode::Pull)
        && scenario.topology.links.iter().all(|link| keeps(&link.params))
        && scenario.changes.iter().all(|change| change.loss.is_none() && change.down.is_none())
}
