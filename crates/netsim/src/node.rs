// SPDX-License-Identifier: Apache-2.0
//! The interface of a node of the simulated network: it receives frames and timers with the time, and emits frames and
//! timers. Promise: a node sees time only through its arguments and acts only through its `Outbox`.
//! Source: ARCHITECTURE.md, "Time"; sans-IO style of quinn-proto and smoltcp.

use std::any::Any;

use penstock_wire::Packet;

use crate::frame::Frame;
use crate::link::LinkParams;
use crate::network::Network;
use crate::pause::quanta_bytes;
use crate::port::{NodeId, PortId};
use crate::renewal::PauseRenewal;
use crate::switch_stats::SwitchView;
use crate::trace::TraceSink;
use crate::units::Time;

/// A participant of the simulation: switch, host, board, tap, traffic source.
///
/// # Time
///
/// The engine calls its nodes in the order of simulated time. At equal times the order is: changes of links, then
/// frames (by receiving port), then freed ports, then timers (by node), then samples; within each of these, the order
/// in which they were asked for. The order does not depend on when a node asked, so that a windowed node (below) gives
/// the same run as one that acts at every instant.
///
/// # Windowed nodes
///
/// A node that simulates in windows of length `W`, perhaps on another thread, such as the verilated board, keeps
/// a timer at `0, W, 2W, ...`. At timer `t` it does two things:
///
/// 1. It collects what its window `[t-W, t)` emitted and hands it over by [`Outbox::transmit_at`] with the true start
///    of each frame. A frame belongs to the window in which its last bit left the node, so `start` may lie before
///    `t-W` when the frame is long; its *end* may not: `end >= now - egress_lag`, with `egress_lag == W`.
/// 2. It starts the window `[t, t+W)`, for which it must know every frame whose **first** bit arrives before `t+W`.
///    For that its `ingress_lookahead` is `W`: each frame is handed over `W` before its first bit arrives, with
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
    /// Without lookahead `at == out.now()`. With `ingress_lookahead == L > 0` the call comes when the first bit is
    /// still `L` away: `out.now() == at - (time of the frame on the wire) - L`.
    fn on_frame(&mut self, at: Time, port: PortId, frame: Frame, out: &mut Outbox);

    /// A timer set by [`Outbox::timer_at`] is due. Timers cannot be taken back: a node that changes its mind ignores
    /// stale tokens.
    fn on_timer(&mut self, now: Time, token: u64, out: &mut Outbox);

    /// The frame given to `port` has left, gap included: the next may start now.
    fn on_tx_done(&mut self, _now: Time, _port: PortId, _out: &mut Outbox) {}

    /// Called every trace interval. `TraceSink::record` writes at `now` under this node's name.
    fn sample(&mut self, _now: Time, _trace: &mut TraceSink) {}

    /// Its counters and tables, if it is a switch.
    fn as_switch(&self) -> Option<&dyn SwitchView> {
        None
    }

    /// The properties of this node that the engine needs in advance. Read when it is added and when its links are
    /// connected, and always the same.
    fn terms(&self) -> NodeTerms {
        NodeTerms::default()
    }
}

/// The contract between a node and the engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NodeTerms {
    /// Whether [`Node::on_tx_done`] is called for every frame; without it only where [`Outbox::tx_done_when_free`]
    /// asks.
    pub reports_tx_done: bool,
    /// How long before its first bit a frame is handed over.
    pub ingress_lookahead: Time,
    /// How long after its last bit has left the node a frame may still be handed over by [`Outbox::transmit_at`].
    pub egress_lag: Time,
}

impl Default for NodeTerms {
    /// Those of a node that acts at every instant and hears of each frame that has left.
    fn default() -> Self {
        NodeTerms { reports_tx_done: true, ingress_lookahead: Time::ZERO, egress_lag: Time::ZERO }
    }
}

impl NodeTerms {
    /// Nodes with their own MAC, or that rarely have more to send: they request notifications when needed.
    pub fn on_request() -> Self {
        NodeTerms { reports_tx_done: false, ..Self::default() }
    }

    /// Those of a node that simulates windows of this length (see [`Node`]).
    pub fn windowed(window: Time) -> Self {
        NodeTerms { reports_tx_done: false, ingress_lookahead: window, egress_lag: window }
    }
}

/// The queue of a node's requests to the engine.
pub struct Outbox<'a> {
    pub(crate) network: &'a mut Network,
    pub(crate) node: NodeId,
}

impl Outbox<'_> {
    /// The engine's time.
    pub fn now(&self) -> Time {
        self.network.now
    }

    /// A frame in the memory of one that was given to [`Outbox::recycle`].
    #[inline]
    pub fn frame(&mut self, packet: Packet) -> Frame {
        self.network.spare.frame(packet)
    }

    /// Takes back the memory of a frame, so that sending one does not allocate.
    #[inline]
    pub fn recycle(&mut self, frame: Frame) {
        self.network.spare.keep(frame);
    }

    /// Sends a frame now, or as soon as the port has sent its earlier frames. Returns when the port is free again
    /// (preamble, FCS and gap included).
    pub fn transmit(&mut self, port: PortId, frame: Frame) -> Time {
        self.network.transmit(self.node, port, self.network.now, frame, false)
    }

    /// [`Self::transmit`], and [`Self::tx_done_when_free`] if `reports`.
    #[inline]
    pub(crate) fn transmit_and(&mut self, port: PortId, frame: Frame, reports: bool) -> Time {
        self.network.transmit(self.node, port, self.network.now, frame, reports)
    }

    /// Sends a frame whose preamble begins at `start`, which may lie in the past for a windowed node (see [`Node`])
    /// or in the future; delayed if the port is busy then. Starts on one port must not go backwards. Returns when
    /// the port is free again.
    pub fn transmit_at(&mut self, start: Time, port: PortId, frame: Frame) -> Time {
        self.network.transmit(self.node, port, start, frame, false)
    }

    /// Requests one `on_tx_done(port)` when the port has sent its present frames: for nodes that are not notified of
    /// every frame ([`NodeTerms::reports_tx_done`]).
    pub fn tx_done_when_free(&mut self, port: PortId) {
        self.network.tx_done_when_free(self.node, port);
    }

    /// Requests `on_timer(at, token)`. A time in the past fires at once.
    pub fn timer_at(&mut self, at: Time, token: u64) {
        self.network.set_timer(self.node, at, token);
    }

    /// The link that leaves `port`, if one is connected.
    pub fn link(&self, port: PortId) -> Option<&LinkParams> {
        self.network.link_of(self.node, port)
    }

    /// The time of this number of bytes on the link that leaves `port`, if one is connected.
    pub(crate) fn time_on_link(&self, port: PortId, bytes: u64) -> Option<Time> {
        self.network.time_on_link(self.node, port, bytes)
    }

    /// The duration of a pause of this number of quanta received at `port`.
    #[inline]
    pub(crate) fn pause_time(&self, port: PortId, quanta: u16) -> Option<Time> {
        self.time_on_link(port, quanta_bytes(quanta))
    }

    /// The pause that this node keeps up at the other end of a port's link, if one is connected.
    pub(crate) fn sent_pause(&mut self, port: PortId) -> Option<PauseRenewal<'_>> {
        self.network.sent_pause(self.node, port)
    }

    /// The pause that the other end of a port's link keeps up here, if one is connected.
    pub(crate) fn received_pause(&mut self, port: PortId) -> Option<PauseRenewal<'_>> {
        self.network.received_pause(self.node, port)
    }

    /// Ends the run after this event: `Engine::run_until` returns `RunEnd::Stopped`.
    pub fn stop(&mut self) {
        self.network.stopped = true;
    }

    /// Ends the run with an error of this node.
    pub fn fail(&mut self, error: impl Into<Box<dyn std::error::Error + Send + Sync>>) {
        self.network.fail(self.node, error.into());
    }
}
