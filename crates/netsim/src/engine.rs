// SPDX-License-Identifier: Apache-2.0
//! The event engine: nodes, links between their ports, one queue of events.
//! Promise: one seed and one set of nodes give one run, event for event; memory is reused, not allocated, per event.
//! Source: design.md section 4 (Time, Nodes); the order of events is documented at `Node`.

use std::any::Any;

use penstock_wire::Packet;

use crate::agenda::{Agenda, Due, LinkChange, Observer, Recurring, Way};
use crate::capture::{CaptureError, CaptureSink};
use crate::link::{Direction, LinkParams, LinkStats};
use crate::node::{Frame, Node, NodeId, Outbox, PortId, Spare};
use crate::port::{Ahead, Owner, Port, Side, NO_TAP};
use crate::queue::{EventQueue, Key};
use crate::rng::Stream;
use crate::switch::Switch;
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

/// What an event is, in the order of events at one instant; see `Node`. Beside it an event has the number of its port
/// (timers: of its node), both in its key, and one more number: a frame's place, a timer's token.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Deliver = 0,
    TxDone = 1,
    Timer = 2,
}

impl Kind {
    const INDEX_BITS: u32 = 24;

    fn rank(self, index: u32) -> u32 {
        (self as u32) << Self::INDEX_BITS | index
    }

    fn of_rank(rank: u32) -> (Kind, u32) {
        let kind = match rank >> Self::INDEX_BITS {
            0 => Kind::Deliver,
            1 => Kind::TxDone,
            _ => Kind::Timer,
        };
        (kind, rank & ((1 << Self::INDEX_BITS) - 1))
    }
}

/// Everything but the nodes, so that a node can be called with all the rest in its hands.
pub(crate) struct Core {
    pub(crate) now: Time,
    pub(crate) stopped: bool,
    queue: EventQueue<u64>,
    sequence: u64,
    ports: Vec<Port>,
    /// By port.
    owners: Vec<Owner>,
    sides: Vec<Side>,
    /// Global port number by node and port, `NO_PORT` where nothing is connected; that of each node's port 0 also in an
    /// array of its own.
    port_of: Vec<Vec<u32>>,
    port_zero: Vec<u32>,
    /// Frames on their way, and when the last bits arrive of those that are handed over before.
    in_flight: Vec<Option<Frame>>,
    arrivals: Vec<Time>,
    free_slots: Vec<u32>,
    /// See `Outbox::recycle`.
    pub(crate) spare: Spare,
    /// MAC control frames that their receivers are asked about when the node that sends them is done.
    ahead: Vec<Ahead>,
    names: Vec<String>,
    error: Option<SimError>,
    capture: Option<CaptureSink>,
    /// The longest time after its end at which a node may still hand a frame over.
    longest_lag: Time,
}

const NO_PORT: u32 = u32::MAX;

impl Core {
    #[inline(always)]
    fn schedule(&mut self, at: Time, kind: Kind, index: u32, number: u64) {
        self.queue.push(Key::new(at.0, kind.rank(index), self.sequence), number);
        self.sequence += 1;
    }

    fn port_index(&self, node: NodeId, port: PortId) -> Option<u32> {
        let index = match port.0 {
            0 => self.port_zero[node.0 as usize],
            port => *self.port_of[node.0 as usize].get(usize::from(port))?,
        };
        (index != NO_PORT).then_some(index)
    }

    pub(crate) fn link_of(&self, node: NodeId, port: PortId) -> Option<&LinkParams> {
        self.port_index(node, port).map(|index| &self.sides[index as usize].wire.params)
    }

    pub(crate) fn time_on_link(&self, node: NodeId, port: PortId, bytes: u64) -> Option<Time> {
        let index = self.port_index(node, port)? as usize;
        Some(self.ports[index].out.time_for(&self.sides[index].wire, bytes))
    }

    pub(crate) fn set_timer(&mut self, node: NodeId, at: Time, token: u64) {
        self.schedule(at.max(self.now), Kind::Timer, node.0, token);
    }

    pub(crate) fn tx_done_when_free(&mut self, node: NodeId, port: PortId) {
        if let Some(index) = self.port_index(node, port) {
            let at = self.ports[index as usize].out.busy_until.max(self.now);
            self.schedule(at, Kind::TxDone, index, 0);
        }
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

    /// Puts a frame on a link; `tell` asks for `Node::on_tx_done` from nodes that do not always get it.
    pub(crate) fn transmit(&mut self, node: NodeId, port: PortId, start: Time, frame: Frame, tell: bool) -> Time {
        let Some(index) = self.port_index(node, port) else {
            let node = self.names[node.0 as usize].clone();
            self.set_error(SimError::NoLink { node, port: port.0 });
            return start;
        };
        let (sender, side) = (&mut self.ports[index as usize], &mut self.sides[index as usize]);
        let serialisation = sender.out.occupy(&mut side.wire, start, &frame);
        let (peer, free_at, arrival) = (sender.peer, sender.out.busy_until, sender.out.arrival());
        let is_plain = sender.is_plain;
        if sender.wants_tx_done || tell {
            self.schedule(free_at.max(self.now), Kind::TxDone, index, 0);
        }
        if is_plain && arrival > self.now && frame.is_control() {
            self.ahead.push(Ahead { sender: node, port: peer, arrival, frame });
        } else if is_plain && arrival >= self.now {
            self.hand_over(peer, arrival, frame);
        } else {
            self.transmit_aside(node, index, serialisation, arrival, frame);
        }
        free_at
    }

    /// The rest of `transmit` for a port that is not plain: capture, faults, hand-over ahead of time.
    fn transmit_aside(&mut self, node: NodeId, index: u32, serialisation: Time, arrival: Time, mut frame: Frame) {
        frame.show_mark();
        let (sender, side) = (&self.ports[index as usize], &mut self.sides[index as usize]);
        if let (true, Some(capture)) = (side.tap != NO_TAP, &mut self.capture) {
            let settled = self.now.saturating_sub(self.longest_lag);
            capture.record(side.tap, sender.out.busy_until, settled, frame.packet().emit());
        }
        let passage = side.wire.pass(serialisation, arrival, &mut frame);
        let (peer, lookahead) = (sender.peer, side.peer_lookahead);
        let warning = if lookahead > Time::ZERO { lookahead + serialisation } else { Time::ZERO };
        let copy = passage.duplicate.map(|arrival| (arrival, frame.clone()));
        if let Some(arrival) = passage.arrival {
            self.deliver(node, peer, arrival, warning, frame);
        }
        if let Some((arrival, frame)) = copy {
            self.deliver(node, peer, arrival, warning, frame);
        }
    }

    /// Schedules the hand-over of a frame to global port `port`, `warning` before its last bit is in.
    fn deliver(&mut self, sender: NodeId, port: u32, arrival: Time, warning: Time, frame: Frame) {
        if arrival < self.now + warning {
            let node = self.names[sender.0 as usize].clone();
            let left = arrival.saturating_sub(self.sides[port as usize].wire.params.delay);
            return self.set_error(SimError::LateFrame { node, left, now: self.now });
        }
        let slot = self.hand_over(port, arrival - warning, frame) as usize;
        if warning > Time::ZERO {
            let needed = (slot + 1).max(self.arrivals.len());
            self.arrivals.resize(needed, Time::ZERO);
            self.arrivals[slot] = arrival;
        }
    }

    /// Schedules the hand-over of a frame; returns its place among those in flight.
    #[inline(always)]
    fn hand_over(&mut self, port: u32, at: Time, frame: Frame) -> u32 {
        let slot = match self.free_slots.pop() {
            Some(slot) => {
                self.in_flight[slot as usize] = Some(frame);
                slot
            }
            None => {
                self.in_flight.push(Some(frame));
                self.in_flight.len() as u32 - 1
            }
        };
        self.schedule(at, Kind::Deliver, port, slot.into());
        slot
    }
}

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
        let core = Core {
            now: Time::ZERO,
            stopped: false,
            queue: EventQueue::new(),
            sequence: 0,
            ports: Vec::new(),
            owners: Vec::new(),
            sides: Vec::new(),
            port_of: Vec::new(),
            port_zero: Vec::new(),
            in_flight: Vec::new(),
            arrivals: Vec::new(),
            free_slots: Vec::new(),
            spare: Spare::default(),
            ahead: Vec::new(),
            names: Vec::new(),
            error: None,
            capture: None,
            longest_lag: Time::ZERO,
        };
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

    /// Adds a node. Its name appears in traces and errors and seeds the faults of its links.
    pub fn add_node(&mut self, name: impl Into<String>, node: Box<dyn Node>) -> NodeId {
        self.core.longest_lag = self.core.longest_lag.max(node.egress_lag());
        self.nodes.push(node);
        self.core.names.push(name.into());
        self.core.port_of.push(Vec::new());
        self.core.port_zero.push(NO_PORT);
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
        let (out, wire) = Direction::new(params, random);
        let [lookahead, peer_lookahead] = [from, to].map(|end| self.nodes[end.0 .0 as usize].ingress_lookahead());
        let side = Side { wire, peer_lookahead, tap: NO_TAP };
        self.core.ports.push(Port {
            out,
            peer,
            wants_tx_done: self.nodes[node.0 as usize].wants_tx_done(),
            is_plain: side.is_plain(),
        });
        let is_switch = (&*self.nodes[node.0 as usize] as &dyn Any).is::<Switch>();
        self.core.owners.push(Owner { node: node.0, number, looks_ahead: lookahead > Time::ZERO, is_switch });
        self.core.sides.push(side);
        let table = &mut self.core.port_of[node.0 as usize];
        if table.len() <= usize::from(number.0) {
            table.resize(usize::from(number.0) + 1, NO_PORT);
        }
        table[usize::from(number.0)] = index;
        if number.0 == 0 {
            self.core.port_zero[node.0 as usize] = index;
        }
    }

    /// Something of a port's `Side` has changed.
    fn settle_side(&mut self, index: u32) {
        self.core.ports[index as usize].is_plain = self.core.sides[index as usize].is_plain();
    }

    /// Samples every node into `sink` at 0, `interval`, 2 `interval`, ... (a zero interval never samples).
    pub fn set_trace(&mut self, sink: TraceSink, interval: Time) {
        self.trace = Some(sink);
        self.trace_names.clear();
        self.agenda.add_periodic(self.core.now, interval, Recurring::Sample);
    }

    /// Takes the trace back, to finish its file.
    pub fn take_trace(&mut self) -> Option<TraceSink> {
        self.agenda.drop_samples();
        self.trace.take()
    }

    /// Calls `observer` at `interval`, 2 `interval`, ... after all events of that time, with the trace if there is one.
    /// It keeps nothing alive: a run that has nothing left to do ends. A zero interval never calls.
    pub fn observe(&mut self, interval: Time, observer: Observer) {
        self.agenda.add_periodic(self.core.now + interval, interval, Recurring::Observer(observer));
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
                let side = &mut self.core.sides[index as usize];
                side.tap = sink.add_interface(&name, side.wire.params.rate);
                self.settle_side(index);
            }
        }
        self.core.capture = Some(sink);
    }

    /// Takes the capture back, to finish its file.
    pub fn take_capture(&mut self) -> Option<CaptureSink> {
        self.core.sides.iter_mut().for_each(|side| side.tap = NO_TAP);
        (0..self.core.sides.len() as u32).for_each(|index| self.settle_side(index));
        self.core.capture.take()
    }

    /// The direction of a link that leaves a port, as `node:port>node:port`.
    fn direction_name(&self, port: u32) -> String {
        let end = |port: u32| {
            let owner = self.core.owners[port as usize];
            (NodeId(owner.node), owner.number)
        };
        self.link_name(end(port), end(self.core.ports[port as usize].peer))
    }

    /// Lets the simulation run until `limit` (events at `limit` included), until nothing is left to do, or until a
    /// node stops it. May be called again and again with growing limits.
    pub fn run_until(&mut self, limit: Time) -> Result<RunEnd, SimError> {
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
        let Owner { node, number: port, looks_ahead, is_switch } = core.owners[index as usize];
        if kind == Kind::TxDone {
            return self.nodes[node as usize].on_tx_done(now, port, &mut Outbox { core, node: NodeId(node) });
        }
        core.free_slots.push(number as u32);
        let arrival = if looks_ahead { core.arrivals[number as usize] } else { now };
        let Some(mut frame) = core.in_flight[number as usize].take() else { return };
        if !is_switch {
            frame.show_mark();
        }
        self.nodes[node as usize].on_frame(arrival, port, frame, &mut Outbox { core, node: NodeId(node) });
    }

    /// Does all that is due before the events at `at`.
    fn attend(&mut self, at: Time) -> Result<(), SimError> {
        while let Some(due) = self.agenda.take(at) {
            match due {
                Due::Change(number) => {
                    let (link, way, change) = self.changes[number as usize];
                    let ports = self.links[link.0 as usize];
                    for port in &ports[way.directions()] {
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
