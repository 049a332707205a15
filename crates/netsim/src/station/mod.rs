// SPDX-License-Identifier: Apache-2.0
//! A host of the laboratory: one port, and any number of endpoints that share it.
//! Promise: endpoints that have something to send take turns, higher classes first; a paused class is silent; what
//! one packet costs does not depend on how many endpoints there are; timers are few, as they are set only for what
//! comes before all those already set.
//! Source: ARCHITECTURE.md, "Time"; IEEE 802.1Q (strict priority, PFC).

mod endpoint_table;
mod limiter;
mod receiver;
mod sender;
mod tcp;

use std::collections::VecDeque;
use std::net::Ipv4Addr;

use penstock_transport::TcpConfig;
use penstock_wire::{MacAddr, MacControl, Packet, ParseError, Qpn};

use crate::flow::Endpoint;
use crate::node::{Frame, Node, Outbox, PortId};
use crate::pause::{PauseState, CLASSES};
use crate::prefetch::prefetch_all;
use crate::trace::TraceSink;
use crate::units::Time;
use endpoint_table::{EndpointTable, Key};
pub use limiter::PacingConfig;

pub use receiver::{Consumer, RcReceiver, RcReceiverConfig};
pub use sender::{RcSender, RcSenderConfig, RcSenderStats, SenderVerb};
pub use tcp::{TcpFlowConfig, TcpFlowReceiver, TcpFlowSender, TcpStack};

/// Who a station is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StationConfig {
    pub mac: MacAddr,
    pub ip: Ipv4Addr,
}

/// Why an endpoint cannot be added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum StationError {
    #[error("station {ip} has a {what} on queue pair {qpn} already; give each its own number")]
    QpnTaken { ip: Ipv4Addr, qpn: Qpn, what: &'static str },
    #[error(
        "station {ip} has a TCP connection between its port {port} and port {peer_port} of {peer} already; give each \
         its own ports"
    )]
    PortTaken { ip: Ipv4Addr, port: u16, peer: Ipv4Addr, peer_port: u16 },
    #[error("a {what} with address {found} cannot live on station {ip}; its local address must be the station's")]
    WrongAddress { ip: Ipv4Addr, found: Ipv4Addr, what: &'static str },
}

/// What a station's port has seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StationStats {
    pub rx_frames: u64,
    pub tx_frames: u64,
    /// Dropped: wrong FCS.
    pub fcs_errors: u64,
    /// Dropped: wrong ICRC.
    pub icrc_errors: u64,
    /// Dropped: a header that contradicts itself.
    pub malformed: u64,
    /// Dropped: no endpoint speaks this protocol.
    pub unclaimed: u64,
    /// Dropped: no queue pair of that number serves such a packet, no TCP connection has these ports.
    pub unknown_qpn: u64,
    pub pause_frames_received: u64,
    /// How long each class has been paused so far.
    pub paused_for: [Time; CLASSES],
}

const PORT: PortId = PortId(0);

/// Timers: of an endpoint by its index, and these two.
const SEND: u64 = 1 << 32;
const RESUME: u64 = 1 << 33;

enum Kind {
    Sender(RcSender),
    Receiver(RcReceiver),
    TcpSender(TcpFlowSender),
    TcpReceiver(TcpFlowReceiver),
}

/// An endpoint and what the station knows of it, which begins its first cache line.
#[repr(C, align(64))]
struct Slot {
    /// By what it is found.
    key: Key,
    /// The classes in whose list of ready endpoints it is, bit i for class i.
    listed: u8,
    /// Timers set and not yet due.
    armed: Armed,
    kind: Kind,
}

/// The times of the timers of one endpoint. A new one is always the earliest, else none is set; mostly there is one.
#[derive(Default)]
struct Armed {
    first: Option<Time>,
    /// Those behind it, the earliest last.
    later: Vec<Time>,
}

impl Armed {
    /// Takes a time in, if it comes before all others; says whether it did.
    #[inline]
    fn add(&mut self, at: Time) -> bool {
        if self.first.is_some_and(|first| at >= first) {
            return false;
        }
        self.later.extend(self.first.replace(at));
        true
    }

    /// The first timer has fired.
    #[inline]
    fn pop(&mut self) {
        self.first = self.later.pop();
    }
}

/// Calls a method of whichever endpoint it is.
macro_rules! endpoint {
    ($slot:expr, $inner:ident => $call:expr) => {
        match &mut $slot.kind {
            Kind::Sender($inner) => $call,
            Kind::Receiver($inner) => $call,
            Kind::TcpSender($inner) => $call,
            Kind::TcpReceiver($inner) => $call,
        }
    };
}

impl Slot {
    fn endpoint(&mut self) -> &mut dyn Endpoint {
        endpoint!(self, inner => inner)
    }

    #[inline]
    fn is_ready(&mut self) -> bool {
        endpoint!(self, inner => inner.is_ready())
    }

    #[inline]
    fn next_timeout(&mut self) -> Option<Time> {
        endpoint!(self, inner => inner.next_timeout())
    }

    #[inline]
    fn class(&mut self) -> usize {
        endpoint!(self, inner => inner.class()) % CLASSES
    }

    #[inline]
    fn poll_transmit(&mut self, now: Time) -> Option<Packet> {
        endpoint!(self, inner => inner.poll_transmit(now))
    }
}

/// The station node. Its only port is 0. The first cache lines have what every frame asks of it.
#[repr(C, align(64))]
pub struct Station {
    slots: Vec<Slot>,
    /// The queue pair of the first slot.
    first_qpn: u32,
    /// Until when the port sends what it was given.
    busy_until: Time,
    /// The SEND timer that is set.
    send_at: Option<Time>,
    /// The classes with endpoints in `ready`, bit i for class i.
    ready_classes: u8,
    /// Bit i: class i is paused, and its senders know.
    paused: u8,
    /// What is paused stays so until a frame says otherwise: the other end renews it by itself.
    is_held: bool,
    pause: PauseState,
    stats: StationStats,
    by_key: EndpointTable,
    /// Who hears of pauses.
    senders: Vec<u32>,
    /// Endpoints that may have something to send, in turn, by class.
    ready: [VecDeque<u32>; CLASSES],
    config: StationConfig,
}

impl Station {
    /// A station without endpoints.
    pub fn new(config: StationConfig) -> Self {
        Station {
            config,
            slots: Vec::new(),
            first_qpn: 0,
            by_key: EndpointTable::default(),
            senders: Vec::new(),
            ready: Default::default(),
            ready_classes: 0,
            busy_until: Time::ZERO,
            send_at: None,
            pause: PauseState::default(),
            paused: 0,
            is_held: false,
            stats: StationStats::default(),
        }
    }

    pub fn config(&self) -> &StationConfig {
        &self.config
    }

    /// Makes room for so many endpoints: a thousand boards with one each and room for four would fill caches with nothing.
    pub fn expect_endpoints(&mut self, endpoints: usize) {
        self.slots.reserve_exact(endpoints);
    }

    /// Adds a sender and returns its index, which is its channel in traces. A queue pair may have one sender and one
    /// receiver. To be called before the run.
    pub fn add_rc_sender(&mut self, sender: RcSender) -> Result<usize, StationError> {
        let config = sender.requester().config();
        let (local, peer) = (config.local, config.peer);
        self.claim("sender", local.ip, local.qpn, Key::Sender(local.qpn))?;
        // A second sender to the same queue pair is a mistake that the receiver will count; the first hears of CNMs.
        self.by_key.insert(Key::SenderTo(peer.ip, peer.qpn), self.slots.len() as u32);
        self.senders.push(self.slots.len() as u32);
        Ok(self.push(Key::Sender(local.qpn), Kind::Sender(sender)))
    }

    /// Adds a receiver and returns its index, which is its channel in traces. To be called before the run.
    pub fn add_rc_receiver(&mut self, receiver: RcReceiver) -> Result<usize, StationError> {
        let local = receiver.responder().config().local;
        self.claim("receiver", local.ip, local.qpn, Key::Receiver(local.qpn))?;
        Ok(self.push(Key::Receiver(local.qpn), Kind::Receiver(receiver)))
    }

    /// Adds a TCP sender and returns its index, which is its channel in traces. To be called before the run.
    pub fn add_tcp_sender(&mut self, sender: TcpFlowSender) -> Result<usize, StationError> {
        let key = self.claim_tcp("TCP sender", sender.config())?;
        self.senders.push(self.slots.len() as u32);
        Ok(self.push(key, Kind::TcpSender(sender)))
    }

    /// Adds a TCP receiver and returns its index, which is its channel in traces. To be called before the run.
    pub fn add_tcp_receiver(&mut self, receiver: TcpFlowReceiver) -> Result<usize, StationError> {
        let key = self.claim_tcp("TCP receiver", receiver.config())?;
        Ok(self.push(key, Kind::TcpReceiver(receiver)))
    }

    fn claim_tcp(&mut self, what: &'static str, config: &TcpConfig) -> Result<Key, StationError> {
        let (ip, local, peer) = (self.config.ip, config.local, config.peer);
        if local.ip != ip {
            return Err(StationError::WrongAddress { ip, found: local.ip, what });
        }
        let key = Key::Tcp(peer.ip, peer.port, local.port);
        let free = self.by_key.insert(key, self.slots.len() as u32);
        free.then_some(key).ok_or(StationError::PortTaken { ip, port: local.port, peer: peer.ip, peer_port: peer.port })
    }

    fn claim(&mut self, what: &'static str, found: Ipv4Addr, qpn: Qpn, key: Key) -> Result<(), StationError> {
        let ip = self.config.ip;
        if found != ip {
            return Err(StationError::WrongAddress { ip, found, what });
        }
        let free = self.by_key.insert(key, self.slots.len() as u32);
        free.then_some(()).ok_or(StationError::QpnTaken { ip, qpn, what })
    }

    fn push(&mut self, key: Key, kind: Kind) -> usize {
        if let (true, Key::Sender(qpn) | Key::Receiver(qpn)) = (self.slots.is_empty(), key) {
            self.first_qpn = qpn.value();
        }
        self.slots.push(Slot { key, kind, listed: 0, armed: Armed::default() });
        self.slots.len() - 1
    }

    /// The endpoint of a queue pair. Queue pairs are mostly numbered on, and then it is found without the table.
    #[inline]
    fn index_of(&self, qpn: Qpn, key: Key) -> Option<u32> {
        let likely = qpn.value().wrapping_sub(self.first_qpn);
        match self.slots.get(likely as usize) {
            Some(slot) if slot.key == key => Some(likely),
            _ => self.by_key.get(key),
        }
    }

    /// The sender at this index, if a sender is there.
    pub fn sender(&self, index: usize) -> Option<&RcSender> {
        match &self.slots.get(index)?.kind {
            Kind::Sender(sender) => Some(sender),
            _ => None,
        }
    }

    /// The sender at this index, to look at its reaction point.
    pub fn sender_mut(&mut self, index: usize) -> Option<&mut RcSender> {
        match &mut self.slots.get_mut(index)?.kind {
            Kind::Sender(sender) => Some(sender),
            _ => None,
        }
    }

    /// The receiver at this index, if a receiver is there.
    pub fn receiver(&self, index: usize) -> Option<&RcReceiver> {
        match &self.slots.get(index)?.kind {
            Kind::Receiver(receiver) => Some(receiver),
            _ => None,
        }
    }

    /// The TCP sender at this index, if one is there.
    pub fn tcp_sender(&self, index: usize) -> Option<&TcpFlowSender> {
        match &self.slots.get(index)?.kind {
            Kind::TcpSender(sender) => Some(sender),
            _ => None,
        }
    }

    /// The TCP receiver at this index, if one is there.
    pub fn tcp_receiver(&self, index: usize) -> Option<&TcpFlowReceiver> {
        match &self.slots.get(index)?.kind {
            Kind::TcpReceiver(receiver) => Some(receiver),
            _ => None,
        }
    }

    /// All senders with their indices.
    pub fn senders(&self) -> impl Iterator<Item = (usize, &RcSender)> {
        (0..self.slots.len()).filter_map(|index| Some((index, self.sender(index)?)))
    }

    /// All receivers with their indices.
    pub fn receivers(&self) -> impl Iterator<Item = (usize, &RcReceiver)> {
        (0..self.slots.len()).filter_map(|index| Some((index, self.receiver(index)?)))
    }

    /// The counters of the port, pause times up to `now`.
    pub fn stats(&self, now: Time) -> StationStats {
        let (pause_frames_received, paused_for) = (self.pause.frames, self.pause.paused_for(now));
        let rx_frames = self.stats.rx_frames + self.pause.renewals;
        StationStats { rx_frames, pause_frames_received, paused_for, ..self.stats }
    }

    /// Puts an endpoint where `send_next` finds it, if it has something, and sets its timer.
    fn after(&mut self, index: u32, out: &mut Outbox) {
        self.list(index);
        self.arm(index, out);
    }

    fn list(&mut self, index: u32) {
        let slot = &mut self.slots[index as usize];
        if slot.is_ready() {
            let class = slot.class();
            if slot.listed >> class & 1 == 0 {
                slot.listed |= 1 << class;
                self.ready[class].push_back(index);
                self.ready_classes |= 1 << class;
            }
        }
    }

    fn arm(&mut self, index: u32, out: &mut Outbox) {
        let slot = &mut self.slots[index as usize];
        let timeout = slot.next_timeout();
        if let Some(at) = timeout.filter(|at| slot.armed.add(*at)) {
            out.timer_at(at, u64::from(index));
        }
    }

    /// Starts the next frame, or sees to it that this is called again when the port is free.
    fn send_next(&mut self, out: &mut Outbox) {
        let now = out.now();
        if now >= self.busy_until {
            if let Some(packet) = self.next_packet(now, out) {
                self.send(packet, out);
            }
        }
        self.call_again(out);
    }

    /// Lets the endpoint of this index send, if it has something: at once, without a queue, where no other waits.
    fn serve(&mut self, index: u32, out: &mut Outbox) {
        let (now, slot) = (out.now(), &mut self.slots[index as usize]);
        if self.ready_classes == 0 && now >= self.busy_until && slot.is_ready() && self.paused >> slot.class() & 1 == 0
        {
            if let Some(packet) = slot.poll_transmit(now) {
                self.after(index, out);
                self.send(packet, out);
                return self.call_again(out);
            }
        }
        self.after(index, out);
        self.send_next(out);
    }

    fn send(&mut self, packet: Packet, out: &mut Outbox) {
        self.stats.tx_frames += 1;
        let frame = out.frame(packet);
        self.busy_until = out.transmit(PORT, frame);
    }

    /// Sees to it that `send_next` is called when the port is free, if something will be there to send.
    #[inline]
    fn call_again(&mut self, out: &mut Outbox) {
        if self.ready_classes & !self.paused != 0 && self.send_at.is_none() {
            self.send_at = Some(self.busy_until);
            out.timer_at(self.busy_until, SEND);
        }
    }

    /// A packet of the highest class that is not paused, of its endpoints in turn.
    fn next_packet(&mut self, now: Time, out: &mut Outbox) -> Option<Packet> {
        let mut not_yet = u8::MAX;
        while let Some(class) = (self.ready_classes & !self.paused & not_yet).checked_ilog2() {
            let class = class as usize;
            not_yet = u8::MAX >> (CLASSES - 1 - class);
            let Some(index) = self.ready[class].pop_front() else {
                self.ready_classes &= !(1 << class);
                continue;
            };
            if self.ready[class].is_empty() {
                self.ready_classes &= !(1 << class);
            }
            let slot = &mut self.slots[index as usize];
            prefetch_all(slot);
            slot.listed &= !(1 << class);
            if slot.class() != class {
                // What it has to send has become of another class since it was listed.
                self.list(index);
            } else if let Some(packet) = slot.poll_transmit(now) {
                self.after(index, out);
                return Some(packet);
            } else {
                self.arm(index, out);
            }
        }
        None
    }

    /// Takes account of the pauses that the other end has renewed by itself.
    fn catch_up(&mut self, out: &mut Outbox) {
        let Some(arrived) = out.arrived(PORT, RESUME) else { return };
        if arrived.frames == 0 && !self.is_held {
            return;
        }
        if let Some(pause) = out.time_on_link(PORT, arrived.pause_bytes) {
            self.is_held = arrived.goes_on;
            let until = if arrived.goes_on { Time::MAX } else { arrived.last + pause };
            self.pause.renewed(arrived.frames, until);
        }
    }

    fn receive_pause(&mut self, control: &MacControl, out: &mut Outbox) {
        self.catch_up(out);
        if let Some(at) = self.pause.receive(out.now(), control, |quanta| out.pause_time(PORT, quanta)) {
            out.timer_at(at, RESUME);
        }
        self.follow_pauses(out);
    }

    /// Tells the senders of the classes whose pause has begun or ended, and lets them send. Most pause frames only renew
    /// a pause and so change nothing.
    fn follow_pauses(&mut self, out: &mut Outbox) {
        let now = out.now();
        let paused = self.pause.paused_mask(now);
        let changed = self.paused ^ paused;
        self.paused = paused;
        if changed == 0 {
            return;
        }
        let only_senders = self.senders.len() == self.slots.len();
        for at in 0..self.senders.len() {
            // a board need not look at its list
            let index = if only_senders { at as u32 } else { self.senders[at] };
            let slot = &mut self.slots[index as usize];
            prefetch_all(slot);
            let endpoint = slot.endpoint();
            let class = endpoint.class() % CLASSES;
            if changed >> class & 1 == 1 {
                endpoint.on_pause(now, paused >> class & 1 == 1);
                self.after(index, out);
            }
        }
        self.send_next(out);
    }

    fn handle_packet(&mut self, packet: &Packet, out: &mut Outbox) {
        let index = match packet {
            Packet::Roce(roce) => {
                let (qpn, is_request) = (roce.bth.dest_qpn, roce.bth.opcode.is_rc_request());
                self.index_of(qpn, if is_request { Key::Receiver(qpn) } else { Key::Sender(qpn) })
            }
            Packet::Cnm(cnm) => {
                let flow = &cnm.flow_tuple;
                self.by_key.get(match cnm.dest_qpn {
                    Some(qpn) => Key::SenderTo(flow.dst, qpn),
                    None => Key::Tcp(flow.dst, flow.dport, flow.sport),
                })
            }
            Packet::Tcp(tcp) => self.by_key.get(Key::Tcp(tcp.ip_src, tcp.src_port, tcp.dst_port)),
            Packet::MacControl { control, .. } => return self.receive_pause(control, out),
            Packet::Raw(bytes) => return self.handle_bytes(bytes.clone(), out),
        };
        let Some(index) = index else {
            self.stats.unknown_qpn += 1;
            return;
        };
        let (now, slot) = (out.now(), &mut self.slots[index as usize]);
        prefetch_all(slot);
        endpoint!(slot, inner => inner.on_packet(now, packet));
        self.serve(index, out);
    }

    fn handle_bytes(&mut self, bytes: bytes::Bytes, out: &mut Outbox) {
        match Packet::parse(bytes) {
            Ok(Packet::Raw(_)) => self.stats.unclaimed += 1,
            Ok(packet) => self.handle_packet(&packet, out),
            Err(ParseError::BadIcrc { .. }) => self.stats.icrc_errors += 1,
            Err(_) => self.stats.malformed += 1,
        }
    }

    fn wake(&mut self, now: Time, index: u32, out: &mut Outbox) {
        let slot = &mut self.slots[index as usize];
        prefetch_all(slot);
        slot.armed.pop();
        if slot.next_timeout().is_some_and(|at| at <= now) {
            slot.endpoint().on_timeout(now);
        }
        self.serve(index, out);
    }
}

impl Node for Station {
    fn on_start(&mut self, out: &mut Outbox) {
        for index in 0..self.slots.len() as u32 {
            self.slots[index as usize].endpoint().on_timeout(out.now());
            self.after(index, out);
        }
        self.send_next(out);
    }

    fn on_frame(&mut self, _at: Time, _port: PortId, frame: Frame, out: &mut Outbox) {
        self.stats.rx_frames += 1;
        if frame.fcs_ok() {
            self.handle_packet(frame.packet(), out);
        } else {
            self.stats.fcs_errors += 1;
        }
        out.recycle(frame);
    }

    fn on_control_ahead(&mut self, at: Time, port: PortId, control: &MacControl, out: &mut Outbox) -> bool {
        self.catch_up(out);
        self.pause.renew(at, control, |quanta| out.pause_time(port, quanta))
    }

    fn on_timer(&mut self, now: Time, token: u64, out: &mut Outbox) {
        match token {
            SEND => {
                self.send_at = None;
                self.send_next(out);
            }
            RESUME => {
                self.catch_up(out);
                if let Some(at) = self.pause.wake(now) {
                    out.timer_at(at, RESUME);
                }
                self.follow_pauses(out);
            }
            index => self.wake(now, index as u32, out),
        }
    }

    fn prefetch(&self) {
        prefetch_all(self);
        if let [only] = &self.slots[..] {
            prefetch_all(only);
        }
    }

    fn wants_tx_done(&self) -> bool {
        false
    }

    fn takes_renewals(&self) -> bool {
        true
    }

    fn on_renewals(&mut self, _port: PortId, out: &mut Outbox) {
        self.catch_up(out);
    }

    fn sample(&mut self, now: Time, trace: &mut TraceSink) {
        for (index, slot) in self.slots.iter_mut().enumerate() {
            slot.endpoint().sample(now, index as u16, trace);
        }
    }
}
