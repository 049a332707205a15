// SPDX-License-Identifier: Apache-2.0
//! The cost of forwarding a frame: hosts on one switch of 8 and of 1,000 ports, every port sending and receiving at
//! line rate, with ECN and PFC on; and the same with a relay instead of the switch, which shows the engine's share.
//! Prints nanoseconds of CPU time per frame. Run: `cargo run --release -p penstock-netsim --example forwarding_cost
//! [frames]`.

use std::net::Ipv4Addr;

use nix::sys::resource::{getrusage, UsageWho};
use nix::sys::time::TimeValLike;
use penstock_netsim::{
    lossless_headroom, ByteSize, EcnParams, Engine, Frame, LinkParams, Node, Outbox, PfcParams, PortId, Stream, Switch,
    SwitchParams, Time,
};
use penstock_wire::{BthRepr, Ecn, MacAddr, Opcode, Packet, Payload, Psn, Qpn, RocePacket};

const PORT: PortId = PortId(0);
const MTU: u16 = 4096;

fn ip(n: u16) -> Ipv4Addr {
    Ipv4Addr::from_bits(0x0A00_0000 + u32::from(n))
}

/// Sends back to back, to one host after the other, and counts what arrives.
struct Host {
    me: u16,
    hosts: u16,
    left: u32,
    received: u64,
}

impl Host {
    fn send(&mut self, out: &mut Outbox) {
        if self.left == 0 {
            return;
        }
        self.left -= 1;
        // all hosts are at the same distance at each moment, so that no port is wanted by two
        let distance = 1 + (self.left % u32::from(self.hosts - 1)) as u16;
        let packet = RocePacket {
            eth_dst: MacAddr::default(),
            eth_src: MacAddr::default(),
            cn_tag: None,
            ip_src: ip(self.me),
            ip_dst: ip((self.me + distance) % self.hosts),
            dscp: 26,
            ecn: Ecn::Ect0,
            ttl: 64,
            udp_sport: 0xC000,
            bth: BthRepr::new(Opcode::WriteMiddle, Qpn::new(1), Psn::new(self.left)),
            reth: None,
            aeth: None,
            imm: None,
            payload: Payload::Virtual(MTU.into()),
        };
        out.transmit(PORT, Frame::new(packet.into()));
    }
}

impl Node for Host {
    fn on_start(&mut self, out: &mut Outbox) {
        self.send(out);
    }
    fn on_frame(&mut self, _at: Time, _port: PortId, mut frame: Frame, _out: &mut Outbox) {
        self.received += u64::from(matches!(frame.packet(), Packet::Roce(_)));
    }
    fn on_timer(&mut self, _now: Time, _token: u64, _out: &mut Outbox) {}
    fn on_tx_done(&mut self, _now: Time, _port: PortId, out: &mut Outbox) {
        self.send(out);
    }
}

/// Sends what comes in by one port out by its neighbour.
struct Relay(u16);

impl Node for Relay {
    fn on_frame(&mut self, _at: Time, port: PortId, frame: Frame, out: &mut Outbox) {
        out.transmit(PortId((port.0 + 1) % self.0), frame);
    }
    fn on_timer(&mut self, _now: Time, _token: u64, _out: &mut Outbox) {}
}

fn switch(ports: u16) -> Result<Switch, Box<dyn std::error::Error>> {
    let headroom = lossless_headroom(&LinkParams::default(), MTU);
    let buffer = ByteSize(u64::from(ports) * 200_000);
    let pfc = PfcParams::lossless(1 << 3, buffer, ports.into(), headroom, MTU)?;
    let params = SwitchParams { buffer, pfc: Some(pfc), ..SwitchParams::default() }.with_ecn(EcnParams::default());
    let mut switch = Switch::new(params, ports, Stream::new(1, "switch"));
    (0..ports).for_each(|port| switch.add_route(ip(port), &[PortId(port)]));
    Ok(switch)
}

/// CPU time of this process in nanoseconds.
fn cpu_ns() -> Result<i64, nix::Error> {
    let usage = getrusage(UsageWho::RUSAGE_SELF)?;
    Ok(usage.user_time().num_nanoseconds() + usage.system_time().num_nanoseconds())
}

fn cost(ports: u16, frames: u32, middle: Box<dyn Node>) -> Result<f64, Box<dyn std::error::Error>> {
    let mut engine = Engine::new(1);
    let middle = engine.add_node("middle", middle);
    let mut hosts = Vec::new();
    for me in 0..ports {
        let host = Host { me, hosts: ports, left: frames / u32::from(ports), received: 0 };
        let host = engine.add_node(format!("host{me}"), Box::new(host));
        engine.connect((host, PORT), (middle, PortId(me)), LinkParams::default())?;
        hosts.push(host);
    }
    let begin = cpu_ns()?;
    engine.run_until(Time::MAX)?;
    let spent = cpu_ns()? - begin;
    let received: u64 = hosts.iter().filter_map(|host| engine.node::<Host>(*host)).map(|host| host.received).sum();
    Ok(spent as f64 / received as f64)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let frames: u32 = std::env::args().nth(1).map_or(Ok(2_000_000), |text| text.parse())?;
    for ports in [8, 1000] {
        let relay = cost(ports, frames, Box::new(Relay(ports)))?;
        let with_switch = cost(ports, frames, Box::new(switch(ports)?))?;
        println!("{ports} ports: {with_switch:.0} ns a frame, {relay:.0} of them engine, links and hosts");
    }
    Ok(())
}
