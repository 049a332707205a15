// SPDX-License-Identifier: Apache-2.0
//! An output-queued, shared-buffer switch: eight classes per port in strict priority, RED/ECN, PFC both ways, static
//! routes.
//! Promise: frames of one class and path stay in order; every drop has a counter; lossless with `PfcParams::lossless`.
//! Source: IEEE 802.1Q (forwarding, PFC), RFC 3168 (ECN), RFC 2474 (class selector: class = DSCP / 8).

mod params;
mod port;

use std::net::Ipv4Addr;

use penstock_cc::RedMarker;
use penstock_wire::{Ecn, EthernetView, Ipv4View, MacAddr, MacControl, Packet, ETHERTYPE_IPV4};

use crate::node::{Frame, Node, Outbox, PortId};
use crate::pause::{quanta_time, CLASSES};
use crate::rng::Stream;
use crate::trace::TraceSink;
use crate::units::Time;
pub use params::{lossless_headroom, max_frame, BufferTooSmall, EcnParams, PfcParams, SwitchParams};
pub use port::PortStats;
use port::{Port, Queued};

/// What the whole switch has seen, beside the counters of its ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SwitchStats {
    /// Frames dropped because the shared buffer was full.
    pub dropped_buffer: u64,
    /// Frames of a lossless class dropped because the headroom of their port was spent.
    pub dropped_headroom: u64,
    /// Frames dropped for a wrong FCS.
    pub fcs_errors: u64,
    /// Frames dropped because no route leads to their destination.
    pub no_route: u64,
    /// Most bytes ever in the shared buffer.
    pub peak_buffer_bytes: u64,
}

impl SwitchStats {
    /// Frames lost to congestion.
    pub fn dropped(&self) -> u64 {
        self.dropped_buffer + self.dropped_headroom
    }
}

/// The switch node.
pub struct Switch {
    params: SwitchParams,
    mac: MacAddr,
    marker: Option<RedMarker>,
    random: Stream,
    ports: Vec<Port>,
    /// Sorted by address.
    routes: Vec<(Ipv4Addr, PortId)>,
    buffer_bytes: u64,
    stats: SwitchStats,
}

/// What a timer of the switch is for.
#[derive(Clone, Copy)]
enum Wake {
    /// A received pause may have ended.
    Resume(u16),
    /// A pause sent must be repeated before it ends at the other side.
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

impl Switch {
    /// A switch with ports 0 .. `ports`. `random` decides its ECN marks.
    pub fn new(params: SwitchParams, ports: u16, random: Stream) -> Self {
        let marker = params.ecn.map(|ecn| {
            let pmax_ppm = (ecn.pmax.as_f64() * 1e6).round() as u32;
            RedMarker::new(ecn.kmin.bytes(), ecn.kmax.bytes(), pmax_ppm)
        });
        Switch {
            params,
            mac: MacAddr([0x02, 0x50, 0x53, 0x00, 0x00, 0x00]),
            marker,
            random,
            ports: (0..ports).map(|_| Port::default()).collect(),
            routes: Vec::new(),
            buffer_bytes: 0,
            stats: SwitchStats::default(),
        }
    }

    /// Frames to `destination` leave by `port`.
    pub fn add_route(&mut self, destination: Ipv4Addr, port: PortId) {
        match self.routes.binary_search_by_key(&destination, |route| route.0) {
            Ok(at) => self.routes[at].1 = port,
            Err(at) => self.routes.insert(at, (destination, port)),
        }
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

    /// Bytes waiting at one port, all classes.
    pub fn queue_bytes(&self, port: PortId) -> u64 {
        self.ports[usize::from(port.0)].queue_bytes()
    }

    /// Bytes waiting in all queues.
    pub fn buffer_bytes(&self) -> u64 {
        self.buffer_bytes
    }

    fn route(&self, destination: Ipv4Addr) -> Option<PortId> {
        let at = self.routes.binary_search_by_key(&destination, |route| route.0).ok()?;
        Some(self.routes[at].1)
    }

    fn forward(&mut self, ingress: PortId, mut frame: Frame, out: &mut Outbox) {
        let Some((destination, class)) = destination_and_class(&frame.packet) else {
            self.stats.no_route += 1;
            return;
        };
        let Some(egress) = self.route(destination).filter(|port| usize::from(port.0) < self.ports.len()) else {
            self.stats.no_route += 1;
            return;
        };
        let bytes = frame.packet.frame_len() as u64;
        if !self.admit(ingress, egress, class, bytes) {
            return;
        }
        let queue = &mut self.ports[usize::from(egress.0)];
        if let (Some(marker), Packet::Roce(packet)) = (&self.marker, &mut frame.packet) {
            if packet.ecn.is_capable() && marker.mark(queue.class_bytes(class), self.random.next_u32()) {
                packet.ecn = Ecn::Ce;
                queue.stats.ecn_marked += 1;
            }
        }
        queue.push(class, Queued { frame, ingress, bytes });
        self.send_next(egress, out);
        self.pause_if_needed(ingress, class, out);
    }

    /// Takes room in the buffer, or counts a drop.
    fn admit(&mut self, ingress: PortId, egress: PortId, class: usize, bytes: u64) -> bool {
        let from = &mut self.ports[usize::from(ingress.0)];
        let lossless = self.params.pfc.filter(|pfc| pfc.classes >> class & 1 == 1);
        let limit = lossless.map_or(u64::MAX, |pfc| pfc.xoff.bytes() + pfc.headroom.bytes());
        let counter = if self.buffer_bytes + bytes > self.params.buffer.bytes() {
            &mut self.stats.dropped_buffer
        } else if from.ingress_bytes[class] + bytes > limit {
            &mut self.stats.dropped_headroom
        } else {
            from.take_in(class, bytes);
            self.buffer_bytes += bytes;
            self.stats.peak_buffer_bytes = self.stats.peak_buffer_bytes.max(self.buffer_bytes);
            return true;
        };
        *counter += 1;
        self.ports[usize::from(egress.0)].stats.dropped += 1;
        false
    }

    fn pause_if_needed(&mut self, ingress: PortId, class: usize, out: &mut Outbox) {
        let Some(pfc) = self.params.pfc else { return };
        let port = &mut self.ports[usize::from(ingress.0)];
        let over = pfc.classes >> class & 1 == 1 && port.ingress_bytes[class] > pfc.xoff.bytes();
        if over && port.begin_pausing(class, out.now()) {
            self.send_next(ingress, out);
        }
    }

    fn resume_if_possible(&mut self, ingress: PortId, class: usize, out: &mut Outbox) {
        let Some(pfc) = self.params.pfc else { return };
        let port = &mut self.ports[usize::from(ingress.0)];
        if port.ingress_bytes[class] <= pfc.xon.bytes() && port.end_pausing(class, out.now()) {
            self.send_next(ingress, out);
        }
    }

    /// Starts the next frame of a port that is free: PFC first, then the highest class that is not paused.
    fn send_next(&mut self, id: PortId, out: &mut Outbox) {
        let mac = self.mac;
        let port = &mut self.ports[usize::from(id.0)];
        if port.is_sending() {
            return;
        }
        if let Some(control) = port.take_pfc_frame(SwitchParams::PAUSE_QUANTA) {
            out.transmit(id, Frame::new(Packet::MacControl { src: mac, control }));
            if let (true, Some(link)) = (port.is_pausing(), out.link(id)) {
                let pause = quanta_time(SwitchParams::PAUSE_QUANTA, link.rate);
                let due = port.plan_refresh(out.now() + SwitchParams::refresh_after(pause));
                set_timer(out, due, Wake::Refresh(id.0));
            }
        } else if let Some(frame) = port.take_next(out.now()) {
            out.transmit(id, frame);
        }
    }

    fn receive_pause(&mut self, id: PortId, control: &MacControl, out: &mut Outbox) {
        let Some(rate) = out.link(id).map(|link| link.rate) else { return };
        let port = &mut self.ports[usize::from(id.0)];
        let timer = port.pause.receive(out.now(), control, rate);
        set_timer(out, timer, Wake::Resume(id.0));
        self.send_next(id, out);
    }
}

impl Node for Switch {
    fn on_frame(&mut self, _at: Time, port: PortId, frame: Frame, out: &mut Outbox) {
        if !frame.fcs_ok {
            self.stats.fcs_errors += 1;
        } else if let Packet::MacControl { control, .. } = &frame.packet {
            self.receive_pause(port, control, out);
        } else {
            self.forward(port, frame, out);
        }
    }

    fn on_timer(&mut self, now: Time, token: u64, out: &mut Outbox) {
        let wake = Wake::from_token(token);
        let (Wake::Resume(id) | Wake::Refresh(id)) = wake;
        let port = &mut self.ports[usize::from(id)];
        let timer = match wake {
            Wake::Resume(_) => port.pause.wake(now),
            Wake::Refresh(_) => port.refresh(now),
        };
        set_timer(out, timer, wake);
        self.send_next(PortId(id), out);
    }

    fn on_tx_done(&mut self, _now: Time, id: PortId, out: &mut Outbox) {
        let sent = self.ports[usize::from(id.0)].finish_sending();
        if let Some((ingress, class, bytes)) = sent {
            self.buffer_bytes -= bytes;
            self.ports[usize::from(ingress.0)].ingress_bytes[class] -= bytes;
            self.resume_if_possible(ingress, class, out);
        }
        self.send_next(id, out);
    }

    fn sample(&mut self, now: Time, trace: &mut TraceSink) {
        trace.record(0, "buffer_bytes", self.buffer_bytes as f64);
        for (index, port) in self.ports.iter().enumerate() {
            let channel = index as u16;
            trace.record(channel, "queue_bytes", port.queue_bytes() as f64);
            trace.record(channel, "ecn_marked", port.stats.ecn_marked as f64);
            trace.record(channel, "pfc_paused", f64::from(u8::from(port.pause.any_paused(now))));
            trace.record(channel, "pfc_pausing", f64::from(u8::from(port.is_pausing())));
        }
    }
}

fn set_timer(out: &mut Outbox, at: Option<Time>, wake: Wake) {
    if let Some(at) = at {
        out.timer_at(at, wake.token());
    }
}

/// Where a frame wants to go and in which class. Bytes that cannot be trusted (see `Faults::corrupt_undetected`) are
/// forwarded by what they say, as a real switch would.
fn destination_and_class(packet: &Packet) -> Option<(Ipv4Addr, usize)> {
    match packet {
        Packet::Roce(packet) => Some((packet.ip_dst, usize::from(packet.dscp >> 3) % CLASSES)),
        Packet::Tcp(packet) => Some((packet.ip_dst, usize::from(packet.dscp >> 3) % CLASSES)),
        Packet::MacControl { .. } => None,
        Packet::Raw(bytes) => {
            const IP: usize = 14;
            let eth = EthernetView::new_checked(bytes).ok()?;
            if eth.ethertype() != ETHERTYPE_IPV4 || Ipv4View::new_checked(eth.payload()).is_err() {
                return None;
            }
            let destination: [u8; 4] = bytes.get(IP + 16..IP + 20)?.try_into().ok()?;
            Some((destination.into(), usize::from(bytes[IP + 1] >> 5)))
        }
    }
}
