// SPDX-License-Identifier: Apache-2.0
//! Shortest paths between hosts, with all next hops on them.
//! Promise: each next hop is one link closer to the destination; hosts forward nothing; ports are in ascending order.
//! Source: breadth-first search; ECMP as in RFC 2992.

use std::collections::{BTreeSet, VecDeque};

use super::{NodeKind, Topology};

/// No path leads from one host to another.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no path leads from {from} to {to}: what {from} reaches is {reached}; join the two parts by a link")]
pub struct Unreachable {
    pub from: String,
    pub to: String,
    pub reached: String,
}

/// The next hops towards every host.
#[derive(Debug, Clone)]
pub struct Routes {
    /// The switch of a host with a single link, or the node itself, for each node.
    root: Vec<usize>,
    /// Links to go to a root, by root and node; empty for nodes that are none. Hosts of one switch share a table.
    distance: Vec<Vec<u32>>,
    /// Links that carry nothing.
    down: BTreeSet<usize>,
}

const FAR: u32 = u32::MAX;

impl Routes {
    /// All shortest paths, counted in links.
    pub fn shortest(topology: &Topology) -> Self {
        Self::around(topology, BTreeSet::new())
    }

    /// All shortest paths that avoid the links `down`.
    pub fn around(topology: &Topology, down: BTreeSet<usize>) -> Self {
        let root: Vec<usize> = (0..topology.nodes.len()).map(|node| root(topology, &down, node)).collect();
        let mut distance = vec![Vec::new(); topology.nodes.len()];
        for host in topology.of_kind(NodeKind::Host) {
            if distance[root[host]].is_empty() {
                distance[root[host]] = distances(topology, &down, root[host]);
            }
        }
        Routes { root, distance, down }
    }

    /// Links from `node` to host `to`; `FAR` where no path leads.
    fn links(&self, node: usize, to: usize) -> u32 {
        match self.distance[self.root[to]][node] {
            _ if node == to => 0,
            FAR => FAR,
            links => links + u32::from(self.root[to] != to),
        }
    }

    /// Links from `node` to host `to` on a shortest path; none if it cannot be reached.
    pub fn distance(&self, node: usize, to: usize) -> Option<u32> {
        Some(self.links(node, to)).filter(|links| *links != FAR)
    }

    /// The ports of `node` through which shortest paths to host `to` lead; none if it cannot be reached.
    pub fn next_ports(&self, topology: &Topology, node: usize, to: usize) -> Vec<u16> {
        let links = self.links(node, to);
        if links == FAR || links == 0 {
            return Vec::new();
        }
        let nearer = |link: &usize| {
            let peer = topology.links[*link].peer(node);
            if self.down.contains(link) {
                return false;
            }
            peer == to || (topology.nodes[peer].kind == NodeKind::Switch && self.links(peer, to) < links)
        };
        let ports = topology.nodes[node].ports.iter().enumerate();
        ports.filter(|(_, link)| nearer(link)).map(|(port, _)| port as u16).collect()
    }

    /// Whether the next hops of `node` towards hosts `a` and `b` are certainly the same: both are at one switch
    /// other than `node`.
    pub fn share_ways(&self, node: usize, a: usize, b: usize) -> bool {
        let root = self.root[a];
        root == self.root[b] && ![node, a, b].contains(&root) && ![a, b].contains(&node)
    }

    /// Links between two hosts on a shortest path.
    pub fn hops(&self, topology: &Topology, from: usize, to: usize) -> Result<u32, Unreachable> {
        match self.links(from, to) {
            FAR => Err(Unreachable {
                from: topology.name(from).to_owned(),
                to: topology.name(to).to_owned(),
                reached: self.reached(topology, from),
            }),
            hops => Ok(hops),
        }
    }

    fn reached(&self, topology: &Topology, from: usize) -> String {
        let names: Vec<&str> = (0..topology.nodes.len())
            .filter(|node| *node != from && self.links(*node, from) != FAR)
            .take(6)
            .map(|node| topology.name(node))
            .collect();
        match names.len() {
            0 => "nothing".to_owned(),
            6 => format!("{} and others", names[..5].join(", ")),
            _ => names.join(", "),
        }
    }
}

fn root(topology: &Topology, down: &BTreeSet<usize>, node: usize) -> usize {
    match topology.nodes[node].ports[..] {
        [link] if topology.nodes[node].kind == NodeKind::Host && !down.contains(&link) => {
            let peer = topology.links[link].peer(node);
            if topology.nodes[peer].kind == NodeKind::Switch {
                peer
            } else {
                node
            }
        }
        _ => node,
    }
}

/// Links from every node to `root`, through switches and links that are up only.
fn distances(topology: &Topology, down: &BTreeSet<usize>, root: usize) -> Vec<u32> {
    let mut distance = vec![FAR; topology.nodes.len()];
    distance[root] = 0;
    let mut queue = VecDeque::from([root]);
    while let Some(node) = queue.pop_front() {
        for link in topology.nodes[node].ports.iter().filter(|link| !down.contains(link)) {
            let peer = topology.links[*link].peer(node);
            if distance[peer] == FAR {
                distance[peer] = distance[node] + 1;
                if topology.nodes[peer].kind == NodeKind::Switch {
                    queue.push_back(peer);
                }
            }
        }
    }
    distance
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::LinkClass;
    use penstock_netsim::LinkParams;

    fn topology(switches: usize, links: &[(&str, &str)], hosts: &[(&str, &str)]) -> Topology {
        let mut topology = Topology::new();
        for index in 0..switches {
            topology.add(format!("s{index}"), NodeKind::Switch).unwrap();
        }
        for (host, _) in hosts {
            topology.add(*host, NodeKind::Host).unwrap();
        }
        for (a, b) in links.iter().chain(hosts) {
            let (a, b) = (topology.node(a).unwrap(), topology.node(b).unwrap());
            topology.connect(a, b, LinkClass::Access, LinkParams::default()).unwrap();
        }
        topology
    }

    #[test]
    fn all_shortest_paths_are_next_hops_and_no_longer_one() {
        // a square s0 s1 s3 s2, and a long way round by s4
        let links = [("s0", "s1"), ("s0", "s2"), ("s1", "s3"), ("s2", "s3"), ("s0", "s4"), ("s4", "s1")];
        let topology = topology(5, &links, &[("a", "s0"), ("b", "s3")]);
        let routes = Routes::shortest(&topology);
        let node = |name: &str| topology.node(name).unwrap();
        let ports = |at: &str, to: &str| routes.next_ports(&topology, node(at), node(to));
        assert_eq!(ports("s0", "b"), [0, 1]);
        assert_eq!(ports("s4", "b"), [1]);
        assert_eq!(ports("s0", "a"), [3]);
        assert_eq!(ports("a", "b"), [0]);
        let share = |at: &str, a: &str, b: &str| routes.share_ways(node(at), node(a), node(b));
        assert!(share("s4", "a", "a") && !share("s4", "a", "b") && !share("s0", "a", "a") && !share("a", "a", "a"));
        assert_eq!(routes.hops(&topology, node("a"), node("b")), Ok(4));
    }

    #[test]
    fn a_host_is_no_way_through_and_an_unreachable_one_is_named() {
        let topology = topology(2, &[], &[("a", "s0"), ("b", "s1"), ("c", "s0")]);
        let routes = Routes::shortest(&topology);
        let (a, b) = (topology.node("a").unwrap(), topology.node("b").unwrap());
        let error = routes.hops(&topology, a, b).unwrap_err().to_string();
        assert_eq!(error, "no path leads from a to b: what a reaches is s0, c; join the two parts by a link");
        assert!(routes.next_ports(&topology, a, b).is_empty());
    }
}
