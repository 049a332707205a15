// SPDX-License-Identifier: Apache-2.0
//! Builds a simulation from a scenario: stations with endpoints, switches with routes, links with their scheduled
//! changes. Promise: nodes, links and flows keep the numbers of the scenario; one scenario builds one simulation.

mod builder;
mod endpoints;
mod host;
mod pull;
mod switch;

use penstock_netsim::{Engine, LinkChange, LinkId, Node, PortId, SimError, Way};

use crate::makers::{LabError, Makers};
use crate::reroute::Reroutes;
use crate::run::Lab;
use crate::scenario::LabScenario;
use crate::topology::{NodeKind, Routes};
use crate::units::Probability;
use builder::Builder;

impl Lab {
    /// Builds the simulation of a scenario, with parts of `makers`.
    ///
    /// # Errors
    /// Errors that the checks of the scenario cannot find: errors of `makers`, and links shorter than a board's window.
    pub fn build(scenario: &LabScenario, makers: &mut dyn Makers) -> Result<Lab, LabError> {
        let mut builder = Builder::new(scenario)?;
        builder.readout(makers)?;
        let mut engine = Engine::new(scenario.run.seed);
        let routes = Routes::shortest(&scenario.topology);
        let mut nodes = Vec::new();
        for (number, node) in scenario.topology.nodes.iter().enumerate() {
            let made: Box<dyn Node> = match node.kind {
                NodeKind::Host => builder.host(number, makers)?,
                NodeKind::Switch => switch::node(scenario, number, &builder.addresses, &routes, makers)?,
            };
            nodes.push(engine.add_node(node.name.clone(), made));
        }
        let (mut links, mut names) = (Vec::new(), scenario.topology.link_names());
        engine.expect_links(scenario.topology.links.len());
        for (number, link) in scenario.topology.links.iter().enumerate() {
            let end = |side: usize| (nodes[link.ends[side]], PortId(link.ports[side]));
            let id = engine.connect(end(0), end(1), link.params)?;
            links.push((std::mem::take(&mut names[number]), id));
        }
        changes(scenario, &mut engine, &links)?;
        let flows = builder.infos(&nodes);
        let named = |kind| {
            let of_kind = scenario.topology.of_kind(kind);
            of_kind.map(|node| (scenario.topology.name(node).to_owned(), nodes[node])).collect::<Vec<_>>()
        };
        let (hosts, switches) = (named(NodeKind::Host), named(NodeKind::Switch));
        let mut lab = Lab::new(scenario, engine, builder.ledger, flows, hosts, switches, links);
        lab.set_reroutes(Reroutes::of(scenario, builder.addresses));
        Ok(lab)
    }
}

/// `[[change]]`
fn changes(scenario: &LabScenario, engine: &mut Engine, links: &[(String, LinkId)]) -> Result<(), SimError> {
    for change in &scenario.changes {
        let link = &scenario.topology.links[change.link];
        let way = match change.from_end {
            None => Way::Both,
            Some(end) if end == link.ends[0] => Way::Forward,
            Some(_) => Way::Back,
        };
        let id = links[change.link].1;
        let loss = if change.down.is_some() { Probability::new(1.0) } else { change.loss };
        engine.change_link_at(change.at, id, way, LinkChange { rate: change.rate, loss })?;
        if let Some(until) = change.until {
            let back =
                LinkChange { rate: change.rate.map(|_| link.params.rate), loss: loss.map(|_| link.params.faults.loss) };
            engine.change_link_at(until, id, way, back)?;
        }
    }
    Ok(())
}
