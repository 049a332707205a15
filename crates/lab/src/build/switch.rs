// SPDX-License-Identifier: Apache-2.0
//! A switch of a scenario, simulated or in gateware: its marking, and its routes to all hosts.

use std::net::Ipv4Addr;

use penstock_netsim::{Node, PortId, Stream, Switch};
use penstock_wire::MacAddr;

use crate::makers::{LabError, Makers, SwitchRequest};
use crate::reroute::set_routes;
use crate::scenario::{mac_of, LabScenario, SwitchSpec};
use crate::topology::{NodeKind, Routes};

/// Node `node` of the scenario; `addresses` are those of all nodes.
pub(super) fn node(
    scenario: &LabScenario,
    node: usize,
    addresses: &[Ipv4Addr],
    routes: &Routes,
    makers: &mut dyn Makers,
) -> Result<Box<dyn Node>, LabError> {
    let spec = scenario.switches.iter().find(|switch| switch.node == node);
    let spec = spec.expect("every switch has its parameters");
    if !spec.gateware {
        return Ok(Box::new(simulated(scenario, spec, addresses, routes)));
    }
    let made = makers.switch(request(scenario, spec, addresses, routes));
    made.map_err(|source| LabError::Switch { switch: scenario.topology.name(node).to_owned(), source })
}

fn request<'a>(
    scenario: &'a LabScenario,
    spec: &SwitchSpec,
    addresses: &[Ipv4Addr],
    routes: &Routes,
) -> SwitchRequest<'a> {
    let (topology, node) = (&scenario.topology, spec.node);
    let links = &topology.nodes[node].ports;
    let way = |host| Some((mac_of(addresses[host]), PortId(*routes.next_ports(topology, node, host).first()?)));
    SwitchRequest {
        scenario,
        params: spec.params,
        mac: switch_mac(node),
        ports: links.len(),
        rate: links.first().map(|link| topology.links[*link].params.rate).unwrap_or_default(),
        link_delay: links.iter().map(|link| topology.links[*link].params.delay).min().unwrap_or_default(),
        table: topology.of_kind(NodeKind::Host).filter_map(way).collect(),
        seed: Stream::new(scenario.run.seed, topology.name(node)).next_u32(),
    }
}

fn simulated(scenario: &LabScenario, spec: &SwitchSpec, addresses: &[Ipv4Addr], routes: &Routes) -> Switch {
    let (topology, node) = (&scenario.topology, spec.node);
    let SwitchSpec { params, ecn_rate, .. } = spec;
    let ports = &topology.nodes[node].ports;
    let random = Stream::new(scenario.run.seed, topology.name(node));
    let mut switch = Switch::new(*params, ports.len() as u16, random);
    switch.set_mac(switch_mac(node));
    for (port, link) in ports.iter().enumerate() {
        // A host may not have tags, and none reads them.
        if topology.nodes[topology.links[*link].peer(node)].kind == NodeKind::Host {
            switch.set_edge(PortId(port as u16));
        }
        let rate = topology.links[*link].params.rate;
        if ecn_rate.is_some_and(|reference| reference != rate) {
            switch.set_ecn(PortId(port as u16), spec.marking(rate));
        }
    }
    set_routes(&mut switch, topology, node, addresses, routes);
    switch
}

/// A locally administered address that no host has.
fn switch_mac(node: usize) -> MacAddr {
    let [_, b, c, d] = (node as u32).to_be_bytes();
    MacAddr([0x02, 0x50, 0x54, b, c, d])
}
