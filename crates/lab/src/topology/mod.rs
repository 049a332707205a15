// SPDX-License-Identifier: Apache-2.0
//! The hosts and switches of a network and the links between them, before simulation.
//! Promise: node and port numbers depend only on the order of `add_*` and `connect`; names are unique.

mod buffer_cycle;
mod camera;
mod generate;
mod ns3;
mod ns3_config;
mod ns3_json;
mod ns3_lines;
mod route;

use std::collections::BTreeMap;

use penstock_netsim::LinkParams;

use crate::units::Rate;

pub use buffer_cycle::{find_buffer_cycle, Demand};
pub use camera::{hexagonal_camera, Camera, Cell, Grouping};
pub use generate::{FatTree, LeafSpine, LinkKinds, StarShape, Tree};
pub use ns3::{Ns3Files, Ns3Import};
pub use route::Routes;

/// The kind of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeKind {
    /// Sends and receives through one port; forwards nothing.
    Host,
    Switch,
}

/// The role of a link; scenario files give each role its own rate and delay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkClass {
    /// The link of a host that is no server.
    Access,
    /// The link of a server.
    Server,
    /// A link between switches.
    Uplink,
}

/// A host or a switch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopologyNode {
    pub name: String,
    pub kind: NodeKind,
    /// Links at this node, by port number.
    pub ports: Vec<usize>,
}

/// A link between two nodes.
#[derive(Debug, Clone, PartialEq)]
pub struct TopologyLink {
    pub ends: [usize; 2],
    /// Port number at each end.
    pub ports: [u16; 2],
    pub class: LinkClass,
    /// The same in both directions.
    pub params: LinkParams,
}

impl TopologyLink {
    /// The node at the other end.
    pub fn peer(&self, node: usize) -> usize {
        self.ends[usize::from(self.ends[0] == node)]
    }
}

/// Why a node or a link cannot be added.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TopologyError {
    #[error("there are two nodes called {0}; names must differ")]
    Duplicate(String),
    #[error("`{0}` is no name for a node: allowed are letters, digits and _")]
    Name(String),
    #[error("there is no node {name}; {existing}")]
    NoNode { name: String, existing: String },
    #[error("{0} cannot be linked to itself")]
    Loop(String),
    #[error("host {0} has more than one link; a host has one port, give it a second host for a second port")]
    SecondPort(String),
    #[error("{0} has 65535 ports, the most a node can have")]
    TooManyPorts(String),
}

/// Hosts, switches and links.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Topology {
    pub nodes: Vec<TopologyNode>,
    pub links: Vec<TopologyLink>,
    by_name: BTreeMap<String, usize>,
}

impl Topology {
    pub fn new() -> Self {
        Topology::default()
    }

    /// Adds a node and gives its number.
    pub fn add(&mut self, name: impl Into<String>, kind: NodeKind) -> Result<usize, TopologyError> {
        let name = name.into();
        if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
            return Err(TopologyError::Name(name));
        }
        let index = self.nodes.len();
        if self.by_name.insert(name.clone(), index).is_some() {
            return Err(TopologyError::Duplicate(name));
        }
        self.nodes.push(TopologyNode { name, kind, ports: Vec::new() });
        Ok(index)
    }

    /// Joins two nodes by a link and gives its number; each end gets the next free port.
    pub fn connect(
        &mut self,
        a: usize,
        b: usize,
        class: LinkClass,
        params: LinkParams,
    ) -> Result<usize, TopologyError> {
        if a == b {
            return Err(TopologyError::Loop(self.nodes[a].name.clone()));
        }
        let index = self.links.len();
        let mut ports = [0; 2];
        for (port, end) in ports.iter_mut().zip([a, b]) {
            let node = &self.nodes[end];
            if node.kind == NodeKind::Host && !node.ports.is_empty() {
                return Err(TopologyError::SecondPort(node.name.clone()));
            }
            *port = u16::try_from(node.ports.len()).map_err(|_| TopologyError::TooManyPorts(node.name.clone()))?;
        }
        self.nodes[a].ports.push(index);
        self.nodes[b].ports.push(index);
        self.links.push(TopologyLink { ends: [a, b], ports, class, params });
        Ok(index)
    }

    /// The number of the node with this name.
    pub fn node(&self, name: &str) -> Option<usize> {
        self.by_name.get(name).copied()
    }

    /// The number of the node with this name, or an error that lists the names there are.
    pub fn expect_node(&self, name: &str) -> Result<usize, TopologyError> {
        self.node(name).ok_or_else(|| TopologyError::NoNode { name: name.to_owned(), existing: self.names(|_| true) })
    }

    /// The names of some nodes, for messages.
    pub fn names(&self, of: impl Fn(&TopologyNode) -> bool) -> String {
        const SHOWN: usize = 12;
        let names: Vec<&str> = self.nodes.iter().filter(|node| of(node)).map(|node| node.name.as_str()).collect();
        match names.len() {
            0 => "there are none".to_owned(),
            count if count > SHOWN => {
                format!("there are {}, ... ({count} in all)", names[..SHOWN].join(", "))
            }
            _ => format!("there are {}", names.join(", ")),
        }
    }

    pub fn name(&self, node: usize) -> &str {
        &self.nodes[node].name
    }

    /// What a host gets of a server's line if all that are no servers send to it at once, at most its own line; without
    /// servers, if all hosts but one send to that one. With lines of different rates, of the slowest.
    pub fn share(&self) -> Rate {
        let slowest = |class| self.links.iter().filter(|link| link.class == class).map(|link| link.params.rate).min();
        let count = |class| self.links.iter().filter(|link| link.class == class).count() as u64;
        let Some(access) = slowest(LinkClass::Access) else { return Rate::from_gbps(10) };
        let (line, senders) = match slowest(LinkClass::Server) {
            Some(line) => (line, count(LinkClass::Access)),
            None => (access, count(LinkClass::Access) - 1),
        };
        access.min(Rate(line.0 / senders.max(1)))
    }

    /// "a-b", in the order in which the link was made; the second of two parallel links is "a-b_2".
    pub fn link_name(&self, link: usize) -> String {
        let [a, b] = self.links[link].ends;
        let earlier = |other: &&TopologyLink| other.ends == [a, b] || other.ends == [b, a];
        let copies = self.links[..link].iter().filter(earlier).count();
        let suffix = if copies == 0 { String::new() } else { format!("_{}", copies + 1) };
        format!("{}-{}{suffix}", self.name(a), self.name(b))
    }

    /// The names of all links, in their order.
    pub fn link_names(&self) -> Vec<String> {
        let mut copies: BTreeMap<[usize; 2], usize> = BTreeMap::new();
        let name = |link: &TopologyLink| {
            let [a, b] = link.ends;
            let copy = copies.entry([a.min(b), a.max(b)]).or_default();
            *copy += 1;
            let suffix = if *copy == 1 { String::new() } else { format!("_{copy}") };
            format!("{}-{}{suffix}", self.name(a), self.name(b))
        };
        self.links.iter().map(name).collect()
    }

    /// The link called "a-b" or "b-a" ("a-b_2" is the second between the two), and whether it was named backwards.
    pub fn link(&self, name: &str) -> Option<(usize, bool)> {
        let (a, rest) = name.split_once('-')?;
        let a = self.node(a)?;
        let (b, copy) = match self.node(rest) {
            Some(b) => (b, 1),
            None => {
                let (b, copy) = rest.rsplit_once('_')?;
                (self.node(b)?, copy.parse::<usize>().ok()?)
            }
        };
        let joins = |link: &&usize| self.links[**link].peer(a) == b;
        let link = *self.nodes[a].ports.iter().filter(joins).nth(copy.checked_sub(1)?)?;
        Some((link, self.links[link].ends[0] != a))
    }

    /// The numbers of all hosts, or of all switches.
    pub fn of_kind(&self, kind: NodeKind) -> impl Iterator<Item = usize> + '_ {
        (0..self.nodes.len()).filter(move |node| self.nodes[*node].kind == kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_found_by_name_from_either_end_parallel_ones_by_number() {
        let mut topology = Topology::new();
        let a = topology.add("a", NodeKind::Switch).unwrap();
        let b = topology.add("b_2", NodeKind::Switch).unwrap();
        for _ in 0..2 {
            topology.connect(a, b, LinkClass::Uplink, LinkParams::default()).unwrap();
        }
        assert_eq!([0, 1].map(|link| topology.link_name(link)), ["a-b_2", "a-b_2_2"]);
        assert_eq!(topology.link("a-b_2"), Some((0, false)));
        assert_eq!(topology.link("b_2-a_2"), Some((1, true)));
        assert_eq!(topology.link("a-c"), None);
        assert_eq!(topology.links[1].ports, [1, 1]);
    }

    #[test]
    fn what_cannot_be_built_is_refused_by_name() {
        let mut topology = Topology::new();
        let host = topology.add("host", NodeKind::Host).unwrap();
        let switch = topology.add("switch", NodeKind::Switch).unwrap();
        let mut connect = |a, b| topology.connect(a, b, LinkClass::Access, LinkParams::default());
        connect(host, switch).unwrap();
        let second = connect(switch, host).unwrap_err();
        let access = connect(switch, switch).unwrap_err();
        let name = topology.add("a-b", NodeKind::Host).unwrap_err();
        let twice = topology.add("host", NodeKind::Host).unwrap_err();
        let unknown = topology.expect_node("hsot").unwrap_err();
        insta::assert_snapshot!([second, access, name, twice, unknown].map(|error| error.to_string()).join("\n"));
    }
}
