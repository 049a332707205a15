// SPDX-License-Identifier: Apache-2.0
//! A switch of a scenario with its marking, and its routes to all hosts.

use std::net::Ipv4Addr;

use penstock_netsim::{PortId, Stream, Switch};
use penstock_wire::MacAddr;

use crate::scenario::{LabScenario, SwitchSpec};
use crate::topology::{NodeKind, Routes};

/// Node `node` of the scenario; `addresses` are those of all nodes.
pub(super) fn switch(scenario: &LabScenario, node: usize, addresses: &[Ipv4Addr], routes: &Routes) -> Switch {
    let topology = &scenario.topology;
    let spec = scenario.switches.iter().find(|switch| switch.node == node);
    let spec = spec.expect("every switch has its parameters");
    let SwitchSpec { params, ecn_rate, .. } = spec;
    let ports = &topology.nodes[node].ports;
    let random = Stream::new(scenario.run.seed, topology.name(node));
    let mut switch = Switch::new(*params, ports.len() as u16, random);
    switch.set_mac(switch_mac(node));
    for (port, link) in ports.iter().enumerate() {
        let rate = topology.links[*link].params.rate;
        if ecn_rate.is_some_and(|reference| reference != rate) {
            switch.set_ecn(PortId(port as u16), spec.marking(rate));
        }
    }
    let mut last: Option<(usize, Vec<PortId>)> = None;
    for host in topology.of_kind(NodeKind::Host) {
        let known = last.take().filter(|(before, _)| routes.share_ways(node, *before, host));
        let found = || routes.next_ports(topology, node, host).into_iter().map(PortId).collect();
        let ports = known.map_or_else(found, |(_, ports)| ports);
        switch.add_route(addresses[host], &ports);
        last = Some((host, ports));
    }
    switch
}

/// A locally administered address that no host has.
fn switch_mac(node: usize) -> MacAddr {
    let [_, b, c, d] = (node as u32).to_be_bytes();
    MacAddr([0x02, 0x50, 0x54, b, c, d])
}
