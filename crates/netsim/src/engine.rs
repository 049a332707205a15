// SPDX-License-Identifier: Apache-2.0
//! The event engine: nodes, links between their ports, one queue of events.
//! Promise: one seed and one set of nodes give one run, event for event; memory is reused, not allocated, per event.
//! Source: ARCHITECTURE.md, "Time"; the order of events is documented at `Node`.

mod build;

use std::any::Any;

use crate::agenda::{Agenda, Due, Recurring};
use crate::error::SimError;
use crate::link::{LinkChange, LinkParams, LinkStats, Way};
use crate::network::{EventKind, Network};
use crate::node::{Node, Outbox};
use crate::port::{NodeId, Owner, PortId};
use crate::switch_stats::SwitchView;
use crate::trace::{NameNumber, TraceSink};
use crate::units::Time;

/// Why `Engine::run_until` returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunEnd {
    /// The requested time is reached.
    Limit,
    /// Nothing is left to happen.
    Idle,
    /// A node called `Outbox::stop`.
    Stopped,
}

/// A link, in the order of `Engine::connect`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(u32);

/// A simulation.
pub struct Engine {
    seed: u64,
    network: Network,
    nodes: Vec<Box<dyn Node>>,
    links: Vec<[u32; 2]>,
    agenda: Agenda,
    changes: Vec<(LinkId, Way, LinkChange)>,
    trace: Option<TraceSink>,
    /// The nodes' names in the trace.
    trace_names: Vec<NameNumber>,
    started: bool,
    events: u64,
}

impl Engine {
    /// An empty simulation; every random stream in it is derived from `seed`.
    pub fn new(seed: u64) -> Self {
        Engine {
            seed,
            network: Network::default(),
            nodes: Vec::new(),
            links: Vec::new(),
            agenda: Agenda::default(),
            changes: Vec::new(),
            trace: None,
            trace_names: Vec::new(),
            started: false,
            events: 0,
        }
    }

    /// Has the nodes count the pauses that links have repeated up to now (see `renewal`), so that their counters are
    /// complete.
    pub fn settle_renewals(&mut self) {
        let end = self.network.now.saturating_add(Time(1));
        for sender in 0..self.network.ports.len() as u32 {
            self.network.renewal(sender).settle(end);
            let ends = [sender, self.network.ports[sender as usize].peer];
            for (port, token) in ends.into_iter().zip(self.network.sides[sender as usize].renewal.tokens()) {
                if let Some(token) = token {
                    let node = self.network.owners[port as usize].node;
                    self.call_timer(node, token);
                }
            }
        }
    }

    fn call_timer(&mut self, node: NodeId, token: u64) {
        let mut out = Outbox { network: &mut self.network, node };
        self.nodes[node.0 as usize].on_timer(out.now(), token, &mut out);
    }

    /// Lets the simulation run until `limit` (events at `limit` included), until nothing is left to do, or until a
    /// node stops it. May be called again and again with growing limits.
    pub fn run_until(&mut self, limit: Time) -> Result<RunEnd, SimError> {
        let end = self.run_on(limit);
        self.settle_renewals();
        end
    }

    /// The same, except that pauses which links have repeated may not be counted yet.
    pub fn run_on(&mut self, limit: Time) -> Result<RunEnd, SimError> {
        self.start();
        while !self.network.stopped {
            if let Some(before) = self.agenda.bound().0.checked_sub(1) {
                self.run_events(before.min(limit.0));
                if self.network.stopped {
                    break;
                }
            }
            let Some(at) = self.network.queue.peek().map(|key| Time(key.time_ps())) else {
                return self.end(RunEnd::Idle);
            };
            if at > limit {
                self.attend(limit.saturating_add(Time(1)))?;
                self.network.now = limit.max(self.network.now);
                return self.end(RunEnd::Limit);
            }
            self.attend(at)?;
        }
        self.network.stopped = false;
        self.end(RunEnd::Stopped)
    }

    /// Runs the events up to and including `last`, or until a node stops the run.
    fn run_events(&mut self, last: u64) {
        while let Some((key, number)) = self.network.queue.pop_until(last) {
            self.network.now = Time(key.time_ps());
            self.events += 1;
            self.dispatch(key.rank(), number);
            if self.network.stopped {
                return;
            }
        }
    }

    fn end(&mut self, end: RunEnd) -> Result<RunEnd, SimError> {
        match self.network.error.take() {
            Some(error) => Err(error),
            None => Ok(end),
        }
    }

    fn start(&mut self) {
        if std::mem::replace(&mut self.started, true) {
            return;
        }
        for (index, node) in self.nodes.iter_mut().enumerate() {
            node.on_start(&mut Outbox { network: &mut self.network, node: NodeId(index as u32) });
        }
    }

    #[inline]
    fn dispatch(&mut self, rank: u32, number: u64) {
        let (kind, index) = EventKind::of_rank(rank);
        if kind == EventKind::Timer {
            return self.call_timer(NodeId(index), number);
        }
        let Owner { node, number: port, looks_ahead } = self.network.owners[index as usize];
        let network = &mut self.network;
        let (now, receiver) = (network.now, &mut self.nodes[node.0 as usize]);
        if kind == EventKind::TxDone {
            return receiver.on_tx_done(now, port, &mut Outbox { network, node });
        }
        network.free_slots.push(number as u32);
        let arrival = if looks_ahead { network.arrivals[number as usize] } else { now };
        let Some(frame) = network.in_flight[number as usize].take() else { return };
        receiver.on_frame(arrival, port, frame, &mut Outbox { network, node });
    }

    /// Does all that is due before the events at `at`.
    fn attend(&mut self, at: Time) -> Result<(), SimError> {
        while let Some(due) = self.agenda.take(at) {
            match due {
                Due::Change(now, number) => {
                    let (link, way, change) = self.changes[number as usize];
                    let ports = self.links[link.0 as usize];
                    for port in &ports[way.directions()] {
                        self.network.renewal(*port).settle(now);
                        let side = &mut self.network.sides[*port as usize];
                        self.network.ports[*port as usize].out.change(&mut side.wire, change);
                        self.network.settle_side(*port);
                    }
                }
                Due::Recurring(now, Recurring::Observer(observer)) => observer(now, self.trace.as_mut()),
                Due::Recurring(now, Recurring::Sample) => self.sample(now)?,
            }
        }
        Ok(())
    }

    fn sample(&mut self, now: Time) -> Result<(), SimError> {
        let Some(trace) = &mut self.trace else { return Ok(()) };
        for name in &self.network.names[self.trace_names.len()..] {
            self.trace_names.push(trace.name_number(name));
        }
        for (node, name) in self.nodes.iter_mut().zip(&self.trace_names) {
            trace.begin_numbered(now, *name);
            node.sample(now, trace);
        }
        Ok(trace.check()?)
    }

    pub fn now(&self) -> Time {
        self.network.now
    }

    /// Events handled so far.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// Data packets that have crossed a link, each counted once a link.
    pub fn traversals(&self) -> u64 {
        self.network.ports.iter().map(|port| port.out.data_frames).sum()
    }

    /// The two directions of a link as they are now: first from `a` to `b` as given to `connect`.
    pub fn link_params(&self, link: LinkId) -> [LinkParams; 2] {
        self.links[link.0 as usize].map(|port| self.network.sides[port as usize].wire.params)
    }

    pub fn node_name(&self, id: NodeId) -> &str {
        &self.network.names[id.0 as usize]
    }

    /// The node and port at the other end of a port's link; `None` if none is connected.
    pub fn peer(&self, node: NodeId, port: PortId) -> Option<(NodeId, PortId)> {
        let here = &self.network.ports[self.network.port_index(node, port)? as usize];
        let there = &self.network.owners[here.peer as usize];
        Some((there.node, there.number))
    }

    /// The switch, of any kind; `None` if the node is something else.
    pub fn switch(&self, id: NodeId) -> Option<&dyn SwitchView> {
        self.nodes[id.0 as usize].as_switch()
    }

    /// The node with its concrete type; `None` if it has another type.
    pub fn node<T: Node>(&self, id: NodeId) -> Option<&T> {
        let node: &dyn Any = &*self.nodes[id.0 as usize];
        node.downcast_ref()
    }

    pub fn node_mut<T: Node>(&mut self, id: NodeId) -> Option<&mut T> {
        let node: &mut dyn Any = &mut *self.nodes[id.0 as usize];
        node.downcast_mut()
    }

    /// Ends the simulation and gives the nodes back, in the order of `add_node`; `Box<dyn Any>` of each downcasts to
    /// its type.
    pub fn into_nodes(self) -> Vec<Box<dyn Node>> {
        self.nodes
    }

    /// The counters of the two directions of a link: first from `a` to `b` as given to `connect`.
    pub fn link_stats(&self, link: LinkId) -> [LinkStats; 2] {
        self.links[link.0 as usize]
            .map(|port| self.network.ports[port as usize].out.stats(&self.network.sides[port as usize].wire))
    }
}
