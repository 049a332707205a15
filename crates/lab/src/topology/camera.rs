// SPDX-License-Identifier: Apache-2.0
//! The camera of a telescope: front-end modules on a hexagonal grid, connected to leaf switches, a core and servers.
//! Promise: module k is at cell k of `hexagonal_camera`; with `Grouping::Cluster` a leaf serves neighbouring modules.
//! Source: AdvCam sections I and III (265 modules grouped per cluster, uplinks of 100, 200 or 400 Gb/s).

use super::generate::LinkKinds;
use super::{LinkClass, NodeKind, Topology, TopologyError};

/// A place on a hexagonal grid, in axial coordinates; neighbours are one apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Cell {
    pub q: i32,
    pub r: i32,
}

impl Cell {
    /// Square of the distance between two cells' centres, in units of the distance of neighbours.
    pub fn distance_squared(self, other: Cell) -> u64 {
        let (q, r) = (i64::from(self.q - other.q), i64::from(self.r - other.r));
        (q * q + q * r + r * r) as u64
    }
}

/// The `count` cells nearest to the centre, row by row from the top, each row from the left.
pub fn hexagonal_camera(count: usize) -> Vec<Cell> {
    let centre = Cell { q: 0, r: 0 };
    let mut reach = 0;
    while 3 * reach * (reach + 1) + 1 < 2 * count as i64 + 6 {
        reach += 1;
    }
    let reach = reach as i32;
    let mut cells: Vec<Cell> = (-reach..=reach).flat_map(|r| (-reach..=reach).map(move |q| Cell { q, r })).collect();
    cells.sort_by_key(|cell| (cell.distance_squared(centre), cell.r, cell.q));
    cells.truncate(count);
    cells.sort_by_key(|cell| (cell.r, cell.q));
    cells
}

/// Which modules share a leaf switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grouping {
    /// Neighbours: modules of consecutive numbers.
    Cluster,
    /// Modules are dealt out to the leaves in turn, so that a shower falls on all of them.
    Spread,
}

/// Modules `board0` ..., leaf switches `leaf0` ..., core switches `core0` ..., servers `server0` ... on the cores in
/// turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Camera {
    pub modules: u32,
    pub leaves: u32,
    pub cores: u32,
    pub servers: u32,
    /// Parallel links from each leaf to each core.
    pub uplinks: u32,
    pub grouping: Grouping,
}

impl Camera {
    /// The leaf of a module.
    pub fn leaf_of(&self, module: u32) -> u32 {
        match self.grouping {
            Grouping::Cluster => (u64::from(module) * u64::from(self.leaves) / u64::from(self.modules)) as u32,
            Grouping::Spread => module % self.leaves,
        }
    }

    pub fn build(&self, links: &LinkKinds) -> Result<Topology, TopologyError> {
        let mut topology = Topology::new();
        let cores = topology.add_switches("core", self.cores)?;
        let leaves = topology.add_switches("leaf", self.leaves)?;
        for number in 0..self.servers {
            let core = cores[(number % self.cores) as usize];
            topology.add_hosts("server", number, 1, core, LinkClass::Server, links)?;
        }
        for leaf in &leaves {
            for core in cores.iter().flat_map(|core| std::iter::repeat_n(core, self.uplinks as usize)) {
                topology.connect(*leaf, *core, LinkClass::Uplink, links.uplink)?;
            }
        }
        for module in 0..self.modules {
            let board = topology.add(format!("board{module}"), NodeKind::Host)?;
            let leaf = leaves[self.leaf_of(module) as usize];
            topology.connect(board, leaf, LinkClass::Access, links.access)?;
        }
        Ok(topology)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::Routes;
    use penstock_netsim::LinkParams;

    fn camera(grouping: Grouping) -> Camera {
        Camera { modules: 265, leaves: 6, cores: 2, servers: 4, uplinks: 2, grouping }
    }

    #[test]
    fn the_cells_are_a_disc_of_neighbours() {
        let centre = Cell { q: 0, r: 0 };
        for count in [1, 7, 19, 265, 1000] {
            let cells = hexagonal_camera(count);
            assert_eq!(cells.len(), count);
            let farthest = cells.iter().map(|cell| cell.distance_squared(centre)).max().unwrap();
            // a cell covers sqrt(3)/2: a disc of n cells has a radius of sqrt(n * 0.2757)
            let disc = (count as f64 * 0.2757).sqrt();
            assert!((farthest as f64).sqrt() < disc + 1.0, "{count}: {farthest}");
            for cell in cells.iter().filter(|_| count > 1) {
                assert!(cells.iter().any(|other| cell.distance_squared(*other) == 1), "{cell:?} is alone");
            }
        }
    }

    #[test]
    fn modules_of_a_leaf_are_neighbours_or_dealt_out() {
        let clustered = camera(Grouping::Cluster);
        let counts: Vec<usize> =
            (0..6).map(|leaf| (0..265).filter(|module| clustered.leaf_of(*module) == leaf).count()).collect();
        assert_eq!(counts, [45, 44, 44, 44, 44, 44]);
        assert!((1..265).all(|module| clustered.leaf_of(module - 1) <= clustered.leaf_of(module)));
        assert_eq!(camera(Grouping::Spread).leaf_of(7), 1);
    }

    #[test]
    fn every_module_reaches_every_server_by_all_uplinks_of_its_core() {
        let params = LinkParams::default();
        let links = LinkKinds { access: params, server: params, uplink: params };
        let topology = camera(Grouping::Cluster).build(&links).unwrap();
        let routes = Routes::shortest(&topology);
        let node = |name: &str| topology.node(name).unwrap();
        for server in ["server0", "server3"] {
            assert_eq!(routes.hops(&topology, node("board264"), node(server)), Ok(3));
            assert_eq!(routes.next_ports(&topology, node("leaf5"), node(server)).len(), 2);
        }
        assert_eq!(topology.links.len(), 4 + 6 * 2 * 2 + 265);
    }
}
