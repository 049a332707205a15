// SPDX-License-Identifier: Apache-2.0
//! The packet socket of all front ends: acknowledgements in, data out, faults in between.
//! Promise: frames that the interface does not accept now are kept and sent first the next time, for a bounded time; then
//! they are lost and counted. Every received packet that no front end takes is counted by the reason.
//! Source: packet(7).

use super::faults::Faults;
use super::plan::Plan;
use bytes::{Bytes, BytesMut};
use penstock_readout::link::{drop_all, Frames, Gather, Interface, PacketSocket};
use penstock_units::Time;
use penstock_wire::{FrameParts, MacAddr, ParseError, RocePacket, UDP_PORT_ROCE};
use serde::Serialize;
use std::io;
use std::net::{Ipv4Addr, UdpSocket};
use std::time::Duration;

/// Frames that wait for the interface; above this number no front end gets a turn.
const FULL: usize = 256;
/// Acknowledgements, CNPs and messages of the connection manager that may wait.
const ANSWERS: Frames = Frames { longest: 384, count: 4096 };
/// Received frames are copied into pieces of one such block.
const BLOCK: usize = 1 << 16;
/// A signal is noticed within this time.
pub const LONGEST_SLEEP: Duration = Duration::from_millis(100);
/// Time from one attempt to the next with a frame that the device does not take.
pub const REFUSED: Duration = Duration::from_micros(50);

/// Frames that no front end was given, under the receiver's names, and those that the device refused.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct LinkCounts {
    pub rx_icrc_encapsulated: u64,
    pub rx_malformed: u64,
    pub rx_foreign_vlan: u64,
    pub rx_dropped: u64,
    /// Frames for no front end of this process, or for one that is not connected.
    pub dropped_unknown_qpn: u64,
    pub refused_frames: u64,
}

/// A frame on its way out.
enum Frame {
    /// Its payload is still in its message.
    Parts(FrameParts),
    /// One that faults have passed.
    Whole(Bytes),
}

impl Gather for Frame {
    fn pieces(&self) -> [&[u8]; 3] {
        match self {
            Frame::Parts(parts) => parts.pieces(),
            Frame::Whole(bytes) => bytes.pieces(),
        }
    }
}

pub struct Link {
    socket: PacketSocket,
    mac: MacAddr,
    /// Keep the kernel from refusing our port.
    _ports: Vec<UdpSocket>,
    /// Injected faults of frames in both directions; none: the link is left alone.
    faults: Option<Faults>,
    ack_faults: Option<Faults>,
    out: Vec<Frame>,
    block: BytesMut,
    counts: LinkCounts,
}

impl Link {
    pub fn open(plan: &Plan) -> Result<Link, String> {
        let iface = &plan.iface;
        let fail = |what: &str, error: io::Error| format!("{iface}: {what}: {error}");
        let interface = Interface::find(iface).map_err(|e| fail("no such interface", e))?;
        let needed = plan.mtu.bytes() + 80;
        if interface.mtu < needed {
            return Err(format!(
                "{iface} has MTU {}, a path MTU of {} needs {needed}: take a smaller --mtu, or ip link set {iface} mtu 9000",
                interface.mtu,
                plan.mtu.bytes()
            ));
        }
        let hold = |ip: Ipv4Addr| UdpSocket::bind((ip, UDP_PORT_ROCE)).and_then(|s| drop_all(&s).map(|()| s));
        let ports: Result<Vec<_>, String> = plan
            .ips()
            .map(|ip| {
                hold(ip).map_err(|error| match error.kind() {
                    io::ErrorKind::AddrInUse => {
                        format!(
                            "{ip}: UDP port {UDP_PORT_ROCE} is in use: another program sends or receives RoCEv2 there"
                        )
                    }
                    _ => format!("{ip}: {error}; give the interface this address: ip addr add {ip}/16 dev {iface}"),
                })
            })
            .collect();
        let socket = PacketSocket::open((iface, &interface), UDP_PORT_ROCE, None, ANSWERS);
        let socket = socket.map_err(|e| fail("packet socket (it needs root or CAP_NET_RAW)", e))?;
        let faults = plan.faults.any().then(|| Faults::new(plan.faults, plan.seed));
        let ack_faults = plan.ack_faults.any().then(|| Faults::new(plan.ack_faults, !plan.seed));
        let (mac, block, counts) = (MacAddr(interface.mac), BytesMut::new(), LinkCounts::default());
        Ok(Link { socket, mac, _ports: ports?, faults, ack_faults, out: Vec::new(), block, counts })
    }

    pub fn mac(&self) -> MacAddr {
        self.mac
    }

    /// The counts up to now.
    pub fn counts(&mut self) -> LinkCounts {
        let (rx_foreign_vlan, rx_dropped) = (self.socket.foreign_vlan(), self.socket.dropped());
        LinkCounts { rx_foreign_vlan, rx_dropped, refused_frames: self.socket.refused(), ..self.counts }
    }

    /// See [`PacketSocket::refusal`].
    pub fn refusal(&self) -> Option<String> {
        self.socket.refusal()
    }

    /// Hands every packet that is there to `take`, which returns whether it is a front end's; whether there was one.
    pub fn receive(&mut self, mut take: impl FnMut(&RocePacket) -> bool) -> bool {
        let (block, faults, counts) = (&mut self.block, &mut self.ack_faults, &mut self.counts);
        let mut parse = |frame: Bytes| match RocePacket::parse(&frame) {
            Ok(packet) if take(&packet) => {}
            Ok(_) => counts.dropped_unknown_qpn += 1,
            Err(ParseError::BadIcrc { .. }) => counts.rx_icrc_encapsulated += 1,
            Err(_) => counts.rx_malformed += 1,
        };
        let frames = self.socket.receive(FULL, |frame, _| {
            if block.capacity() < frame.len() {
                block.reserve(BLOCK);
            }
            block.extend_from_slice(frame);
            let frame = block.split().freeze();
            match faults {
                Some(faults) => faults.pass(frame, &mut parse),
                None => parse(frame),
            }
            true
        });
        frames > 0
    }

    /// Whether another frame may be queued.
    pub fn has_room(&self) -> bool {
        self.out.len() < FULL
    }

    pub fn queue(&mut self, packet: &RocePacket) {
        let out = &mut self.out;
        match &mut self.faults {
            None => out.push(Frame::Parts(packet.emit_parts())),
            Some(faults) => faults.pass(packet.emit(), |frame| out.push(Frame::Whole(frame))),
        }
    }

    /// Sends what is queued, as far as the interface takes it.
    ///
    /// # Errors
    /// The interface is gone.
    pub fn flush(&mut self, now: Time) -> io::Result<()> {
        if !self.out.is_empty() {
            let done = self.socket.send(now, &self.out)?;
            self.out.drain(..done);
        }
        Ok(())
    }

    /// Sleeps until something has come, at most for `limit`, and so that a signal is noticed soon.
    ///
    /// # Errors
    /// The interface is gone.
    pub fn wait(&mut self, limit: Duration) -> io::Result<()> {
        let most = if self.out.is_empty() { LONGEST_SLEEP } else { REFUSED };
        self.socket.wait(limit.min(most)).or_else(|error| self.socket.outlive(error))
    }
}

/// The fault of a run whose interface has been removed.
pub fn is_gone(plan: &Plan, error: &io::Error) -> String {
    format!("{}: {error}: the interface is gone", plan.iface)
}
