// SPDX-License-Identifier: Apache-2.0
//! A host of the laboratory: one port, and any number of endpoints that share it.
//! Promise: endpoints with data to send take turns, higher classes first; a paused class is silent; the cost of
//! a packet does not depend on the number of endpoints; timers are few, because a timer is set only if it expires
//! before all timers already set.
//! Source: ARCHITECTURE.md, "Time"; IEEE 802.1Q (strict priority, PFC).

mod announcer;
mod cnp_limit;
mod endpoint_table;
mod endpoints;
mod fragment_stream;
mod limiter;
mod limiter_trace;
mod look_ahead;
mod pull_board;
mod pull_server;
mod read_requester;
mod read_responder;
mod readable;
mod receiver;
mod sender;
mod slot;
mod tcp;

use std::collections::VecDeque;
use std::net::Ipv4Addr;

use penstock_wire::{MacAddr, MacControl, Packet, ParseError, Qpn};

use crate::frame::Frame;
use crate::node::{Node, NodeTerms, Outbox};
use crate::pause::{PauseState, CLASSES};
use crate::port::PortId;
use crate::trace::TraceSink;
use crate::units::Time;
use endpoint_table::{EndpointTable, Key};
use slot::Slot;

pub use cnp_limit::CnpLimit;
pub use endpoints::StationError;
pub use limiter::PacingConfig;
pub use pull_board::{PullBoard, PullBoardConfig};
pub use pull_server::{PullServer, PulledFlowConfig};
pub use read_requester::{ReadRequester, ReadRequesterConfig};
pub use read_responder::{ReadResponder, ReadResponderConfig, ReadResponderStats};
pub use receiver::{Consumer, NotifyAbove, RcReceiver, RcReceiverConfig};
pub use sender::{RcSender, RcSenderConfig, SenderVerb};
pub use tcp::{FullQueue, LimiterQueue, TcpFlowConfig, TcpFlowReceiver, TcpFlowSender, TcpStack};

/// Who a station is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StationConfig {
    pub mac: MacAddr,
    pub ip: Ipv4Addr,
}

/// The counters of a station's port.
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

/// The station node. Its only port is 0. The first cache lines have the data that every frame needs.
#[repr(C, align(64))]
pub struct Station {
    slots: Vec<Slot>,
    /// The queue pair of the first slot.
    first_qpn: u32,
    /// The time until which the port is busy with its frames.
    busy_until: Time,
    /// The SEND timer that is set.
    send_at: Option<Time>,
    /// The classes with endpoints in `ready`, bit i for class i.
    ready_classes: u8,
    /// Bit i: class i is paused, and its senders know.
    paused: u8,
    /// A paused class stays paused until a frame ends the pause: the other end renews it by itself.
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

    /// The endpoint of a queue pair. Queue pairs are mostly numbered on, and then it is found without the table.
    #[inline]
    fn index_of(&self, qpn: Qpn, key: Key) -> Option<u32> {
        let likely = qpn.value().wrapping_sub(self.first_qpn);
        match self.slots.get(likely as usize) {
            Some(slot) if slot.key == key => Some(likely),
            _ => self.by_key.get(key),
        }
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
            slot.listed &= !(1 << class);
            if slot.class() != class {
                // The class of its pending data has changed since it was listed.
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
        let now = out.now();
        let Some(arrived) = out.received_pause(PORT).map(|link| link.arrived(now)) else { return };
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

    /// Notifies the senders of the classes whose pause has begun or ended, and lets them send. Most pause frames only
    /// renew a pause and so change nothing.
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
                let quoted = match cnm.dest_qpn {
                    Some(qpn) => Key::SenderTo(flow.dst, qpn),
                    None => Key::Tcp(flow.dst, flow.dport, flow.sport),
                };
                self.by_key.get(quoted).or_else(|| self.by_key.get(Key::Flow(cnm.flow)))
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
        slot.on_packet(now, packet);
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
        slot.armed.pop();
        if slot.next_timeout().is_some_and(|at| at <= now) {
            slot.endpoint().on_timeout(now);
        }
        self.serve(index, out);
    }
}

impl Node for Station {
    fn on_start(&mut self, out: &mut Outbox) {
        if let Some(link) = out.received_pause(PORT) {
            link.admit(RESUME);
        }
        for index in 0..self.slots.len() as u32 {
            self.slots[index as usize].endpoint().on_timeout(out.now());
            self.after(index, out);
        }
        self.send_next(out);
    }

    fn on_frame(&mut self, _at: Time, _port: PortId, mut frame: Frame, out: &mut Outbox) {
        self.stats.rx_frames += 1;
        if frame.fcs_ok() {
            self.handle_packet(frame.packet(), out);
        } else {
            self.stats.fcs_errors += 1;
        }
        out.recycle(frame);
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

    fn terms(&self) -> NodeTerms {
        NodeTerms::on_request()
    }

    fn sample(&mut self, now: Time, trace: &mut TraceSink) {
        for (index, slot) in self.slots.iter_mut().enumerate() {
            slot.endpoint().sample(now, index as u16, trace);
        }
    }
}
