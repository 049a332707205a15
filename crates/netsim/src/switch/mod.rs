// SPDX-License-Identifier: Apache-2.0
//! An output-queued, shared-buffer switch: eight classes per port in strict or weighted order, RED/ECN, QCN, PFC both
//! ways with static or dynamic thresholds, routes over ports of equal cost.
//! Promise: frames of one class and flow stay in order; every drop has a counter; lossless with computed headroom.
//! Source: IEEE 802.1Q (forwarding, PFC, QCN), RFC 3168 (ECN), RFC 2474 (class selector: class = DSCP / 8).
//!
//! ```text
//! frame -> classify -> route (ECMP) -> buffer: room? -> RED mark -> queue of port and class -> QCN sample
//!                                         | no: drop                     |
//!                                         | above threshold: PFC         v scheduler, unless paused
//!                                         +<------ below: PFC resume --- wire
//! ```

mod buffer;
mod classify;
mod deadlock;
mod headroom;
mod params;
mod pool;
mod port;
mod prefetch;
mod presets;
mod queue_pause;
mod routes;
mod scheduler;

use std::net::Ipv4Addr;

use penstock_cc::{QcnCongestionPoint, RedMarker};
use penstock_wire::{MacAddr, MacControl, Packet};

use crate::frame::Frame;
use crate::node::{Node, NodeTerms, Outbox};
use crate::pause::{quanta_bytes, CLASSES};
use crate::port::PortId;
use crate::renewal::refresh_after;
use crate::rng::Stream;
use crate::switch_stats::{PortStats, SwitchStats, SwitchView};
use crate::trace::TraceSink;
use crate::units::{ByteSize, Time};
use buffer::{Admitted, Buffer, Refusal, Share};
use classify::Congestion;
pub use deadlock::{find_pause_cycle, PauseCycle};
pub use headroom::{lossless_buffer, lossless_headroom};
pub use params::{
    max_frame, Alpha, EcnParams, Headroom, PauseFrame, PfcParams, PfcThreshold, QcnPoints, Scheduling, SwitchParams,
};
use pool::{Held, Pool};
use port::Port;
use queue_pause::QueuePauses;
use routes::Routes;
use scheduler::Discipline;

type Markers = [Option<RedMarker>; CLASSES];

/// The ingress of frames made by the switch itself: no port can be paused for them.
const INTERNAL: u16 = u16::MAX;

/// The switch node.
pub struct Switch {
    params: SwitchParams,
    mac: MacAddr,
    discipline: Discipline,
    buffer: Buffer,
    /// The buffer space of its own messages.
    local: Share,
    pool: Pool,
    ports: Vec<Port>,
    /// The pauses under thresholds of queues.
    queue_pauses: Option<QueuePauses>,
    /// Headroom set by hand, by port.
    headroom: Vec<(PortId, ByteSize)>,
    /// Sets of marking thresholds; the first is that of all ports without one of their own.
    markers: Vec<Markers>,
    /// One for each port and class; empty without QCN.
    congestion_points: Vec<QcnCongestionPoint>,
    /// |F_b| of each port's last message; empty without QCN.
    feedback: Vec<u8>,
    random: Stream,
    routes: Routes,
    stats: SwitchStats,
}

/// The purpose of a timer of the switch.
#[derive(Clone, Copy)]
enum Wake {
    /// A received pause may have ended.
    Resume(u16),
    /// A sent pause must be repeated before it ends at the other side; or the link repeats it and must be queried.
    Refresh(u16),
}

impl Wake {
    fn token(self) -> u64 {
        match self {
            Wake::Resume(port) => u64::from(port),
            Wake::Refresh(port) => 1 << 16 | u64::from(port),
        }
    }

    fn from_token(token: u64) -> Self {
        let port = token as u16;
        if token >> 16 == 0 {
            Wake::Resume(port)
        } else {
            Wake::Refresh(port)
        }
    }
}

fn markers(ecn: [Option<EcnParams>; CLASSES]) -> Markers {
    ecn.map(|ecn| ecn.map(|ecn| ecn.marker()))
}

// ---- building and looking -------------------------------------------------------------------------------------------

impl Switch {
    /// A switch with ports 0 .. `ports`. `random` decides its ECN marks; its choice among ports of equal cost and the
    /// jitter of its QCN samples depend on the same stream without disturbing it.
    pub fn new(params: SwitchParams, ports: u16, random: Stream) -> Self {
        let mut seeds = random.clone();
        let routes = Routes::new(seeds.next_u64());
        let points = |qcn: params::QcnPoints| {
            let ports = (0..ports).map(|_| seeds.next_u32()).collect::<Vec<_>>();
            let of_port = |seed| (0..CLASSES as u8).map(move |class| QcnCongestionPoint::new(qcn.marking, seed, class));
            ports.into_iter().flat_map(of_port).collect()
        };
        Switch {
            params,
            mac: MacAddr([0x02, 0x50, 0x53, 0x00, 0x00, 0x00]),
            discipline: Discipline::new(params.scheduling),
            buffer: Buffer::new(&params),
            local: Share::default(),
            pool: Pool::new(),
            ports: (0..ports).map(|_| Port::default()).collect(),
            queue_pauses: params.pfc.and_then(|pfc| match pfc.threshold {
                PfcThreshold::Queue { xon, .. } => Some(QueuePauses::new(xon.bytes(), usize::from(ports))),
                _ => None,
            }),
            headroom: Vec::new(),
            markers: vec![markers(params.ecn)],
            congestion_points: params.qcn.map(points).unwrap_or_default(),
            feedback: vec![0; if params.qcn.is_some() { usize::from(ports) } else { 0 }],
            random,
            routes,
            stats: SwitchStats::default(),
        }
    }

    /// The address this switch sends PFC and QCN messages from.
    pub fn set_mac(&mut self, mac: MacAddr) {
        self.mac = mac;
    }

    /// Frames to `destination` leave by one of `ports`, chosen by the hash of their flow; none of them: no route.
    pub fn add_route(&mut self, destination: Ipv4Addr, ports: &[PortId]) {
        self.routes.set(destination, ports);
    }

    /// Marking thresholds of one port that differ from `SwitchParams::ecn`, for links of another rate.
    ///
    /// # Panics
    /// If there is no such port.
    pub fn set_ecn(&mut self, port: PortId, ecn: [Option<EcnParams>; CLASSES]) {
        let set = markers(ecn);
        let at = self.markers.iter().position(|other| *other == set).unwrap_or_else(|| {
            self.markers.push(set);
            self.markers.len() - 1
        });
        self.ports[usize::from(port.0)].markers = at as u16;
    }

    /// Makes a port an edge of the congestion notification domain (IEEE 802.1Qau clause 30.6): CN-TAGs are taken off
    /// frames that leave by it.
    ///
    /// # Panics
    /// If there is no such port.
    pub fn set_edge(&mut self, port: PortId) {
        self.ports[usize::from(port.0)].is_edge = true;
    }

    /// The headroom of one port, in each lossless class, overriding `PfcParams`. To be set before the run.
    pub fn set_headroom(&mut self, port: PortId, headroom: ByteSize) {
        self.headroom.push((port, headroom));
    }

    pub fn params(&self) -> &SwitchParams {
        &self.params
    }

    pub fn stats(&self) -> SwitchStats {
        self.stats
    }

    pub fn port_count(&self) -> u16 {
        self.ports.len() as u16
    }

    /// The counters of one port, pause times up to `now`.
    pub fn port_stats(&self, port: PortId, now: Time) -> PortStats {
        self.ports[usize::from(port.0)].stats_at(now)
    }

    /// The port by which this packet would leave; `None`: no route.
    pub fn egress(&self, packet: &Packet) -> Option<PortId> {
        let (destination, _) = classify::destination_and_class(packet)?;
        self.routes.port(destination, || classify::flow(packet))
    }

    /// Bytes waiting at one port, all classes.
    pub fn queue_bytes(&self, port: PortId) -> u64 {
        self.ports[usize::from(port.0)].queue_bytes()
    }

    /// Bytes waiting at one port in one class.
    pub fn class_queue_bytes(&self, port: PortId, class: usize) -> u64 {
        self.ports[usize::from(port.0)].class_bytes(class)
    }

    /// Bytes waiting in all queues.
    pub fn buffer_bytes(&self) -> u64 {
        self.buffer.used()
    }

    /// Bytes of the buffer that are not set aside as headroom; known once the run has begun.
    pub fn shared_bytes(&self) -> u64 {
        self.buffer.shared_size()
    }
}

// ---- one frame in, one frame out ------------------------------------------------------------------------------------

impl Switch {
    // In place: a frame that is handed on by value once more is copied once more.
    #[inline(always)]
    fn forward(&mut self, ingress: u16, mut frame: Frame, out: &mut Outbox) {
        let route = classify::route_of(&frame).and_then(|(destination, class)| {
            let port = self.routes.port(destination, || classify::flow_of(&frame))?;
            (usize::from(port.0) < self.ports.len()).then_some((port, class))
        });
        let Some((egress, class)) = route else {
            self.stats.no_route += 1;
            return;
        };
        let bytes = frame.frame_len() as u64;
        let Some(admitted) = self.admit(ingress, egress, class, bytes) else { return };
        if !self.params.mark_on_departure {
            self.mark(egress, class, &mut frame);
        }
        let qcn = self.params.qcn.filter(|qcn| qcn.classes >> class & 1 == 1);
        let notification = qcn.and_then(|qcn| self.feedback(&qcn, egress, class, bytes, &frame));
        if frame.is_cn_tagged() && self.ports[usize::from(egress.0)].is_edge {
            frame.remove_cn_tag();
        }
        self.enqueue(egress, frame, Held { bytes: bytes as u32, ingress, class: class as u8 }, out);
        if admitted == Admitted::AboveThreshold {
            self.pause(ingress, egress, class, out);
        }
        if let Some(notification) = notification {
            self.notify(notification, out);
        }
    }

    /// Sends a QCN message of its own.
    #[inline(never)]
    fn notify(&mut self, notification: Packet, out: &mut Outbox) {
        self.stats.cnm_sent += 1;
        let frame = out.frame(notification);
        self.on_frame(out.now(), PortId(INTERNAL), frame, out);
    }

    /// Takes room in the buffer, or counts a drop.
    fn admit(&mut self, ingress: u16, egress: PortId, class: usize, bytes: u64) -> Option<Admitted> {
        let queue_bytes = self.ports[usize::from(egress.0)].class_bytes(class);
        let admitted = match self.ports.get_mut(usize::from(ingress)) {
            Some(port) => {
                let from = port.ingress(class);
                let admitted = self.buffer.admit(&mut from.share, class, queue_bytes, bytes);
                from.peak_bytes = from.peak_bytes.max(from.share.bytes);
                admitted
            }
            None => self.buffer.admit(&mut self.local, class, queue_bytes, bytes).map(|_| Admitted::Below),
        };
        match admitted {
            Ok(level) => {
                self.stats.peak_buffer_bytes = self.stats.peak_buffer_bytes.max(self.buffer.used());
                return Some(level);
            }
            Err(Refusal::Buffer) => self.stats.dropped_buffer += 1,
            Err(Refusal::Threshold) => self.stats.dropped_threshold += 1,
            Err(Refusal::Headroom) => self.stats.dropped_headroom += 1,
        }
        self.ports[usize::from(egress.0)].count_drop(class);
        None
    }

    fn mark(&mut self, egress: PortId, class: usize, frame: &mut Frame) {
        let port = &mut self.ports[usize::from(egress.0)];
        let Some(marker) = &self.markers[usize::from(port.markers)][class] else { return };
        if !frame.is_ecn_capable() {
            return;
        }
        if marker.mark(port.class_bytes(class), self.random.next_u32()) {
            frame.mark();
            port.count_mark(class);
        }
    }

    /// Asks the congestion point of a queue whether the source of the arriving frame must be notified.
    #[inline(never)]
    fn feedback(&mut self, qcn: &QcnPoints, egress: PortId, class: usize, bytes: u64, frame: &Frame) -> Option<Packet> {
        let port = &mut self.ports[usize::from(egress.0)];
        let point = &mut self.congestion_points[usize::from(egress.0) * CLASSES + class];
        let (queue_bytes, queue_old) = (port.class_bytes(class) + bytes, point.queue_at_sample());
        let feedback = point.on_arrival(bytes as u32, queue_bytes)?;
        let q_eq = u64::from(qcn.marking.q_eq);
        let at = Congestion { mac: self.mac, port: egress.0, class, feedback, q_eq, queue_bytes, queue_old };
        let notification = classify::notification(frame.packet_as_sent(), &at)?;
        port.count_cnm(class);
        self.feedback[usize::from(egress.0)] = feedback;
        Some(notification.into())
    }

    /// Sends a frame at once if nothing is in its way, else lets it wait.
    fn enqueue(&mut self, egress: PortId, mut frame: Frame, held: Held, out: &mut Outbox) {
        self.catch_up(egress, out);
        let port = &mut self.ports[usize::from(egress.0)];
        if port.is_free_for(usize::from(held.class), out.now()) {
            port.pass(held);
            if self.params.mark_on_departure {
                self.mark(egress, usize::from(held.class), &mut frame);
            }
            self.ports[usize::from(egress.0)].set_busy(out.transmit(egress, frame));
            self.release(egress, held, out);
            return;
        }
        port.push(&mut self.pool, frame, held, out.now());
        if port.is_sending(out.now()) {
            self.await_free(egress, out);
        } else {
            self.send_next(egress, out);
        }
    }

    /// Gives back the room of a frame that has begun to leave by `egress`.
    fn release(&mut self, egress: PortId, held: Held, out: &mut Outbox) {
        let (class, bytes) = (usize::from(held.class), u64::from(held.bytes));
        match self.ports.get_mut(usize::from(held.ingress)) {
            Some(port) => {
                self.buffer.release(&mut port.ingress(class).share, bytes);
                self.resume_if_possible(held.ingress, class, out);
            }
            None => self.buffer.release(&mut self.local, bytes),
        }
        if self.queue_pauses.is_some() {
            self.resume_those_held(egress, class, out);
        }
    }

    /// Pauses a port whose threshold was crossed, unless the frame that crossed it has already left, and with it
    /// all others: none would be left to end the pause.
    fn pause(&mut self, ingress: u16, egress: PortId, class: usize, out: &mut Outbox) {
        let queue_bytes = self.ports[usize::from(egress.0)].class_bytes(class);
        if self.queue_pauses.as_mut().is_some_and(|pauses| !pauses.hold(egress.0, class, queue_bytes, ingress)) {
            return;
        }
        let port = &mut self.ports[usize::from(ingress)];
        if port.ingress(class).share.bytes > 0 && port.begin_pausing(class, out.now()) {
            self.send_next(PortId(ingress), out);
        }
    }

    fn resume_if_possible(&mut self, ingress: u16, class: usize, out: &mut Outbox) {
        let port = &mut self.ports[usize::from(ingress)];
        if port.is_pausing_class(class) && self.buffer.is_under(&port.ingress(class).share) {
            port.end_pausing(class, out.now());
            self.send_next(PortId(ingress), out);
        }
    }

    /// Resumes the ports for which this queue was the last one that paused them, with per-queue thresholds.
    #[inline(never)]
    fn resume_those_held(&mut self, egress: PortId, class: usize, out: &mut Outbox) {
        let queue_bytes = self.ports[usize::from(egress.0)].class_bytes(class);
        let free = self.queue_pauses.as_mut().map(|pauses| pauses.let_go(egress.0, class, queue_bytes));
        for ingress in free.into_iter().flatten() {
            self.ports[usize::from(ingress)].end_pausing(class, out.now());
            self.send_next(PortId(ingress), out);
        }
    }

    /// Starts the next frame of a port that is free: PFC first, then the class whose turn it is.
    fn send_next(&mut self, id: PortId, out: &mut Outbox) {
        let (mac, now) = (self.mac, out.now());
        let kind = self.params.pfc.map_or(PauseFrame::Pfc, |pfc| pfc.frame);
        self.catch_up(id, out);
        let port = &mut self.ports[usize::from(id.0)];
        if port.is_sending(now) {
            return self.await_free(id, out);
        }
        if let Some(control) = port.take_pause_frame(SwitchParams::PAUSE_QUANTA, kind) {
            let frame = out.frame(Packet::MacControl { src: mac, control });
            port.set_busy(out.transmit(id, frame));
            self.plan_refresh(id, out);
            self.await_free(id, out);
        } else if let Some((mut frame, held)) = port.take_next(&mut self.pool, &self.discipline, now) {
            let reports = port.must_await_free(now);
            if self.params.mark_on_departure {
                self.mark(id, usize::from(held.class), &mut frame);
            }
            self.ports[usize::from(id.0)].set_busy(out.transmit_and(id, frame, reports));
            self.release(id, held, out);
        }
    }

    /// A PFC frame has been sent: if it pauses anything it must be repeated, by the link where that is possible.
    #[inline(never)]
    fn plan_refresh(&mut self, id: PortId, out: &mut Outbox) {
        let (port, wake) = (&mut self.ports[usize::from(id.0)], Wake::Refresh(id.0));
        let pause_bytes = quanta_bytes(SwitchParams::PAUSE_QUANTA);
        match out.time_on_link(id, pause_bytes) {
            Some(pause) if port.is_pausing() => {
                let due = out.now() + refresh_after(pause);
                let mut begin = || out.sent_pause(id).is_some_and(|link| link.begin(due, pause_bytes, wake.token()));
                port.renews = !port.awaits_refresh() && begin();
                if !port.renews {
                    set_timer(out, port.plan_refresh(due), wake);
                }
            }
            _ if std::mem::take(&mut port.renews) => {
                if let Some(link) = out.sent_pause(id) {
                    link.cease();
                }
            }
            _ => {}
        }
    }

    /// Takes account of the pauses that the link of a port has repeated.
    #[inline(always)]
    fn catch_up(&mut self, id: PortId, out: &mut Outbox) {
        let port = &mut self.ports[usize::from(id.0)];
        if port.renews {
            let timer = port.catch_up(id, out);
            set_timer(out, timer, Wake::Refresh(id.0));
        }
    }

    /// Requests a notification when the port is free, if it will then have something to send.
    #[inline]
    fn await_free(&mut self, id: PortId, out: &mut Outbox) {
        if self.ports[usize::from(id.0)].must_await_free(out.now()) {
            out.tx_done_when_free(id);
        }
    }

    #[inline(never)]
    fn receive_pause(&mut self, id: PortId, control: &MacControl, out: &mut Outbox) {
        let timer = self.ports[usize::from(id.0)].receive_pause(control, id, out);
        set_timer(out, timer, Wake::Resume(id.0));
        self.send_next(id, out);
    }
}

impl SwitchView for Switch {
    fn port_count(&self) -> u16 {
        Switch::port_count(self)
    }

    fn egress(&self, packet: &Packet) -> Option<PortId> {
        Switch::egress(self, packet)
    }

    fn queue_bytes(&self, port: PortId) -> u64 {
        Switch::queue_bytes(self, port)
    }

    fn stats(&self) -> SwitchStats {
        Switch::stats(self)
    }

    fn port_stats(&self, port: PortId, now: Time) -> PortStats {
        Switch::port_stats(self, port, now)
    }
}

impl Node for Switch {
    /// The links are known now, and with them the headroom of each port.
    fn on_start(&mut self, out: &mut Outbox) {
        for (index, port) in self.ports.iter_mut().enumerate() {
            let id = PortId(index as u16);
            let Some(link) = out.link(id) else { continue };
            let by_hand = self.headroom.iter().rev().find(|(port, _)| *port == id);
            let bytes = by_hand.map_or_else(
                || self.buffer.headroom(|mtu| lossless_headroom(link, mtu).bytes()),
                |(_, headroom)| headroom.bytes(),
            );
            for class in 0..CLASSES {
                self.buffer.set_headroom(&mut port.ingress(class).share, class, bytes);
            }
        }
    }

    fn on_frame(&mut self, _at: Time, port: PortId, mut frame: Frame, out: &mut Outbox) {
        if !frame.fcs_ok() {
            self.stats.fcs_errors += 1;
        } else if frame.is_control() {
            if let Packet::MacControl { control, .. } = frame.packet() {
                self.receive_pause(port, control, out);
            }
            out.recycle(frame);
        } else {
            self.forward(port.0, frame, out);
        }
    }

    fn on_timer(&mut self, now: Time, token: u64, out: &mut Outbox) {
        let wake = Wake::from_token(token);
        let (Wake::Resume(id) | Wake::Refresh(id)) = wake;
        let port = &mut self.ports[usize::from(id)];
        let timer = match wake {
            Wake::Resume(_) => port.wake(now),
            // The link must be queried, which `send_next` does.
            Wake::Refresh(_) if port.renews => None,
            Wake::Refresh(_) => port.refresh(now),
        };
        set_timer(out, timer, wake);
        self.send_next(PortId(id), out);
    }

    fn on_tx_done(&mut self, _now: Time, id: PortId, out: &mut Outbox) {
        self.ports[usize::from(id.0)].set_free();
        self.send_next(id, out);
    }

    fn as_switch(&self) -> Option<&dyn SwitchView> {
        Some(self)
    }

    /// Most ports are idle after most frames.
    fn terms(&self) -> NodeTerms {
        NodeTerms::on_request()
    }

    fn sample(&mut self, now: Time, trace: &mut TraceSink) {
        trace.record(0, "buffer_bytes", self.buffer.used() as f64);
        let by_port = ["queue_bytes", "ecn_marked", "pfc_paused", "pfc_pausing"];
        let recorded = !self.params.trace_classes && by_port.map(|metric| trace.records(metric)).contains(&true);
        for (channel, (feedback, port)) in (0u16..).zip(self.feedback.iter().zip(&self.ports)) {
            trace.record(channel, "cnm_sent", port.cnm_sent() as f64);
            trace.record(channel, "feedback", (*feedback).into());
        }
        for (index, port) in self.ports.iter().enumerate() {
            let channel = index as u16;
            if self.params.trace_classes {
                trace.record(channel, "ecn_marked", port.ecn_marked() as f64);
                sample_classes(port, channel, now, trace);
                continue;
            }
            if recorded {
                trace.record(channel, "queue_bytes", port.queue_bytes() as f64);
                trace.record(channel, "ecn_marked", port.ecn_marked() as f64);
                trace.record(channel, "pfc_paused", f64::from(u8::from(port.pause.any_paused(now))));
                trace.record(channel, "pfc_pausing", f64::from(u8::from(port.is_pausing())));
            }
        }
    }
}

/// Metric names of a class: bytes in its queue, whether it is paused by the other side, whether it pauses the other
/// side.
pub const CLASS_METRICS: [[&str; 3]; CLASSES] = [
    ["queue_bytes_class0", "pfc_paused_class0", "pfc_pausing_class0"],
    ["queue_bytes_class1", "pfc_paused_class1", "pfc_pausing_class1"],
    ["queue_bytes_class2", "pfc_paused_class2", "pfc_pausing_class2"],
    ["queue_bytes_class3", "pfc_paused_class3", "pfc_pausing_class3"],
    ["queue_bytes_class4", "pfc_paused_class4", "pfc_pausing_class4"],
    ["queue_bytes_class5", "pfc_paused_class5", "pfc_pausing_class5"],
    ["queue_bytes_class6", "pfc_paused_class6", "pfc_pausing_class6"],
    ["queue_bytes_class7", "pfc_paused_class7", "pfc_pausing_class7"],
];

fn sample_classes(port: &Port, channel: u16, now: Time, trace: &mut TraceSink) {
    for (class, [queue, paused, pausing]) in CLASS_METRICS.into_iter().enumerate() {
        if port.is_in_use(class) {
            trace.record(channel, queue, port.class_bytes(class) as f64);
            trace.record(channel, paused, f64::from(u8::from(port.pause.is_paused(class, now))));
            trace.record(channel, pausing, f64::from(u8::from(port.is_pausing_class(class))));
        }
    }
}

fn set_timer(out: &mut Outbox, at: Option<Time>, wake: Wake) {
    if let Some(at) = at {
        out.timer_at(at, wake.token());
    }
}
