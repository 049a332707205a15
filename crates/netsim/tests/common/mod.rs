// SPDX-License-Identifier: Apache-2.0
//! Small nodes for tests: a sender that obeys PFC, a sink that keeps a log, and addresses.
#![allow(dead_code, reason = "each test binary uses its own part")]

use std::net::Ipv4Addr;

use penstock_netsim::{Frame, LinkParams, Node, Outbox, PortId, Time};
use penstock_wire::{BthRepr, Ecn, MacAddr, MacControl, Opcode, Packet, Payload, Psn, Qpn, RocePacket};

pub const PORT: PortId = PortId(0);
pub const CLASS: usize = 3;

pub fn ip(n: u16) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, (n >> 8) as u8, n as u8)
}

/// A WRITE MIDDLE from `src` to `dst`.
pub fn packet(src: u16, dst: u16, psn: u32, payload: u32) -> RocePacket {
    RocePacket {
        eth_dst: MacAddr([2, 0, 0, 0, 0, 1]),
        eth_src: MacAddr([2, 0, 0, 0, 0, 2]),
        cn_tag: None,
        ip_src: ip(src),
        ip_dst: ip(dst),
        dscp: (CLASS as u8) << 3,
        ecn: Ecn::Ect0,
        ttl: 64,
        udp_sport: 0xC000 + src,
        bth: BthRepr::new(Opcode::WriteMiddle, Qpn::new(u32::from(src)), Psn::new(psn)),
        reth: None,
        aeth: None,
        imm: None,
        payload: Payload::Virtual(payload),
    }
}

/// Sends packets back to back from a given time on; honours pauses.
pub struct Sender {
    pub src: u16,
    pub dst: u16,
    pub packets: u32,
    pub payload: u32,
    pub start: Time,
    pub sent: u32,
    pub pauses: u32,
    pub honours_pause: bool,
    paused_until: Time,
    busy: bool,
}

impl Sender {
    pub fn new(src: u16, dst: u16, packets: u32, payload: u32, start: Time) -> Self {
        let (paused_until, honours_pause) = (Time::ZERO, true);
        Sender { src, dst, packets, payload, start, sent: 0, pauses: 0, honours_pause, paused_until, busy: false }
    }

    fn send(&mut self, out: &mut Outbox) {
        if !self.busy && self.sent < self.packets && out.now() >= self.paused_until.max(self.start) {
            let packet = packet(self.src, self.dst, self.sent, self.payload);
            self.busy = true;
            self.sent += 1;
            out.transmit(PORT, Frame::new(packet.into()));
        }
    }
}

impl Node for Sender {
    fn on_start(&mut self, out: &mut Outbox) {
        out.timer_at(self.start, 0);
    }

    fn on_frame(&mut self, at: Time, _port: PortId, mut frame: Frame, out: &mut Outbox) {
        let Packet::MacControl { control, .. } = *frame.packet() else { return };
        let quanta = match control {
            MacControl::Pause { quanta } => Some(quanta),
            MacControl::Pfc { enabled, quanta } => (enabled >> CLASS & 1 == 1).then_some(quanta[CLASS]),
        };
        if let Some(quanta) = quanta.filter(|_| self.honours_pause) {
            self.pauses += u32::from(quanta > 0);
            let rate = out.link(PORT).unwrap().rate;
            self.paused_until = at + rate.time_for(u64::from(quanta) * 64);
            out.timer_at(self.paused_until, 0);
        }
    }

    fn on_timer(&mut self, _now: Time, _token: u64, out: &mut Outbox) {
        self.send(out);
    }

    fn on_tx_done(&mut self, _now: Time, _port: PortId, out: &mut Outbox) {
        self.busy = false;
        self.send(out);
    }
}

/// Gives all its packets to its port at the start, obeys no pause, and keeps what it gets.
#[derive(Default)]
pub struct Flood {
    pub packets: Vec<RocePacket>,
    pub received: Vec<(Time, Packet)>,
}

impl Flood {
    pub fn new(packets: impl IntoIterator<Item = RocePacket>) -> Self {
        Flood { packets: packets.into_iter().collect(), received: Vec::new() }
    }
}

impl Node for Flood {
    fn on_start(&mut self, out: &mut Outbox) {
        for packet in self.packets.drain(..) {
            out.transmit(PORT, Frame::new(packet.into()));
        }
    }

    fn on_frame(&mut self, at: Time, _port: PortId, frame: Frame, _out: &mut Outbox) {
        self.received.push((at, frame.into_packet()));
    }

    fn on_timer(&mut self, _now: Time, _token: u64, _out: &mut Outbox) {}
}

/// One frame a sink has seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    pub at: Time,
    pub src: Option<Ipv4Addr>,
    pub psn: Option<u32>,
    pub ecn: Option<Ecn>,
    pub fcs_ok: bool,
}

/// Takes everything and keeps a log.
#[derive(Default)]
pub struct Sink {
    pub log: Vec<Seen>,
}

impl Node for Sink {
    fn on_frame(&mut self, at: Time, _port: PortId, mut frame: Frame, _out: &mut Outbox) {
        let roce = match frame.packet() {
            Packet::Roce(packet) => Some((packet.ip_src, packet.bth.psn.value(), packet.ecn)),
            _ => None,
        };
        let (src, psn, ecn) = (roce.map(|r| r.0), roce.map(|r| r.1), roce.map(|r| r.2));
        self.log.push(Seen { at, src, psn, ecn, fcs_ok: frame.fcs_ok() });
    }

    fn on_timer(&mut self, _now: Time, _token: u64, _out: &mut Outbox) {}
}

pub fn link(gbps: u64, delay: Time) -> LinkParams {
    LinkParams { rate: penstock_netsim::Rate::from_gbps(gbps), delay, ..LinkParams::default() }
}
