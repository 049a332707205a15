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
///
/// A host with one link is as far as its switch and one link more, so the tables are of switches and of the few hosts with
/// more links: small enough for a cache in networks of ten thousand hosts.
#[derive(Debug, Clone)]
pub struct Routes {
    /// The switch of a host with a single link, or the node itself, for each node.
    root: Vec<usize>,
    /// The number of each node's root among the roots.
    number: Vec<u32>,
    /// Links to go to a root, by the numbers of root and other root; empty for roots of no host.
    distance: Vec<Vec<u16>>,
    /// What is at the other end of each port, by node.
    peers: Vec<Vec<Peer>>,
    /// Links that carry nothing.
    down: BTreeSet<usize>,
}

/// The other end of a port.
#[derive(Debug, Clone, Copy)]
struct Peer {
    node: u32,
    /// The switch's number among the roots; none of a host, which forwards nothing.
    number: Option<u32>,
}

const FAR: u16 = u16::MAX;

impl Routes {
    /// All shortest paths, counted in links.
    pub fn shortest(topology: &Topology) -> Self {
        Self::around(topology, BTreeSet::new())
    }

    /// All shortest paths that avoid the links `down`.
    pub fn around(topology: &Topology, down: BTreeSet<usize>) -> Self {
        let nodes = 0..topology.nodes.len();
        let root: Vec<usize> = nodes.clone().map(|node| root(topology, &down, node)).collect();
        let mut number = vec![0; root.len()];
        for (index, node) in nodes.clone().filter(|node| root[*node] == *node).enumerate() {
            number[node] = index as u32;
        }
        let number: Vec<u32> = root.iter().map(|root| number[*root]).collect();
        let peer = |node: usize, link: &usize| {
            let peer = topology.links[*link].peer(node);
            let is_switch = topology.nodes[peer].kind == NodeKind::Switch;
            Peer { node: peer as u32, number: is_switch.then_some(number[peer]) }
        };
        let peers =
            nodes.map(|node| topology.nodes[node].ports.iter().map(|link| peer(node, link)).collect()).collect();
        let roots = number.iter().max().map_or(0, |last| *last as usize + 1);
        let mut routes = Routes { root, number, distance: vec![Vec::new(); roots], peers, down };
        for host in topology.of_kind(NodeKind::Host) {
            let at = routes.number[host] as usize;
            if routes.distance[at].is_empty() {
                routes.distance[at] = routes.distances(topology, routes.root[host]);
            }
        }
        routes
    }

    /// Links from every root to `from`, through switches and links that are up only.
    fn distances(&self, topology: &Topology, from: usize) -> Vec<u16> {
        let mut distance = vec![FAR; self.distance.len()];
        distance[self.number[from] as usize] = 0;
        let mut queue = VecDeque::from([from]);
        while let Some(node) = queue.pop_front() {
            let links = distance[self.number[node] as usize] + 1;
            for (peer, link) in self.peers[node].iter().zip(&topology.nodes[node].ports) {
                let next = peer.node as usize;
                let is_hop = self.root[next] == next && !self.down.contains(link);
                if is_hop && distance[self.number[next] as usize] == FAR {
                    distance[self.number[next] as usize] = links;
                    if peer.number.is_some() {
                        queue.push_back(next);
                    }
                }
            }
        }
        distance
    }

    /// Links from `node` to host `to`; none if it cannot be reached.
    pub fn distance(&self, node: usize, to: usize) -> Option<u32> {
        if node == to {
            return Some(0);
        }
        let links = self.distance[self.number[to] as usize][self.number[node] as usize];
        let ends = u32::from(self.root[to] != to) + u32::from(self.root[node] != node);
        (links != FAR).then(|| u32::from(links) + ends)
    }

    /// The ports of `node` through which shortest paths to host `to` lead; none if it cannot be reached.
    pub fn next_ports(&self, topology: &Topology, node: usize, to: usize) -> Vec<u16> {
        let Some(links) = self.distance(node, to).filter(|links| *links > 0) else { return Vec::new() };
        let to_root = &self.distance[self.number[to] as usize];
        let last = u32::from(self.root[to] != to);
        let nearer = |peer: &Peer| {
            let from_switch = peer.number.map(|number| to_root[number as usize]).filter(|links| *links != FAR);
            peer.node as usize == to || from_switch.is_some_and(|there| u32::from(there) + last < links)
        };
        let ports = self.peers[node].iter().zip(&topology.nodes[node].ports).enumerate();
        let up = ports.filter(|(_, (peer, link))| nearer(peer) && !self.down.contains(link));
        up.map(|(port, _)| port as u16).collect()
    }

    /// The switch of a host with a single link, or the node itself: hosts of one switch are reached by the same ways
    /// up to it.
    pub fn root(&self, node: usize) -> usize {
        self.root[node]
    }

    /// Whether the next hops of `node` towards hosts `a` and `b` are certainly the same: both are at one switch
    /// other than `node`.
    pub fn share_ways(&self, node: usize, a: usize, b: usize) -> bool {
        let root = self.root[a];
        root == self.root[b] && ![node, a, b].contains(&root) && ![a, b].contains(&node)
    }

    /// Links between two hosts on a shortest path.
    pub fn hops(&self, topology: &Topology, from: usize, to: usize) -> Result<u32, Unreachable> {
        self.distance(from, to).ok_or_else(|| Unreachable {
            from: topology.name(from).to_owned(),
            to: topology.name(to).to_owned(),
            reached: self.reached(topology, from),
        })
    }

    fn reached(&self, topology: &Topology, from: usize) -> String {
        let names: Vec<&str> = (0..topology.nodes.len())
            .filter(|node| *node != from && self.distance(*node, from).is_some())
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
