// SPDX-License-Identifier: Apache-2.0
//! Generators of common topologies from a few parameters.
//! Promise: names and ports depend only on the parameters; hosts are numbered in the order of their switches.
//! Source: AdvCam figures 3 and 10 (tree, star); Al-Fares et al. 2008 (fat-tree).

use penstock_netsim::LinkParams;

use super::{LinkClass, NodeKind, Topology, TopologyError};

/// The links of a generated network, by what they are for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LinkKinds {
    pub access: LinkParams,
    pub server: LinkParams,
    pub uplink: LinkParams,
}

impl LinkKinds {
    pub fn of(&self, class: LinkClass) -> LinkParams {
        match class {
            LinkClass::Access => self.access,
            LinkClass::Server => self.server,
            LinkClass::Uplink => self.uplink,
        }
    }
}

impl Topology {
    /// Adds `count` hosts called `prefix0` ... at a switch, numbered from `first`.
    pub(super) fn add_hosts(
        &mut self,
        prefix: &str,
        first: u32,
        count: u32,
        switch: usize,
        class: LinkClass,
        links: &LinkKinds,
    ) -> Result<(), TopologyError> {
        for number in first..first + count {
            let host = self.add(format!("{prefix}{number}"), NodeKind::Host)?;
            self.connect(host, switch, class, links.of(class))?;
        }
        Ok(())
    }

    pub(super) fn add_switches(&mut self, prefix: &str, count: u32) -> Result<Vec<usize>, TopologyError> {
        (0..count).map(|number| self.add(format!("{prefix}{number}"), NodeKind::Switch)).collect()
    }
}

/// All hosts at one switch: `board0` ..., `server0` ..., `switch`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StarShape {
    pub boards: u32,
    pub servers: u32,
}

impl StarShape {
    pub fn build(&self, links: &LinkKinds) -> Result<Topology, TopologyError> {
        let mut topology = Topology::new();
        let switch = topology.add("switch", NodeKind::Switch)?;
        topology.add_hosts("board", 0, self.boards, switch, LinkClass::Access, links)?;
        topology.add_hosts("server", 0, self.servers, switch, LinkClass::Server, links)?;
        Ok(topology)
    }
}

/// Boards at leaf switches, which connect to one root switch with the servers (AdvCam figure 3): `board0` ..., `leaf0`
/// ..., `root`, `server0` ....
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tree {
    /// How many boards each leaf has.
    pub boards_per_leaf: Vec<u32>,
    pub servers: u32,
    /// Parallel links from each leaf to the root.
    pub uplinks: u32,
}

impl Tree {
    pub fn build(&self, links: &LinkKinds) -> Result<Topology, TopologyError> {
        let mut topology = Topology::new();
        let root = topology.add("root", NodeKind::Switch)?;
        topology.add_hosts("server", 0, self.servers, root, LinkClass::Server, links)?;
        let leaves = topology.add_switches("leaf", self.boards_per_leaf.len() as u32)?;
        let mut first = 0;
        for (leaf, boards) in leaves.into_iter().zip(&self.boards_per_leaf) {
            for _ in 0..self.uplinks {
                topology.connect(leaf, root, LinkClass::Uplink, links.uplink)?;
            }
            topology.add_hosts("board", first, *boards, leaf, LinkClass::Access, links)?;
            first += boards;
        }
        Ok(topology)
    }
}

/// Every leaf joined to every spine: `host0` ..., `leaf0` ..., `spine0` ....
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeafSpine {
    pub leaves: u32,
    pub spines: u32,
    pub hosts_per_leaf: u32,
}

impl LeafSpine {
    pub fn build(&self, links: &LinkKinds) -> Result<Topology, TopologyError> {
        let mut topology = Topology::new();
        let spines = topology.add_switches("spine", self.spines)?;
        let leaves = topology.add_switches("leaf", self.leaves)?;
        for (number, leaf) in leaves.into_iter().enumerate() {
            for spine in &spines {
                topology.connect(leaf, *spine, LinkClass::Uplink, links.uplink)?;
            }
            let first = number as u32 * self.hosts_per_leaf;
            topology.add_hosts("host", first, self.hosts_per_leaf, leaf, LinkClass::Access, links)?;
        }
        Ok(topology)
    }
}

/// A three-layer Clos network of pods: `host0` ..., `edge0` ..., `agg0` ..., `core0` .... Aggregation switch i of every
/// pod is joined to the i-th share of the cores.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FatTree {
    pub pods: u32,
    pub edges_per_pod: u32,
    pub aggs_per_pod: u32,
    /// A multiple of `aggs_per_pod`.
    pub cores: u32,
    pub hosts_per_edge: u32,
}

impl FatTree {
    /// The fat-tree of switches with `k` ports (even): k pods of k/2 edge and k/2 aggregation switches, (k/2)^2 cores,
    /// k^3/4 hosts.
    pub fn of_k(k: u32) -> Self {
        let half = k / 2;
        FatTree { pods: k, edges_per_pod: half, aggs_per_pod: half, cores: half * half, hosts_per_edge: half }
    }

    pub fn build(&self, links: &LinkKinds) -> Result<Topology, TopologyError> {
        let mut topology = Topology::new();
        let cores = topology.add_switches("core", self.cores)?;
        let aggs = topology.add_switches("agg", self.pods * self.aggs_per_pod)?;
        let edges = topology.add_switches("edge", self.pods * self.edges_per_pod)?;
        let share = (self.cores / self.aggs_per_pod) as usize;
        for (number, agg) in aggs.iter().enumerate() {
            let within_pod = number % self.aggs_per_pod as usize;
            for core in &cores[within_pod * share..(within_pod + 1) * share] {
                topology.connect(*agg, *core, LinkClass::Uplink, links.uplink)?;
            }
        }
        for (number, edge) in edges.iter().enumerate() {
            let pod = number / self.edges_per_pod as usize;
            for agg in &aggs[pod * self.aggs_per_pod as usize..][..self.aggs_per_pod as usize] {
                topology.connect(*edge, *agg, LinkClass::Uplink, links.uplink)?;
            }
            let first = number as u32 * self.hosts_per_edge;
            topology.add_hosts("host", first, self.hosts_per_edge, *edge, LinkClass::Access, links)?;
        }
        Ok(topology)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::Routes;
    use crate::units::Rate;

    fn links() -> LinkKinds {
        let access = LinkParams::default();
        let uplink = LinkParams { rate: Rate::from_gbps(100), ..access };
        LinkKinds { access, server: uplink, uplink }
    }

    #[test]
    fn the_tree_of_advcam_figure_3() {
        let tree = Tree { boards_per_leaf: vec![2, 4, 2], servers: 1, uplinks: 1 }.build(&links()).unwrap();
        let names: Vec<String> = (0..tree.links.len()).map(|link| tree.link_name(link)).collect();
        insta::assert_snapshot!(names.join(" "));
        let (board, server) = (tree.node("board4").unwrap(), tree.node("server0").unwrap());
        assert_eq!(Routes::shortest(&tree).hops(&tree, board, server), Ok(3));
    }

    #[test]
    fn a_fat_tree_of_k_has_its_hosts_paths_and_ports() {
        for k in [2, 4, 8] {
            let tree = FatTree::of_k(k).build(&links()).unwrap();
            assert_eq!(tree.of_kind(NodeKind::Host).count() as u32, k * k * k / 4);
            for switch in tree.of_kind(NodeKind::Switch) {
                let cores_of_two_pods = k == 2 && tree.name(switch).starts_with("core");
                assert!(cores_of_two_pods || tree.nodes[switch].ports.len() as u32 == k, "{}", tree.name(switch));
            }
            let routes = Routes::shortest(&tree);
            let (first, last) = (tree.node("host0").unwrap(), tree.of_kind(NodeKind::Host).last().unwrap());
            assert_eq!(routes.hops(&tree, first, last), Ok(6));
            let edge = tree.node("edge0").unwrap();
            assert_eq!(routes.next_ports(&tree, edge, last).len() as u32, k / 2);
        }
    }

    #[test]
    fn every_leaf_meets_every_spine() {
        let net = LeafSpine { leaves: 3, spines: 2, hosts_per_leaf: 4 }.build(&links()).unwrap();
        let (first, last) = (net.node("host0").unwrap(), net.node("host11").unwrap());
        let routes = Routes::shortest(&net);
        assert_eq!(routes.next_ports(&net, net.node("leaf0").unwrap(), last), [0, 1]);
        assert_eq!(routes.hops(&net, first, last), Ok(4));
        assert_eq!(net.links[0].params.rate, Rate::from_gbps(100));
    }
}
