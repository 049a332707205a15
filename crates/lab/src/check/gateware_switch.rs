// SPDX-License-Identifier: Apache-2.0
//! Switches in gateware: whether the network around one is what it has ports, lines and addresses for.
//! Source: docs/qcn-switch.md, "In the laboratory".

use std::collections::BTreeSet;

use penstock_wire::gateware::{LineClock, SWITCH_ADDRESSES, SWITCH_PORTS};

use crate::language::document::Document;
use crate::language::Problem;
use crate::scenario::{LabScenario, SenderKind, SwitchSpec};
use crate::topology::{NodeKind, Routes};

pub(super) fn check(scenario: &LabScenario, routes: &Routes, document: &Document, problems: &mut Vec<Problem>) {
    let in_gateware = |switch: &&SwitchSpec| switch.gateware;
    let switches: BTreeSet<usize> = scenario.switches.iter().filter(in_gateware).map(|switch| switch.node).collect();
    let boards: BTreeSet<usize> =
        scenario.flows.iter().filter(|flow| flow.sender == SenderKind::Gateware).map(|flow| flow.from).collect();
    for node in &switches {
        let name = scenario.topology.name(*node);
        let own = format!("switch.at.{name}.gateware");
        let key = if document.find(&own).is_some() { own.as_str() } else { "switch.gateware" };
        let windowed = |peer: usize| switches.contains(&peer) || boards.contains(&peer);
        let wrong = wrong(scenario, routes, *node, windowed);
        problems.extend(wrong.into_iter().map(|wrong| document.problem(key, "true", wrong)));
    }
}

/// What is wrong around switch `node`; `windowed` are the nodes that are in gateware, too.
fn wrong(scenario: &LabScenario, routes: &Routes, node: usize, windowed: impl Fn(usize) -> bool) -> Vec<String> {
    let topology = &scenario.topology;
    let (name, links) = (topology.name(node), &topology.nodes[node].ports);
    let mut wrong = Vec::new();
    if links.len() > SWITCH_PORTS {
        wrong.push(format!("{name} has {} links; the gateware has {SWITCH_PORTS} ports", links.len()));
    }
    let line = LineClock::GBPS_10.rate();
    for link in links {
        let (params, peer) = (topology.links[*link].params, topology.links[*link].peer(node));
        let own = topology.link_name(*link);
        if params.rate != line {
            wrong.push(format!("link {own} has {}; the gateware's lines have {line}", params.rate));
        }
        if windowed(peer) {
            let message =
                format!("{} at link {own} is in gateware too; one of them must be simulated", topology.name(peer));
            wrong.push(message);
        }
        if scenario.changes.iter().any(|change| change.link == *link && change.rate.is_some()) {
            wrong.push(format!("a [[change]] gives link {own} another rate; the gateware's lines have {line} always"));
        }
    }
    let hosts: Vec<usize> = topology.of_kind(NodeKind::Host).collect();
    if hosts.len() > SWITCH_ADDRESSES {
        wrong.push(format!("{} hosts; the gateware's table has {SWITCH_ADDRESSES} addresses", hosts.len()));
    }
    if let Some(host) = hosts.into_iter().find(|host| routes.next_ports(topology, node, *host).len() > 1) {
        let host = topology.name(host);
        wrong.push(format!("several ports of {name} lead to {host} at equal cost; the gateware chooses none of them"));
    }
    wrong
}
