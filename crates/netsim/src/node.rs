// SPDX-License-Identifier: Apache-2.0
//! What a node of the simulated network is: frames and timers come in with the time, frames and timers go out.
//! Promise: a node sees time only through its arguments and acts only through its `Outbox`.
//! Source: ARCHITECTURE.md, "Time"; sans-IO style of quinn-proto and smoltcp.

use std::any::Any;
use std::net::Ipv4Addr;

use penstock_wire::{Ecn, FiveTuple, MacControl, Packet, MIN_FRAME_LEN, WIRE_OVERHEAD};

use crate::engine::Core;
use crate::link::LinkParams;
use crate::pause::quanta_bytes;
use crate::prefetch::prefetch;
use crate::renewal::{Arrived, Renewed};
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

/// What travels on a link: the packet, and whether the frame check sequence will be right on arrival. It is handed from
/// node to node by value, so the packet lies elsewhere and what every hop asks of it is kept here.
#[derive(Debug, Clone)]
pub struct Frame {
    packet: Box<Packet>,
    frame_len: u32,
    /// Of what a station has sent: whose it is, where to, and in which class.
    flow: FiveTuple,
    dscp: u8,
    /// Notes of the switch that holds it: the port it came in by, and its class.
    pub(crate) ingress: u16,
    pub(crate) class: u8,
    /// All that is yes or no, in one byte: so it is copied by whole words, as often as a frame is.
    traits: Traits,
}

/// Some of the constants, as a sum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Traits(u8);

impl Traits {
    const NONE: u8 = 0;
    /// RoCE or TCP: `flow` and `dscp` hold.
    const ADDRESSED: u8 = 1;
    /// A pause or PFC frame.
    const CONTROL: u8 = 1 << 1;
    const CARRIES_DATA: u8 = 1 << 2;
    const ECN_CAPABLE: u8 = 1 << 3;
    /// A switch has said congestion experienced, which the packet does not show yet.
    const MARKED: u8 = 1 << 4;
    /// There were bit errors that the Ethernet FCS catches.
    const BAD_FCS: u8 = 1 << 5;

    #[inline]
    fn has(self, flag: u8) -> bool {
        self.0 & flag != 0
    }

    #[inline]
    fn set(&mut self, flag: u8, on: bool) {
        self.0 = self.0 & !flag | if on { flag } else { 0 };
    }

    /// Of a packet with addresses.
    fn addressed(has_payload: bool, is_ecn_capable: bool) -> u8 {
        let data = if has_payload { Self::CARRIES_DATA } else { 0 };
        let ecn = if is_ecn_capable { Self::ECN_CAPABLE } else { 0 };
        Self::ADDRESSED | data | ecn
    }
}

/// Stands for the flow of a frame that says nothing of one.
const NO_FLOW: FiveTuple =
    FiveTuple { src: Ipv4Addr::UNSPECIFIED, dst: Ipv4Addr::UNSPECIFIED, protocol: 0, sport: 0, dport: 0 };

/// So many places are kept of frames that were received.
const SPARE: usize = 1 << 16;

impl Frame {
    pub fn new(packet: Packet) -> Self {
        Frame::boxed(Box::new(packet))
    }

    #[inline]
    fn boxed(packet: Box<Packet>) -> Self {
        let (dscp, traits) = match &*packet {
            Packet::Roce(packet) => {
                (packet.dscp, Traits::addressed(!packet.payload.is_empty(), packet.ecn.is_capable()))
            }
            Packet::Tcp(packet) => {
                (packet.dscp, Traits::addressed(!packet.payload.is_empty(), packet.ecn.is_capable()))
            }
            Packet::MacControl { .. } => (0, Traits::CONTROL),
            Packet::Cnm(_) | Packet::Raw(_) => (0, Traits::NONE),
        };
        let traits = Traits(traits);
        let flow = if traits.has(Traits::ADDRESSED) { FiveTuple::of(&packet) } else { None };
        let frame_len = packet.frame_len() as u32;
        Frame { packet, frame_len, flow: flow.unwrap_or(NO_FLOW), dscp, ingress: 0, class: 0, traits }
    }

    /// With a frame check sequence that is right or not.
    pub fn with_fcs(mut self, fcs_ok: bool) -> Self {
        self.traits.set(Traits::BAD_FCS, !fcs_ok);
        self
    }

    /// False after bit errors that the Ethernet FCS catches; a receiver counts such a frame and drops it.
    #[inline]
    pub fn fcs_ok(&self) -> bool {
        !self.traits.has(Traits::BAD_FCS)
    }

    /// There were bit errors.
    pub(crate) fn spoil_fcs(&mut self) {
        self.traits.set(Traits::BAD_FCS, true);
    }

    pub fn packet(&self) -> &Packet {
        &self.packet
    }

    pub fn into_packet(self) -> Packet {
        *self.packet
    }

    /// Whether it is a pause or PFC frame.
    #[inline]
    pub(crate) fn is_control(&self) -> bool {
        self.traits.has(Traits::CONTROL)
    }

    /// Flow and DSCP of what a station has sent, without a look at the packet.
    #[inline]
    pub(crate) fn addressed(&self) -> Option<(&FiveTuple, u8)> {
        self.traits.has(Traits::ADDRESSED).then_some((&self.flow, self.dscp))
    }

    #[inline]
    pub(crate) fn is_ecn_capable(&self) -> bool {
        self.traits.has(Traits::ECN_CAPABLE)
    }

    /// For a frame that will soon be looked into: what of the packet a receiver asks first.
    #[inline]
    pub(crate) fn prefetch_packet(&self) {
        prefetch(&*self.packet);
    }

    /// Says congestion experienced, of a frame that is capable of it. The packet shows it when `show_mark` was called, which
    /// the engine does for everyone but switches: the packet is long out of the cache at most hops.
    #[inline]
    pub(crate) fn mark(&mut self) {
        self.traits.set(Traits::MARKED, true);
    }

    #[inline]
    pub(crate) fn show_mark(&mut self) {
        if !self.traits.has(Traits::MARKED) {
            return;
        }
        self.traits.set(Traits::MARKED, false);
        match &mut *self.packet {
            Packet::Roce(packet) => packet.ecn = Ecn::Ce,
            Packet::Tcp(packet) => packet.ecn = Ecn::Ce,
            Packet::Cnm(_) | Packet::MacControl { .. } | Packet::Raw(_) => {}
        }
    }

    /// `Packet::frame_len`.
    #[inline]
    pub fn frame_len(&self) -> usize {
        self.frame_len as usize
    }

    /// `Packet::wire_len`.
    #[inline]
    pub fn wire_len(&self) -> usize {
        self.frame_len().max(MIN_FRAME_LEN) + WIRE_OVERHEAD
    }

    /// Whether it counts as a data packet.
    #[inline]
    pub(crate) fn carries_data(&self) -> bool {
        self.traits.has(Traits::CARRIES_DATA)
    }
}

/// What received frames lay in, for those that will be sent.
#[derive(Default)]
pub(crate) struct Spare(#[allow(clippy::vec_box)] Vec<Box<Packet>>);

impl Spare {
    #[inline]
    fn frame(&mut self, packet: Packet) -> Frame {
        match self.0.pop() {
            Some(mut place) => {
                *place = packet;
                Frame::boxed(place)
            }
            None => Frame::new(packet),
        }
    }

    #[inline]
    pub(crate) fn keep(&mut self, frame: Frame) {
        // Some nodes only send and others only receive.
        if self.0.len() < SPARE {
            self.0.push(frame.packet);
        }
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

    /// Whether it asks for pauses that the other end of its link renews by itself ([`Outbox::arrived`]) before it believes a
    /// pause to be over. Asked once, when a link is connected.
    fn takes_renewals(&self) -> bool {
        false
    }

    /// The run pauses: the place to count what ports have renewed by themselves, at either end of a link.
    fn on_renewals(&mut self, _port: PortId, _out: &mut Outbox) {}

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

    /// The next event is probably this node's: the place to fetch memory that has not been looked at for long.
    fn prefetch(&self) {}

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

    /// A frame in the memory of one that was given to [`Outbox::recycle`].
    #[inline]
    pub fn frame(&mut self, packet: Packet) -> Frame {
        self.core.spare.frame(packet)
    }

    /// Takes back what a frame lay in, so that sending one does not allocate.
    #[inline]
    pub fn recycle(&mut self, frame: Frame) {
        self.core.spare.keep(frame);
    }

    /// Sends a frame now, or as soon as the port has sent what it was given before. Returns when the port is free again
    /// (preamble, FCS and gap included).
    pub fn transmit(&mut self, port: PortId, frame: Frame) -> Time {
        self.core.transmit(self.node, port, self.core.now, frame, false)
    }

    /// [`Self::transmit`], and [`Self::tx_done_when_free`] if `tell`.
    #[inline]
    pub(crate) fn transmit_and(&mut self, port: PortId, frame: Frame, tell: bool) -> Time {
        self.core.transmit(self.node, port, self.core.now, frame, tell)
    }

    /// Sends a frame whose preamble begins at `start`, which may lie in the past for a windowed node (see [`Node`])
    /// or in the future; delayed if the port is busy then. Starts on one port must not go backwards. Returns when
    /// the port is free again.
    pub fn transmit_at(&mut self, start: Time, port: PortId, frame: Frame) -> Time {
        self.core.transmit(self.node, port, start, frame, false)
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

    /// How long a pause of so many quanta lasts that came in by `port`.
    #[inline]
    pub(crate) fn pause_time(&self, port: PortId, quanta: u16) -> Option<Time> {
        self.time_on_link(port, quanta_bytes(quanta))
    }

    /// Repeats a PFC frame that has just been sent, at `due` and from then on whenever half the time of `pause_bytes` has
    /// passed, until [`Self::cease_renewing`]. False: here a timer must do that. If it must later on, it comes with `token`.
    pub(crate) fn renew_pause(&mut self, port: PortId, due: Time, pause_bytes: u64, token: u64) -> bool {
        self.core.renew_pause(self.node, port, due, pause_bytes, token)
    }

    pub(crate) fn cease_renewing(&mut self, port: PortId) {
        self.core.cease_renewing(self.node, port);
    }

    /// What a port that renews a pause has sent since this was last asked. To be asked before anything else is sent there.
    pub(crate) fn renewed(&mut self, port: PortId) -> Option<Renewed> {
        self.core.renewed(self.node, port)
    }

    /// What the other end of a link has sent so, if it ever has. If it goes on and at last cannot, a timer comes with `token`.
    pub(crate) fn arrived(&mut self, port: PortId, token: u64) -> Option<Arrived> {
        self.core.arrived(self.node, port, token)
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
