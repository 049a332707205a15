// SPDX-License-Identifier: Apache-2.0
//! The event engine: nodes, links between their ports, one queue of events.
//! Promise: one seed and one set of nodes give one run, event for event; memory is reused, not allocated, per event.
//! Source: design.md section 4 (Time, Nodes); the order of events is documented at `Node`.

use std::any::Any;

use crate::link::{Direction, LinkParams, LinkStats};
use crate::node::{Frame, Node, NodeId, Outbox, PortId};
use crate::queue::{EventQueue, Key};
use crate::rng::Stream;
use crate::trace::{TraceError, TraceSink};
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

#[derive(Debug, Clone, Copy)]
enum Event {
    Deliver { slot: u32 },
    TxDone { port: u32 },
    Timer { node: u32, token: u64 },
}

/// The order of events at one instant; see `Node`.
#[derive(Clone, Copy)]
enum Rank {
    Deliver = 0,
    TxDone = 1,
    Timer = 2,
}

impl Rank {
    const INDEX_BITS: u32 = 24;

    fn of(self, index: u32) -> u32 {
        (self as u32) << Self::INDEX_BITS | index
    }
}

/// One end of a link: the direction that leaves the port, and where it leads.
#[derive(Debug)]
struct Port {
    node: u32,
    number: PortId,
    peer: u32,
    peer_lookahead: Time,
    wants_tx_done: bool,
    out: Direction,
}

/// A frame on its way.
#[derive(Debug)]
struct InFlight {
    frame: Frame,
    arrival: Time,
    port: u32,
}

/// Everything but the nodes, so that a node can be called with all the rest in its hands.
pub(crate) struct Core {
    pub(crate) now: Time,
    pub(crate) stopped: bool,
    queue: EventQueue<Event>,
    sequence: u64,
    ports: Vec<Port>,
    /// Global port number by node and port, `NO_PORT` where nothing is connected.
    port_of: Vec<Vec<u32>>,
    in_flight: Vec<Option<InFlight>>,
    free_slots: Vec<u32>,
    names: Vec<String>,
    error: Option<SimError>,
}

const NO_PORT: u32 = u32::MAX;

impl Core {
    fn schedule(&mut self, at: Time, rank: u32, event: Event) {
        self.queue.push(Key::new(at.0, rank, self.sequence), event);
        self.sequence += 1;
    }

    fn port_index(&self, node: NodeId, port: PortId) -> Option<u32> {
        let index = *self.port_of[node.0 as usize].get(usize::from(port.0))?;
        (index != NO_PORT).then_some(index)
    }

    pub(crate) fn link_of(&self, node: NodeId, port: PortId) -> Option<&LinkParams> {
        self.port_index(node, port).map(|index| &self.ports[index as usize].out.params)
    }

    pub(crate) fn set_timer(&mut self, node: NodeId, at: Time, token: u64) {
        let event = Event::Timer { node: node.0, token };
        self.schedule(at.max(self.now), Rank::Timer.of(node.0), event);
    }

    pub(crate) fn fail(&mut self, node: NodeId, source: Box<dyn std::error::Error + Send + Sync>) {
        let node = self.names[node.0 as usize].clone();
        self.set_error(SimError::Node { node, at: self.now, source });
    }

    /// Keeps the first error: what follows is mostly its consequence.
    fn set_error(&mut self, error: SimError) {
        self.error.get_or_insert(error);
        self.stopped = true;
    }

    pub(crate) fn transmit(&mut self, node: NodeId, port: PortId, start: Time, mut frame: Frame) -> Time {
        let Some(index) = self.port_index(node, port) else {
            let node = self.names[node.0 as usize].clone();
            self.set_error(SimError::NoLink { node, port: port.0 });
            return start;
        };
        let sender = &mut self.ports[index as usize];
        let passage = sender.out.pass(start, &mut frame);
        let (peer, lookahead, free_at) = (sender.peer, sender.peer_lookahead, sender.out.busy_until);
        if sender.wants_tx_done {
            self.schedule(free_at.max(self.now), Rank::TxDone.of(index), Event::TxDone { port: index });
        }
        let warning = if lookahead > Time::ZERO { lookahead + passage.serialisation } else { Time::ZERO };
        let copy = passage.duplicate.map(|arrival| (arrival, frame.clone()));
        if let Some(arrival) = passage.arrival {
            self.deliver(node, peer, arrival, warning, frame);
        }
        if let Some((arrival, frame)) = copy {
            self.deliver(node, peer, arrival, warning, frame);
        }
        free_at
    }

    /// Schedules the hand-over of a frame to global port `port`, `warning` before its last bit is in.
    fn deliver(&mut self, sender: NodeId, port: u32, arrival: Time, warning: Time, frame: Frame) {
        if arrival < self.now + warning {
            let node = self.names[sender.0 as usize].clone();
            let left = arrival.saturating_sub(self.ports[port as usize].out.params.delay);
            return self.set_error(SimError::LateFrame { node, left, now: self.now });
        }
        let flight = Some(InFlight { frame, arrival, port });
        let slot = match self.free_slots.pop() {
            Some(slot) => {
                self.in_flight[slot as usize] = flight;
                slot
            }
            None => {
                self.in_flight.push(flight);
                self.in_flight.len() as u32 - 1
            }
        };
        self.schedule(arrival - warning, Rank::Deliver.of(port), Event::Deliver { slot });
    }
}

/// A simulation.
pub struct Engine {
    seed: u64,
    core: Core,
    nodes: Vec<Box<dyn Node>>,
    links: Vec<[u32; 2]>,
    trace: Option<Tracing>,
    started: bool,
    events: u64,
}

struct Tracing {
    sink: TraceSink,
    interval: Time,
    next: Time,
}

impl Engine {
    /// An empty simulation; every random stream in it is derived from `seed`.
    pub fn new(seed: u64) -> Self {
        let core = Core {
            now: Time::ZERO,
            stopped: false,
            queue: EventQueue::new(),
            sequence: 0,
            ports: Vec::new(),
            port_of: Vec::new(),
            in_flight: Vec::new(),
            free_slots: Vec::new(),
            names: Vec::new(),
            error: None,
        };
        Engine { seed, core, nodes: Vec::new(), links: Vec::new(), trace: None, started: false, events: 0 }
    }

    /// Adds a node. Its name appears in traces and errors and seeds the faults of its links.
    pub fn add_node(&mut self, name: impl Into<String>, node: Box<dyn Node>) -> NodeId {
        self.nodes.push(node);
        self.core.names.push(name.into());
        self.core.port_of.push(Vec::new());
        NodeId(self.nodes.len() as u32 - 1)
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
        let first = self.core.ports.len() as u32;
        self.add_port(a, b, first + 1, a_to_b);
        self.add_port(b, a, first, b_to_a);
        self.links.push([first, first + 1]);
        Ok(LinkId(self.links.len() as u32 - 1))
    }

    fn link_name(&self, from: (NodeId, PortId), to: (NodeId, PortId)) -> String {
        let end = |(node, port): (NodeId, PortId)| format!("{}:{}", self.core.names[node.0 as usize], port.0);
        format!("{}>{}", end(from), end(to))
    }

    fn check_link(&self, from: (NodeId, PortId), to: (NodeId, PortId), params: &LinkParams) -> Result<(), SimError> {
        if self.core.port_index(from.0, from.1).is_some() || from == to {
            let node = self.core.names[from.0 .0 as usize].clone();
            return Err(SimError::PortTaken { node, port: from.1 .0 });
        }
        if params.rate.bits_per_second() == 0 {
            return Err(SimError::NoRate { link: self.link_name(from, to) });
        }
        let lag = self.nodes[from.0 .0 as usize].egress_lag();
        let lookahead = self.nodes[to.0 .0 as usize].ingress_lookahead();
        if params.delay < lag + lookahead {
            let link = self.link_name(from, to);
            return Err(SimError::DelayTooShort { link, delay: params.delay, needed: lag + lookahead });
        }
        Ok(())
    }

    fn add_port(&mut self, from: (NodeId, PortId), to: (NodeId, PortId), peer: u32, params: LinkParams) {
        let random = Stream::new(self.seed, &self.link_name(from, to));
        let (node, number) = from;
        let index = self.core.ports.len() as u32;
        self.core.ports.push(Port {
            node: node.0,
            number,
            peer,
            peer_lookahead: self.nodes[to.0 .0 as usize].ingress_lookahead(),
            wants_tx_done: self.nodes[node.0 as usize].wants_tx_done(),
            out: Direction::new(params, random),
        });
        let table = &mut self.core.port_of[node.0 as usize];
        if table.len() <= usize::from(number.0) {
            table.resize(usize::from(number.0) + 1, NO_PORT);
        }
        table[usize::from(number.0)] = index;
    }

    /// Samples every node into `sink` at 0, `interval`, 2 `interval`, ... (a zero interval never samples).
    pub fn set_trace(&mut self, sink: TraceSink, interval: Time) {
        self.trace = Some(Tracing { sink, interval, next: self.core.now });
    }

    /// Takes the trace back, to finish its file.
    pub fn take_trace(&mut self) -> Option<TraceSink> {
        self.trace.take().map(|tracing| tracing.sink)
    }

    /// Lets the simulation run until `limit` (events at `limit` included), until nothing is left to do, or until a
    /// node stops it. May be called again and again with growing limits.
    pub fn run_until(&mut self, limit: Time) -> Result<RunEnd, SimError> {
        self.start();
        while !self.core.stopped {
            let Some(at) = self.core.queue.peek().map(|key| Time(key.time_ps())) else {
                return self.end(RunEnd::Idle);
            };
            if at > limit {
                self.sample_until(limit)?;
                self.core.now = limit.max(self.core.now);
                return self.end(RunEnd::Limit);
            }
            if self.trace.as_ref().is_some_and(|trace| trace.next < at) {
                self.sample_until(Time(at.0 - 1))?;
            }
            let (key, event) = self.core.queue.pop().expect("peeked");
            self.core.now = Time(key.time_ps());
            self.events += 1;
            self.dispatch(event);
        }
        self.core.stopped = false;
        self.end(RunEnd::Stopped)
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
    }

    fn dispatch(&mut self, event: Event) {
        let core = &mut self.core;
        let now = core.now;
        match event {
            Event::Deliver { slot } => {
                let flight = core.in_flight[slot as usize].take().expect("a slot is delivered once");
                core.free_slots.push(slot);
                let port = &core.ports[flight.port as usize];
                let (node, number) = (port.node, port.number);
                let mut out = Outbox { core, node: NodeId(node) };
                self.nodes[node as usize].on_frame(flight.arrival, number, flight.frame, &mut out);
            }
            Event::TxDone { port } => {
                let port = &core.ports[port as usize];
                let (node, number) = (port.node, port.number);
                self.nodes[node as usize].on_tx_done(now, number, &mut Outbox { core, node: NodeId(node) });
            }
            Event::Timer { node, token } => {
                self.nodes[node as usize].on_timer(now, token, &mut Outbox { core, node: NodeId(node) });
            }
        }
    }

    /// Takes all samples that are due up to and including `until`.
    fn sample_until(&mut self, until: Time) -> Result<(), SimError> {
        let Some(trace) = &mut self.trace else { return Ok(()) };
        while trace.interval > Time::ZERO && trace.next <= until {
            for (node, name) in self.nodes.iter_mut().zip(&self.core.names) {
                trace.sink.begin(trace.next, name);
                node.sample(trace.next, &mut trace.sink);
            }
            trace.sink.check()?;
            trace.next += trace.interval;
        }
        Ok(())
    }

    pub fn now(&self) -> Time {
        self.core.now
    }

    /// Events handled so far.
    pub fn events(&self) -> u64 {
        self.events
    }

    pub fn node_name(&self, id: NodeId) -> &str {
        &self.core.names[id.0 as usize]
    }

    /// The node and port at the other end of a port's link; `None` if none is connected.
    pub fn peer(&self, node: NodeId, port: PortId) -> Option<(NodeId, PortId)> {
        let here = &self.core.ports[self.core.port_index(node, port)? as usize];
        let there = &self.core.ports[here.peer as usize];
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
        self.links[link.0 as usize].map(|port| self.core.ports[port as usize].out.stats)
    }
}
