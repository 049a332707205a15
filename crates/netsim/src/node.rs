// SPDX-License-Identifier: Apache-2.0
//! What a node of the simulated network is: frames and timers come in with the time, frames and timers go out.
//! Promise: a node sees time only through its arguments and acts only through its `Outbox`.
//! Source: design.md section 4 (Nodes); sans-IO style of quinn-proto and smoltcp.

use std::any::Any;

use penstock_wire::{MacControl, Packet};

use crate::engine::Core;
use crate::link::LinkParams;
use crate::trace::TraceSink;
use crate::units::Time;

/// A node of one engine, in the order of `Engine::add_node`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub(crate) u32);

impl NodeId {
    /// Its place among the nodes, as in `Engine::into_nodes`.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A port of one node, numbered from 0 by the node itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PortId(pub u16);

/// What travels on a link: the packet, and whether the frame check sequence will be right on arrival.
#[derive(Debug, Clone)]
pub struct Frame {
    pub packet: Packet,
    /// False after bit errors that the Ethernet FCS catches; a receiver counts such a frame and drops it.
    pub fcs_ok: bool,
}

impl Frame {
    pub fn new(packet: Packet) -> Self {
        Frame { packet, fcs_ok: true }
    }
}

/// A participant of the simulation: switch, host, board, tap, traffic source.
///
/// # Time
///
/// The engine calls its nodes in the order of simulated time. At equal times the order is: changes of links, then frames
/// (by receiving port), then freed ports, then timers (by node), then samples; within each of these, the order in which
/// they were asked for. The order does not depend on when a node asked, so that a windowed node (below) gives the same
/// run as one that acts at every instant.
///
/// # Windowed nodes
///
/// A node that simulates in windows of length `W`, perhaps on another thread, such as the verilated board, keeps
/// a timer at `0, W, 2W, ...`. At timer `t` it does two things:
///
/// 1. It collects what its window `[t-W, t)` emitted and hands it over by [`Outbox::transmit_at`] with the true start
///    of each frame. A frame belongs to the window in which its last bit left the node, so `start` may lie before
///    `t-W` when the frame is long; its *end* may not: `end >= now - egress_lag()`, with `egress_lag() == W`.
/// 2. It starts the window `[t, t+W)`, for which it must know every frame whose **first** bit arrives before `t+W`.
///    For that it returns `ingress_lookahead() == W`: each frame is handed over `W` before its first bit arrives, with
///    the time at which its last bit arrives. All frames of the window have been handed over when timer `t` fires,
///    those that begin at exactly `t+W` perhaps too: the node keeps frames until their time has come.
///
/// Both rest on the delay of the link: nothing sent now can be heard before `delay` has passed. `Engine::connect`
/// refuses a link whose delay is shorter than the sender's `egress_lag` plus the receiver's `ingress_lookahead`, and
/// a frame that nevertheless comes too late ends the run with `SimError::LateFrame`. Between a windowed and an
/// ordinary node `W <= delay`.
pub trait Node: Any {
    /// Called once, at time 0, before any other event: the place to set first timers.
    fn on_start(&mut self, _out: &mut Outbox) {}

    /// A frame arrives at `port`; its last bit is in at `at`.
    ///
    /// Without lookahead `at == out.now()`. With `ingress_lookahead() == L > 0` the call comes when the first bit is
    /// still `L` away: `out.now() == at - (time of the frame on the wire) - L`.
    fn on_frame(&mut self, at: Time, port: PortId, frame: Frame, out: &mut Outbox);

    /// A MAC control frame has begun to leave the other end of the link and will be in at `at`. A node to which it will
    /// make no difference before `at` may take it now, count it, and answer true: most pause frames only renew a pause, and
    /// this saves an event for each. Otherwise `on_frame` comes at `at`. Only asked where nothing can happen to the frame.
    fn on_control_ahead(&mut self, _at: Time, _port: PortId, _control: &MacControl, _out: &mut Outbox) -> bool {
        false
    }

    /// A timer set by [`Outbox::timer_at`] is due. Timers cannot be taken back: a node that changes its mind ignores
    /// stale tokens.
    fn on_timer(&mut self, now: Time, token: u64, out: &mut Outbox);

    /// The frame given to `port` has left, gap included: the next may start now. Called for every frame unless
    /// [`Node::wants_tx_done`] says no.
    fn on_tx_done(&mut self, _now: Time, _port: PortId, _out: &mut Outbox) {}

    /// Whether [`Node::on_tx_done`] should be called. Asked once, when a link is connected. Nodes that simulate their
    /// own MAC say no.
    fn wants_tx_done(&self) -> bool {
        true
    }

    /// How long before its first bit a frame is handed over. Asked once, when a link is connected.
    fn ingress_lookahead(&self) -> Time {
        Time::ZERO
    }

    /// How long after its last bit has left the node a frame may still be handed over by [`Outbox::transmit_at`].
    /// Asked once, when a link is connected.
    fn egress_lag(&self) -> Time {
        Time::ZERO
    }

    /// Called every trace interval. `TraceSink::record` writes at `now` under this node's name.
    fn sample(&mut self, _now: Time, _trace: &mut TraceSink) {}
}

/// Where a node puts what it wants done.
pub struct Outbox<'a> {
    pub(crate) core: &'a mut Core,
    pub(crate) node: NodeId,
}

impl Outbox<'_> {
    /// The engine's time.
    pub fn now(&self) -> Time {
        self.core.now
    }

    /// Sends a frame now, or as soon as the port has sent what it was given before. Returns when the port is free again
    /// (preamble, FCS and gap included).
    pub fn transmit(&mut self, port: PortId, frame: Frame) -> Time {
        self.core.transmit(self.node, port, self.core.now, frame)
    }

    /// Sends a frame whose preamble begins at `start`, which may lie in the past for a windowed node (see [`Node`])
    /// or in the future; delayed if the port is busy then. Starts on one port must not go backwards. Returns when
    /// the port is free again.
    pub fn transmit_at(&mut self, start: Time, port: PortId, frame: Frame) -> Time {
        self.core.transmit(self.node, port, start, frame)
    }

    /// Asks for one `on_tx_done(port)` when the port has sent what it was given so far. For nodes whose
    /// [`Node::wants_tx_done`] says no, since they seldom have more to send.
    pub fn tx_done_when_free(&mut self, port: PortId) {
        self.core.tx_done_when_free(self.node, port);
    }

    /// Asks for `on_timer(at, token)`. A time already gone fires at once.
    pub fn timer_at(&mut self, at: Time, token: u64) {
        self.core.set_timer(self.node, at, token);
    }

    /// The link that leaves `port`, if one is connected.
    pub fn link(&self, port: PortId) -> Option<&LinkParams> {
        self.core.link_of(self.node, port)
    }

    /// How long so many bytes take on the link that leaves `port`, if one is connected.
    pub(crate) fn time_on_link(&self, port: PortId, bytes: u64) -> Option<Time> {
        self.core.time_on_link(self.node, port, bytes)
    }

    /// Ends the run after this event: `Engine::run_until` returns `RunEnd::Stopped`.
    pub fn stop(&mut self) {
        self.core.stopped = true;
    }

    /// Ends the run with an error of this node.
    pub fn fail(&mut self, error: impl Into<Box<dyn std::error::Error + Send + Sync>>) {
        self.core.fail(self.node, error.into());
    }
}
