// SPDX-License-Identifier: Apache-2.0
//! Switches in gateware: whether the network around one is what it has ports, lines and addresses for.
//! Source: docs/qcn-switch.md, "In the laboratory".

use std::collections::BTreeSet;

use penstock_wire::gateware::{LineClock, SWITCH_ADDRESSES, SWITCH_LINES, SWITCH_PORTS};

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
        let place = format!("switch.at.{name}.gateware");
        let key = if document.find(&place).is_some() { place.as_str() } else { "switch.gateware" };
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
    let lines = SWITCH_LINES.map(LineClock::rate);
    let names = lines.map(|line| line.to_string()).join(" or ");
    let first = links.first().map(|link| topology.links[*link].params.rate);
    for link in links {
        let (params, peer) = (topology.links[*link].params, topology.links[*link].peer(node));
        let place = topology.link_name(*link);
        if !lines.contains(&params.rate) {
            wrong.push(format!("link {place} has {}; the gateware's lines have {names}", params.rate));
        } else if let Some(rate) = first.filter(|first| lines.contains(first) && *first != params.rate) {
            let message =
                format!("link {place} has {}; the gateware's lines have all one rate, the first {rate}", params.rate);
            wrong.push(message);
        }
        if windowed(peer) {
            let message =
                format!("{} at link {place} is in gateware too; one of them must be simulated", topology.name(peer));
            wrong.push(message);
        }
        if scenario.changes.iter().any(|change| change.link == *link && change.rate.is_some()) {
            wrong.push(format!("a [[change]] gives link {place} another rate; the gateware's lines keep theirs"));
        }
    }
    if scenario.changes.iter().any(|change| change.down.is_some()) {
        wrong.push("a [[change]] has down = true; the gateware's table does not change".to_owned());
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
