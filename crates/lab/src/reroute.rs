// SPDX-License-Identifier: Apache-2.0
//! Links that go down and come back: some time later every switch sends around them, by shortest paths.
//! Promise: without a `[[change]]` with `down`, nothing is computed and nothing changes.
//! Source: docs/lab.md, "[[change]]"; a routing protocol with fast detection (RFC 5880) does the same.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;

use penstock_netsim::{Engine, FlowId, NodeId, PortId, Switch};

use crate::scenario::LabScenario;
use crate::topology::{NodeKind, Routes, Topology};
use crate::units::Time;

/// The times at which the switches' routes change.
#[derive(Debug, Default)]
pub struct Reroutes {
    /// The latest first, with the links that are down from then on.
    pending: Vec<(Time, BTreeSet<usize>)>,
    topology: Topology,
    addresses: Vec<Ipv4Addr>,
    /// Nodes of the switches, in the order of the topology.
    switches: Vec<usize>,
    /// The ends of each flow.
    flows: Vec<(usize, usize)>,
    cut_off: Vec<CutOff>,
}

/// A flow without a way to its destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CutOff {
    pub flow: FlowId,
    /// The time from which the switches have no route for it.
    pub at: Time,
}

impl Reroutes {
    pub fn of(scenario: &LabScenario, addresses: Vec<Ipv4Addr>) -> Self {
        let mut steps = Vec::new();
        for change in &scenario.changes {
            let Some(detection) = change.down else { continue };
            steps.push((change.at.saturating_add(detection), true, change.link));
            steps.extend(change.until.map(|until| (until.saturating_add(detection), false, change.link)));
        }
        if steps.is_empty() {
            return Self::default();
        }
        steps.sort_unstable();
        let (mut pending, mut down) = (Vec::new(), Vec::new());
        for (at, goes_down, link) in steps {
            // A link that two changes take down is up again when both have ended.
            match down.iter().position(|other| *other == link) {
                Some(position) if !goes_down => drop(down.swap_remove(position)),
                _ => down.push(link),
            }
            pending.push((at, down.iter().copied().collect()));
        }
        pending.reverse();
        Self {
            pending,
            topology: scenario.topology.clone(),
            addresses,
            switches: scenario.switches.iter().map(|switch| switch.node).collect(),
            flows: scenario.flows.iter().map(|flow| (flow.from, flow.to)).collect(),
            cut_off: Vec::new(),
        }
    }

    /// When the routes change next.
    pub fn next(&self) -> Option<Time> {
        self.pending.last().map(|(at, _)| *at)
    }

    /// Gives all switches the routes that hold from `now` on.
    pub fn apply(&mut self, now: Time, engine: &mut Engine, switches: &[(String, NodeId)]) {
        while let Some((at, down)) = self.pending.pop_if(|(at, _)| *at <= now) {
            let routes = Routes::around(&self.topology, down);
            for (node, (_, id)) in self.switches.iter().zip(switches) {
                if let Some(switch) = engine.node_mut::<Switch>(*id) {
                    set_routes(switch, &self.topology, *node, &self.addresses, &routes);
                }
            }
            for (number, (from, to)) in self.flows.iter().enumerate() {
                let flow = FlowId(number as u32);
                let is_listed = self.cut_off.iter().any(|cut| cut.flow == flow);
                if routes.distance(*from, *to).is_none() && !is_listed {
                    self.cut_off.push(CutOff { flow, at });
                }
            }
        }
    }

    /// The flows that had no way at some time, with the first such time.
    pub fn cut_off(&self) -> &[CutOff] {
        &self.cut_off
    }
}

/// Gives a switch its ways to all hosts; none to those that cannot be reached.
pub fn set_routes(switch: &mut Switch, topology: &Topology, node: usize, addresses: &[Ipv4Addr], routes: &Routes) {
    let mut last: Option<(usize, Vec<PortId>)> = None;
    for host in topology.of_kind(NodeKind::Host) {
        let cached = last.take().filter(|(before, _)| routes.share_ways(node, *before, host));
        let found = || routes.next_ports(topology, node, host).into_iter().map(PortId).collect();
        let ports = cached.map_or_else(found, |(_, ports)| ports);
        switch.add_route(addresses[host], &ports);
        last = Some((host, ports));
    }
}
