// SPDX-License-Identifier: Apache-2.0
//! Checks whether pauses can wait for each other in a cycle: a cycle of buffers that depend on each other by the
//! routes.
//! Promise: if no cycle is found, no PFC deadlock is possible (flows follow their routes); a cycle is listed link by
//! link.
//! Source: Dally and Seitz 1987 (channel dependency graph); Guo et al. 2016 section 4.2 (PFC deadlock in Ethernet).

use std::collections::{BTreeMap, BTreeSet};

use super::{NodeKind, Routes, Topology};

/// Traffic from one host to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Demand {
    pub from: usize,
    pub to: usize,
}

/// A direction of a link: a pause fills or empties the buffer at its end.
type Channel = (usize, usize);

/// A cycle of links, each waiting for room in the buffer at the end of the next, as "a>b" names; `None` if there is
/// none.
pub fn find_buffer_cycle(topology: &Topology, routes: &Routes, demands: &[Demand]) -> Option<Vec<String>> {
    let graph = dependencies(topology, routes, demands);
    let cycle = find_cycle(&graph)?;
    let name = |channel: &Channel| {
        let link = &topology.links[channel.0];
        let to = link.peer(channel.1);
        format!("{}>{}", topology.name(channel.1), topology.name(to))
    };
    Some(cycle.iter().map(name).collect())
}

/// Which channel waits for which: for every destination, the links into each switch that carries its traffic wait for
/// those that lead on.
fn dependencies(topology: &Topology, routes: &Routes, demands: &[Demand]) -> BTreeMap<Channel, BTreeSet<Channel>> {
    // Of hosts of one switch any will do: they differ in their own links, and nothing waits for anything behind those.
    let mut sources: BTreeMap<usize, (usize, BTreeSet<usize>)> = BTreeMap::new();
    for demand in demands {
        sources.entry(routes.root(demand.to)).or_insert_with(|| (demand.to, BTreeSet::new())).1.insert(demand.from);
    }
    let mut graph: BTreeMap<Channel, BTreeSet<Channel>> = BTreeMap::new();
    for (to, mut seen) in sources.into_values() {
        let mut open: Vec<usize> = seen.iter().copied().collect();
        while let Some(node) = open.pop() {
            for port in routes.next_ports(topology, node, to) {
                let link = topology.nodes[node].ports[usize::from(port)];
                let next = topology.links[link].peer(node);
                if topology.nodes[next].kind == NodeKind::Host {
                    continue;
                }
                let onward = routes.next_ports(topology, next, to);
                let channels = onward.iter().map(|port| (topology.nodes[next].ports[usize::from(*port)], next));
                graph.entry((link, node)).or_default().extend(channels);
                if seen.insert(next) {
                    open.push(next);
                }
            }
        }
    }
    graph
}

/// Any cycle of a directed graph, by depth-first search without recursion.
fn find_cycle(graph: &BTreeMap<Channel, BTreeSet<Channel>>) -> Option<Vec<Channel>> {
    let mut done: BTreeSet<Channel> = BTreeSet::new();
    for start in graph.keys() {
        let mut path: Vec<(Channel, Vec<Channel>)> = vec![(*start, successors(graph, start))];
        while let Some((_, rest)) = path.last_mut() {
            match rest.pop() {
                Some(next) => {
                    if let Some(at) = path.iter().position(|(channel, _)| *channel == next) {
                        return Some(path[at..].iter().map(|(channel, _)| *channel).collect());
                    }
                    if !done.contains(&next) {
                        path.push((next, successors(graph, &next)));
                    }
                }
                None => {
                    let (channel, _) = path.pop().expect("the loop holds one");
                    done.insert(channel);
                }
            }
        }
    }
    None
}

fn successors(graph: &BTreeMap<Channel, BTreeSet<Channel>>, channel: &Channel) -> Vec<Channel> {
    graph.get(channel).map(|next| next.iter().rev().copied().collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::LinkClass;
    use penstock_netsim::LinkParams;

    /// `count` switches in a ring with one host each; host k sends to the host `reach` switches on.
    fn ring(count: usize, reach: usize) -> Option<Vec<String>> {
        let mut topology = Topology::new();
        let switches: Vec<usize> =
            (0..count).map(|k| topology.add(format!("s{k}"), NodeKind::Switch).unwrap()).collect();
        let hosts: Vec<usize> = (0..count).map(|k| topology.add(format!("h{k}"), NodeKind::Host).unwrap()).collect();
        let params = LinkParams::default();
        for k in 0..count {
            topology.connect(switches[k], switches[(k + 1) % count], LinkClass::Uplink, params).unwrap();
            topology.connect(hosts[k], switches[k], LinkClass::Access, params).unwrap();
        }
        let demand = |k: usize| Demand { from: hosts[k], to: hosts[(k + reach) % count] };
        let demands: Vec<Demand> = (0..count).map(demand).collect();
        find_buffer_cycle(&topology, &Routes::shortest(&topology), &demands)
    }

    #[test]
    fn a_ring_whose_flows_turn_corners_is_a_cycle_named_link_by_link() {
        let cycle = ring(5, 2).unwrap();
        assert_eq!(cycle, ["s0>s1", "s1>s2", "s2>s3", "s3>s4", "s4>s0"]);
    }

    #[test]
    fn a_ring_whose_flows_pass_one_link_only_is_none() {
        assert_eq!(ring(5, 1), None);
    }
}
