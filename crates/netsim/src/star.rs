// SPDX-License-Identifier: Apache-2.0
//! The network of a scenario: boards 0 .. n on switch ports 0 .. n, the server on port n.
//! Promise: links, faults, thresholds and routes are those of the scenario; the nodes themselves come from the caller.
//! Source: AdvCam section VII (three senders, one switch, one receiver).

use crate::engine::{Engine, LinkId, SimError};
use crate::node::{Node, NodeId, PortId};
use crate::rng::Stream;
use crate::scenario::Scenario;
use crate::switch::Switch;

/// A star network, ready to run.
pub struct Star {
    pub engine: Engine,
    pub switch: NodeId,
    pub boards: Vec<NodeId>,
    pub server: NodeId,
    /// Direction 0 of each leads from the node to the switch.
    pub board_links: Vec<LinkId>,
    pub server_link: LinkId,
}

impl Star {
    /// Joins the boards (as many as the scenario has; each answers to `Scenario::board_ip`) and the server by the
    /// switch.
    pub fn build(scenario: &Scenario, boards: Vec<Box<dyn Node>>, server: Box<dyn Node>) -> Result<Star, SimError> {
        let mut engine = Engine::new(scenario.run.seed);
        let count = boards.len() as u16;
        let random = Stream::new(scenario.run.seed, Scenario::SWITCH);
        let mut switch = Switch::new(scenario.switch, count + 1, random);
        for k in 0..count {
            switch.add_route(Scenario::board_ip(k), &[PortId(k)]);
        }
        switch.add_route(Scenario::server_ip(), &[PortId(count)]);
        let switch = engine.add_node(Scenario::SWITCH, Box::new(switch));
        let mut ids = Vec::with_capacity(boards.len());
        let mut board_links = Vec::with_capacity(boards.len());
        for (k, board) in (0..count).zip(boards) {
            let name = Scenario::board_name(k);
            let link = scenario.link_of(&name);
            let id = engine.add_node(name, board);
            board_links.push(engine.connect((id, PortId(0)), (switch, PortId(k)), link)?);
            ids.push(id);
        }
        let server = engine.add_node(Scenario::SERVER, server);
        let link = scenario.link_of(Scenario::SERVER);
        let server_link = engine.connect((server, PortId(0)), (switch, PortId(count)), link)?;
        Ok(Star { engine, switch, boards: ids, server, board_links, server_link })
    }

    /// The link of a node of the scenario; none for another name.
    pub fn link(&self, node: &str) -> Option<LinkId> {
        let board = |k: &u16| node == Scenario::board_name(*k);
        match node {
            Scenario::SERVER => Some(self.server_link),
            _ => (0..self.boards.len() as u16).find(board).map(|k| self.board_links[usize::from(k)]),
        }
    }

    /// The switch port a board is on.
    pub fn board_port(k: u16) -> PortId {
        PortId(k)
    }

    /// The switch port the server is on.
    pub fn server_port(&self) -> PortId {
        PortId(self.boards.len() as u16)
    }
}
