// SPDX-License-Identifier: Apache-2.0
//! Building a simulation: nodes, links between their ports, what is sampled, captured and changed.
//! Promise: invalid settings (a port in use, no rate, a delay shorter than the nodes need) are refused here.
//! Source: ARCHITECTURE.md, "Time".

use super::{Engine, LinkId};
use crate::agenda::{Observer, Recurring};
use crate::capture::CaptureSink;
use crate::error::SimError;
use crate::link::{Direction, LinkChange, LinkParams, Way};
use crate::network::NO_PORT;
use crate::node::Node;
use crate::port::{NodeId, Owner, Port, PortId, Side, NO_TAP};
use crate::renewal::Renewal;
use crate::rng::Stream;
use crate::trace::TraceSink;
use crate::units::Time;

impl Engine {
    /// Adds a node. Its name appears in traces and errors and seeds the faults of its links.
    pub fn add_node(&mut self, name: impl Into<String>, node: Box<dyn Node>) -> NodeId {
        self.network.longest_lag = self.network.longest_lag.max(node.terms().egress_lag);
        self.nodes.push(node);
        self.network.names.push(name.into());
        self.network.port_of.push(Vec::new());
        self.network.port_zero.push(NO_PORT);
        NodeId(self.nodes.len() as u32 - 1)
    }

    /// Reserves room for this number of links, so that memory does not grow step by step.
    pub fn expect_links(&mut self, links: usize) {
        self.links.reserve_exact(links);
        self.network.ports.reserve_exact(2 * links);
        self.network.owners.reserve_exact(2 * links);
        self.network.sides.reserve_exact(2 * links);
    }

    /// Connects two ports by a link that is the same in both directions.
    pub fn connect(
        &mut self,
        a: (NodeId, PortId),
        b: (NodeId, PortId),
        params: LinkParams,
    ) -> Result<LinkId, SimError> {
        self.connect_asymmetric(a, b, params, params)
    }

    /// Connects two ports by a link with its own parameters for each direction.
    pub fn connect_asymmetric(
        &mut self,
        a: (NodeId, PortId),
        b: (NodeId, PortId),
        a_to_b: LinkParams,
        b_to_a: LinkParams,
    ) -> Result<LinkId, SimError> {
        self.check_link(a, b, &a_to_b)?;
        self.check_link(b, a, &b_to_a)?;
        let first = self.network.ports.len() as u32;
        self.add_port(a, b, first + 1, a_to_b);
        self.add_port(b, a, first, b_to_a);
        self.links.push([first, first + 1]);
        Ok(LinkId(self.links.len() as u32 - 1))
    }

    fn link_name(&self, from: (NodeId, PortId), to: (NodeId, PortId)) -> String {
        let end = |(node, port): (NodeId, PortId)| format!("{}:{}", self.network.names[node.0 as usize], port.0);
        format!("{}>{}", end(from), end(to))
    }

    fn check_link(&self, from: (NodeId, PortId), to: (NodeId, PortId), params: &LinkParams) -> Result<(), SimError> {
        if self.network.port_index(from.0, from.1).is_some() || from == to {
            let node = self.network.names[from.0 .0 as usize].clone();
            return Err(SimError::PortTaken { node, port: from.1 .0 });
        }
        if params.rate.bits_per_second() == 0 {
            return Err(SimError::NoRate { link: self.link_name(from, to) });
        }
        let lag = self.nodes[from.0 .0 as usize].terms().egress_lag;
        let lookahead = self.nodes[to.0 .0 as usize].terms().ingress_lookahead;
        if params.delay < lag + lookahead {
            let link = self.link_name(from, to);
            return Err(SimError::DelayTooShort { link, delay: params.delay, needed: lag + lookahead });
        }
        Ok(())
    }

    fn add_port(&mut self, from: (NodeId, PortId), to: (NodeId, PortId), peer: u32, params: LinkParams) {
        let random = Stream::new(self.seed, &self.link_name(from, to));
        let (node, number) = from;
        let index = self.network.ports.len() as u32;
        let (out, wire) = Direction::new(params, random);
        let [lookahead, peer_lookahead] = [from, to].map(|end| self.nodes[end.0 .0 as usize].terms().ingress_lookahead);
        let side = Side { wire, peer_lookahead, tap: NO_TAP, renewal: Renewal::default() };
        let reports_tx_done = self.nodes[node.0 as usize].terms().reports_tx_done;
        self.network.ports.push(Port { out, peer, reports_tx_done, is_plain: side.is_plain() });
        self.network.owners.push(Owner { node, number, looks_ahead: lookahead > Time::ZERO });
        self.network.sides.push(side);
        let table = &mut self.network.port_of[node.0 as usize];
        if table.len() <= usize::from(number.0) {
            table.resize(usize::from(number.0) + 1, NO_PORT);
        }
        table[usize::from(number.0)] = index;
        if number.0 == 0 {
            self.network.port_zero[node.0 as usize] = index;
        }
    }

    /// Samples every node into `sink` at 0, `interval`, 2 `interval`, ... (a zero interval never samples).
    pub fn set_trace(&mut self, sink: TraceSink, interval: Time) {
        self.trace = Some(sink);
        self.trace_names.clear();
        self.agenda.add_periodic(self.network.now, interval, Recurring::Sample);
    }

    /// Takes the trace back, to finish its file.
    pub fn take_trace(&mut self) -> Option<TraceSink> {
        self.agenda.drop_samples();
        self.trace.take()
    }

    /// Calls `observer` at `interval`, 2 `interval`, ... after all events of that time, with the trace if there is one.
    /// It keeps nothing alive: a run that has nothing left to do ends. A zero interval never calls.
    pub fn observe(&mut self, interval: Time, observer: Observer) {
        self.agenda.add_periodic(self.network.now + interval, interval, Recurring::Observer(observer));
    }

    /// Changes a link at `at`, before any event of that time. A windowed node's frames may be charged up to one window
    /// later by what the link was when they began.
    ///
    /// # Errors
    /// A rate of 0: use a loss of 1 for a link that is down.
    pub fn change_link_at(&mut self, at: Time, link: LinkId, way: Way, change: LinkChange) -> Result<(), SimError> {
        if change.rate.is_some_and(|rate| rate.bits_per_second() == 0) {
            return Err(SimError::NoRate { link: self.direction_name(self.links[link.0 as usize][0]) });
        }
        self.agenda.add_change(at, self.changes.len() as u32);
        self.changes.push((link, way, change));
        Ok(())
    }

    /// Captures both directions of these links into `sink`.
    pub fn set_capture(&mut self, mut sink: CaptureSink, links: &[LinkId]) {
        for link in links {
            for index in self.links[link.0 as usize] {
                let name = self.direction_name(index);
                let side = &mut self.network.sides[index as usize];
                side.tap = sink.add_interface(&name, side.wire.params.rate);
                self.network.settle_side(index);
            }
        }
        self.network.capture = Some(sink);
    }

    /// Takes the capture back, to finish its file.
    pub fn take_capture(&mut self) -> Option<CaptureSink> {
        self.network.sides.iter_mut().for_each(|side| side.tap = NO_TAP);
        (0..self.network.sides.len() as u32).for_each(|index| self.network.settle_side(index));
        self.network.capture.take()
    }

    /// The direction of a link that leaves a port, as `node:port>node:port`.
    fn direction_name(&self, port: u32) -> String {
        let end = |port: u32| {
            let owner = self.network.owners[port as usize];
            (owner.node, owner.number)
        };
        self.link_name(end(port), end(self.network.ports[port as usize].peer))
    }
}
