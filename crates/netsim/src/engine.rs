// SPDX-License-Identifier: Apache-2.0
//! The event engine: nodes, links between their ports, one queue of events.
//! Promise: one seed and one set of nodes give one run, event for event; memory is reused, not allocated, per event.
//! Source: ARCHITECTURE.md, "Time"; the order of events is documented at `Node`.

mod build;
mod core;

use std::any::Any;

use penstock_wire::Packet;

pub(crate) use self::core::{Core, Kind};
use crate::agenda::{Agenda, Due, LinkChange, Recurring, Way};
use crate::capture::CaptureError;
use crate::link::{LinkParams, LinkStats};
use crate::node::{Node, NodeId, Outbox, PortId};
use crate::port::{Ahead, Owner};
use crate::trace::{NameNumber, TraceError, TraceSink};
use crate::units::Time;

/// Why a simulation could not be built or could not go on.
#[derive(Debug, thiserror::Error)]
pub enum SimError {
    #[error("node {node} has no link at port {port}; connect it before the run")]
    NoLink { node: String, port: u16 },
    #[error("port {port} of node {node} has a link already")]
    PortTaken { node: String, port: u16 },
    #[error(
        "link {link}: its delay of {delay} is shorter than {needed}, the sum of the sender's window and the \
         receiver's lookahead; make the delay longer or the window shorter"
    )]
    DelayTooShort { link: String, delay: Time, needed: Time },
    #[error("link {link}: rate is 0")]
    NoRate { link: String },
    #[error("node {node} told only at {now} of a frame that had left it by {left}; its window is longer than it said")]
    LateFrame { node: String, left: Time, now: Time },
    #[error("node {node} at {at}: {source}")]
    Node { node: String, at: Time, source: Box<dyn std::error::Error + Send + Sync> },
    #[error("trace: {0}")]
    Trace(#[from] TraceError),
    #[error("capture: {0}")]
    Capture(#[from] CaptureError),
}

/// Why `Engine::run_until` returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunEnd {
    /// The time asked for is reached.
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
    core: Core,
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
        let core = Core::default();
        Engine {
            seed,
            core,
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

    /// Tells the nodes of all pauses that have been renewed by themselves up to now, so that their counters are complete.
    pub(crate) fn settle_renewals(&mut self) {
        for sender in 0..self.core.renewals.len() as u32 {
            self.core.settle_renewals(sender, self.core.now.saturating_add(Time(1)));
            for port in [sender, self.core.ports[sender as usize].peer] {
                let Owner { node, number, .. } = self.core.owners[port as usize];
                self.nodes[node as usize].on_renewals(number, &mut Outbox { core: &mut self.core, node: NodeId(node) });
            }
        }
        self.offer_ahead();
    }

    /// Lets the simulation run until `limit` (events at `limit` included), until nothing is left to do, or until a
    /// node stops it. May be called again and again with growing limits.
    pub fn run_until(&mut self, limit: Time) -> Result<RunEnd, SimError> {
        let end = self.run_on(limit);
        self.settle_renewals();
        end
    }

    /// The same, except that pause frames which ports have sent by themselves may not be counted yet.
    pub(crate) fn run_on(&mut self, limit: Time) -> Result<RunEnd, SimError> {
        self.start();
        while !self.core.stopped {
            if let Some(before) = self.agenda.bound().0.checked_sub(1) {
                self.run_events(before.min(limit.0));
                if self.core.stopped {
                    break;
                }
            }
            let Some(at) = self.core.queue.peek().map(|key| Time(key.time_ps())) else {
                return self.end(RunEnd::Idle);
            };
            if at > limit {
                self.attend(limit.saturating_add(Time(1)))?;
                self.core.now = limit.max(self.core.now);
                return self.end(RunEnd::Limit);
            }
            self.attend(at)?;
        }
        self.core.stopped = false;
        self.end(RunEnd::Stopped)
    }

    /// Runs the events up to and including `last`, or until a node stops the run.
    fn run_events(&mut self, last: u64) {
        while let Some((key, number)) = self.core.queue.pop_until(last) {
            self.core.now = Time(key.time_ps());
            self.events += 1;
            if let Some(node) = self.core.prefetch_next() {
                self.nodes[node as usize].prefetch();
            }
            self.dispatch(key.rank(), number);
            if !self.core.ahead.is_empty() {
                self.offer_ahead();
            }
            if self.core.stopped {
                return;
            }
        }
    }

    fn end(&mut self, end: RunEnd) -> Result<RunEnd, SimError> {
        match self.core.error.take() {
            Some(error) => Err(error),
            None => Ok(end),
        }
    }

    fn start(&mut self) {
        if std::mem::replace(&mut self.started, true) {
            return;
        }
        for (index, node) in self.nodes.iter_mut().enumerate() {
            node.on_start(&mut Outbox { core: &mut self.core, node: NodeId(index as u32) });
        }
        self.offer_ahead();
    }

    /// Asks receivers of MAC control frames whether they take them now; schedules the others.
    fn offer_ahead(&mut self) {
        while let Some(Ahead { sender, port: index, arrival, frame }) = self.core.ahead.pop() {
            let Packet::MacControl { control, .. } = frame.packet() else { continue };
            let Owner { node, number, .. } = self.core.owners[index as usize];
            let mut out = Outbox { core: &mut self.core, node: NodeId(node) };
            if !self.nodes[node as usize].on_control_ahead(arrival, number, control, &mut out) {
                self.core.deliver(sender, index, arrival, Time::ZERO, frame);
            } else {
                self.core.spare.keep(frame);
            }
        }
    }

    #[inline]
    fn dispatch(&mut self, rank: u32, number: u64) {
        let core = &mut self.core;
        let now = core.now;
        let (kind, index) = Kind::of_rank(rank);
        if kind == Kind::Timer {
            let node = &mut self.nodes[index as usize];
            return node.on_timer(now, number, &mut Outbox { core, node: NodeId(index) });
        }
        let Owner { node, number: port, looks_ahead, is_switch, .. } = core.owners[index as usize];
        if kind == Kind::TxDone {
            return self.nodes[node as usize].on_tx_done(now, port, &mut Outbox { core, node: NodeId(node) });
        }
        core.free_slots.push(number as u32);
        let arrival = if looks_ahead { core.arrivals[number as usize] } else { now };
        let place = &mut core.in_flight[number as usize];
        if let (false, Some(frame)) = (is_switch, &mut *place) {
            frame.show_mark();
        }
        let Some(frame) = place.take() else { return };
        self.nodes[node as usize].on_frame(arrival, port, frame, &mut Outbox { core, node: NodeId(node) });
    }

    /// Does all that is due before the events at `at`.
    fn attend(&mut self, at: Time) -> Result<(), SimError> {
        while let Some(due) = self.agenda.take(at) {
            match due {
                Due::Change(now, number) => {
                    let (link, way, change) = self.changes[number as usize];
                    let ports = self.links[link.0 as usize];
                    for port in &ports[way.directions()] {
                        self.core.settle_renewals(*port, now);
                        let side = &mut self.core.sides[*port as usize];
                        self.core.ports[*port as usize].out.change(&mut side.wire, change);
                        self.settle_side(*port);
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
        for name in &self.core.names[self.trace_names.len()..] {
            self.trace_names.push(trace.name_number(name));
        }
        for (node, name) in self.nodes.iter_mut().zip(&self.trace_names) {
            trace.begin_known(now, *name);
            node.sample(now, trace);
        }
        Ok(trace.check()?)
    }

    pub fn now(&self) -> Time {
        self.core.now
    }

    /// Events handled so far.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// Data packets that have crossed a link, each counted once a link.
    pub fn traversals(&self) -> u64 {
        self.core.ports.iter().map(|port| port.out.data_frames).sum()
    }

    /// The two directions of a link as they are now: first from `a` to `b` as given to `connect`.
    pub fn link_params(&self, link: LinkId) -> [LinkParams; 2] {
        self.links[link.0 as usize].map(|port| self.core.sides[port as usize].wire.params)
    }

    pub fn node_name(&self, id: NodeId) -> &str {
        &self.core.names[id.0 as usize]
    }

    /// The node and port at the other end of a port's link; `None` if none is connected.
    pub fn peer(&self, node: NodeId, port: PortId) -> Option<(NodeId, PortId)> {
        let here = &self.core.ports[self.core.port_index(node, port)? as usize];
        let there = &self.core.owners[here.peer as usize];
        Some((NodeId(there.node), there.number))
    }

    /// The node as what it was when it was added; `None` if it is of another type.
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

    /// What the two directions of a link have seen: first from `a` to `b` as given to `connect`.
    pub fn link_stats(&self, link: LinkId) -> [LinkStats; 2] {
        self.links[link.0 as usize]
            .map(|port| self.core.ports[port as usize].out.stats(&self.core.sides[port as usize].wire))
    }
}
