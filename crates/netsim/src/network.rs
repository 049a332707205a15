// SPDX-License-Identifier: Apache-2.0
//! All parts of a simulation except its nodes: time, event queue, ports and links, frames in transit.
//! Promise: the link decides whether a sent frame arrives; memory is reused, not allocated, per event.
//! Source: ARCHITECTURE.md, "Time"; the order of events is documented at `Node`.

use crate::capture::CaptureSink;
use crate::error::SimError;
use crate::frame::{Frame, Spare};
use crate::link::LinkParams;
use crate::port::{NodeId, Owner, Port, PortId, Side, NO_TAP};
use crate::queue::{EventQueue, Key};
use crate::renewal::PauseRenewal;
use crate::units::Time;

/// The kind of an event, in the order of events at one instant; see `Node`. The key of an event also has the number of
/// its port (timers: of its node). One more number is a frame's place or a timer's token.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum EventKind {
    Deliver = 0,
    TxDone = 1,
    Timer = 2,
}

impl EventKind {
    const INDEX_BITS: u32 = 24;

    fn rank(self, index: u32) -> u32 {
        (self as u32) << Self::INDEX_BITS | index
    }

    pub(crate) fn of_rank(rank: u32) -> (EventKind, u32) {
        let kind = match rank >> Self::INDEX_BITS {
            0 => EventKind::Deliver,
            1 => EventKind::TxDone,
            _ => EventKind::Timer,
        };
        (kind, rank & ((1 << Self::INDEX_BITS) - 1))
    }
}

/// Everything but the nodes, so that a node can be called with all the rest in its hands.
pub(crate) struct Network {
    pub(crate) now: Time,
    pub(crate) stopped: bool,
    pub(crate) queue: EventQueue<u64>,
    pub(crate) sequence: u64,
    pub(crate) ports: Vec<Port>,
    /// One for each port.
    pub(crate) owners: Vec<Owner>,
    pub(crate) sides: Vec<Side>,
    /// Global port number by node and port, `NO_PORT` where nothing is connected; that of each node's port 0 also in an
    /// array of its own.
    pub(crate) port_of: Vec<Vec<u32>>,
    pub(crate) port_zero: Vec<u32>,
    /// Frames on their way, and when the last bits arrive of those that are handed over before.
    pub(crate) in_flight: Vec<Option<Frame>>,
    pub(crate) arrivals: Vec<Time>,
    pub(crate) free_slots: Vec<u32>,
    /// See `Outbox::recycle`.
    pub(crate) spare: Spare,
    pub(crate) names: Vec<String>,
    pub(crate) error: Option<SimError>,
    pub(crate) capture: Option<CaptureSink>,
    /// The longest time after its end at which a node may still hand a frame over.
    pub(crate) longest_lag: Time,
}

pub(crate) const NO_PORT: u32 = u32::MAX;

impl Default for Network {
    fn default() -> Self {
        Network {
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
            names: Vec::new(),
            error: None,
            capture: None,
            longest_lag: Time::ZERO,
        }
    }
}

impl Network {
    #[inline(always)]
    pub(crate) fn schedule(&mut self, at: Time, kind: EventKind, index: u32, number: u64) {
        self.queue.push(Key::new(at.0, kind.rank(index), self.sequence), number);
        self.sequence += 1;
    }

    pub(crate) fn port_index(&self, node: NodeId, port: PortId) -> Option<u32> {
        let index = match port.0 {
            0 => self.port_zero[node.0 as usize],
            port => *self.port_of[node.0 as usize].get(usize::from(port))?,
        };
        (index != NO_PORT).then_some(index)
    }

    /// The pause that leaves a port by its number in `ports`.
    pub(crate) fn renewal(&mut self, index: u32) -> PauseRenewal<'_> {
        let (port, side) = (&mut self.ports[index as usize], &mut self.sides[index as usize]);
        PauseRenewal { state: &mut side.renewal, out: &mut port.out, wire: &mut side.wire, is_plain: port.is_plain }
    }

    /// The pause that a node keeps up at the other end of a port's link.
    pub(crate) fn sent_pause(&mut self, node: NodeId, port: PortId) -> Option<PauseRenewal<'_>> {
        let index = self.port_index(node, port)?;
        Some(self.renewal(index))
    }

    /// The pause that the other end keeps up at a port.
    pub(crate) fn received_pause(&mut self, node: NodeId, port: PortId) -> Option<PauseRenewal<'_>> {
        let index = self.port_index(node, port)?;
        Some(self.renewal(self.ports[index as usize].peer))
    }

    /// Something of a port's `Side` has changed.
    pub(crate) fn settle_side(&mut self, index: u32) {
        let side = &mut self.sides[index as usize];
        let is_plain = side.is_plain();
        self.ports[index as usize].is_plain = is_plain;
        if is_plain {
            return;
        }
        let tokens = side.renewal.tokens();
        side.renewal.leave();
        for (port, token) in [index, self.ports[index as usize].peer].into_iter().zip(tokens) {
            if let Some(token) = token {
                self.set_timer(self.owners[port as usize].node, self.now, token);
            }
        }
    }

    pub(crate) fn link_of(&self, node: NodeId, port: PortId) -> Option<&LinkParams> {
        self.port_index(node, port).map(|index| &self.sides[index as usize].wire.params)
    }

    pub(crate) fn time_on_link(&self, node: NodeId, port: PortId, bytes: u64) -> Option<Time> {
        let index = self.port_index(node, port)? as usize;
        Some(self.ports[index].out.time_for(&self.sides[index].wire, bytes))
    }

    pub(crate) fn set_timer(&mut self, node: NodeId, at: Time, token: u64) {
        self.schedule(at.max(self.now), EventKind::Timer, node.0, token);
    }

    pub(crate) fn tx_done_when_free(&mut self, node: NodeId, port: PortId) {
        if let Some(index) = self.port_index(node, port) {
            let at = self.ports[index as usize].out.busy_until.max(self.now);
            self.schedule(at, EventKind::TxDone, index, 0);
        }
    }

    pub(crate) fn fail(&mut self, node: NodeId, source: Box<dyn std::error::Error + Send + Sync>) {
        let node = self.names[node.0 as usize].clone();
        self.set_error(SimError::Node { node, at: self.now, source });
    }

    /// Keeps the first error: later ones are usually its consequences.
    pub(crate) fn set_error(&mut self, error: SimError) {
        self.error.get_or_insert(error);
        self.stopped = true;
    }

    /// Puts a frame on a link; `reports` requests `Node::on_tx_done` for nodes that do not always get it.
    pub(crate) fn transmit(&mut self, node: NodeId, port: PortId, start: Time, frame: Frame, reports: bool) -> Time {
        let Some(index) = self.port_index(node, port) else {
            let node = self.names[node.0 as usize].clone();
            self.set_error(SimError::NoLink { node, port: port.0 });
            return start;
        };
        let (sender, side) = (&mut self.ports[index as usize], &mut self.sides[index as usize]);
        let serialisation = sender.out.occupy(&mut side.wire, start, &frame);
        let (peer, free_at, arrival) = (sender.peer, sender.out.busy_until, sender.out.arrival());
        let is_plain = sender.is_plain;
        if sender.reports_tx_done || reports {
            self.schedule(free_at.max(self.now), EventKind::TxDone, index, 0);
        }
        if is_plain && arrival >= self.now {
            self.hand_over(peer, arrival, frame);
        } else {
            self.transmit_aside(node, index, serialisation, arrival, frame);
        }
        free_at
    }

    /// The rest of `transmit` for a port that is not plain: capture, faults, hand-over ahead of time.
    #[inline(never)]
    fn transmit_aside(&mut self, node: NodeId, index: u32, serialisation: Time, arrival: Time, mut frame: Frame) {
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
    pub(crate) fn deliver(&mut self, sender: NodeId, port: u32, arrival: Time, warning: Time, frame: Frame) {
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
        self.schedule(at, EventKind::Deliver, port, slot.into());
        slot
    }
}
